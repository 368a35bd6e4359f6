"""Who answered whom, and when: replies, cut-ins, unanswered turns, awkward silence.

Every assistant turn is a reply, an early start, an interruption or speech that
nobody asked for; every caller turn ends up answered, late, unanswered, censored
or excluded, and is never dropped. Latency is signed, and is None rather than a
guess. Takes judged talk (``turns.py``); the timing block drives it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from duplex.metrics.intervals import Runs, clip, merge, total
from duplex.metrics.speech import EdgeError
from duplex.metrics.timing_policy import TimingPolicy, samples
from duplex.metrics.turns import Talk, Turn, joined_runs, silences
from duplex.values import Side


class ReplyKind(StrEnum):
    """What an assistant turn is to the caller."""

    REPLY = "reply"
    EARLY_START = "early_start"
    INTERRUPTION = "interruption"
    GREETING = "greeting"
    UNPROMPTED = "unprompted"


class Outcome(StrEnum):
    """What became of a caller turn."""

    ANSWERED = "answered"
    LATE = "late"
    UNANSWERED = "unanswered"
    CENSORED = "censored"
    EXCLUDED = "excluded"


NO_LATENCY = {
    ReplyKind.INTERRUPTION: "an interruption has no latency",
    ReplyKind.GREETING: "the assistant spoke first",
    ReplyKind.UNPROMPTED: "the caller had said nothing new since the last reply",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One assistant turn as an answer.

    ``answers`` is the index of the caller turn it answers, ``latency`` is in
    samples and signed, ``into`` the index of the caller turn it started inside.
    ``anchor`` is where its latency counts from.
    """

    kind: ReplyKind
    answers: int | None = None
    into: int | None = None
    anchor: int | None = None
    latency: int | None = None
    plus_minus_ms: float | None = None
    unreliable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of one caller turn.

    ``reply`` is the index of the assistant turn that answered. ``waited`` is
    how long the caller waited in vain, or until the call ended: a lower bound.
    ``cut_ins`` are the assistant turns that started inside it and after which
    the caller kept the floor.
    """

    outcome: Outcome
    why: str | None = None
    reply: int | None = None
    waited: int | None = None
    cut_ins: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """Replies by assistant turn, fates by caller turn."""

    replies: tuple[Reply, ...]
    fates: tuple[Fate, ...]
    awkward: Runs

    @property
    def mispredictions(self) -> int:
        """Assistant starts inside a caller turn after which the caller kept the floor."""
        return sum(len(fate.cut_ins) for fate in self.fates)


def responses_of(
    talk: Talk,
    policy: TimingPolicy,
    tick_ms: float = 0.0,
    failures: Sequence[tuple[int, str]] = (),
) -> Responses:
    """Match assistant turns with the caller turns they answer.

    ``failures`` has (sample, code) of responses that the assistant's provider could not
    give: a turn that went unanswered for one is excluded, never held against the agent.
    """
    replies = _Matcher(talk, policy, tick_ms).replies()
    answer = {r.answers: index for index, r in enumerate(replies) if r.answers is not None}
    cut_ins = _cut_ins(talk, policy, replies)
    fates = tuple(
        replace(
            _excused(talk, index, _fate(talk, policy, replies, index, answer.get(index)), failures),
            cut_ins=cut_ins[index],
        )
        for index in range(len(talk.turns[Side.CALLER]))
    )
    return Responses(replies=replies, fates=fates, awkward=_awkward(talk, policy, fates))


class _Matcher:
    """Goes through the assistant's turns in order."""

    def __init__(self, talk: Talk, policy: TimingPolicy, tick_ms: float) -> None:
        rate = talk.rate_hz
        self._tick_ms = tick_ms
        self._lead = samples(policy.early_lead_ms, rate)
        self._resume = samples(policy.resume_ms, rate)
        self._turns = talk.turns
        self._starts = [turn.start for turn in talk.turns[Side.CALLER]]
        self._heard = sorted(talk.heard(Side.CALLER), key=lambda voice: voice.end)
        self._ends = [voice.end for voice in self._heard]
        self._answered: set[int] = set()

    def replies(self) -> tuple[Reply, ...]:
        found = []
        for index, turn in enumerate(self._turns[Side.ASSISTANT]):
            reply = self._reply(index, turn)
            if reply.answers is not None:
                self._answered.add(reply.answers)
            found.append(reply)
        return tuple(found)

    def _reply(self, index: int, turn: Turn) -> Reply:
        last = bisect_right(self._starts, turn.start) - 1
        caller = self._turns[Side.CALLER]
        if last >= 0 and caller[last].start < turn.start < caller[last].end:
            return self._inside(turn, last)
        if last >= 0 and caller[last].end > turn.start:
            last -= 1  # both began at the same sample: neither answers the other
        if last < 0:
            return Reply(kind=ReplyKind.UNPROMPTED if index else ReplyKind.GREETING)
        if last in self._answered:
            return Reply(kind=ReplyKind.UNPROMPTED)
        heard = self._heard[bisect_right(self._ends, turn.start) - 1]
        return self._timed(ReplyKind.REPLY, turn, last, heard.end, heard.offset)

    def _inside(self, turn: Turn, last: int) -> Reply:
        """A start inside a caller turn: an early start, or an interruption."""
        caller = self._turns[Side.CALLER][last]
        first_run = joined_runs(turn.voices, self._resume)[0]
        keeps_floor = first_run[1] > caller.end
        if keeps_floor and caller.end - turn.start <= self._lead:
            offset = caller.voices[-1].offset
            return self._timed(ReplyKind.EARLY_START, turn, last, caller.end, offset, into=last)
        answers = last if keeps_floor else None
        return Reply(kind=ReplyKind.INTERRUPTION, answers=answers, into=last)

    def _timed(
        self,
        kind: ReplyKind,
        turn: Turn,
        answers: int,
        anchor: int,
        offset: EdgeError,
        into: int | None = None,
    ) -> Reply:
        onset = turn.voices[0].onset
        return Reply(
            kind=kind,
            answers=answers,
            into=into,
            anchor=anchor,
            latency=turn.start - anchor,
            plus_minus_ms=between(offset, onset, self._tick_ms),
            unreliable=offset.unreliable or onset.unreliable,
        )


