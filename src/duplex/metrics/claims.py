"""What an agent said of its own timing, beside what was heard: a row for each reply.

A claim belongs to the first assistant turn that was not over when it was made.
Stages are told from the end of the caller's turn that the reply answers, as the
recording has it, so that the agent's clock and ours meet in one place. Nothing
here changes a metric: a claim is only ever shown beside one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duplex.recording import Recording
from duplex.recording.extract import text, whole
from duplex.values import Json, Side

STAGES = ("asr_final", "first_token", "first_sentence", "first_byte")
_HEARD = frozenset({"turn", "start_ms", "heard_latency_ms", "plus_minus_ms", "assistant_own_ms"})
NO_CLAIMS = "the assistant told nothing of its own timing over a side channel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """One ``claim`` event; ``ms`` only for a latency."""

    kind: str
    at_ms: float
    ms: float | None = None


def claims_of(
    recording: Recording, timing: Mapping[str, Json] | None
) -> tuple[list[Json] | None, str | None]:
    """Rows of claims beside what ``timing`` (the block as written) heard; None and why."""
    told = _claimed(recording)
    if not told:
        return None, NO_CLAIMS
    if timing is None:
        return None, "timing was not measured"
    turns = _turns(timing)
    rows: dict[int, dict[str, Json]] = {}
    for claim in told:
        index = _reply(turns, claim.at_ms)
        if index is not None:
            _enter(rows.setdefault(index, _heard(turns, index)), claim, turns, index)
    # A greeting answers nobody: its stages have nothing to count from.
    return [rows[at] for at in sorted(rows) if not rows[at].keys() <= _HEARD], None


def _claimed(recording: Recording) -> list[Claimed]:
    found = []
    for event in recording.events:
        kind, moment = text(event.fields, "kind"), whole(event.fields, "moment")
        if event.type != "claim" or event.side is not Side.ASSISTANT:
            continue
        if kind is not None and moment is not None:
            at_ms = moment * 1000 / recording.rate_hz
            found.append(Claimed(kind=kind, at_ms=at_ms, ms=_number(event.fields.get("ms"))))
    return found


def _turns(timing: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    turns = timing.get("turns")
    return [turn for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []


def _reply(turns: Sequence[Mapping[str, Json]], at_ms: float) -> int | None:
    """Index of the first assistant turn that was not over by ``at_ms``."""
    for index, turn in enumerate(turns):
        end = _number(turn.get("end_ms"))
        if turn.get("side") == "assistant" and end is not None and end >= at_ms:
            return index
    return None


def _heard(turns: Sequence[Mapping[str, Json]], index: int) -> dict[str, Json]:
    turn = turns[index]
    row: dict[str, Json] = {"turn": index, "start_ms": turn.get("start_ms")}
    row["heard_latency_ms"] = turn.get("response_latency_ms")
    for name in ("plus_minus_ms", "assistant_own_ms"):
        if turn.get(name) is not None:
            row[name] = turn[name]
    return row


def _enter(
    row: dict[str, Json], claim: Claimed, turns: Sequence[Mapping[str, Json]], index: int
) -> None:
    """Put a claim into its row; of several of one kind the first counts."""
    if claim.kind == "latency" and claim.ms is not None:
        heard = _number(row["heard_latency_ms"])
        row.setdefault("claimed_latency_ms", claim.ms)
        if heard is not None:
            row.setdefault("difference_ms", round(heard - claim.ms, 3))
        return
    asked = turns[index].get("answers")
    if claim.kind in STAGES and isinstance(asked, int) and 0 <= asked < len(turns):
        end = _number(turns[asked].get("end_ms"))
        if end is not None:
            row.setdefault(f"{claim.kind}_ms", round(claim.at_ms - end, 3))


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
