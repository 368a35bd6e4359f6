"""A participant that plays a recording into the call, as a caller would speak it.

It waits until the other side has spoken and then been silent for a while, or
for a set time, says the whole recording once, and is finished when it has been
answered. It hears levels, never words; its stream is unbroken, silence before
and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from duplex.active_level import levelled
from duplex.clock import Clock
from duplex.errors import InputError
from duplex.participants.base import Incoming, Pcm, Spoken
from duplex.participants.other_side import OtherSide
from duplex.participants.scripted import AHEAD_MS, exact_ms, lay
from duplex.resample import resample
from duplex.values import Action, Happening, Json, Side
from duplex.wavfile import read_wav


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """When to speak, in ms: at a set time, or ``silence_ms`` after the other side's opening.

    Without any opening it speaks ``patience_ms`` into the call all the same;
    without any answer it is finished ``answer_ms`` after its last sample.
    """

    at_ms: int | None = None
    silence_ms: int = 800
    patience_ms: int = 8_000
    answer_ms: int = 5_000


class WavParticipant:
    """Says ``path`` once, on cue; ``text`` and ``action`` label what it says.

    ``levelled`` brings it to the usual active level first, for a line that degrades it.
    """

    lock_step = True

    def __init__(
        self,
        side: Side,
        path: Path,
        *,
        cue: Cue | None = None,
        text: str | None = None,
        action: Action = Action.OPENING,
        levelled: bool = False,
    ) -> None:
        self.side = side
        self._levelled = levelled
        self._source, self._source_hz = read_mono(path)
        self._cue = cue or Cue()
        self._text = text
        self._action = action
        self._told: list[Incoming] = []
        self._given = 0
        self._now = 0
        self._begun_at: int | None = None
        self._spoken = False
        self._finished = False
        self._closed = False

    async def start(self, clock: Clock) -> None:
        self._rate = clock.rate_hz
        self._other = OtherSide(clock.rate_hz)
        self._speech = resample(self._source, self._source_hz, self._rate)
        if self._levelled:
            self._speech = levelled(self._speech, self._rate)
        if self._cue.at_ms is not None:
            self._begun_at = self._samples(self._cue.at_ms)
        self._tell("session.started", provider="wav", session_id="", model="", voice="")

    def hear(self, position: int, pcm: Pcm) -> None:
        answered = self._other.hear(pcm)
        self._now = position + len(pcm)
        if self._begun_at is None and self._is_cued():
            # What was handed over already is silence; the recording comes right after it.
            self._begun_at = self._given
        if self._begun_at is None:
            return
        end = self._begun_at + len(self._speech)
        if self._now >= end and not self._spoken:
            self._spoken = True
            self._label(self._begun_at, end)
        late = self._now >= end + self._samples(self._cue.answer_ms)
        if self._spoken and not self._finished and (answered or late):
            self._finished = True
            if self.side is Side.CALLER:
                self._tell("caller.finished", outcome="completed")

    def collect(self) -> Sequence[Incoming]:
        told, self._told = self._told, []
        until = self._now + self._samples(AHEAD_MS)
        if self._closed or until <= self._given:
            return told
        block = np.zeros(until - self._given, np.int16)
        if self._begun_at is not None:
            lay(block, self._given, self._speech, self._begun_at)
        self._given = until
        return [*told, Spoken(pcm=block)]

    async def finish(self) -> None:
        if not self._closed:
            self._closed = True
            self._tell("session.closed", reason="close_requested")

    async def abort(self) -> None:
        self._closed = True

    def _is_cued(self) -> bool:
        if self._other.last is not None:
            return self._other.quiet(self._samples(self._cue.silence_ms))
        return self._now >= self._samples(self._cue.patience_ms)

    def _label(self, start: int, end: int) -> None:
        if self._text is not None:
            self._tell(
                "utterance",
                text=self._text,
                start_ms=exact_ms(start, self._rate),
                end_ms=exact_ms(end, self._rate),
                action=self._action,
                source="caller_intent",
            )

    def _samples(self, ms: int) -> int:
        return ms * self._rate // 1000

    def _tell(self, kind: str, **fields: Json) -> None:
        self._told.append(Happening(type=kind, fields=fields))


def read_mono(path: Path) -> tuple[Pcm, int]:
    """Return a sound file's first channel as int16, and its rate; raise InputError."""
    wav = read_wav(path)
    if not wav.frames:
        raise InputError(f"recording {path}: it is empty")
    samples = np.ascontiguousarray(wav.channel(0))
    if not samples.any():
        raise InputError(f"recording {path}: it is silent")
    return samples, wav.rate_hz
