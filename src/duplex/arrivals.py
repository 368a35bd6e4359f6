"""When what a side said came in, and when it was played: one line per sound after a pause.

It looks at the audio as the call loop takes it in, tells the first audible
sample after 200 ms of silence once that sample was played, and, on the wall
clock, how many samples had come by when, for the drift of the other end's
clock. It reads no clock and decides nothing; positions are samples.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from duplex.participants.audible import PAUSE_MS, audible_places
from duplex.participants.base import Spoken
from duplex.placement import Placement
from duplex.values import Happening, Json

STOPPED_MS = 500
"""A stream from which nothing came for this long had stopped; a shorter gap is a stall."""
LEAD_IN_MS = 1_000
"""A reply may begin with this much silence of its own; with more, its stream never stopped."""
PACE_MS = 2_000
"""One point of pace is kept for each of these: the one that was least delayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The piece of audio from which a reply's waiting is counted."""

    sample: int
    taken_at: int
    arrived_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sound:
    """An audible sample that came after a pause and is not played yet."""

    sample: int
    head: _Head
    arrived_at: int
    first_byte: bool
    received_at: float | None


class Arrivals:
    """One side's incoming audio; ``place`` is that side's, and is told of each piece after this."""

    def __init__(self, rate_hz: int, place: Placement) -> None:
        self._rate = rate_hz
        self._place = place
        self._pause = PAUSE_MS * rate_hz // 1000
        self._quiet = self._pause
        self._covered: int | None = None
        self._opened: _Head | None = None
        self._waiting: deque[_Sound] = deque()
        self._pace = _Pace(PACE_MS * rate_hz // 1000)

    def fed(self, item: Spoken, position: int, now: int) -> None:
        """Take in a piece that can be played from ``position`` on; it is ``now`` on the clock."""
        arrived = min(now, self._arrival(item, now))
        sample, length = self._place.given, len(item.pcm)
        taken_at = position if item.taken_at is None else item.taken_at
        piece = _Head(sample=sample, taken_at=taken_at, arrived_at=arrived)
        self._follow_gap(piece, position, length, timed=item.received_at is not None)
        lead_in = LEAD_IN_MS * self._rate // 1000
        if self._opened is not None and sample - self._opened.sample > lead_in:
            self._opened = None
        places = audible_places(item.pcm)
        if not len(places):
            self._quiet += length
            return
        for at in self._onsets(places):
            self._waiting.append(self._sound(sample + at, piece, item.received_at))
            self._opened = None
        self._quiet = length - 1 - int(places[-1])

    def ready(self) -> list[Happening]:
        """What can be told after a tick: sounds that were played since, and the pace."""
        told = self._pace.told()
        while self._waiting and self._place.is_gone(self._waiting[0].sample):
            sound = self._waiting.popleft()
            if not self._place.was_discarded(sound.sample):
                told.append(self._told(sound))
        return told

    def _arrival(self, item: Spoken, now: int) -> int:
        if item.arrived_at is not None:
            return item.arrived_at
        return now if item.received_at is None else round(item.received_at * self._rate)

    def _follow_gap(self, piece: _Head, position: int, length: int, *, timed: bool) -> None:
        """Notice that nothing had come for a pause: what comes now opens something new."""
        covered = piece.taken_at if self._covered is None else self._covered
        gap = piece.taken_at - covered
        if self._covered is None or gap >= self._pause:
            self._quiet += gap
            self._pace.broke()
        if self._covered is None or gap >= STOPPED_MS * self._rate // 1000:
            self._opened = piece
        self._covered = max(covered, position) + length
        if timed:
            self._pace.add(piece.arrived_at, piece.sample + length)

    def _onsets(self, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
        """Indices in the piece of audible samples that follow a pause."""
        first = int(places[0])
        found = [first] if self._quiet + first >= self._pause else []
        if int(places[-1]) - first > self._pause:
            later = places[1:][np.diff(places) > self._pause]
            found += [int(at) for at in later]
        return found

    def _sound(self, sample: int, piece: _Head, received_at: float | None) -> _Sound:
        opened = self._opened
        return _Sound(
            sample=sample,
            head=piece if opened is None else opened,
            arrived_at=piece.arrived_at,
            first_byte=opened is not None,
            received_at=received_at,
        )

    def _told(self, sound: _Sound) -> Happening:
        fields: dict[str, Json] = {
            "sample": sound.sample,
            "head": sound.head.sample,
            "taken_at": sound.head.taken_at,
            "head_at": sound.head.arrived_at,
            "first_byte": sound.first_byte,
            "arrived_at": sound.arrived_at,
            "played_at": self._place.position_of(sound.sample),
        }
        return Happening(type="arrival", fields=fields, received_at=sound.received_at)


class _Pace:
    """The least delayed piece of each window, as (when, samples by then)."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._stretch = -1
        self._best: tuple[int, int] | None = None
        self._told: list[Happening] = []

    def broke(self) -> None:
        """The stream paused: points before and after do not lie on one line."""
        self._close()
        self._stretch += 1

    def add(self, arrived_at: int, samples: int) -> None:
        if self._best is not None and arrived_at // self._window != self._best[0] // self._window:
            self._close()
        if self._best is None or arrived_at - samples < self._best[0] - self._best[1]:
            self._best = (arrived_at, samples)

    def told(self) -> list[Happening]:
        told, self._told = self._told, []
        return told

    def _close(self) -> None:
        if self._best is not None:
            at, samples = self._best
            fields: dict[str, Json] = {
                "arrived_at": at,
                "samples": samples,
                "stretch": self._stretch,
            }
            self._told.append(Happening(type="pace", fields=fields))
        self._best = None
