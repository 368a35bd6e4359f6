"""What was measured set beside what was planted: one to one, by overlap.

Every planted turn is matched with at most one measured turn; what is left over is missed
or a false alarm and never silently dropped. Errors are measured minus true, in ms. It takes
timing blocks and truths and hears nothing itself; the paths drive it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from duplex.calibration.plan import Truth
from duplex.metrics.intervals import Run, Runs, intersect, total
from duplex.metrics.timing import TimingBlock
from duplex.metrics.turns import Turns
from duplex.metrics.voices import VoiceKind
from duplex.metrics.yielding import Event
from duplex.values import EdgeError, Json, Side

CALL_TICK_MS = 20.0
"""Transport tick of a call unless somebody asks for another."""
NEAR_MS = 250
"""An event is one that was planted when they overlap, or lie this close."""


class Metric(StrEnum):
    """What is compared."""

    LATENCY = "response_latency"
    CALLER_TURN = "caller_turn"
    CALLER_END = "caller_end"
    ASSISTANT_START = "assistant_start"
    YIELD = "time_to_yield"
    OVERLAP = "overlap_per_call"
    BACKCHANNEL = "backchannel_reaction"
    TIC = "tic_reaction"
    FIRST_AUDIO = "first_audio_latency"
    OWN = "own_latency"


@dataclass(slots=True, kw_only=True)
class Figures:
    """One metric of one row; ``errors`` are of what was found, in ms.

    ``widths`` holds the ± that the edges of each value give it, None where none is printed.
    A recording is printed with these; a call adds its transport tick.
    """

    n: int = 0
    missed: int = 0
    false_alarms: int = 0
    errors: list[float] = field(default_factory=list)
    widths: list[float | None] = field(default_factory=list)

    def add(self, error: float, width: float | None = None) -> None:
        self.errors.append(error)
        self.widths.append(width)

    def join(self, other: Figures) -> None:
        """Pool another call's figures into these."""
        self.n += other.n
        self.missed += other.missed
        self.false_alarms += other.false_alarms
        self.errors += other.errors
        self.widths += other.widths

    @property
    def bias_ms(self) -> float | None:
        return float(np.mean(self.errors)) if self.errors else None

    @property
    def p50_ms(self) -> float | None:
        return self._percentile(50)

    @property
    def p95_ms(self) -> float | None:
        return self._percentile(95)

    @property
    def printed(self) -> int:
        """How many values had a ± printed."""
        return sum(width is not None for width in self.widths)

    @property
    def covered(self) -> float | None:
        """Share of the ± that held the truth."""
        return self._covered(0.0)

    @property
    def covered_in_call(self) -> float | None:
        """The same with the tick that a call adds to its ±."""
        return self._covered(CALL_TICK_MS)

    def _covered(self, more_ms: float) -> float | None:
        pairs = zip(self.errors, self.widths, strict=True)
        held = [abs(error) <= width + more_ms for error, width in pairs if width is not None]
        return sum(held) / len(held) if held else None

    def _percentile(self, share: float) -> float | None:
        return float(np.percentile(np.abs(self.errors), share)) if self.errors else None

    def as_json(self) -> dict[str, Json]:
        return {
            "n": self.n,
            "measured": len(self.errors),
            "missed": self.missed,
            "false_alarms": self.false_alarms,
            "bias_ms": _rounded(self.bias_ms),
            "p50_ms": _rounded(self.p50_ms),
            "p95_ms": _rounded(self.p95_ms),
            "covered": _rounded(self.covered),
            "covered_in_call": _rounded(self.covered_in_call),
            "plus_minus_n": self.printed,
        }


AllFigures = dict[Metric, Figures]


def compared(block: TimingBlock, truth: Truth, tick_ms: float) -> AllFigures:
    """Compare one call; ``tick_ms`` is what its block added to every ±."""
    comparison = _Comparison(block, truth, tick_ms)
    return {
        Metric.LATENCY: comparison.latencies(),
        Metric.CALLER_TURN: comparison.caller_turns(),
        Metric.CALLER_END: comparison.caller_ends(),
        Metric.ASSISTANT_START: comparison.assistant_starts(),
        Metric.YIELD: comparison.yields(),
        Metric.OVERLAP: comparison.overlap(),
        Metric.BACKCHANNEL: comparison.reactions(VoiceKind.BACKCHANNEL),
        Metric.TIC: comparison.reactions(VoiceKind.TIC),
    }


def pooled(calls: Iterable[AllFigures]) -> AllFigures:
    """The figures of many calls together."""
    together: AllFigures = {}
    for figures in calls:
        for metric, one in figures.items():
            together.setdefault(metric, Figures()).join(one)
    return together


def matched(true: Runs, found: Sequence[Run]) -> dict[int, int]:
    """Which measured run is which true one: the most overlap first, one to one."""
    pairs = sorted(
        (-common, i, j)
        for i, mine in enumerate(true)
        for j, other in enumerate(found)
        if (common := min(mine[1], other[1]) - max(mine[0], other[0])) > 0
    )
    taken: dict[int, int] = {}
    used: set[int] = set()
    for _, i, j in pairs:
        if i not in taken and j not in used:
            taken[i] = j
            used.add(j)
    return taken


