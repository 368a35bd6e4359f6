"""Policy of the timing block: every constant that a timing value depends on.

The figures are in milliseconds, as people write them; ``samples`` turns one
into the only unit the algorithms know. A policy must never change under a
version: whoever edits a default bumps ``TIMING_VERSION``, and results of
different versions or policies are never pooled.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from duplex.values import Json

TIMING_VERSION = "1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingPolicy:
    """Constants of the timing block, in milliseconds unless named otherwise."""

    min_voice_ms: int = 150
    """A segment with less voice is kept, but is no turn, interruption or response."""
    backchannel_ms: int = 1_000
    """A backchannel is at most this long."""
    backchannel_words: int = 2
    """A backchannel has at most this many words, where they are known."""
    backchannel_reach_ms: int = 200
    """A backchannel starts at most this long after the voice it accompanies."""
    backchannel_resume_ms: int = 300
    """The other side goes on at most this long after a backchannel."""
    floor_taken_ms: int = 150
    """This much of a pause held by the other side means that it took the floor."""
    segment_pause_ms: int = 200
    """A pause as long as this always parts segments, whatever hangover joined them."""
    split_pause_ms: int = 60
    """Shortest pause inside a segment that can part two turns."""
    caller_pause_ms: int = 2_000
    """Longest own pause inside one caller turn; assistant turns have no limit."""
    early_lead_ms: int = 1_000
    """A reply that starts at most this long before the caller's end is an early start."""
    keep_floor_ms: int = 300
    """The caller kept the floor when it spoke this long after the assistant's start."""
    resume_ms: int = 600
    """Speech that resumes before this much quiet never stopped."""
    yield_window_ms: int = 2_000
    """An assistant that stops within this after a barge-in has yielded."""
    false_yield_window_ms: int = 1_000
    """An assistant that stops within this after a sound meant for nobody has yielded falsely."""
    silent_response_window_ms: int = 2_000
    """An answer within this to a tic or side speech, in silence, is an error."""
    awkward_silence_ms: int = 3_000
    """Mutual silence of this length is awkward while a reply is owed."""
    response_deadline_ms: int = 5_000
    """A reply later than this is late."""
    panel_tick_ms: int = 200
    """Length of a tick of the panel."""

    def as_json(self) -> dict[str, Json]:
        """The constants by name."""
        return dict(dataclasses.asdict(self))


def samples(ms: float, rate_hz: int) -> int:
    """Whole samples in ``ms`` at ``rate_hz``, to the nearest."""
    return round(ms * rate_hz / 1000)


def milliseconds(count: float, rate_hz: int) -> float:
    """Milliseconds of ``count`` samples, to the microsecond."""
    return round(count * 1000 / rate_hz, 3)
