"""The turns of one call as LiveKit's rows: who spoke, what, when, and what is known of it.

Times count from the first speech of the call. A row of the assistant tells how its
reply came (heard, and by its own account), a row of the caller what became of that
turn. What was not measured is not there. Reads stored results only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duplex.exports.livekit_ids import inside, number, objects, some, unsigned
from duplex.exports.said import SaidLine
from duplex.values import Json
from duplex.verdict.case import Case

Turns = Sequence[Mapping[str, Json]]

ROLES = {"assistant": "ASSISTANT", "caller": "USER"}
_SIDES = {"assistant": "assistant", "user": "caller"}
_UNANSWERED = {"unanswered": True, "late": True, "answered": False}
_NEAR_MS = 500.0
"""A line this far from every turn of its side belongs to none."""


def stored_turns(case: Case) -> Turns:
    """The turns of the timing block, in order."""
    return objects(inside(case.result.duplex, "timing", "turns"))


def first_speech_ms(case: Case) -> float | None:
    """Where the first speech of the call begins; None where none was measured."""
    spoken = [*stored_turns(case), *objects(inside(case.result.duplex, "timing", "backchannels"))]
    starts = [start for one in spoken if (start := number(one.get("start_ms"))) is not None]
    return min(starts, default=None)


def turn_of(turns: Turns, side: str, start_ms: float, end_ms: float) -> int | None:
    """The turn of ``side`` that a line lies in, or that begins next to it."""
    best: tuple[float, float, int] | None = None
    for index, turn in enumerate(turns):
        start, end = number(turn.get("start_ms")), number(turn.get("end_ms"))
        if turn.get("side") != side or start is None or end is None:
            continue
        shared = max(0.0, min(end, end_ms) - max(start, start_ms))
        away = 0.0 if start <= start_ms <= end else min(abs(start - start_ms), abs(end - start_ms))
        if shared or away <= _NEAR_MS:
            best = max(best or (-1.0, 0.0, -1), (shared, -away, index))
    return None if best is None else best[2]


def line_turns(turns: Turns, lines: Sequence[SaidLine]) -> list[int | None]:
    """For every line the index of its turn."""
    return [
        None
        if line.start_ms is None
        else turn_of(
            turns,
            _SIDES.get(line.role, ""),
            line.start_ms,
            line.start_ms if line.end_ms is None else line.end_ms,
        )
        for line in lines
    ]


def claims_by_turn(case: Case) -> dict[int, Mapping[str, Json]]:
    """What the agent said of its own timing, by the index of the reply."""
    rows = objects(case.result.duplex.get("claims"))
    return {turn: row for row in rows if isinstance(turn := row.get("turn"), int)}


def rows(case: Case, lines: Sequence[SaidLine], *, scored: bool) -> list[dict[str, Json]]:
    """The rows; without scores for a call that does not count."""
    turns, began = stored_turns(case), first_speech_ms(case)
    if began is None:
        return []
    said: dict[int, list[str]] = {}
    for line, at in zip(lines, line_turns(turns, lines), strict=True):
        if at is not None and line.text.strip():
            said.setdefault(at, []).append(line.text.strip())
    claims, concise = claims_by_turn(case), _conciseness(case, turns) if scored else {}
    silences = _silences(case)
    found: list[dict[str, Json]] = []
    for index, turn in enumerate(turns):
        start, end = number(turn.get("start_ms")), number(turn.get("end_ms"))
        row = some(
            index=index + 1,
            role=ROLES.get(str(turn.get("side"))),
            text=" ".join(said.get(index, ())),
            startMs=None if start is None else unsigned(start - began),
            endMs=None if end is None else unsigned(end - began),
        )
        if turn.get("side") == "assistant":
            row |= _reply(turn, claims.get(index, {}), concise.get(index))
        else:
            row |= _request(turn, scored=scored)
        if silences is not None and end is not None:
            after = number(turns[index + 1].get("start_ms")) if index + 1 < len(turns) else None
            row["awkwardSilence"] = any(
                end <= silence and (after is None or silence < after) for silence in silences
            )
        found.append(row)
    return found


def _reply(
    turn: Mapping[str, Json], claim: Mapping[str, Json], concise: float | None
) -> dict[str, Json]:
    """How a reply came: as it was heard, and as the agent tells it."""
    heard = number(turn.get("response_latency_ms"))
    first = number(claim.get("first_byte_ms"))
    text = next(
        (
            at
            for name in ("first_sentence_ms", "first_token_ms", "asr_final_ms")
            if (at := number(claim.get(name))) is not None
        ),
        None,
    )
    return some(
        sttDelayMs=unsigned(number(claim.get("asr_final_ms"))),
        llmTtftMs=unsigned(number(claim.get("first_token_ms"))),
        llmTtfsMs=unsigned(number(claim.get("first_sentence_ms"))),
        ttsTtfbMs=None if first is None or text is None else unsigned(first - text),
        e2eLatencyMs=unsigned(number(claim.get("claimed_latency_ms"))),
        heardE2eLatencyMs=None if heard is None else round(heard),
        conciseness=concise,
    )


def _request(turn: Mapping[str, Json], *, scored: bool) -> dict[str, Json]:
    """What became of a caller's turn."""
    cuts = turn.get("cut_ins")
    stopped = number(turn.get("stop_after_ms")) if turn.get("barge_in") is True else None
    return some(
        timeToYieldMs=unsigned(stopped),
        turnTakingScore=number(turn.get("turn_taking_score")) if scored else None,
        eotMisprediction=cuts > 0 if isinstance(cuts, int) else None,
        unanswered=_UNANSWERED.get(str(turn.get("outcome"))),
    )


def _silences(case: Case) -> list[float] | None:
    """Where awkward silences begin; None where nobody looked for them."""
    block = inside(case.result.duplex, "timing", "awkward_silence")
    if not isinstance(block, dict):
        return None
    starts = [number(span.get("start_ms")) for span in objects(block.get("spans"))]
    return [start for start in starts if start is not None]


def _conciseness(case: Case, turns: Turns) -> dict[int, float]:
    """The judge's score of every turn; of several lines in one the least concise counts."""
    found: dict[int, float] = {}
    for one in objects(inside(case.result.duplex, "judge", "conciseness_by_turn")):
        start, score = number(one.get("start_ms")), number(one.get("score"))
        if start is None or score is None:
            continue
        at = turn_of(turns, "assistant", start, start)
        if at is not None:
            found[at] = min(score, found.get(at, score))
    return found