class _Comparison:
    """One call: its block, its truth, and which turn is which."""

    def __init__(self, block: TimingBlock, truth: Truth, tick_ms: float) -> None:
        self._tick_ms = tick_ms
        self._block = block
        self._truth = truth
        self._ms = 1000 / block.rate_hz
        self._turns: dict[Side, Turns] = block.talk.turns
        self._match = {
            side: matched(truth.turns[side], [(turn.start, turn.end) for turn in self._turns[side]])
            for side in Side
        }

    def latencies(self) -> Figures:
        figures = Figures(n=len(self._truth.pairs))
        replies = self._block.responses.replies
        explained: set[int] = set()
        for caller, assistant in self._truth.pairs:
            mine = self._match[Side.CALLER].get(caller)
            answer = self._match[Side.ASSISTANT].get(assistant)
            reply = None if answer is None else replies[answer]
            if answer is None or reply is None or reply.latency is None or reply.answers != mine:
                figures.missed += 1
                continue
            explained.add(answer)
            asked, said = self._truth.turns[Side.CALLER], self._truth.turns[Side.ASSISTANT]
            true = said[assistant][0] - asked[caller][1]
            figures.add((reply.latency - true) * self._ms, self._of_edges(reply.plus_minus_ms))
        figures.false_alarms = sum(
            reply.latency is not None and index not in explained
            for index, reply in enumerate(replies)
        )
        return figures

    def _of_edges(self, printed_ms: float | None) -> float | None:
        return None if printed_ms is None else printed_ms - self._tick_ms

    def caller_turns(self) -> Figures:
        """Turns found at all; an early or late edge is no miss."""
        found = self._match[Side.CALLER]
        n = len(self._truth.turns[Side.CALLER])
        extra = len(self._turns[Side.CALLER]) - len(found)
        return Figures(n=n, missed=n - len(found), false_alarms=extra)

    def caller_ends(self) -> Figures:
        return self._edges(Side.CALLER, start=False)

    def assistant_starts(self) -> Figures:
        return self._edges(Side.ASSISTANT, start=True)

    def _edges(self, side: Side, *, start: bool) -> Figures:
        true, found = self._truth.turns[side], self._match[side]
        figures = Figures(n=len(true), missed=len(true) - len(found))
        for i, j in found.items():
            turn = self._turns[side][j]
            error = turn.start - true[i][0] if start else turn.end - true[i][1]
            edge: EdgeError = turn.voices[0].onset if start else turn.voices[-1].offset
            width = None if edge.unreliable else edge.plus_minus_ms
            figures.add(error * self._ms, width)
        figures.false_alarms = len(self._turns[side]) - len(found)
        return figures

    def yields(self) -> Figures:
        """Barge-ins: a verdict that is wrong is a miss, or a false alarm where none gave way."""
        found = {barge_in.turn: barge_in for barge_in in self._block.yielding.barge_ins}
        figures = Figures(n=len(self._truth.yields))
        known = set()
        for true in self._truth.yields:
            turn = self._match[Side.CALLER].get(true.turn)
            barge_in = None if turn is None else found.get(turn)
            if barge_in is None or barge_in.yielded is None:
                figures.missed += 1
                continue
            known.add(turn)
            if true.yielded and barge_in.yielded:
                onset = self._truth.turns[Side.CALLER][true.turn][0]
                error = barge_in.stop_after - (true.stop - onset)
                figures.add(error * self._ms, self._of_edges(barge_in.plus_minus_ms))
            elif true.yielded:
                figures.missed += 1
            elif barge_in.yielded:
                figures.false_alarms += 1
        figures.false_alarms += len(set(found) - known)
        return figures

    def overlap(self) -> Figures:
        """Double talk of the whole call, in ms."""
        voice = self._truth.voice
        true = total(intersect(voice[Side.CALLER], voice[Side.ASSISTANT]))
        figures = Figures(n=1)
        figures.add((self._block.floor.overlap - true) * self._ms)
        return figures

    def reactions(self, kind: VoiceKind) -> Figures:
        """Wrong reactions told apart from right ones: one not seen is missed."""
        planted = [event for event in self._truth.events if event.kind is kind]
        found = [event for event in self._block.yielding.events if event.kind is kind]
        figures = Figures(n=len(planted))
        for true in planted:
            mine = next((event for event in found if self._same(event, true.span)), None)
            if mine is None or mine.error is None:
                figures.missed += 1
                continue
            found.remove(mine)
            figures.missed += true.error and not mine.error
            figures.false_alarms += mine.error and not true.error
        figures.false_alarms += sum(event.error is True for event in found)
        return figures

    def _same(self, event: Event, span: Run) -> bool:
        near = NEAR_MS / self._ms
        return event.start < span[1] + near and event.end > span[0] - near


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
