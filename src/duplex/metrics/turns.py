"""Turns: segments of one side joined across pauses in which the other did not take the floor.

A segment is split at a pause inside it in which the other side held the floor,
and at one that only a hangover can have bridged, so no hangover moves a turn.
Takes the speech of a call, answers with the voices and turns of both sides;
what became of a turn is decided in ``responses.py`` and ``yielding.py``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from duplex.metrics.intervals import Run, Runs, clip, merge, subtract
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
    longest = samples(policy.segment_pause_ms, speech.rate_hz)
    sides = {
        side: tuple(
            part
            for segment in tidy(speech.side(side), speech.duration)
            for part in _without_hangover(segment, longest)
        )
        for side in Side
    }
    first = voices_of(sides, speech, policy)
    rule = _FloorRule(first, policy, speech.rate_hz)
    pieces = {
        side: tuple(piece for segment in sides[side] for piece in _split(segment, side, rule))
        for side in Side
    }
    voices = first if pieces == sides else voices_of(pieces, speech, policy)
    rule = _FloorRule(voices, policy, speech.rate_hz)
    caller = _joined(rule.claims[Side.CALLER], rule.caller_parted)
    starts = [turn.start for turn in caller]
    assistant = _joined(
        rule.claims[Side.ASSISTANT], partial(rule.assistant_parted, caller_turns=starts)
    )
    return Talk(
        rate_hz=speech.rate_hz,
        duration=speech.duration,
        voices=voices,
        turns={Side.CALLER: caller, Side.ASSISTANT: assistant},
    )


def _without_hangover(segment: SpokenSegment, longest: int) -> list[SpokenSegment]:
    """The segment, parted at pauses that only a hangover can have bridged."""
    parts: list[SpokenSegment] = []
    rest = segment
    for start, end in clip(merge(segment.pauses), segment.start, segment.end):
        if end - start >= longest and rest.start < start and end < segment.end:
            parts.append(_part(rest, rest.start, start))
            rest = _part(rest, end, rest.end)
    return [*parts, rest]


def _split(segment: SpokenSegment, side: Side, rule: _FloorRule) -> list[SpokenSegment]:
    """The segment, parted at the pauses in which the other side had the floor."""
    pieces: list[SpokenSegment] = []
    rest = segment
    for start, end in clip(merge(segment.pauses), segment.start, segment.end):
        inside = rest.start < start and end < segment.end
        if inside and rule.taken(side, rest.start, (start, end), segment.end):
            pieces.append(_part(rest, rest.start, start))
            rest = _part(rest, end, rest.end)
    return [*pieces, rest]


def _part(segment: SpokenSegment, start: int, end: int) -> SpokenSegment:
    """A piece of a segment; its inner edges are as sure as the outer ones, its words unknown."""
    pauses = clip(merge(segment.pauses), start, end)
    return replace(segment, start=start, end=end, pauses=pauses, text=None)


def _joined(claims: Voices, parted: Callable[[list[Voice], Voice], bool]) -> Turns:
    """Join voices that claim the floor into turns; ``parted`` says where one ends."""
    turns: list[list[Voice]] = []
    for voice in claims:
        if turns and not parted(turns[-1], voice):
            turns[-1].append(voice)
        else:
            turns.append([voice])
    return tuple(Turn(side=voices[0].side, voices=tuple(voices)) for voices in turns)


class _FloorRule:
    """Who has the floor in a pause, from the voices that claim it."""

    def __init__(self, voices: dict[Side, Voices], policy: TimingPolicy, rate_hz: int) -> None:
        self.claims = {
            side: tuple(voice for voice in voices[side] if voice.kind is VoiceKind.TURN)
            for side in Side
        }
        self._starts = {side: [voice.start for voice in self.claims[side]] for side in Side}
        self._held = samples(policy.floor_taken_ms, rate_hz)
        self._shortest = samples(policy.split_pause_ms, rate_hz)
        self._lead = samples(policy.early_lead_ms, rate_hz)
        self._resume = samples(policy.resume_ms, rate_hz)
        self._caller_pause = samples(policy.caller_pause_ms, rate_hz)

    def caller_parted(self, turn: list[Voice], voice: Voice) -> bool:
        """Whether the pause before ``voice`` ends a caller turn so far."""
        pause = (turn[-1].end, voice.start)
        if self.taken(Side.CALLER, turn[-1].start, pause, voice.end):
            return True
        return pause[1] - pause[0] > self._caller_pause

    def assistant_parted(self, turn: list[Voice], voice: Voice, *, caller_turns: list[int]) -> bool:
        """Whether the pause before ``voice`` ends an assistant turn so far.

        It also does when a caller turn began during the turn: an assistant that
        then falls silent gave its turn up, and what it says next is an answer.
        """
        pause = (turn[-1].end, voice.start)
        if self.taken(Side.ASSISTANT, turn[-1].start, pause, voice.end):
            return True
        at = bisect_left(caller_turns, pause[0]) - 1
        cut_in = at >= 0 and caller_turns[at] > turn[0].start
        return cut_in and pause[1] - pause[0] >= self._resume

    def taken(self, side: Side, begun: int, pause: Run, end: int) -> bool:
        """Whether the other side took the floor in a pause of ``side``.

        ``begun`` is where the speech before the pause began, ``end`` where the
        speech after it ends. The other side must start in the pause or hold
        enough of it; a pause too short for that counts when a whole turn lies
        across it. An assistant that falters under a barge-in keeps its turn.
        """
        start, stop = pause
        if side is Side.ASSISTANT and self._falters(start, stop):
            return False
        if stop - start < self._held:
            return stop - start >= self._shortest and self._crossed(side, begun, pause, end)
        claims = self.claims[side.other]
        first = bisect_left(self._starts[side.other], start)
        if first < len(claims) and claims[first].start < stop:
            return True
        return first > 0 and min(claims[first - 1].end, stop) - start >= self._held

    def _crossed(self, side: Side, begun: int, pause: Run, end: int) -> bool:
        """Whether a turn of the other side began soon before the pause and ended soon after."""
        at = bisect_right(self._starts[side.other], pause[0]) - 1
        if at < 0:
            return False
        other = self.claims[side.other][at]
        began = begun < other.start and pause[0] - other.start <= self._lead
        return began and pause[1] <= other.end < end and other.end - pause[1] <= self._lead

    def _falters(self, start: int, stop: int) -> bool:
        """Whether the caller barged in before the pause and outlasts it, short as it is."""
        at = bisect_left(self._starts[Side.CALLER], start) - 1
        return stop - start < self._resume and at >= 0 and self.claims[Side.CALLER][at].end > stop


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
