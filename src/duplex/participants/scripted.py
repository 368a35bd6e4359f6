"""A participant that says fixed audio at fixed positions and answers nothing.

For tests, and for calls whose words are given beforehand. Its audio is one
unbroken stream from position 0, silence between the pieces, handed over ahead
of the tick that needs it; so the same script sounds the same at any tick. It
needs no clock and never listens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duplex.clock import Clock
from duplex.errors import InputError
from duplex.participants.base import Incoming, Pcm, Spoken
from duplex.values import Happening, Json, Side, Span, Utterance

AHEAD_MS = 200
"""How far ahead of the call audio is handed over: the longest tick."""


class Scripted:
    """Says each ``(position, pcm)`` at its position (samples); later pieces may not overlap.

    ``utterances`` label the audio with spans on the shared timeline; they are
    told once their span is over, and so are ``sounds``, which are coughs and side
    talk by kind. A caller tells that it is finished when its last piece and label
    are behind it. Raises InputError on overlapping pieces.
    """

    lock_step = True

    def __init__(
        self,
        side: Side,
        pieces: Sequence[tuple[int, Pcm]],
        utterances: Sequence[Utterance] = (),
        sounds: Sequence[tuple[str, Span]] = (),
    ) -> None:
        self.side = side
        self._pieces = _in_order(pieces)
        self._sounds = sorted(sounds, key=lambda sound: sound[1].end)
        self._labels = sorted(utterances, key=lambda utterance: utterance.span.end)
        self._end = max(
            [at + len(pcm) for at, pcm in self._pieces]
            + [utterance.span.end for utterance in utterances]
            + [span.end for _, span in sounds],
            default=0,
        )
        self._rate = 24_000
        self._told: list[Incoming] = []
        self._given = 0
        self._now = 0
        self._finished = False
        self._closed = False

    async def start(self, clock: Clock) -> None:
        self._rate = clock.rate_hz
        self._tell("session.started", provider="scripted", session_id="", model="", voice="")

    def hear(self, position: int, pcm: Pcm) -> None:
        self._now = position + len(pcm)
        while self._labels and self._labels[0].span.end <= self._now:
            self._label(self._labels.pop(0))
        while self._sounds and self._sounds[0][1].end <= self._now:
            self._sound(*self._sounds.pop(0))
        if self._now >= self._end and not self._finished:
            self._finished = True
            if self.side is Side.CALLER:
                self._tell("caller.finished", outcome="completed")

    def collect(self) -> Sequence[Incoming]:
        told, self._told = self._told, []
        until = self._now + AHEAD_MS * self._rate // 1000
        if self._closed or until <= self._given:
            return told
        block = self._block(self._given, until)
        self._given = until
        return [*told, Spoken(pcm=block)]

    async def finish(self) -> None:
        if not self._closed:
            self._closed = True
            for utterance in self._labels:
                self._label(utterance)
            for kind, span in self._sounds:
                self._sound(kind, span)
            self._labels, self._sounds = [], []
            self._tell("session.closed", reason="close_requested")

    async def abort(self) -> None:
        self._closed = True

    def _block(self, start: int, end: int) -> Pcm:
        """Return the stream's samples ``[start, end)``."""
        block = np.zeros(end - start, np.int16)
        for at, pcm in self._pieces:
            lay(block, start, pcm, at)
        return block

    def _label(self, utterance: Utterance) -> None:
        self._tell(
            "utterance",
            text=utterance.text,
            start_ms=exact_ms(utterance.span.start, self._rate),
            end_ms=exact_ms(utterance.span.end, self._rate),
            action=utterance.action,
            source=utterance.source,
        )

    def _sound(self, kind: str, span: Span) -> None:
        start_ms, end_ms = exact_ms(span.start, self._rate), exact_ms(span.end, self._rate)
        self._tell("sound", kind=kind, start_ms=start_ms, end_ms=end_ms)

    def _tell(self, kind: str, /, **fields: Json) -> None:
        self._told.append(Happening(type=kind, fields=fields))


def lay(block: Pcm, start: int, pcm: Pcm, at: int) -> None:
    """Copy into ``block``, which begins at ``start``, what of ``pcm``, at ``at``, falls in it."""
    begin, stop = max(start, at), min(start + len(block), at + len(pcm))
    if begin < stop:
        block[begin - start : stop - start] = pcm[begin - at : stop - at]


def _in_order(pieces: Sequence[tuple[int, Pcm]]) -> list[tuple[int, Pcm]]:
    ordered = sorted(pieces, key=lambda piece: piece[0])
    reached = 0
    for at, pcm in ordered:
        if at < reached:
            raise InputError(f"script: piece at sample {at} begins before {reached} is free")
        reached = at + len(pcm)
    return ordered


def exact_ms(samples: int, rate_hz: int) -> int | float:
    """Return milliseconds, whole where they are, so that samples survive the trip."""
    ms = samples * 1000 / rate_hz
    return int(ms) if ms.is_integer() else ms
