"""From what was heard of a recording to the two views that metrics have of it.

Segments, labels and, where a call kept its events, the work behind them become
:class:`Speech` for the timing block and a labelled timeline for contract 2.0.
Nothing is measured here, and this is the one place where a detector's finds
become spoken segments. Measuring, runs and remeasuring drive it, so that all
of them give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from duplex.conditions import AcousticEcho, parse
from duplex.errors import InputError
from duplex.intake.labels import LabelledSound, Labels
from duplex.intake.listen import CONTRACT_DETECTOR, Listening
from duplex.metrics.contract import Label, LabelledTimeline, Settings
from duplex.metrics.intervals import Runs, merge
from duplex.metrics.labels import widened, with_actions
from duplex.metrics.speech import Sound, SoundKind, Speech, SpokenSegment
from duplex.metrics.timing_policy import samples
from duplex.recording import Recording
from duplex.values import Segment, Side, Span, Utterance


def speech_of(
    heard: Listening,
    labels: Labels,
    *,
    tools: Runs = (),
    tick_ms: float = 0.0,
    echo_delay: int | None = None,
) -> Speech:
    """The speech of a recording; echoes of the other side are left out.

    ``tools`` are spans in samples in which tools or delegated work ran;
    ``echo_delay`` is the echo of the line, where somebody knows it without hearing it.
    """
    return Speech(
        rate_hz=heard.rate_hz,
        duration=heard.duration,
        caller=_spoken(heard.own_speech(Side.CALLER), labels.of(Side.CALLER)),
        assistant=_spoken(heard.own_speech(Side.ASSISTANT), labels.of(Side.ASSISTANT)),
        labels=labels.of(Side.CALLER),
        sounds=tuple(Sound(kind=SoundKind(s.kind), span=s.span) for s in labels.sounds),
        tools=tools,
        tick_ms=tick_ms,
        detector=heard.detector,
        echo_delay=_echo_found(heard) if echo_delay is None else echo_delay,
    )


def speech_of_call(recording: Recording, heard: Listening) -> Speech:
    """The speech of a call held here, from its two source stems and its events."""
    return speech_of(
        heard,
        labels_of(recording, heard.rate_hz),
        tools=tool_runs(recording, heard.rate_hz),
        tick_ms=float(recording.transport_ms or 0),
        echo_delay=_echo_applied(recording, heard.rate_hz),
    )


def _echo_found(heard: Listening) -> int | None:
    """The delay of an echo of the assistant that was found on the caller's channel."""
    lags = [echo.lag_ms for echo in heard.echoes if echo.side is Side.CALLER]
    return samples(lags[0], heard.rate_hz) if lags else None


def _echo_applied(recording: Recording, rate_hz: int) -> int | None:
    """The delay of the acoustic echo that the call's line had; None without any."""
    try:
        condition = parse(recording.condition or "clean")
    except InputError:
        return None  # spelled by a version that knew other conditions
    echoes = [one for one in condition.uplink if isinstance(one, AcousticEcho) and one.gain > 0]
    return samples(echoes[0].delay_ms, rate_hz) if echoes else None


def labels_of(recording: Recording, rate_hz: int) -> Labels:
    """What the events say was said, in samples at ``rate_hz``."""
    moved = tuple(
        replace(
            item,
            span=_moved(item.span, recording, rate_hz),
        )
        for item in recording.utterances
    )
    sounds = tuple(
        LabelledSound(kind=item.kind, span=_moved(item.span, recording, rate_hz))
        for item in recording.sounds
    )
    return Labels(utterances=moved, sounds=sounds, source="the call's events")


def tool_runs(recording: Recording, rate_hz: int) -> Runs:
    """Spans in which the assistant's tools or delegated work ran, at ``rate_hz``."""
    runs: list[tuple[int, int | None]] = [
        (call.started_at, call.ended_at) for call in recording.tool_calls
    ]
    runs += [
        (work.created_at, work.closed_at)
        for work in recording.delegations
        if work.side is not Side.CALLER
    ]
    until = recording.duration
    return merge(
        (
            at_rate(start, recording, rate_hz),
            at_rate(until if end is None else end, recording, rate_hz),
        )
        for start, end in runs
    )


def timeline_of(
    heard: Listening, labels: Labels, settings: Settings | None = None
) -> LabelledTimeline:
    """The contract's view of a recording that no call of ours made.

    Voice is the contract's own, echoes included; work events are unknown.
    """
    caller = _voice(heard, Side.CALLER)
    assistant = _voice(heard, Side.ASSISTANT)
    asked = widened(labels.of(Side.CALLER), caller, heard.rate_hz)
    told = widened(labels.of(Side.ASSISTANT), assistant, heard.rate_hz)
    return LabelledTimeline(
        caller_turns=_in_ms(with_actions(asked, caller, assistant), heard.rate_hz),
        assistant_turns=_in_ms(told, heard.rate_hz),
        caller_other_voiced=_runs_in_ms(caller, heard.rate_hz),
        assistant_other_voiced=_runs_in_ms(assistant, heard.rate_hz),
        observation_end_ms=_ms(heard.duration, heard.rate_hz),
        settings=settings or Settings(),
    )


def _spoken(found: Iterable[Segment], said: Sequence[Utterance]) -> tuple[SpokenSegment, ...]:
    return tuple(
        SpokenSegment(
            start=segment.span.start,
            end=segment.span.end,
            onset=segment.onset,
            offset=segment.offset,
            pauses=merge((pause.start, pause.end) for pause in segment.pauses),
            text=_text(segment.span, said),
        )
        for segment in found
    )


def _text(span: Span, said: Sequence[Utterance]) -> str | None:
    """The words of the labels that cover at least half of the segment together."""
    touching = [
        (item, min(item.span.end, span.end) - max(item.span.start, span.start)) for item in said
    ]
    inside = [(item, common) for item, common in touching if common > 0 and item.text]
    if 2 * sum(common for _, common in inside) < span.length or not inside:
        return None
    return " ".join(item.text for item, _ in inside)


def _voice(heard: Listening, side: Side) -> Runs:
    return merge((span.start, span.end) for span in heard.spans(side, CONTRACT_DETECTOR))


def _in_ms(said: Sequence[Utterance], rate_hz: int) -> tuple[Label, ...]:
    return tuple(
        Label(
            start_ms=_ms(item.span.start, rate_hz),
            end_ms=_ms(item.span.end, rate_hz),
            action="" if item.action is None else item.action.value,
        )
        for item in said
    )


def _runs_in_ms(runs: Runs, rate_hz: int) -> Runs:
    return merge((_ms(start, rate_hz), _ms(end, rate_hz)) for start, end in runs)


def _ms(position: int, rate_hz: int) -> int:
    """Milliseconds to the nearest, as recordings round them."""
    return (position * 2000 + rate_hz) // (2 * rate_hz)


def _moved(span: Span, recording: Recording, rate_hz: int) -> Span:
    return Span(
        start=at_rate(span.start, recording, rate_hz), end=at_rate(span.end, recording, rate_hz)
    )


def at_rate(position: int, recording: Recording, rate_hz: int) -> int:
    """A position of the call at the rate it was heard at."""
    if rate_hz == recording.rate_hz:
        return position
    return (position * rate_hz + recording.rate_hz // 2) // recording.rate_hz
