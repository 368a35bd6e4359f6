"""One full-duplex speaker: it hears while it speaks, thinks, and knows when to stop.

A voice joins ears, a brain and a mouth behind one session. Its only clock is
the audio it is given: it works in 20 ms blocks of its own session time, so what
it says does not depend on how its input was cut up. Jobs become due at declared
media times; in virtual time a frame waits for what is due, on the wall clock
late work comes late and is noted. The session drives it through ``frame``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

import numpy as np

from duplex.application.words import is_backchannel
from duplex.clock import Clock
from duplex.local.collision import Collisions
from duplex.local.endpoint import BLOCK
from duplex.local.hearing import Decoded, Hearing, Theirs
from duplex.local.pondering import Pondering
from duplex.local.seams import (
    VOICE_RATE_HZ,
    Act,
    Brain,
    Delegate,
    Ears,
    Finish,
    Heard,
    Mouth,
    Note,
    Pcm,
    Ponder,
    Said,
    Say,
    VoiceFrame,
    Words,
)
from duplex.local.speech import Speech, begin_speech, to_ms
from duplex.local.telling import Timed, Told, as_note
from duplex.local.thinking import Thinking, ThinkTimes
from duplex.local.timbre import seeded_style
from duplex.local.yielding import Fader, Level, level
from duplex.values import Json, Side

WORDS_EVERY = VOICE_RATE_HZ // 5
"""Transcripts of what is said leave on multiples of this (200 ms)."""
SPEECH_EVERY = VOICE_RATE_HZ // 5
QUIET_EVERY = VOICE_RATE_HZ
WORDLESS = VOICE_RATE_HZ // 2
"""Speech shorter than this that held no words is no utterance to the brain."""
QUEUE_LIMIT = 16
"""Sayings that may wait; what a flood of commentary adds beyond is not said."""


class LocalVoice:
    """See ``seams.Voice``; ``seed`` None means no drawn pace, pitch or jitter."""

    def __init__(
        self,
        brain: Brain,
        ears: Ears,
        mouth: Mouth,
        *,
        voice: str,
        seed: int | None,
        role: Side,
        think: ThinkTimes | None = None,
        pace: float = 1.0,
    ) -> None:
        self.instructions: list[str] = []
        """Rules added during the session, for whoever keeps the brain's context."""
        self.thoughts: list[str] = []
        """Silent context added during the session."""
        self.style = seeded_style(voice, seed, role.label, pace=pace)
        self._brain = brain
        self._mouth = mouth
        self._role = role
        self._thinking = Thinking(think or ThinkTimes(), seed, role.label)
        self._hearing = Hearing(ears, self._thinking)
        self._collisions = Collisions(seed, role)
        self._wait = False
        self._position = 0
        self._block = np.zeros(BLOCK, np.int16)
        self._filled = 0
        self._playing = np.zeros(BLOCK, np.int16)
        self._fader = Fader()
        self._speech: Speech | None = None
        self._queue: deque[Speech] = deque()
        self._fading = False
        self._own_end = 0
        self._timed: list[Timed] = []
        self._commentary: deque[tuple[str, str | None]] = deque()
        self._quiet_told = 0
        self._speech_told = 0
        self._told = Told()
        self._pondering = Pondering()

    async def begin(self, clock: Clock) -> None:
        self._wait = clock.virtual
        self._plan(self._brain.opening())

    async def frame(self, pcm: Pcm) -> VoiceFrame:
        """Hear ``pcm`` and speak as many samples; raise DuplexError if an engine is lost."""
        out = np.empty(len(pcm), np.int16)
        at = 0
        while at < len(pcm):
            if self._filled == 0:
                await self._step()
            taken = min(BLOCK - self._filled, len(pcm) - at)
            span = slice(self._filled, self._filled + taken)
            self._block[span] = pcm[at : at + taken]
            out[at : at + taken] = self._playing[span]
            self._filled += taken
            at += taken
            if self._filled == BLOCK:
                self._filled = 0
                self._position += BLOCK
                own_start = self._speech.start if self._speech is not None else None
                self._hearing.push(self._block, own_start, self._own_end)
        told, self._told = self._told, Told()
        return VoiceFrame(
            pcm=out,
            said=tuple(told.said),
            heard=tuple(told.heard),
            delegations=tuple(told.delegations),
            notes=tuple(told.notes),
        )

    def commentary(self, text: str, delegation_id: str | None) -> None:
        self._commentary.append((text, delegation_id))

    def thinking(self, text: str, delegation_id: str | None) -> None:
        self.thoughts.append(text)

    def instruct(self, text: str) -> None:
        self.instructions.append(text)

    async def close(self) -> None:
        speeches = [*self._queue, *([self._speech] if self._speech else [])]
        for speech in speeches:
            speech.task.cancel()
        await asyncio.gather(*(one.task for one in speeches), return_exceptions=True)
        await self._pondering.close()
        await self._hearing.close()

    async def _step(self) -> None:
        """Decide what the block that begins now will be, from all that was heard before it."""
        while self._commentary:
            self._plan(self._brain.on_commentary(*self._commentary.popleft()))
        while (decoded := await self._hearing.due(self._position, self._wait)) is not None:
            await self._understand(decoded)
        if (thought := await self._pondering.decided(self._position, self._wait)) is not None:
            self._late("brain", thought.late)
            self._plan(thought.acts)
        self._follow_speech()
        self._follow_quiet()
        target = await self._follow_overlap()
        await self._choose()
        await self._render(target)
        self._release_timed()
        if self._position % WORDS_EVERY == 0:
            self._release_words()

    # -- deciding

    def _plan(self, acts: Sequence[Act]) -> None:
        """Put a brain's decisions where they take effect; audio is made from now on."""
        if not acts:
            return
        decided = self._position + self._thinking.brain()
        last: Speech | None = None
        for act in acts:
            if isinstance(act, Say):
                last = self._queue_say(act, decided) or last
            elif isinstance(act, Ponder):
                self._pondering.begin(act, self._position + self._thinking.model())
            elif isinstance(act, Note):
                self._told.notes.append(act)
            else:
                # Only the end of the call waits for the words before it.
                after = last if isinstance(act, Finish) else None
                self._timed.append(Timed(decided, act, after))

    def _queue_say(self, say: Say, decided: int) -> Speech | None:
        if len(self._queue) >= QUEUE_LIMIT:
            return None
        pause = say.pause_ms * VOICE_RATE_HZ // 1000
        speech = begin_speech(
            say,
            not_before=decided + pause + self._thinking.mouth(),
            mouth=self._mouth,
            style=self.style,
        )
        speech.decided = self._position
        self._queue.append(speech)
        return speech

    async def _understand(self, decoded: Decoded) -> None:
        """Words have arrived: publish them, stop for them if need be, let the brain react."""
        theirs, text = decoded.theirs, decoded.text
        self._late("decode", decoded.late)
        start_ms, end_ms = to_ms(theirs.start), to_ms(theirs.end)
        if text:
            self._told.heard.append(Words(text=f" {text}", start_ms=start_ms, end_ms=end_ms))
        elif theirs.end - theirs.start < WORDLESS:
            return
        speech = self._speech
        stops = theirs.overlapped and bool(text) and not is_backchannel(text)
        if stops and speech is not None and self._is_stopped_by(speech, theirs):
            theirs.cut = True
            await self._cut(speech)
        self._plan(
            self._brain.on_heard(
                Heard(
                    text=text,
                    start_ms=start_ms,
                    end_ms=end_ms,
                    overlapped=theirs.overlapped,
                    cut=theirs.cut,
                )
            )
        )

    def _is_stopped_by(self, speech: Speech, theirs: Theirs) -> bool:
        """Words that began together with these and broke off gave way; they stop nothing."""
        together = self._collisions.are_together(speech.start, theirs.start)
        return speech.start <= theirs.start and not together

    def _follow_speech(self) -> None:
        """Tell the brain of every 200 ms of the other side's ongoing speech."""
        current, ends = self._hearing.current, self._hearing.ends
        if current is None:
            self._speech_told = 0
            return
        lasted = ends.last_active - current.start
        if lasted >= self._speech_told + SPEECH_EVERY:
            self._speech_told = lasted // SPEECH_EVERY * SPEECH_EVERY
            self._plan(self._brain.on_speech(to_ms(self._speech_told)))

    def _follow_quiet(self) -> None:
        """Tell the brain of every second in which neither side spoke or was about to."""
        if self._speech is not None or self._hearing.current is not None:
            self._quiet_told = 0
            return
        quiet = self._position - max(self._own_end, self._hearing.ends.last_active)
        if quiet < self._quiet_told + QUIET_EVERY:
            return
        self._quiet_told = quiet // QUIET_EVERY * QUIET_EVERY
        if not (self._queue or self._hearing.busy or self._pondering.busy):
            self._plan(self._brain.on_quiet(to_ms(self._quiet_told)))

    # -- speaking

    async def _follow_overlap(self) -> Level:
        """Decide how loud to go on, and stop when talked over for long enough."""
        speech, theirs, ends = self._speech, self._hearing.current, self._hearing.ends
        if speech is None or theirs is None:
            if speech is not None:
                speech.exempt = False
            return Level.FULL
        if speech.exempt:
            return Level.FULL
        patience = self._collisions.stop_after(speech.start, theirs.start)
        target = level(self._position, speech.start, ends.burst, ends.last_active, patience)
        if target is Level.OFF:
            theirs.cut = True
            self._collisions.stopped(speech.start, self._position)
            await self._cut(speech)
        return target

    async def _choose(self) -> None:
        """Begin the next saying when it is due, the floor is free and its audio is there."""
        if self._speech is not None or self._fading or not self._queue:
            return
        speech = self._queue[0]
        over = self._hearing.current is not None
        due = max(speech.not_before, self._own_end + speech.pause if self._own_end else 0)
        waits = over or self._position < self._collisions.wait_until
        if self._position < due or (waits and not speech.say.over):
            return
        if not await self._ready(speech):
            if speech.wanted_at is None:
                speech.wanted_at = self._position
            return
        if speech.wanted_at is not None:
            self._late("first_audio", self._position - speech.wanted_at)
        self._queue.popleft()
        self._speech = speech
        speech.start = speech.end = self._position
        speech.exempt = over
        speech.stale = self._hearing.last_end > speech.decided

    async def _render(self, target: Level) -> None:
        """Fill the block that is played next."""
        if self._fading:
            self._fading = False
            return
        self._playing[:] = 0
        speech = self._speech
        if speech is None:
            return
        if await self._ready(speech):
            if speech.dry_at is not None:
                self._late("speech", self._position - speech.dry_at)
                speech.dry_at = None
        elif speech.dry_at is None:
            speech.dry_at = self._position
        speech.play(self._playing, self._position)
        self._playing[:] = self._fader.apply(self._playing, target)
        if speech.finished:
            self._collisions.finished()
            self._end(speech, complete=True)

    async def _ready(self, speech: Speech) -> bool:
        """Whether the next block's audio is there; in virtual time, wait until it is."""
        while (needed := speech.needs(BLOCK)) is not None:
            if not self._wait:
                return False
            await asyncio.wait([needed])
        return True

    async def _cut(self, speech: Speech) -> None:
        """Fade out over the block that is played next, and give up all that was queued."""
        await self._ready(speech)
        self._playing[:] = 0
        speech.play(self._playing, self._position)
        self._playing[:] = self._fader.apply(self._playing, Level.OFF)
        self._fading = True
        speech.cut(self._position + BLOCK)
        dropped = list(self._queue)
        self._queue.clear()
        self._end(speech, complete=False)
        for unsaid in dropped:
            unsaid.task.cancel()
            unsaid.ended = True
            self._report(unsaid, complete=False)

    def _end(self, speech: Speech, *, complete: bool) -> None:
        """An own utterance is over: publish its last words, note it, tell the brain."""
        self._speech = None
        self._fader.now = Level.FULL
        self._own_end = speech.end
        speech.ended = True
        text = speech.text
        if words := speech.words(speech.end):
            self._told.said.append(words)
        if self._role is Side.CALLER and text:
            fields: dict[str, Json] = {
                "text": text,
                "action": speech.say.action.value,
                "start_ms": to_ms(speech.start),
                "end_ms": to_ms(speech.end),
                "items": list(speech.say.items),
                "complete": complete,
            }
            if speech.stale:
                fields |= {"stale": True, "decided_ms": to_ms(speech.decided)}
            self._told.notes.append(Note(kind="utterance", fields=fields))
        self._report(speech, complete=complete)

    def _report(self, speech: Speech, *, complete: bool) -> None:
        say = speech.say
        self._plan(
            self._brain.on_said(
                Said(text=say.text, action=say.action, items=say.items, complete=complete)
            )
        )

    # -- telling

    def _release_words(self) -> None:
        if self._speech is not None and (words := self._speech.words(self._position)):
            self._told.said.append(words)

    def _release_timed(self) -> None:
        """Let decisions that are no speech take effect when their time has come."""
        waiting: list[Timed] = []
        for timed in self._timed:
            held = timed.after is not None and not timed.after.ended
            if held or timed.at > self._position:
                waiting.append(timed)
            elif isinstance(timed.act, Delegate):
                self._told.delegations.append(to_ms(self._position))
            elif self._role is Side.CALLER:
                self._told.notes.append(as_note(timed.act))
        self._timed = waiting

    def _late(self, what: str, samples: int) -> None:
        if late_ms := to_ms(samples):
            self._told.notes.append(Note(kind="late", fields={"what": what, "late_ms": late_ms}))
