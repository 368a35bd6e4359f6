"""A caller that says the lines of a script, each at its time, whatever is answered.

A line begins at a set time, in the other side's turn or after it; it follows the
other side by its level and understands nothing, so the same script meets every
assistant with the same words. It never stops for the other side. Its stream is
unbroken, silence between the lines; the call loop drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duplex.clock import Clock
from duplex.participants.base import Incoming, Pcm, Spoken
from duplex.participants.other_side import OtherSide
from duplex.participants.scripted import AHEAD_MS, exact_ms, lay
from duplex.resample import resample
from duplex.values import Action, Happening, Json, Side

PATIENCE_MS = 8_000
"""A line that waits for the other side is said after this much silence all the same."""
ANSWER_MS = 5_000
"""Without an answer the caller is finished this long after its last line."""
TAIL_MS = 500
"""Speech that ends so soon after a line was already under way and is no answer to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedLine:
    """One line with its audio, int16 at ``rate_hz``.

    It begins at ``at_ms`` of the call, ``into_ms`` after the other side began its
    turn, or ``pause_ms`` after that turn's end, whichever is given.
    """

    text: str
    pcm: Pcm
    rate_hz: int
    action: Action = Action.SPEAK
    at_ms: int | None = None
    into_ms: int | None = None
    pause_ms: int = 0


class ScriptVoice:
    """Says ``lines`` in order; ``first``: the first one waits for nobody."""

    lock_step = True

    def __init__(self, side: Side, lines: Sequence[ScriptedLine], *, first: bool = False) -> None:
        self.side = side
        self._lines = list(lines)
        self._first = first
        self._place = 0
        self._told: list[Incoming] = []
        self._given = 0
        self._now = 0
        self._said: list[tuple[int, int]] = []
        self._labelled = 0
        self._finished = False
        self._closed = False

    async def start(self, clock: Clock) -> None:
        self._rate = clock.rate_hz
        self._other = OtherSide(clock.rate_hz)
        self._audio = [resample(line.pcm, line.rate_hz, clock.rate_hz) for line in self._lines]
        self._tell("session.started", provider="scripted", session_id="", model="", voice="")
        self._begin_due()

    def hear(self, position: int, pcm: Pcm) -> None:
        self._other.hear(pcm)
        self._now = position + len(pcm)
        self._begin_due()
        while self._labelled < len(self._said) and self._said[self._labelled][1] <= self._now:
            self._label(self._labelled)
            self._labelled += 1
        if self._labelled == len(self._lines) and not self._finished and self._is_over():
            self._finished = True
            if self.side is Side.CALLER:
                self._tell("caller.finished", outcome="completed")

    def collect(self) -> Sequence[Incoming]:
        told, self._told = self._told, []
        until = self._now + self._samples(AHEAD_MS)
        if self._closed or until <= self._given:
            return told
        block = np.zeros(until - self._given, np.int16)
        for (start, _), pcm in zip(self._said, self._audio, strict=False):
            lay(block, self._given, pcm, start)
        self._given = until
        return [*told, Spoken(pcm=block)]

    async def finish(self) -> None:
        if not self._closed:
            self._closed = True
            self._tell("session.closed", reason="close_requested")

    async def abort(self) -> None:
        self._closed = True

    # -- when ---------------------------------------------------------------

    def _begin_due(self) -> None:
        """Place every line whose time is known; what was handed over already is silence."""
        while self._place < len(self._lines):
            start = self._start_of(self._lines[self._place])
            if start is None:
                return
            start = max(start, self._given, self._said[-1][1] if self._said else 0)
            self._said.append((start, start + len(self._audio[self._place])))
            self._place += 1

    def _start_of(self, line: ScriptedLine) -> int | None:
        """Where ``line`` is to begin, as soon as that is certain."""
        if line.at_ms is not None:
            return self._samples(line.at_ms)
        if self._first and self._place == 0:
            return self._samples(line.pause_ms)
        since = self._said[-1][1] if self._said else 0
        if self._now < since:
            return None
        if line.into_ms is not None and self._other.began is not None and self._is_answer():
            return self._near(self._other.began + self._samples(line.into_ms))
        if self._is_answer() and self._other.began is None:
            pause = 0 if line.into_ms is not None else self._samples(line.pause_ms)
            return self._near((self._other.last or 0) + pause)
        waited = self._now - max(since, self._other.last or 0)
        return self._now if waited >= self._samples(PATIENCE_MS) else None

    def _near(self, start: int) -> int | None:
        """``start`` once it must be handed over; until then the other side may do otherwise."""
        return start if start <= self._now + self._samples(AHEAD_MS) else None

    def _is_answer(self) -> bool:
        """Whether the other side has spoken to the last line, or at all before the first."""
        last, began = self._other.last, self._other.began
        if last is None or not self._said:
            return last is not None
        start, end = self._said[-1]
        if self._lines[self._place - 1].action is Action.BACKCHANNEL:
            return last > start  # a murmur is not answered, what it was said into goes on
        later = began is not None and began >= end
        return later or last > end + self._samples(TAIL_MS)

    def _is_over(self) -> bool:
        end = self._said[-1][1] if self._said else 0
        return self._is_answer() or self._now >= end + self._samples(ANSWER_MS)

    def _label(self, index: int) -> None:
        start, end = self._said[index]
        line = self._lines[index]
        self._tell(
            "utterance",
            text=line.text,
            start_ms=exact_ms(start, self._rate),
            end_ms=exact_ms(end, self._rate),
            action=line.action,
            source="caller_intent",
        )

    def _samples(self, ms: int) -> int:
        return ms * self._rate // 1000

    def _tell(self, kind: str, **fields: Json) -> None:
        self._told.append(Happening(type=kind, fields=fields))
