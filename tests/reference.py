"""A slow, obvious engine: the oracle of the compiled one.

It has the same methods as ``duplex.engine.Engine`` and goes one sample at a
time with plain lists, so each rule can be read where it is applied. It shares
only value types and the published filter table with the project, no code.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import islice
from pathlib import Path

import numpy as np
import webrtcvad

from duplex.engine import (
    Counts,
    EngineEvent,
    FloorEvent,
    Holder,
    Pcm,
    Playout,
    PlayoutEvent,
    SegmentEvent,
    SideCounts,
)
from duplex.values import Side

VOICED_RMS = 220
SOURCE = Path(__file__).parent.parent / "src" / "duplex"


def filter_table(rate_hz: int) -> list[int]:
    """Read the webrtc detector's filter for one session rate."""
    text = (SOURCE / "_fir.h").read_text()
    match = re.search(rf"duplex_fir_{rate_hz // 1000}\[\d+\] = \{{(.*?)\}};", text, re.DOTALL)
    assert match is not None
    taps = [int(number) for number in re.findall(r"-?\d+", match.group(1))]
    while taps[-1] == 0:
        taps.pop()
    return taps


class Line:
    """What one side says: a queue, and the silence played when it is short or waits."""

    def __init__(self, side: Side, hold: int, capacity: int, block: int) -> None:
        self.side, self.hold, self.capacity, self.block = side, hold, capacity, block
        self.queue: deque[int] = deque()
        self.real: list[int] = []  # samples really played since the last flush
        self.state = "dry"
        self.wait = 0
        self.gap = 0
        self.started = False
        self.in_speech = False
        self.last_window: list[int] = []  # depths at the ends of blocks, a second or more
        self.window: list[int] = []
        self.arrivals = 0  # in this window
        self.noticed = 0
        self.run: tuple[Playout, int, int] | None = None
        self.events: list[EngineEvent] = []
        self.total = dict.fromkeys(
            ("accepted", "played", "discarded", "idle", "underrun", "added", "dropped"), 0
        )

    def feed(self, pcm: Pcm) -> int:
        taken = [int(x) for x in pcm[: self.capacity - len(self.queue)]]
        self.queue += taken
        self.total["accepted"] += len(taken)
        return len(taken)

    def flush(self, at: int) -> int:
        n = len(self.queue)
        if self.state == "holding":
            self.close_run()
        if self.state != "dry":
            self.state, self.gap = "dry", 0
        self.in_speech = False
        self.queue, self.real = deque(), []
        self.total["discarded"] += n
        if n:
            self.events.append(
                PlayoutEvent(side=self.side, kind=Playout.DISCARD, start=at, samples=n)
            )
        return n

    def next(self, at: int) -> int:
        """Return sample ``at`` of what this side says."""
        if at % self.block == 0:
            self.trim(at)
        if self.state == "dry" and self.queue:
            self.wait = self.hold_needed()
            self.state = "holding"
        if self.state == "holding" and self.wait == 0:
            self.close_run()
            self.state, self.started = "playing", True
            self.last_window, self.window, self.arrivals = [], [], 0
        if self.state == "holding":
            self.wait -= 1
            self.total["added"] += 1
            self.silent(Playout.HOLD_ADJUST, at)
            return 0
        if self.queue:
            self.total["played"] += 1
            self.real.append(self.queue.popleft())
            return self.real[-1]
        if self.state == "playing":
            self.state, self.gap = "dry", 0
            self.in_speech = self.loud(self.real[-self.block :])
        if self.in_speech and self.gap < 10 * self.block:
            self.total["underrun"] += 1
            self.silent(Playout.UNDERRUN, at)
        else:
            self.total["idle"] += 1
            self.silent(Playout.IDLE, at)
        self.gap += 1
        return 0

    def hold_needed(self) -> int:
        if self.in_speech and self.gap <= 10 * self.block:
            return 0
        if not self.started or len(self.queue) < self.gap:
            return self.hold
        return max(0, self.hold - len(self.queue))

    def trim(self, at: int) -> None:
        """Drop quiet blocks between quiet blocks while the ring is too deep."""
        if self.hold == 0 or self.state != "playing" or not self.last_window:
            return
        dropped = 0
        while (
            min(self.last_window + self.window) - dropped - self.hold >= self.block
            and len(self.queue) >= 2 * self.block
            and not self.loud(self.real[-self.block :])
            and not self.loud(list(islice(self.queue, self.block)))
            and not self.loud(list(islice(self.queue, self.block, 2 * self.block)))
        ):
            for _ in range(self.block):
                self.queue.popleft()
            dropped += self.block
        if dropped:
            self.last_window = [depth - dropped for depth in self.last_window]
            self.window = [depth - dropped for depth in self.window]
            self.total["discarded"] += dropped
            self.total["dropped"] += dropped
            self.events.append(
                PlayoutEvent(side=self.side, kind=Playout.HOLD_ADJUST, start=at, samples=-dropped)
            )

    def notice(self) -> None:
        """Count all that was fed since the last advance as one arrival."""
        if self.total["accepted"] != self.noticed:
            self.noticed = self.total["accepted"]
            self.arrivals += 1

    def end_of_block(self) -> None:
        if self.state == "playing":
            self.window.append(len(self.queue))
            if len(self.window) >= 50 and self.arrivals >= 2:
                self.last_window, self.window, self.arrivals = self.window, [], 0

    def loud(self, samples: list[int]) -> bool:
        return sum(x * x for x in samples) >= VOICED_RMS**2 * self.block

    def silent(self, kind: Playout, at: int) -> None:
        if self.run is None or self.run[0] != kind:
            self.close_run()
            self.run = (kind, at, 0)
        self.run = (kind, self.run[1], self.run[2] + 1)

    def close_run(self) -> None:
        if self.run is not None:
            kind, start, samples = self.run
            self.events.append(
                PlayoutEvent(side=self.side, kind=kind, start=start, samples=samples)
            )
            self.run = None

    def counts(self) -> SideCounts:
        total = self.total
        return SideCounts(
            accepted=total["accepted"],
            played=total["played"],
            discarded=total["discarded"],
            queued=len(self.queue),
            idle=total["idle"],
            underrun=total["underrun"],
            hold_added=total["added"],
            hold_dropped=total["dropped"],
        )


