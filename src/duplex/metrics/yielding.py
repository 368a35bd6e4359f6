"""Does the assistant stop when it should, and only then: barge-ins, false yields, selectivity.

A stop is the end of a run of assistant voice joined across gaps shorter than
the resume time, so a dip is never a yield. Correct non-reactions are counted as
opportunities. What a recording cannot tell is why the assistant stopped: a
sentence that happens to end in the window counts as a stop.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from duplex.metrics.intervals import Run, Runs, run_over
from duplex.metrics.responses import Outcome, Responses, between
from duplex.metrics.speech import SoundKind, Speech
from duplex.metrics.timing_policy import TimingPolicy, samples
from duplex.metrics.turns import Talk, joined_runs
from duplex.metrics.voices import VoiceKind, Voices
from duplex.values import Action, Side

SELECTIVE = {
    "backchannel": VoiceKind.BACKCHANNEL,
    "vocal_tic": VoiceKind.TIC,
    "non_directed": VoiceKind.SIDE_SPEECH,
}
"""Names of the selectivity rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BargeIn:
    """A caller turn that began while the assistant spoke.

    ``stop`` is where the assistant's speech that began before it ended;
    ``yielded`` is None when the call ended before it could be told.
    """

    turn: int
    onset: int
    stop: int
    yielded: bool | None
    plus_minus_ms: float | None = None
    unreliable: bool = False

    @property
    def stop_after(self) -> int:
        return self.stop - self.onset


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A backchannel, tic or side speech of the caller, and how the assistant took it.

    ``speaking``: whether the assistant was, at its onset. ``error``: whether it
    stopped, or answered, as it should not have; None when there was nothing to
    be seen (the call ended too soon, or a reply was owed anyway).
    """

    kind: VoiceKind
    start: int
    end: int
    speaking: bool
    error: bool | None
    labelled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Yielding:
    """Barge-ins and events of one call, in order."""

    barge_ins: tuple[BargeIn, ...]
    events: tuple[Event, ...]


def yielding_of(talk: Talk, speech: Speech, responses: Responses, policy: TimingPolicy) -> Yielding:
    """Look at everything the caller did that the assistant had to take or ignore."""
    assistant = talk.heard(Side.ASSISTANT)
    runs = joined_runs(assistant, samples(policy.resume_ms, talk.rate_hz))
    scene = _Scene(
        talk=talk,
        responses=responses,
        policy=policy,
        assistant=assistant,
        runs=runs,
        tick_ms=speech.tick_ms,
    )
    barge_ins = tuple(
        found
        for index in range(len(talk.turns[Side.CALLER]))
        if (found := _barge_in(scene, index)) is not None
    )
    events = sorted(
        (_judged(scene, *event) for event in _events(talk, speech)),
        key=lambda event: (event.start, event.kind),
    )
    return Yielding(barge_ins=barge_ins, events=tuple(events))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    talk: Talk
    responses: Responses
    policy: TimingPolicy
    assistant: Voices
    runs: Runs
    tick_ms: float

    def samples(self, ms: int) -> int:
        return samples(ms, self.talk.rate_hz)


def _barge_in(scene: _Scene, index: int) -> BargeIn | None:
    turn = scene.talk.turns[Side.CALLER][index]
    at = bisect_left(scene.assistant, turn.start, key=lambda voice: voice.start) - 1
    if turn.voices[0].label is Action.STOP or at < 0 or scene.assistant[at].end <= turn.start:
        return None
    last = _last_of_stop(scene, at, turn.end)
    stop, offset = scene.assistant[last].end, scene.assistant[last].offset
    onset = turn.voices[0].onset
    window = scene.samples(scene.policy.yield_window_ms)
    yielded: bool | None = stop - turn.start <= window
    if yielded and stop >= scene.talk.duration:
        yielded = None
    return BargeIn(
        turn=index,
        onset=turn.start,
        stop=stop,
        yielded=yielded,
        plus_minus_ms=between(onset, offset, scene.tick_ms),
        unreliable=onset.unreliable or offset.unreliable,
    )


def _last_of_stop(scene: _Scene, at: int, caller_end: int) -> int:
    """Index of the last assistant voice before it was really quiet.

    A gap shorter than the resume time is none, unless the caller finished in
    it: what follows then is the answer.
    """
    resume = scene.samples(scene.policy.resume_ms)
    while at + 1 < len(scene.assistant):
        quiet, again = scene.assistant[at].end, scene.assistant[at + 1].start
        if again - quiet >= resume or quiet < caller_end <= again:
            break
        at += 1
    return at


def _events(talk: Talk, speech: Speech) -> list[tuple[VoiceKind, Run, bool]]:
    """What should not be reacted to: kind, span, whether somebody labelled it."""
    found: list[tuple[VoiceKind, Run, bool]] = []
    for voice in talk.voices[Side.CALLER]:
        if voice.kind is VoiceKind.BACKCHANNEL:
            found.append((voice.kind, (voice.start, voice.end), voice.label is not None))
        elif voice.kind is VoiceKind.BLIP and voice.label is Action.BACKCHANNEL:
            found.append((VoiceKind.BACKCHANNEL, (voice.start, voice.end), True))
    for sound in speech.sounds:
        start, end = max(sound.span.start, 0), min(sound.span.end, talk.duration)
        if start < end:
            kind = VoiceKind.TIC if sound.kind is SoundKind.TIC else VoiceKind.SIDE_SPEECH
            found.append((kind, (start, end), True))
    return found


def _judged(scene: _Scene, kind: VoiceKind, span: Run, labelled: bool) -> Event:
    start, end = span
    run = run_over(scene.runs, start)
    if run is not None:
        error = _false_yield(scene, start, run)
    elif kind is VoiceKind.BACKCHANNEL:
        error = None
    else:
        error = _answered(scene, start, end)
    return Event(
        kind=kind,
        start=start,
        end=end,
        speaking=run is not None,
        error=error,
        labelled=labelled,
    )


def _false_yield(scene: _Scene, start: int, run: Run) -> bool | None:
    if run[1] - start > scene.samples(scene.policy.false_yield_window_ms):
        return False
    quiet_known = run[1] + scene.samples(scene.policy.resume_ms) <= scene.talk.duration
    return True if quiet_known else None


def _answered(scene: _Scene, start: int, end: int) -> bool | None:
    """Whether the silent assistant spoke up in the window after a sound.

    None when it owed the caller a reply anyway, or the call ended too soon. A
    new caller turn closes the window: what follows answers that.
    """
    if _owed(scene, start):
        return None
    close = end + scene.samples(scene.policy.silent_response_window_ms)
    turns = scene.talk.turns[Side.CALLER]
    following = bisect_left(turns, start, key=lambda turn: turn.start)
    if following < len(turns):
        close = min(close, turns[following].start)
    first = bisect_left(scene.runs, start, key=lambda run: run[0])
    if first < len(scene.runs) and scene.runs[first][0] <= close:
        return True
    return None if close > scene.talk.duration else False


def _owed(scene: _Scene, at: int) -> bool:
    """Whether the last caller turn begun before ``at`` was still without its reply."""
    turns = scene.talk.turns[Side.CALLER]
    index = bisect_right(turns, at, key=lambda turn: turn.start) - 1
    if index < 0:
        return False
    fate = scene.responses.fates[index]
    if fate.outcome is Outcome.EXCLUDED:
        return False
    if fate.reply is None:
        return True
    return scene.talk.turns[Side.ASSISTANT][fate.reply].start >= at
