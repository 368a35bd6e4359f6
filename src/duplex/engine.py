"""One call's audio engine, in the types the rest of the project speaks.

It turns milliseconds into samples once, when it is built, and the compiled
core's tuples into events and counts. It never decides anything about audio,
reads no clock, and belongs to one caller: the call loop feeds both sides,
advances, and reads, always from the same thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from duplex import _core
from duplex._line import Line
from duplex.errors import InputError
from duplex.values import SESSION_RATE_HZ, Side

Pcm = npt.NDArray[np.int16]

VOICED_RMS = _core.VOICED_RMS_THRESHOLD
"""RMS, in int16 steps, from which 20 ms count as voiced (contract 2.0)."""
HOLD_BOUNDS_MS = (20, 400)
"""Least and greatest adaptive hold unless an engine is built with others."""


class Holder(StrEnum):
    """Who has the floor: the sides whose detector says speech."""

    NONE = "none"
    CALLER = "caller"
    ASSISTANT = "assistant"
    BOTH = "both"


class Playout(StrEnum):
    """What playout did besides playing what it was fed."""

    HOLD_ADJUST = "hold_adjust"
    UNDERRUN = "underrun"
    IDLE = "idle"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEvent:
    """A voiced run ``[start, end)`` of one side is over."""

    side: Side
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorEvent:
    """From ``at`` on, ``holder`` has the floor. Before the first one nobody has."""

    at: int
    holder: Holder


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayoutEvent:
    """A run of playout is over: ``samples`` from ``start`` on.

    ``hold_adjust`` is positive when silence was played before audio that waits,
    negative when quiet audio was dropped; every move of a hold is one. A
    ``discard`` was asked for by flush.
    """

    side: Side
    kind: Playout
    start: int
    samples: int


EngineEvent = SegmentEvent | FloorEvent | PlayoutEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCounts:
    """One side's totals in samples.

    ``accepted == played + discarded + queued`` and
    ``position == played + idle + underrun + hold_added``, always.

    ``hold`` is the playout hold now. ``waits`` counts the arrivals that were heard
    (all that was fed between two advances is one), the other three how long their
    first samples waited, from the advance that saw them until they played: mean,
    the 99th percentile up to a whole ms (nearest rank) and the longest; None
    before the first, and without a hold, where nothing is kept waiting.
    """

    accepted: int
    played: int
    discarded: int
    queued: int
    idle: int
    underrun: int
    hold_added: int
    hold_dropped: int
    hold: int = 0
    waits: int = 0
    wait_mean: int | None = None
    wait_p99: int | None = None
    wait_max: int | None = None

    @property
    def hold_adjust(self) -> int:
        """Net samples by which the hold moved playout back."""
        return self.hold_added - self.hold_dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A call's totals in samples; the four floor shares sum to ``position``.

    ``clipped`` counts samples of the one-channel mix that were held inside
    int16, ``events_lost`` events that came after the bound of one drain.
    """

    position: int
    caller: SideCounts
    assistant: SideCounts
    caller_only: int
    assistant_only: int
    overlap: int
    silence: int
    clipped: int
    events_lost: int

    def of(self, side: Side) -> SideCounts:
        return self.assistant if side is Side.ASSISTANT else self.caller


_SEGMENT, _FLOOR = _core.SEGMENT_KIND, _core.FLOOR_KIND
_SIDES = tuple(Side)
_HOLDERS = (Holder.NONE, Holder.CALLER, Holder.ASSISTANT, Holder.BOTH)
_PLAYOUTS = {
    _core.HOLD_ADJUST_KIND: Playout.HOLD_ADJUST,
    _core.UNDERRUN_KIND: Playout.UNDERRUN,
    _core.IDLE_KIND: Playout.IDLE,
    _core.DISCARD_KIND: Playout.DISCARD,
}


def _slots(kind: type) -> list[Callable[[object, object], None]]:
    """What sets each field of a frozen class.

    The class's own way to set one takes as long as a whole event does here, and events
    come by the hundred.
    """
    return [vars(kind)[field.name].__set__ for field in fields(kind)]


_segment_side, _segment_start, _segment_end = _slots(SegmentEvent)
_floor_at, _floor_holder = _slots(FloorEvent)
_new = object.__new__


def _segment(side: int, start: int, end: int) -> SegmentEvent:
    event = _new(SegmentEvent)
    _segment_side(event, _SIDES[side])
    _segment_start(event, start)
    _segment_end(event, end)
    return event


def _floor(at: int, holder: int) -> FloorEvent:
    event = _new(FloorEvent)
    _floor_at(event, at)
    _floor_holder(event, _HOLDERS[holder])
    return event


def _playout(kind: int, side: int, start: int, samples: int) -> PlayoutEvent:
    return PlayoutEvent(side=_SIDES[side], kind=_PLAYOUTS[kind], start=start, samples=samples)


