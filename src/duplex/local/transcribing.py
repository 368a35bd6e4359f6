"""Both sides of a recording in words: the embedded ears, one window at a time.

Speech that a detector found is gathered into windows the ears can take, cut at
the quietest place where it runs too long. The sound streams by once and only
open windows are held, so memory does not grow with the recording. It never
hears what no detector found. ``measure`` and
``remeasure`` drive it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from duplex.intake.two_sides import TwoSides
from duplex.local.ears import WhisperEars
from duplex.local.seams import VOICE_RATE_HZ, Ears, Pcm
from duplex.local.weights import EARS_MODULES, find_ears, require
from duplex.resample import resample
from duplex.values import Side, Span, Utterance

JOIN_MS = 600
"""Speech with shorter pauses between is heard as one."""
MARGIN_MS = 200
"""Sound around speech that is heard with it."""
LONGEST_MS = 24_000
"""Longest window; the ears take 28 s."""
SEARCH_MS = 6_000
"""How far back from there a quiet place is looked for."""
_HUSH_MS = 50
SOURCE = "ears"


@dataclass(slots=True)
class _Window:
    """Speech to be heard; ``parts`` is its sound as far as it streamed by."""

    span: Span
    parts: list[Pcm] = field(default_factory=list)


async def transcribe(
    sides: TwoSides,
    speech: Mapping[Side, Sequence[Span]],
    ears: Ears,
    progress: Callable[[float], None] | None = None,
) -> dict[Side, tuple[Utterance, ...]]:
    """Hear the words of both sides; ``speech`` is in samples at ``sides.rate_hz``.

    ``progress`` is told the seconds heard so far. Raises InputError for a file
    that cannot be decoded and DuplexError when the ears fail.
    """
    rate_hz = sides.rate_hz
    cutters = {side: _Cutter(speech[side], rate_hz) for side in Side}
    words: dict[Side, list[Utterance]] = {side: [] for side in Side}
    position = 0
    for pair in sides.blocks():
        position += len(pair[0])
        for side, block in zip(Side, pair, strict=True):
            for span, pcm in cutters[side].push(block):
                words[side] += await _hear(side, span, pcm, rate_hz, ears)
        if progress is not None:
            progress(position / rate_hz)
    for side, cutter in cutters.items():
        for span, pcm in cutter.finish():
            words[side] += await _hear(side, span, pcm, rate_hz, ears)
    return {side: tuple(found) for side, found in words.items()}


def in_words(
    sides: TwoSides,
    speech: Mapping[Side, Sequence[Span]],
    model: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[Side, tuple[Utterance, ...]]:
    """The same with the embedded ears, or the user's own ``model``; not in an event loop.

    Raises:
        MissingExtra: the extra ``local`` is not installed.
        InputError: ``model`` cannot be used, or a file cannot be decoded.
    """

    async def hear() -> dict[Side, tuple[Utterance, ...]]:
        ears = await WhisperEars.open(found)
        try:
            return await transcribe(sides, speech, ears, progress)
        finally:
            await ears.close()

    require(EARS_MODULES, "the embedded ears")
    found = find_ears(model)
    return asyncio.run(hear())


def windows(speech: Sequence[Span], rate_hz: int) -> list[Span]:
    """Join speech across short pauses, never beyond what the ears can take."""
    made: list[Span] = []
    for span in sorted(speech):
        last = made[-1] if made else None
        if (
            last is not None
            and span.start - last.end < JOIN_MS * rate_hz // 1000
            and span.end - last.start <= LONGEST_MS * rate_hz // 1000
        ):
            made[-1] = Span(start=last.start, end=max(last.end, span.end))
        else:
            made.append(span)
    return made


def quietest(pcm: Pcm, rate_hz: int) -> int:
    """Where to cut a window that is too long: its softest 50 ms before the limit."""
    limit, hush = LONGEST_MS * rate_hz // 1000, _HUSH_MS * rate_hz // 1000
    first = limit - SEARCH_MS * rate_hz // 1000
    part = pcm[first:limit].astype(np.int64)
    energy = np.add.reduceat(part * part, np.arange(0, len(part) - hush + 1, hush))
    return first + int(np.argmin(energy)) * hush + hush // 2


class _Cutter:
    """Cuts the sound of each window, with its margins, out of one side's stream."""

    def __init__(self, speech: Sequence[Span], rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._margin = MARGIN_MS * rate_hz // 1000
        self._longest = LONGEST_MS * rate_hz // 1000
        self._left = windows(speech, rate_hz)
        self._kept: Pcm = np.zeros(0, np.int16)
        self._first = 0
        """Position of the first sample kept."""

    def push(self, block: Pcm) -> list[tuple[Span, Pcm]]:
        """Take the next samples; return the windows that are whole, with their sound."""
        self._kept = np.concatenate((self._kept, block))
        return self._ready(self._first + len(self._kept))

    def finish(self) -> list[tuple[Span, Pcm]]:
        """The stream is over: return what is left of the windows."""
        end = self._first + len(self._kept)
        left = [span for span in self._left if span.start < end]
        self._left = [Span(start=span.start, end=min(span.end, end)) for span in left]
        return self._ready(end + self._margin)

    def _ready(self, until: int) -> list[tuple[Span, Pcm]]:
        found: list[tuple[Span, Pcm]] = []
        while self._left:
            span = self._left[0]
            if span.length > self._longest and span.start + self._longest <= until:
                cut = span.start + quietest(self._sound(span.start, span.end), self._rate_hz)
                self._left[0] = Span(start=cut, end=span.end)
                span = Span(start=span.start, end=cut)
            elif span.end + self._margin <= until:
                self._left.pop(0)
            else:
                break
            found.append((span, self._sound(span.start - self._margin, span.end + self._margin)))
        self._forget(self._left[0].start - self._margin if self._left else until)
        return found

    def _sound(self, start: int, end: int) -> Pcm:
        return self._kept[max(0, start - self._first) : max(0, end - self._first)]

    def _forget(self, before: int) -> None:
        """Drop what no window needs; one a margin back may still begin in it."""
        count = min(max(0, before - self._margin - self._first), len(self._kept))
        self._kept, self._first = self._kept[count:].copy(), self._first + count


async def _hear(
    side: Side, span: Span, pcm: Pcm, rate_hz: int, ears: Ears
) -> tuple[Utterance, ...]:
    """One window in words; nothing for a window without any."""
    sound = pcm if rate_hz == VOICE_RATE_HZ else resample(pcm, rate_hz, VOICE_RATE_HZ)
    text = (await ears.transcribe(sound)).strip()
    return (Utterance(side=side, text=text, span=span, source=SOURCE),) if text else ()
