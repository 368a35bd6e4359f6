"""Conversations for the timing tests, written in seconds; the timing tests drive it."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from duplex.metrics.speech import EdgeError, Sound, SoundKind, Speech, SpokenSegment
from duplex.metrics.timing import TimingBlock, timing
from duplex.values import Action, Json, Side, Span, Utterance

RATE = 24_000
Seconds = tuple[float, float]


def at(seconds: float) -> int:
    return round(seconds * RATE)


def segment(start: float, end: float, text: str | None = None) -> SpokenSegment:
    return SpokenSegment(start=at(start), end=at(end), text=text)


def paused(start: float, end: float, *pauses: Seconds) -> SpokenSegment:
    """A segment with inactive stretches inside."""
    inside = tuple((at(a), at(b)) for a, b in pauses)
    return SpokenSegment(start=at(start), end=at(end), pauses=inside)


def sure(start: float, end: float, onset: float, offset: float) -> SpokenSegment:
    """A segment whose edges are known within so many milliseconds."""
    return SpokenSegment(
        start=at(start),
        end=at(end),
        onset=EdgeError(plus_minus_ms=onset),
        offset=EdgeError(plus_minus_ms=offset),
    )


def label(start: float, end: float, action: Action) -> Utterance:
    return Utterance(
        side=Side.CALLER,
        text="",
        span=Span(start=at(start), end=at(end)),
        action=action,
        source="caller_intent",
    )


def sound(start: float, end: float, kind: SoundKind) -> Sound:
    return Sound(kind=kind, span=Span(start=at(start), end=at(end)))


Spoken = Seconds | SpokenSegment


def speech(
    caller: Iterable[Spoken],
    assistant: Iterable[Spoken],
    duration: float,
    *,
    labels: Iterable[Utterance] = (),
    sounds: Iterable[Sound] = (),
    tools: Iterable[Seconds] = (),
    tick_ms: float = 0.0,
) -> Speech:
    return Speech(
        rate_hz=RATE,
        duration=at(duration),
        caller=tuple(_segment(item) for item in caller),
        assistant=tuple(_segment(item) for item in assistant),
        labels=tuple(labels),
        sounds=tuple(sounds),
        tools=tuple((at(start), at(end)) for start, end in tools),
        tick_ms=tick_ms,
    )


def measured(
    caller: Iterable[Spoken],
    assistant: Iterable[Spoken],
    duration: float,
    *,
    labels: Iterable[Utterance] = (),
    sounds: Iterable[Sound] = (),
    tools: Iterable[Seconds] = (),
) -> TimingBlock:
    """The block of a conversation."""
    return timing(speech(caller, assistant, duration, labels=labels, sounds=sounds, tools=tools))


def latencies(block: TimingBlock) -> list[float | None]:
    """Latency of every assistant turn, in milliseconds."""
    replies = block.responses.replies
    return [None if r.latency is None else r.latency * 1000 / RATE for r in replies]


def turns(block: TimingBlock, side: Side) -> list[Seconds]:
    """Turns of a side, in seconds."""
    return [(turn.start / RATE, turn.end / RATE) for turn in block.talk.turns[side]]


def outcomes(block: TimingBlock) -> list[str]:
    return [fate.outcome.value for fate in block.responses.fates]


def nulls(value: Json, pointer: str = "") -> list[str]:
    """JSON pointers of all nulls."""
    if value is None:
        return [pointer]
    if isinstance(value, dict):
        return [found for name, item in value.items() for found in nulls(item, f"{pointer}/{name}")]
    if isinstance(value, list):
        return [
            found for index, item in enumerate(value) for found in nulls(item, f"{pointer}/{index}")
        ]
    return []


@st.composite
def sides(
    draw: st.DrawFn, unit_ms: int = 20, longest: int = 12, apart: int = 1
) -> tuple[SpokenSegment, ...]:
    """Segments of one side on a grid of ``unit_ms``, some with a pause inside."""
    position, found = 0, []
    for _ in range(draw(st.integers(0, longest))):
        position += draw(st.integers(apart, 150))
        length = draw(st.integers(2, 200))
        start, end = position, position + length
        pauses: tuple[tuple[int, int], ...] = ()
        if length > 20 and draw(st.booleans()):
            inner = draw(st.integers(start + 2, end - 12))
            pauses = ((grid(inner, unit_ms), grid(inner + 9, unit_ms)),)
        found.append(
            SpokenSegment(start=grid(start, unit_ms), end=grid(end, unit_ms), pauses=pauses)
        )
        position = end
    return tuple(found)


def grid(units: int, unit_ms: int) -> int:
    return units * unit_ms * RATE // 1000


@st.composite
def conversations(draw: st.DrawFn, apart: int = 1) -> Speech:
    """Two sides that know nothing of each other, with labels and sounds of the caller."""
    caller, assistant = (draw(sides(apart=apart)) for _ in range(2))
    last = max([part.end for part in (*caller, *assistant)], default=0)
    labels = tuple(
        Utterance(
            side=Side.CALLER,
            text="",
            span=Span(start=part.start, end=part.end),
            action=action,
        )
        for part in caller
        if (action := draw(st.sampled_from((None, None, *Action)))) is not None
    )
    starts = draw(st.lists(st.integers(0, 1 + last), max_size=4))
    return Speech(
        rate_hz=RATE,
        duration=last + draw(st.sampled_from((0, 1, RATE, 7 * RATE))),
        caller=caller,
        assistant=assistant,
        labels=labels,
        sounds=tuple(
            Sound(
                kind=draw(st.sampled_from(tuple(SoundKind))),
                span=Span(start=start, end=start + RATE // 3),
            )
            for start in starts
        ),
    )


def _segment(item: Spoken) -> SpokenSegment:
    return item if isinstance(item, SpokenSegment) else segment(*item)
