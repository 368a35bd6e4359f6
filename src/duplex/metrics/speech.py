"""Speech of one call as the timing block takes it: segments, labels, sounds, tools.

Positions are samples at the session rate, ranges half-open. These values carry
what somebody found or knew; they decide nothing about turns. A live call, a
recording measured again and a test build them alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from duplex.metrics.intervals import Runs, merge
from duplex.values import UNKNOWN_EDGE, Side, Span, Utterance
from duplex.values import EdgeError as EdgeError


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenSegment:
    """One segment a detector found, from first to last audible sample.

    ``pauses`` are the inactive stretches inside it, too short to end it.
    """

    start: int
    end: int
    onset: EdgeError = UNKNOWN_EDGE
    offset: EdgeError = UNKNOWN_EDGE
    pauses: Runs = ()
    text: str | None = None


class SoundKind(StrEnum):
    """What a caller sound is that is not meant for the assistant."""

    TIC = "tic"
    SIDE_SPEECH = "side_speech"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A cough, a sniff or side talk placed by the caller's side."""

    kind: SoundKind
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """All that the timing block looks at; the order inside the tuples is free.

    ``labels`` are the caller's own (their action says what was meant), ``tools``
    the spans in which tools or delegated work ran. ``tick_ms`` is added to the
    uncertainty of every latency: the grid, if any, on which audio was placed.
    ``echo_delay`` is after how many samples the assistant hears itself through the
    caller's microphone; None when no such echo is known.
    """

    rate_hz: int
    duration: int
    caller: tuple[SpokenSegment, ...] = ()
    assistant: tuple[SpokenSegment, ...] = ()
    labels: tuple[Utterance, ...] = ()
    sounds: tuple[Sound, ...] = ()
    tools: Runs = ()
    tick_ms: float = 0.0
    detector: str = "unknown"
    echo_delay: int | None = None

    def side(self, side: Side) -> tuple[SpokenSegment, ...]:
        """Segments of one side, as given."""
        return self.caller if side is Side.CALLER else self.assistant


def tidy(segments: Iterable[SpokenSegment], duration: int) -> tuple[SpokenSegment, ...]:
    """Sort segments, keep what lies inside the call, unite those that overlap or touch.

    A united segment keeps the first onset and the last offset; what was silence
    between its parts is none of its pauses, because there was none.
    """
    inside = [
        replace(segment, start=max(segment.start, 0), end=min(segment.end, duration))
        for segment in segments
        if max(segment.start, 0) < min(segment.end, duration)
    ]
    inside.sort(key=lambda segment: (segment.start, segment.end))
    united: list[SpokenSegment] = []
    for segment in inside:
        if united and segment.start <= united[-1].end:
            united[-1] = _unite(united[-1], segment)
        else:
            united.append(segment)
    return tuple(united)


def runs_of(segments: Iterable[SpokenSegment]) -> Runs:
    """The segments as runs."""
    return merge((segment.start, segment.end) for segment in segments)


def _unite(first: SpokenSegment, second: SpokenSegment) -> SpokenSegment:
    last = first if first.end >= second.end else second
    texts = dict.fromkeys(text for text in (first.text, second.text) if text is not None)
    return replace(
        first,
        end=last.end,
        offset=last.offset,
        pauses=first.pauses if first == second else (),
        text=" ".join(texts) if texts else None,
    )
