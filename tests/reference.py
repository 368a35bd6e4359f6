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


class Hold:
    """How long arrivals wait: fixed, or learnt from how late they come."""

    def __init__(self, length: int, adaptive: bool, least: int, most: int, rate_hz: int) -> None:
        self.length = self.first = length
        self.adaptive, self.least, self.most = adaptive, least, most
        self.rate_hz, self.block = rate_hz, rate_hz // 50
        self.offsets: list[int] = []  # of arrivals, since the sender's grid was lost
        self.pending: list[int] = []  # lateness, from one that may be no jitter on
        self.late: list[tuple[int, int]] = [(0, 0)]  # (slot, lateness)
        self.means: list[int] = []
        self.blocks = 0
        self.marks: deque[tuple[int, int]] = deque()
        self.waits: list[int] = []

    @property
    def mean(self) -> int:
        recent = self.offsets[-256:]
        return sum(recent) // len(recent)

    @property
    def knows(self) -> bool:
        return len(self.offsets) >= 4 and not self.pending

    def excess(self, offset: int) -> int:
        return offset - self.mean - self.length

    def arrive(self, sample: int, at: int) -> None:
        if self.length > 0:
            self.marks.append((sample, at))
        if self.adaptive:
            self.learn(at - sample)

    def learn(self, offset: int) -> None:
        lateness = offset - self.mean if self.offsets else 0
        if lateness < -self.most:
            self.restart()
            lateness = 0
        if self.pending and 2 * lateness <= max(self.pending):
            self.remember(max(self.pending))
            self.pending = []
        if self.pending or lateness > self.block:
            self.pending.append(lateness)
        if lateness <= self.block:
            self.remember(lateness)
        if len(self.pending) > 16:
            self.restart()
            lateness = 0
        if lateness <= self.most:
            self.offsets.append(offset)

    def restart(self) -> None:
        self.offsets, self.pending, self.means = [], [], []

    def remember(self, lateness: int) -> None:
        if lateness <= self.most:
            self.late.append((self.blocks // 750, lateness))

    def end_of_block(self) -> None:
        self.blocks += 1
        slot = self.blocks // 750
        if self.blocks % 750 == 0:
            self.means.append(self.mean)
            self.late.append((slot, 0))
        latest = max(lateness for when, lateness in self.late if when > slot - 12)
        drift = abs(self.mean - self.means[-12:][0]) if self.means else 0
        margin = self.block + self.block // 20 - min(self.block, drift) // 4
        margin += self.block * max(0, 9000 - self.blocks) // 9000
        start = self.first * max(0, 1500 - self.blocks) // 1500
        self.length = min(self.most, max(self.least, start, latest + margin))

    def play(self, sample: int, at: int) -> None:
        while self.marks and self.marks[0][0] <= sample:
            first, seen = self.marks.popleft()
            if first == sample:
                self.waits.append(at - seen)

    def p99(self) -> int:
        rank = -(-99 * len(self.waits) // 100)
        whole_ms = -(-sorted(self.waits)[rank - 1] * 1000 // self.rate_hz)
        return min(max(self.waits), whole_ms * self.rate_hz // 1000)


class Line:
    """What one side says: a queue, and the silence played when it is short or waits."""

    def __init__(self, side: Side, hold: Hold, capacity: int, block: int) -> None:
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
            self.move_hold(at)
        if self.state == "dry" and self.queue:
            self.wait = self.hold_needed(at)
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
            self.hold.play(self.consumed, at)
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

    @property
    def consumed(self) -> int:
        return self.total["accepted"] - len(self.queue)

    def hold_needed(self, at: int) -> int:
        if self.hold.length == 0 or (self.in_speech and self.gap <= 10 * self.block):
            return 0
        if not self.started or len(self.queue) < self.gap:
            return self.hold.length
        if self.hold.knows:
            return max(0, -self.hold.excess(at - self.consumed))
        return max(0, self.hold.length - len(self.queue))

    def move_hold(self, at: int) -> None:
        """Between quiet blocks, drop what the ring holds too much or wait for what it lacks."""
        if self.state != "playing" or self.loud(self.real[-self.block :]):
            return
        if not self.hold.adaptive:
            if self.hold.length > 0 and self.last_window:
                excess = min(self.last_window + self.window) - self.hold.length
                self.drop(at, excess, self.block)
        elif self.hold.knows:
            excess = self.hold.excess(at - self.consumed)
            self.drop(at, excess, self.block // 5)
            quiet = not self.loud(list(islice(self.queue, self.block)))
            if excess <= -(self.block // 5 // 4) and len(self.queue) >= self.block and quiet:
                self.state, self.wait = "holding", -excess

    def drop(self, at: int, excess: int, least: int) -> None:
        dropped = 0
        while True:
            n = min(excess - dropped, self.block)
            if (
                n < least
                or len(self.queue) < self.block + n
                or self.loud(list(islice(self.queue, self.block)))
                or self.loud(list(islice(self.queue, n, n + self.block)))
            ):
                break
            for _ in range(n):
                self.queue.popleft()
            dropped += n
        if dropped:
            self.last_window = [depth - dropped for depth in self.last_window]
            self.window = [depth - dropped for depth in self.window]
            self.total["discarded"] += dropped
            self.total["dropped"] += dropped
            self.events.append(
                PlayoutEvent(side=self.side, kind=Playout.HOLD_ADJUST, start=at, samples=-dropped)
            )

    def notice(self, at: int) -> None:
        """Count all that was fed since the last advance as one arrival."""
        if self.total["accepted"] != self.noticed:
            self.hold.arrive(self.noticed, at)
            self.noticed = self.total["accepted"]
            self.arrivals += 1

    def end_of_block(self) -> None:
        if self.state == "playing" and self.hold.adaptive:
            self.hold.end_of_block()
        elif self.state == "playing":
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
        total, waits = self.total, self.hold.waits
        return SideCounts(
            accepted=total["accepted"],
            played=total["played"],
            discarded=total["discarded"],
            queued=len(self.queue),
            idle=total["idle"],
            underrun=total["underrun"],
            hold_added=total["added"],
            hold_dropped=total["dropped"],
            hold=self.hold.length,
            waits=len(waits),
            wait_mean=sum(waits) // len(waits) if waits else None,
            wait_p99=self.hold.p99() if waits else None,
            wait_max=max(waits, default=None),
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
        adaptive: tuple[bool, bool] = (False, False),
        ring_ms: int = 20_000,
    ) -> None:
        per_ms = rate_hz // 1000
        self.rate_hz, self.tick = rate_hz, tick_ms * per_ms
        holds = [
            Hold(hold_ms[side] * per_ms, adaptive[side], 20 * per_ms, 400 * per_ms, rate_hz)
            for side in Side
        ]
        self.lines = [Line(side, holds[side], ring_ms * per_ms, rate_hz // 50) for side in Side]
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
            line.notice(self.position)
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