class Engine:
    """Two sides, one timeline, counted in samples.

    Args:
        rate_hz: session rate.
        tick_ms: what one tick plays; no result depends on it.
        detector: ``"rms"`` (contract 2.0, 20 ms windows), ``"webrtc"`` (mode 2,
            10 ms frames) or ``"edge"`` (places edges itself; it tells of speech
            when it is over, and so does the floor).
        hold_ms: playout hold of (caller, assistant). 0 plays every sample at once.
            A hold is for a sender that keeps real-time pace: its first audio, and
            audio after a pause, waits that long in silence, and when the ring
            stays deeper than the hold for a second, quiet 20 ms blocks are dropped
            until it does not. Never use one for a sender that runs ahead.
        adaptive: whether the hold of (caller, assistant) follows arrival, from
            ``hold_ms`` on: as short as lets the latest arrival of the last three
            minutes find the ring unbroken. It moves between quiet 20 ms blocks
            only, by dropping quiet audio or by playing silence.
        hold_bounds_ms: least and greatest length of adaptive holds; the least is
            20 ms or more. Audio later than the greatest is a stall: its delay is
            worked off in quiet and the hold stays.
        ring_ms: the most audio that can wait, per side, and that one advance plays.
        lines: what lies on the way from (caller, assistant) to the other side; None is a
            clean way. Each line belongs to one engine.

    Raises:
        InputError: a tick or hold is no whole number of samples, an adaptive hold
            is not within its bounds, or the rate, the detector or a hold cannot
            be used.
    """

    __slots__ = ("_core", "rate_hz", "tick")

    def __init__(
        self,
        *,
        rate_hz: int = SESSION_RATE_HZ,
        tick_ms: int = 20,
        detector: str = "rms",
        hold_ms: tuple[int, int] = (0, 0),
        adaptive: tuple[bool, bool] = (False, False),
        hold_bounds_ms: tuple[int, int] = HOLD_BOUNDS_MS,
        ring_ms: int = 20_000,
        lines: tuple[Line | None, Line | None] = (None, None),
    ) -> None:
        holds = (_samples("hold", hold_ms[0], rate_hz), _samples("hold", hold_ms[1], rate_hz))
        least, most = (_samples("hold bound", bound, rate_hz) for bound in hold_bounds_ms)
        tick = _samples("tick", tick_ms, rate_hz)
        ring = _samples("ring", ring_ms, rate_hz)
        try:
            self._core = _core.Engine(
                rate_hz,
                tick,
                detector,
                holds,
                ring,
                adaptive=adaptive,
                bounds=(least, most),
                lines=lines,
            )
        except ValueError as error:
            raise InputError(f"engine: {error}") from error
        self.rate_hz = rate_hz
        self.tick = tick

    @property
    def position(self) -> int:
        """Samples advanced so far."""
        return self._core.position

    @property
    def speaking(self) -> Holder:
        """Who speaks now as far as one can tell; the floor follows when it is certain."""
        return _HOLDERS[self._core.speaking]

    def feed(self, side: Side, pcm: Pcm) -> int:
        """Queue what ``side`` says (int16, contiguous); return the samples accepted.

        Fewer than given means the ring is full: offer the rest again later.
        """
        return self._core.feed(side, pcm)

    def advance(self, n: int = 1) -> None:
        """Play ``n`` ticks.

        Raises:
            RuntimeError: a detector failed, or the engine is finished.
            ValueError: ``n`` ticks are more than the ring holds.
        """
        self._core.advance(n)

    def heard(self, side: Side) -> Pcm:
        """Return what ``side`` was played in the last advance, a fresh array.

        With a line on the way, that is what came out of it.
        """
        return self._core.heard(side)

    def spoken(self, side: Side) -> Pcm:
        """Return what ``side`` said in the last advance, before any condition."""
        return self._core.spoken(side)

    def mixed(self) -> Pcm:
        """Return what both were played in the last advance in one channel, held inside int16."""
        return self._core.mixed()

    def stereo(self) -> Pcm:
        """Return what both were played in the last advance, shape (samples, 2).

        First the caller as the assistant heard it.
        """
        return self._core.stereo()

    def flush(self, side: Side) -> int:
        """Discard what is queued from ``side`` (barge-in); return the samples."""
        return self._core.flush(side)

    def finish(self) -> None:
        """Decide the last, incomplete frame and close open segments and runs."""
        self._core.finish()

    def drain(self) -> list[EngineEvent]:
        """Return the events since the last drain, in order of time."""
        if not self._core.pending:
            return []
        events: list[EngineEvent] = []
        for kind, side, start, value in self._core.drain():
            if kind == _SEGMENT:
                events.append(_segment(side, start, value))
            elif kind == _FLOOR:
                events.append(_floor(start, value))
            else:
                events.append(_playout(kind, side, start, value))
        return events

    def counts(self) -> Counts:
        """Return the totals so far; what is not decided yet counts as the last."""
        silence, caller_only, assistant_only, overlap, clipped, lost = self._core.floor()
        return Counts(
            position=self._core.position,
            caller=_side_counts(self._core, Side.CALLER),
            assistant=_side_counts(self._core, Side.ASSISTANT),
            caller_only=caller_only,
            assistant_only=assistant_only,
            overlap=overlap,
            silence=silence,
            clipped=clipped,
            events_lost=lost,
        )


def _samples(name: str, duration_ms: int, rate_hz: int) -> int:
    samples, rest = divmod(duration_ms * rate_hz, 1000)
    if rest:
        raise InputError(
            f"engine: {name} of {duration_ms} ms is no whole number of samples at {rate_hz} Hz"
        )
    return samples


def _side_counts(core: _core.Engine, side: Side) -> SideCounts:
    accepted, played, discarded, queued, idle, underrun, added, dropped = core.totals(side)
    hold, waits, waited, p99, longest = core.waits(side)
    return SideCounts(
        accepted=accepted,
        played=played,
        discarded=discarded,
        queued=queued,
        idle=idle,
        underrun=underrun,
        hold_added=added,
        hold_dropped=dropped,
        hold=hold,
        waits=waits,
        wait_mean=waited // waits if waits else None,
        wait_p99=p99 if waits else None,
        wait_max=longest if waits else None,
    )