def between(first: EdgeError, second: EdgeError, tick_ms: float) -> float | None:
    """Half width of a difference of two edges: root of the squares, plus the tick."""
    widths = (first.plus_minus_ms, second.plus_minus_ms)
    if first.unreliable or second.unreliable:
        return None
    if widths[0] is None or widths[1] is None or not math.isfinite(widths[0] + widths[1]):
        return None
    return math.hypot(widths[0], widths[1]) + tick_ms


def _fate(
    talk: Talk,
    policy: TimingPolicy,
    replies: tuple[Reply, ...],
    index: int,
    reply: int | None,
) -> Fate:
    turns = talk.turns[Side.CALLER]
    turn = turns[index]
    following = turns[index + 1].start if index + 1 < len(turns) else None
    waited = max(0, (talk.duration if following is None else following) - turn.end)
    deadline = samples(policy.response_deadline_ms, talk.rate_hz)
    if turn.closing:
        why = "the caller closed the call"
        return Fate(outcome=Outcome.EXCLUDED, why=why, reply=reply)
    if reply is not None:
        latency = replies[reply].latency
        outcome = Outcome.ANSWERED if latency is None or latency <= deadline else Outcome.LATE
        return Fate(outcome=outcome, reply=reply)
    if following is not None:
        why, outcome = "superseded by the caller's next turn", Outcome.UNANSWERED
    elif waited >= deadline:
        why, outcome = "no reply by the deadline", Outcome.UNANSWERED
    else:
        why, outcome = "the call ended before the deadline", Outcome.CENSORED
    return Fate(outcome=outcome, why=why, waited=waited)


def _excused(talk: Talk, index: int, fate: Fate, failures: Sequence[tuple[int, str]]) -> Fate:
    """Exclude a turn without an answer in which the provider failed to give one."""
    if fate.outcome not in (Outcome.UNANSWERED, Outcome.CENSORED):
        return fate
    turns = talk.turns[Side.CALLER]
    until = turns[index + 1].start if index + 1 < len(turns) else talk.duration
    codes = [code for at, code in failures if turns[index].start <= at <= until]
    if not codes:
        return fate
    return replace(fate, outcome=Outcome.EXCLUDED, why=f"the provider failed: {codes[0]}")


def _cut_ins(talk: Talk, policy: TimingPolicy, replies: tuple[Reply, ...]) -> list[tuple[int, ...]]:
    """Per caller turn, the assistant starts inside it that the caller talked on through."""
    kept = samples(policy.keep_floor_ms, talk.rate_hz)
    caller, assistant = talk.turns[Side.CALLER], talk.turns[Side.ASSISTANT]
    found: list[list[int]] = [[] for _ in caller]
    for index, reply in enumerate(replies):
        if reply.into is not None and caller[reply.into].end - assistant[index].start >= kept:
            found[reply.into].append(index)
    return [tuple(starts) for starts in found]


def _awkward(talk: Talk, policy: TimingPolicy, fates: tuple[Fate, ...]) -> Runs:
    """Mutual silences that are too long while a reply is owed."""
    turns = talk.turns[Side.CALLER]
    owed = []
    for index, fate in enumerate(fates):
        if fate.outcome is Outcome.EXCLUDED:
            continue
        until = talk.duration
        if fate.reply is not None:
            until = talk.turns[Side.ASSISTANT][fate.reply].start
        if index + 1 < len(turns):
            until = min(until, turns[index + 1].start)
        owed.append((turns[index].end, until))
    quiet = silences(talk)
    least = samples(policy.awkward_silence_ms, talk.rate_hz)
    pieces = [run for span in merge(owed) for run in clip(quiet, *span)]
    return tuple(run for run in pieces if total((run,)) >= least)
