"""Turns: segments of one side joined across pauses in which the other did not take the floor.

A segment is split at a pause inside it in which the other side held the floor,
so a detector's hangover never glues two turns together. Takes the speech of a
call, answers with the voices and turns of both sides; what became of a turn is
decided in ``responses.py`` and ``yielding.py``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

from duplex.metrics.intervals import Run, Runs, clip, merge, subtract, total
from duplex.metrics.speech import Speech, SpokenSegment, tidy
from duplex.metrics.timing_policy import TimingPolicy, samples
from duplex.metrics.voices import Voice, VoiceKind, Voices, voices_of
from duplex.values import Action, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of one side: its voices from first to last."""

    side: Side
    voices: Voices

    @property
    def start(self) -> int:
        return self.voices[0].start

    @property
    def end(self) -> int:
        return self.voices[-1].end

    @property
    def actions(self) -> tuple[Action, ...]:
        """What the caller said it meant, in order, without repetition."""
        return tuple(dict.fromkeys(v.label for v in self.voices if v.label is not None))

    @property
    def closing(self) -> bool:
        """Whether all that the caller meant by it was to end the call."""
        return self.actions == (Action.STOP,)


Turns = tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Both sides of a call, judged: all voices, and the turns made of some."""

    rate_hz: int
    duration: int
    voices: dict[Side, Voices]
    turns: dict[Side, Turns]

    def runs(self, side: Side) -> Runs:
        """All voice of a side, blips too."""
        return merge((voice.start, voice.end) for voice in self.voices[side])

    def heard(self, side: Side) -> Voices:
        """The voices of a side without the blips."""
        return tuple(voice for voice in self.voices[side] if voice.heard)


def talk_of(speech: Speech, policy: TimingPolicy) -> Talk:
    """Judge the segments of a call and join them into turns."""
    sides = {side: tidy(speech.side(side), speech.duration) for side in Side}
    first = voices_of(sides, speech, policy)
    pieces = {
        side: tuple(
            piece
            for segment in sides[side]
            for piece in _split(segment, _claims(first[side.other]), policy, speech.rate_hz)
        )
        for side in Side
    }
    voices = first if pieces == sides else voices_of(pieces, speech, policy)
    joiner = _Joiner(voices, policy, speech.rate_hz)
    return Talk(
        rate_hz=speech.rate_hz,
        duration=speech.duration,
        voices=voices,
        turns={side: joiner.turns(side) for side in Side},
    )


def _claims(voices: Voices) -> Voices:
    """The voices that claim the floor."""
    return tuple(voice for voice in voices if voice.kind is VoiceKind.TURN)


def _split(
    segment: SpokenSegment, claims: Voices, policy: TimingPolicy, rate_hz: int
) -> list[SpokenSegment]:
    """The segment, parted at the pauses in which the other side had the floor."""
    pieces: list[SpokenSegment] = []
    rest = segment
    for start, end in clip(merge(segment.pauses), segment.start, segment.end):
        if start <= rest.start or end >= segment.end:
            continue
        if _lost(rest.start, (start, end), segment.end, claims, policy, rate_hz):
            pieces.append(_part(rest, rest.start, start))
            rest = _part(rest, end, rest.end)
    return [*pieces, rest]


def _part(segment: SpokenSegment, start: int, end: int) -> SpokenSegment:
    """A piece of a segment; its inner edges are as sure as the outer ones, its words unknown."""
    pauses = clip(merge(segment.pauses), start, end)
    return replace(segment, start=start, end=end, pauses=pauses, text=None)


def _lost(
    begun: int, pause: Run, end: int, claims: Voices, policy: TimingPolicy, rate_hz: int
) -> bool:
    """Whether the other side had the floor in a pause inside a segment.

    A pause shorter than what taking the floor needs counts when the other side
    went through it in a turn of its own: begun a little before the pause, over
    a little after it.
    """
    start, stop = pause
    if stop - start < samples(policy.split_pause_ms, rate_hz):
        return False
    if _took_floor(pause, claims, samples(policy.floor_taken_ms, rate_hz)):
        return True
    lead = samples(policy.early_lead_ms, rate_hz)
    at = bisect_right(claims, start, key=lambda voice: voice.start) - 1
    if at < 0:
        return False
    other = claims[at]
    began_in = begun < other.start and start - other.start <= lead
    over_soon = stop <= other.end < end and other.end - stop <= lead
    return began_in and over_soon


def _took_floor(pause: Run, claims: Voices, least: int) -> bool:
    """Whether a claim starts in the pause or claims hold ``least`` samples of it."""
    start, end = pause
    first = bisect_left(claims, start, key=lambda voice: voice.start)
    if first < len(claims) and claims[first].start < end:
        return True
    held = claims[max(first - 1, 0)] if claims else None
    return held is not None and min(held.end, end) - max(held.start, start) >= least


class _Joiner:
    """Joins the turn voices of one side."""

    def __init__(self, voices: dict[Side, Voices], policy: TimingPolicy, rate_hz: int) -> None:
        self._claims = {side: _claims(voices[side]) for side in Side}
        self._least = samples(policy.floor_taken_ms, rate_hz)
        self._resume = samples(policy.resume_ms, rate_hz)
        self._caller_pause = samples(policy.caller_pause_ms, rate_hz)

    def turns(self, side: Side) -> Turns:
        turns: list[list[Voice]] = []
        for voice in self._claims[side]:
            if turns and not self._parted(side, turns[-1][0].start, turns[-1][-1].end, voice.start):
                turns[-1].append(voice)
            else:
                turns.append([voice])
        return tuple(Turn(side=side, voices=tuple(voices)) for voices in turns)

    def _parted(self, side: Side, begun: int, start: int, end: int) -> bool:
        """Whether the pause ``[start, end)`` ends the turn that began at ``begun``."""
        if side is Side.ASSISTANT and self._dips(start, end):
            return False
        if _took_floor((start, end), self._claims[side.other], self._least):
            return True
        if side is Side.CALLER:
            return end - start > self._caller_pause
        return end - start >= self._resume and self._cut_in(side.other, begun, start)

    def _dips(self, start: int, end: int) -> bool:
        """Whether the assistant only faltered under a barge-in: it resumed too soon to yield."""
        claims = self._claims[Side.CALLER]
        at = bisect_left(claims, start, key=lambda voice: voice.start) - 1
        return end - start < self._resume and at >= 0 and claims[at].end > end

    def _cut_in(self, side: Side, begun: int, start: int) -> bool:
        """Whether ``side`` cut in on a turn since it began: silence after that gives it up."""
        claims = self._claims[side]
        at = bisect_left(claims, start, key=lambda voice: voice.start) - 1
        return at >= 0 and claims[at].start > begun


def joined_runs(voices: Voices, gap: int) -> Runs:
    """Runs of one side's voice, joined across gaps shorter than ``gap`` samples."""
    runs: list[Run] = []
    for voice in voices:
        if runs and voice.start - runs[-1][1] < gap:
            runs[-1] = (runs[-1][0], max(runs[-1][1], voice.end))
        else:
            runs.append((voice.start, voice.end))
    return tuple(runs)


def silences(talk: Talk) -> Runs:
    """Spans in which neither side is heard."""
    heard = merge((voice.start, voice.end) for side in Side for voice in talk.heard(side))
    return subtract(((0, talk.duration),) if talk.duration else (), heard)


def voice_within(runs: Runs, start: int, end: int) -> int:
    """Samples of ``runs`` in ``[start, end)``."""
    return total(clip(runs, start, end))
