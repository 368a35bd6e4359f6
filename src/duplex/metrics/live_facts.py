"""What only a live call knows about its own timing: arrivals, holds, clocks.

A recording cannot tell when a byte came in or how long the relay kept it, so
everything here is optional; what is absent becomes null with a reason. Times
are milliseconds since the call began, on the call's own clock.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyArrival:
    """How one reply of the assistant came in.

    ``heard_at`` is the sample at which its first audible sample was played;
    ``first_byte_ms`` and ``first_audio_ms`` say when its first byte and its
    first non-silent sample arrived. ``hold_ms`` is how long playout kept it,
    ``wait_ms`` how long it waited for the tick it was played in: at most 0,
    because that tick began before the audio came.
    """

    heard_at: int
    first_byte_ms: float | None = None
    first_audio_ms: float | None = None
    hold_ms: float | None = None
    wait_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentAudio:
    """A message with caller audio ``[start, end)``, and when it had left, in samples.

    It was due at its end; ``late_ms`` is what our queue and sending added.
    """

    start: int
    end: int
    late_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptedReply:
    """A reply that was cut: what was heard of it, what had come in."""

    heard_ms: float
    received_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockFacts:
    """The instrument's own account: drift, lateness, padding, discards.

    ``interrupted`` None: the protocol does not say which replies were cut.
    ``drift_why`` says why drift is None, caller first.
    """

    caller_drift_ppm: float | None = None
    assistant_drift_ppm: float | None = None
    late_ticks: int | None = None
    late_p99_ms: float | None = None
    late_max_ms: float | None = None
    underrun_samples: int | None = None
    idle_samples: int | None = None
    discarded_samples: int | None = None
    interrupted: tuple[InterruptedReply, ...] | None = ()
    drift_why: tuple[str | None, str | None] = (None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFacts:
    """All of them. ``tick`` is the transport tick in samples.

    What the caller says is due when the message that holds it ends, and is
    delivered as much later as our queue and sending took. Where nobody told,
    messages are taken to be ticks, sent on time. ``failures`` has (sample, code) of
    every response that the assistant's provider could not give.
    """

    tick: int
    replies: tuple[ReplyArrival, ...] = ()
    sent: tuple[SentAudio, ...] = ()
    clock: ClockFacts | None = None
    line: tuple[tuple[int, float], ...] = ()
    failures: tuple[tuple[int, str], ...] = ()

    def line_ms(self, at: int) -> float:
        """How long the line to the assistant holds back what is said at sample ``at``.

        ``line`` has (sample, ms) from which on it does, in order; before the first, 0.
        """
        index = bisect_right(self.line, at, key=lambda step: step[0])
        return self.line[index - 1][1] if index else 0.0
