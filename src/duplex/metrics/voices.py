"""What each segment is: part of a turn, a backchannel, a caller sound, or a blip.

The caller's labels win over what the timing alone would suggest; both answers
are kept. A host of a backchannel is never itself one, so two sides cannot
demote each other; that is why segments are judged in order of their starts.
Nothing here joins segments: ``turns.py`` does, and drives this.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from duplex.metrics.intervals import clip, merge, total
from duplex.metrics.speech import EdgeError, SoundKind, Speech, SpokenSegment
from duplex.metrics.timing_policy import TimingPolicy, samples
from duplex.values import Action, Side, Utterance


class VoiceKind(StrEnum):
    """What one segment counts as."""

    TURN = "turn"
    BACKCHANNEL = "backchannel"
    TIC = "tic"
    SIDE_SPEECH = "side_speech"
    BLIP = "blip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """A segment with its meaning. ``label`` is None where nobody labelled it."""

    side: Side
    start: int
    end: int
    kind: VoiceKind
    inferred: VoiceKind
    onset: EdgeError
    offset: EdgeError
    label: Action | None = None

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def heard(self) -> bool:
        """Whether it is voice at all: enough of it to be anything but a blip."""
        return self.kind is not VoiceKind.BLIP


Voices = tuple[Voice, ...]
Sides = dict[Side, tuple[SpokenSegment, ...]]


def voices_of(sides: Sides, speech: Speech, policy: TimingPolicy) -> dict[Side, Voices]:
    """Judge every segment of both sides."""
    judge = _Judge(sides, speech, policy)
    found: dict[Side, list[Voice]] = {side: [] for side in Side}
    everything = sorted(
        (segment.start, side, index) for side in Side for index, segment in enumerate(sides[side])
    )
    for _, side, index in everything:
        segment = sides[side][index]
        inferred = judge.infer(side, segment, found[side.other])
        label = judge.label(segment) if side is Side.CALLER else None
        kind = judge.kind(side, segment, label, inferred)
        found[side].append(
            Voice(
                side=side,
                start=segment.start,
                end=segment.end,
                kind=kind,
                inferred=inferred,
                label=label,
                onset=segment.onset,
                offset=segment.offset,
            )
        )
    return {side: tuple(found[side]) for side in Side}


class _Judge:
    """The rules of one call, with what they look things up in."""

    def __init__(self, sides: Sides, speech: Speech, policy: TimingPolicy) -> None:
        rate = speech.rate_hz
        self._words = policy.backchannel_words
        self._least = samples(policy.min_voice_ms, rate)
        self._longest = samples(policy.backchannel_ms, rate)
        self._reach = samples(policy.backchannel_reach_ms, rate)
        self._resume = samples(policy.backchannel_resume_ms, rate)
        self._labels = sorted(
            (label for label in speech.labels if label.side is Side.CALLER),
            key=lambda label: label.span,
        )
        self._starts = [label.span.start for label in self._labels]
        self._reached = list(accumulate((label.span.end for label in self._labels), max))
        self._sounds = {
            kind: merge((s.span.start, s.span.end) for s in speech.sounds if s.kind is kind)
            for kind in SoundKind
        }
        self._next: dict[Side, list[int]] = {
            side: [s.start for s in sides[side] if self._enough(s)] for side in Side
        }

    def infer(self, side: Side, segment: SpokenSegment, others: Sequence[Voice]) -> VoiceKind:
        """What timing and words alone say; ``others`` are the other side's earlier voices."""
        if not self._enough(segment):
            return VoiceKind.BLIP
        if segment.end - segment.start > self._longest or self._wordy(segment.text):
            return VoiceKind.TURN
        host = _host(others, segment.start)
        if host is None or segment.start > host.end + self._reach:
            return VoiceKind.TURN
        goes_on = host.end > segment.end or self._resumes(side.other, segment)
        return VoiceKind.BACKCHANNEL if goes_on else VoiceKind.TURN

    def label(self, segment: SpokenSegment) -> Action | None:
        """Action of the caller's label that covers most of the segment."""
        best, most = None, 0
        at = bisect_left(self._starts, segment.end)
        while at > 0 and self._reached[at - 1] > segment.start:
            at -= 1
            common = _common(self._labels[at], segment)
            if common > 0 and common >= most:
                best, most = self._labels[at].action, common
        return best

    def kind(
        self, side: Side, segment: SpokenSegment, label: Action | None, inferred: VoiceKind
    ) -> VoiceKind:
        """The verdict: length first, then the caller's word, then inference."""
        if inferred is VoiceKind.BLIP or side is Side.ASSISTANT:
            return inferred
        if label is not None:
            return VoiceKind.BACKCHANNEL if label is Action.BACKCHANNEL else VoiceKind.TURN
        for kind, runs in self._sounds.items():
            if 2 * total(clip(runs, segment.start, segment.end)) > segment.end - segment.start:
                return VoiceKind(kind.value)
        return inferred

    def _enough(self, segment: SpokenSegment) -> bool:
        return segment.end - segment.start - total(segment.pauses) >= self._least

    def _wordy(self, text: str | None) -> bool:
        return text is not None and len(re.findall(r"\w[\w'’-]*", text)) > self._words

    def _resumes(self, side: Side, segment: SpokenSegment) -> bool:
        starts = self._next[side]
        at = bisect_right(starts, segment.start)
        return at < len(starts) and starts[at] <= segment.end + self._resume


def _host(others: Sequence[Voice], start: int) -> Voice | None:
    """The last turn voice of the other side that began before ``start``."""
    at = bisect_left(others, start, key=lambda voice: voice.start)
    for voice in reversed(others[:at]):
        if voice.kind is VoiceKind.TURN:
            return voice
    return None


def _common(label: Utterance, segment: SpokenSegment) -> int:
    return min(label.span.end, segment.end) - max(label.span.start, segment.start)
