"""A local voice in turns: it hears, decides, and answers each turn as fast as it can.

The Realtime counterpart of the full-duplex voice, with the same ears, brain and
mouth. It follows turns in 20 ms blocks of what it hears; a reply's audio is made
and sent as fast as the mouth goes, long before it can be heard. Thinking costs
its declared times on the clock. The session drives it and puts on the wire what
it emits; it never looks at messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from duplex.application.base import Line
from duplex.clock import Clock
from duplex.local.endpoint import BLOCK, QUIET, SHORTEST
from duplex.local.hearing import Decoded, Hearing
from duplex.local.realtime_errands import Errands, Wanted
from duplex.local.realtime_reply import Emit, Reply
from duplex.local.seams import (
    VOICE_RATE_HZ,
    Act,
    Brain,
    Delegate,
    Ears,
    Heard,
    Mouth,
    Pcm,
    Said,
    Say,
    Style,
)
from duplex.local.speech import to_ms
from duplex.local.thinking import Thinking
from duplex.protocols.realtime_server import RealtimeMachine
from duplex.values import Json

PREFIX_MS = 300
"""A turn is said to begin this much before its first sound, as the service does."""
SAYINGS = 50
"""Sayings that may still turn out not to have been heard."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """Who answers one session."""

    brain: Brain
    ears: Ears
    mouth: Mouth
    style: Style
    thinking: Thinking
    errands: Errands | None = None


class Talk:
    """One session's turns and responses."""

    def __init__(
        self,
        party: Party,
        machine: RealtimeMachine,
        clock: Clock,
        emit: Emit,
        voiced: Callable[[int], None],
    ) -> None:
        """``voiced`` is told of every ms in which a reply is being heard, by our reckoning."""
        self._party = party
        self._machine = machine
        self._clock = clock
        self._emit = emit
        self._voiced = voiced
        self._hearing = Hearing(party.ears, party.thinking)
        self._rest: Pcm = np.zeros(0, np.int16)
        self._turn: str | None = None
        self._turns: list[str] = []
        self._lines: list[Line] = []
        self._later: list[Act] = []
        self._cut = False
        self._closed = False
        self._reply: Reply | None = None
        self._task: asyncio.Task[None] | None = None
        self._playing = (0, 0)
        self._last: dict[str, Say] = {}

    # -- what it hears ------------------------------------------------------

    async def hear(self, pcm: Pcm) -> None:
        """Hear the next int16 samples at 24 kHz."""
        waiting = np.concatenate((self._rest, pcm)) if len(self._rest) else pcm
        whole = len(waiting) - len(waiting) % BLOCK
        self._rest = waiting[whole:]
        for at in range(0, whole, BLOCK):
            self._block(waiting[at : at + BLOCK])
            if self._machine.settings.vad is not None:
                await self._understand(self._hearing.ends.position, wait=self._clock.virtual)

    def _block(self, block: Pcm) -> None:
        ends, hearing = self._hearing.ends, self._hearing
        start, end = self._playing
        playing = start <= ends.position < end
        hearing.push(block, start if playing else None, end)
        if playing:
            self._voiced(to_ms(len(block)))
        if self._machine.settings.vad is None:
            return
        if hearing.current is not None:
            if self._turn is None and ends.last_active - ends.start >= SHORTEST:
                self._begin_turn()
        elif self._turn is not None:
            self._end_turn(self._turn)

    def _begin_turn(self) -> None:
        self._turn = self._machine.new_item()
        at_ms = max(0, to_ms(self._hearing.ends.start) - PREFIX_MS)
        self._emit(self._machine.say_speech(self._turn, started=True, at_ms=at_ms))
        if self._machine.settings.interrupt_response:
            self.cancel("turn_detected")

    def _end_turn(self, item_id: str) -> None:
        self._turn = None
        at_ms = to_ms(self._hearing.ends.position)
        self._emit(self._machine.say_speech(item_id, started=False, at_ms=at_ms))
        self._emit(self._machine.say_committed(item_id))
        self._turns.append(item_id)

    async def _understand(self, until: int, *, wait: bool) -> list[Act]:
        """Take the utterances that are due; answer each unless the client asks for answers."""
        acts: list[Act] = []
        while (decoded := await self._hearing.due(until, wait)) is not None:
            acts += self._heard(decoded)
            settings = self._machine.settings
            if settings.vad is not None and settings.create_response and acts:
                self.respond(acts)
                acts = []
        return acts

    def _heard(self, decoded: Decoded) -> list[Act]:
        theirs, text = decoded.theirs, decoded.text
        item_id = self._turns.pop(0) if self._turns else self._machine.new_item()
        if self._machine.settings.transcription is not None:
            seconds = (theirs.end - theirs.start) / VOICE_RATE_HZ
            self._emit(self._machine.say_heard(item_id, text, seconds))
        cut, self._cut = self._cut, False
        start_ms, end_ms = to_ms(theirs.start), to_ms(theirs.end)
        if text:
            self._lines.append(Line(role="user", text=text, start_ms=start_ms))
        heard = Heard(
            text=text, start_ms=start_ms, end_ms=end_ms, overlapped=theirs.overlapped, cut=cut
        )
        return [*self._party.brain.on_heard(heard)]

    # -- what a client asks -------------------------------------------------

    def commit(self, item_id: str) -> None:
        """The client says that the turn is over: nothing more belongs to it."""
        self._turns.append(item_id)
        for _ in range(QUIET // BLOCK + 1):
            self._block(np.zeros(BLOCK, np.int16))

    def tell(self, text: str) -> None:
        """A text was put into the conversation: words to open with, or to pass on."""
        self._later += self._party.brain.on_commentary(text, None)

    def output(self, call_id: str, output: str) -> None:
        if self._party.errands is not None:
            self._party.errands.answer(call_id, output)

    def truncated(self, item_id: str, audio_end_ms: int) -> None:
        """Of that reply only so much was heard."""
        say = self._last.pop(item_id, None)
        self._playing = (self._playing[0], min(self._playing[1], self._hearing.ends.position))
        if say is not None:
            self._not_said(say)

    def respond(self, acts: Sequence[Act] | None = None) -> None:
        """Begin a response; without ``acts`` it says what there is to say."""
        if self._closed:
            return
        if self._machine.response_id is not None:
            self._later += acts or ()
            return
        self._emit(self._machine.say_response())
        self._task = self._clock.spawn(self._answer(acts))

    def cancel(self, reason: str) -> None:
        """End the response under way, if there is one."""
        if self._machine.response_id is None:
            return
        if self._task is not None:
            self._task.cancel()
        reply, self._reply = self._reply, None
        output = [] if reply is None else reply.broken_off()
        if reply is not None and reply.item_id in self._last:
            self._not_said(self._last.pop(reply.item_id))
        details: Json = {"type": "cancelled", "reason": reason}
        self._emit(self._machine.say_response_done("cancelled", output, details=details))

    def _not_said(self, say: Say) -> None:
        self._cut = True
        said = Said(text=say.text, action=say.action, items=say.items, complete=False)
        self._later += self._party.brain.on_said(said)

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._party.errands is not None:
            await self._party.errands.close()
        await self._hearing.close()

    # -- answering ----------------------------------------------------------

    async def _answer(self, acts: Sequence[Act] | None) -> None:
        """Make one response from its beginning to its end."""
        reply = self._reply = Reply(self._machine, self._emit)
        try:
            await self._fill(reply, acts)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("the voice failed")
            error: Json = {"type": "server_error", "code": "server_error"}
            self._reply = None
            details: Json = {"type": "failed", "error": error}
            self._emit(self._machine.say_response_done("failed", [], details=details))
            return
        self._reply = None
        self._emit(self._machine.say_response_done("completed", reply.output, usage=reply.usage()))
        if self._later and self._machine.settings.vad is not None:
            later, self._later = self._later, []
            self.respond(later)

    async def _fill(self, reply: Reply, acts: Sequence[Act] | None) -> None:
        if acts is None and self._machine.settings.vad is None:
            acts = await self._understood()
        later, self._later = self._later, []
        everything = [*later, *(acts or ())]
        await self._perform(reply, everything)
        errands = self._party.errands
        waits = acts is None or any(isinstance(act, Delegate) for act in everything)
        while errands is not None and errands.open and not reply.calls:
            step = errands.take() or (await errands.next() if waits else None)
            while isinstance(step, Wanted):
                reply.call(step.call_id, step.name, step.arguments)
                step = errands.take()
            if step is None:
                return
            await self._perform(reply, self._party.brain.on_commentary(step.text, step.errand_id))

    async def _understood(self) -> list[Act]:
        """Take every utterance of a turn that the client has ended, at its declared time."""
        if not self._hearing.busy:
            return []
        await self._pause(self._party.thinking.ears())
        return await self._understand(1 << 62, wait=True)

    async def _perform(self, reply: Reply, acts: Sequence[Act]) -> None:
        """Say what is to be said in one item, and hand over what is to be done."""
        sayings = [act for act in acts if isinstance(act, Say)]
        if sayings:
            await self._say(reply, sayings)
        if self._party.errands is not None and any(isinstance(act, Delegate) for act in acts):
            self._party.errands.offered = self._machine.settings.tool_names
            self._party.errands.start(self._lines)

    async def _say(self, reply: Reply, sayings: Sequence[Say]) -> None:
        thinking, mouth = self._party.thinking, self._party.mouth
        pause = sayings[0].pause_ms * VOICE_RATE_HZ // 1000
        await self._pause(thinking.brain() + thinking.mouth() + pause)
        item_id = reply.begin_item()
        text = " ".join(say.text for say in sayings)
        self._last[item_id] = sayings[-1]
        if len(self._last) > SAYINGS:
            del self._last[next(iter(self._last))]
        now = self._hearing.ends.position
        self._playing = (now, now) if self._playing[1] <= now else self._playing
        self._lines.append(Line(role="assistant", text=text, start_ms=to_ms(now)))
        async for samples in reply.speak(text, mouth, self._party.style):
            self._playing = (self._playing[0], self._playing[1] + samples)
        for say in sayings:
            said = Said(text=say.text, action=say.action, items=say.items, complete=True)
            self._later += self._party.brain.on_said(said)

    async def _pause(self, samples: int) -> None:
        ticks = samples * self._clock.rate_hz // VOICE_RATE_HZ
        await self._clock.until(self._clock.position + ticks)