class Ear:
    """Frame by frame, whether one side's output is speech."""

    def __init__(self, detector: str, rate_hz: int) -> None:
        self.rms = detector == "rms"
        self.frame = rate_hz // 50 if self.rms else rate_hz // 100
        self.factor = rate_hz // 8000
        self.taps = [] if self.rms or self.factor == 1 else filter_table(rate_hz)
        self.ahead = len(self.taps) // 2
        self.vad = webrtcvad.Vad(2)
        self.opened: int | None = None

    def voiced(self, heard: list[int], start: int, end: int) -> bool:
        if self.rms:
            return sum(x * x for x in heard[start:end]) >= VOICED_RMS**2 * (end - start)
        padded = [0] * self.ahead + heard + [0] * (self.frame + self.ahead)
        window = padded[start : start + self.frame + 2 * self.ahead]
        if self.taps:
            window = [
                self.tap(window[k : k + len(self.taps)]) for k in range(0, self.frame, self.factor)
            ]
        return bool(self.vad.is_speech(np.array(window[:80], np.int16).tobytes(), 8000))

    def tap(self, window: list[int]) -> int:
        total = sum(x * h for x, h in zip(window, self.taps, strict=True))
        return max(-32768, min(32767, (total + (1 << 14)) >> 15))


class Engine:
    """The oracle; see ``duplex.engine.Engine`` for what each method promises."""

    def __init__(
        self,
        *,
        rate_hz: int = 24_000,
        tick_ms: int = 20,
        detector: str = "rms",
        hold_ms: tuple[int, int] = (0, 0),
        ring_ms: int = 20_000,
    ) -> None:
        per_ms = rate_hz // 1000
        self.rate_hz, self.tick = rate_hz, tick_ms * per_ms
        self.lines = [
            Line(side, hold_ms[side] * per_ms, ring_ms * per_ms, rate_hz // 50) for side in Side
        ]
        self.ears = [Ear(detector, rate_hz) for _ in Side]
        self.said: list[list[int]] = [[], []]
        self.position = 0
        self.decided = 0
        self.mark = 0
        self.holder = 0
        self.shares = [0, 0, 0, 0]
        self.clipped = 0
        self.events: list[EngineEvent] = []

    def feed(self, side: Side, pcm: Pcm) -> int:
        return self.lines[side].feed(pcm)

    def flush(self, side: Side) -> int:
        n = self.lines[side].flush(self.position)
        self.collect(side)
        return n

    def advance(self, n: int = 1) -> None:
        self.mark = self.position
        for line in self.lines:
            line.notice()
        for _ in range(n * self.tick):
            for side in Side:
                self.said[side].append(self.lines[side].next(self.position))
                self.collect(side)
            total = self.said[0][-1] + self.said[1][-1]
            self.clipped += not -32768 <= total <= 32767
            self.position += 1
            if self.position % (self.rate_hz // 50) == 0:
                for line in self.lines:
                    line.end_of_block()
            if self.position == self.decided + self.ears[0].frame + self.ears[0].ahead:
                self.decide()

    def decide(self) -> None:
        start = self.decided
        end = min(start + self.ears[0].frame, self.position)
        voiced = [self.ears[side].voiced(self.said[side], start, end) for side in Side]
        holder = voiced[0] + 2 * voiced[1]
        self.shares[holder] += end - start
        for side in Side:
            if not voiced[side]:
                self.close_segment(side, start)
            elif self.ears[side].opened is None:
                self.ears[side].opened = start
        if holder != self.holder:
            self.holder = holder
            self.events.append(FloorEvent(at=start, holder=list(Holder)[holder]))
        self.decided = end

    def close_segment(self, side: Side, end: int) -> None:
        opened = self.ears[side].opened
        if opened is not None:
            self.events.append(SegmentEvent(side=side, start=opened, end=end))
            self.ears[side].opened = None

    def finish(self) -> None:
        while self.decided < self.position:
            self.decide()
        for side in Side:
            self.close_segment(side, self.position)
            self.lines[side].close_run()
            self.collect(side)

    def collect(self, side: Side) -> None:
        self.events += self.lines[side].events
        self.lines[side].events = []

    def heard(self, side: Side) -> Pcm:
        return self.spoken(side.other)

    def spoken(self, side: Side) -> Pcm:
        return np.array(self.said[side][self.mark :], np.int16)

    def mixed(self) -> Pcm:
        total = [a + b for a, b in zip(*(said[self.mark :] for said in self.said), strict=True)]
        return np.array([max(-32768, min(32767, x)) for x in total], np.int16)

    def drain(self) -> list[EngineEvent]:
        events, self.events = self.events, []
        return events

    def counts(self) -> Counts:
        shares = list(self.shares)
        shares[self.holder] += self.position - self.decided
        return Counts(
            position=self.position,
            caller=self.lines[0].counts(),
            assistant=self.lines[1].counts(),
            silence=shares[0],
            caller_only=shares[1],
            assistant_only=shares[2],
            overlap=shares[3],
            clipped=self.clipped,
            events_lost=0,
        )
