"""Turn-taking score: one number from 0 to 1 per caller turn, and their mean.

The curves are those of ServiceNow EVA v0.2 (deterministic, piecewise linear):
a reply scores by its latency, a turn the assistant cut into by overlap, number
of cuts and the gap after, a barge-in by how soon the assistant stopped. The
greeting has no score, a turn without a reply scores 0, and so does the call if
its last request was never answered. Nothing here measures; it only weighs.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from duplex.metrics.intervals import Runs, clip, intersect, merge, total
from duplex.metrics.responses import Fate, Outcome, ReplyKind, Responses
from duplex.metrics.turns import Talk, Turn
from duplex.metrics.yielding import BargeIn, Yielding
from duplex.values import Side

_FLOOR_MS = 2_000.0
"""Overlap and time to yield at which nothing is left of a score."""
_PLAIN = ((-500.0, 0.0), (500.0, 1.0), (2_000.0, 1.0), (3_500.0, 0.0))
_TOOL = ((-500.0, 0.0), (500.0, 1.0), (3_000.0, 1.0), (5_000.0, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTaking:
    """Scores by caller turn (None: not scored) and the call's score.

    ``why`` says why the call scores 0 or nothing.
    """

    scores: tuple[float | None, ...]
    value: float | None
    why: str | None = None

    @property
    def n(self) -> int:
        return sum(score is not None for score in self.scores)


def latency_score(latency_ms: float, *, tool: bool = False) -> float:
    """Score of a reply by its signed latency; a tool turn may take longer."""
    points = _TOOL if tool else _PLAIN
    at = bisect_right(points, latency_ms, key=lambda point: point[0])
    if at == 0 or at == len(points):
        return 0.0
    (x0, y0), (x1, y1) = points[at - 1], points[at]
    return y0 + (y1 - y0) * (latency_ms - x0) / (x1 - x0)


def cut_in_score(overlap_ms: float, cuts: int, gap_score: float | None = None) -> float:
    """Score of a caller turn that the assistant cut into ``cuts`` times."""
    assert cuts > 0, cuts
    parts = [0.5 * (1 - overlap_ms / _FLOOR_MS), 0.5 * (1 - (cuts - 1) / 2)]
    if gap_score is not None:
        parts.append(gap_score)
    return max(0.0, min(parts))


def yield_score(stop_after_ms: float) -> float:
    """Score of a barge-in by how long the assistant went on."""
    return min(1.0, max(0.0, 1 - stop_after_ms / _FLOOR_MS))


def turn_taking(talk: Talk, responses: Responses, yielding: Yielding, tools: Runs) -> TurnTaking:
    """Score every caller turn of a call, and the call."""
    scorer = _Scorer(talk, responses, yielding, tools)
    scores = tuple(scorer.score(index) for index in range(len(responses.fates)))
    requests = [fate for fate in responses.fates if fate.outcome is not Outcome.EXCLUDED]
    counted = [score for score in scores if score is not None]
    if not counted:
        return TurnTaking(scores=scores, value=None, why="no caller turn could be scored")
    if requests and requests[-1].outcome is Outcome.UNANSWERED:
        return TurnTaking(scores=scores, value=0.0, why="the last request was never answered")
    return TurnTaking(scores=scores, value=math.fsum(counted) / len(counted))


class _Scorer:
    def __init__(self, talk: Talk, responses: Responses, yielding: Yielding, tools: Runs) -> None:
        self._talk = talk
        self._responses = responses
        self._barge_ins = {found.turn: found for found in yielding.barge_ins}
        self._tools = merge(tools)

    def score(self, index: int) -> float | None:
        """The least of what applies to the turn; None when nothing does."""
        fate = self._responses.fates[index]
        if fate.outcome is Outcome.EXCLUDED:
            return None
        if fate.outcome is Outcome.UNANSWERED:
            return 0.0
        barge_in = self._barge_ins.get(index)
        parts = []
        if fate.cut_ins:
            parts.append(self._cut_in(index, fate))
        if barge_in is not None and barge_in.yielded is not None:
            parts.append(self._yield(barge_in))
        if not parts:
            score = self._latency(index, fate)
            parts = [] if score is None else [score]
        return min(parts, default=None)

    def _cut_in(self, index: int, fate: Fate) -> float:
        turn = self._talk.turns[Side.CALLER][index]
        cuts = [self._talk.turns[Side.ASSISTANT][cut] for cut in fate.cut_ins]
        overlap = total(intersect(_runs([turn]), clip(_runs(cuts), turn.start, turn.end)))
        stopped = fate.reply is not None and self._kind(fate.reply) is ReplyKind.REPLY
        gap = self._latency(index, fate) if stopped else None
        return cut_in_score(self._ms(overlap), len(cuts), gap)

    def _yield(self, barge_in: BargeIn) -> float:
        return yield_score(self._ms(barge_in.stop_after))

    def _latency(self, index: int, fate: Fate) -> float | None:
        if fate.reply is None:
            return None
        latency = self._responses.replies[fate.reply].latency
        if latency is None:
            return None
        return latency_score(self._ms(latency), tool=self.with_tool(index, fate.reply))

    def with_tool(self, index: int, reply: int) -> bool:
        """Whether a tool ran between the start of a caller turn and its reply."""
        start = self._talk.turns[Side.CALLER][index].start
        return bool(clip(self._tools, start, self._talk.turns[Side.ASSISTANT][reply].start))

    def _kind(self, reply: int) -> ReplyKind:
        return self._responses.replies[reply].kind

    def _ms(self, count: int) -> float:
        return count * 1000 / self._talk.rate_hz


def _runs(turns: list[Turn]) -> Runs:
    return merge((voice.start, voice.end) for turn in turns for voice in turn.voices)
