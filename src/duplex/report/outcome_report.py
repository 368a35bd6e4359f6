"""What became of one call, for people: whose fault, by whose word it ended, the agenda.

Pure formatting of a result as it stands; ``run_report.py`` puts it below the call's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from duplex.report.markdown import cell, table
from duplex.results import schema
from duplex.results.stored import member
from duplex.values import Json

_ENDED = {
    "caller": "the caller said that it was finished",
    "observer": "the model that looked on said that it was over",
    "verified_state_and_closing": "the state was the expected one and the caller closed",
}
_AGENDA = ("agenda", "action", "status", "turn", "seen by")


def outcome_markdown(result: schema.Result) -> Iterator[str]:
    """The error with its culprit, how the call ended, and its agenda; empty lines between."""
    if result.error is not None:
        whose = result.duplex.get("whose_fault")
        fault = f" ({whose}'s fault)" if isinstance(whose, str) else ""
        yield f"{cell(result.error.stage)}: {cell(result.error.message + fault)}"
        yield ""
    ended = ended_words(member(result.duplex, "completion"))
    if ended is not None:
        yield cell(ended)
        yield ""
    agenda = result.duplex.get("agenda")
    if isinstance(agenda, list) and agenda:
        yield from table(_AGENDA, [_row(one) for one in agenda if isinstance(one, dict)])
        yield ""


def ended_words(completion: Mapping[str, Json]) -> str | None:
    """By whose word a call ended, as a sentence; None where nobody said."""
    why = _ENDED.get(str(completion.get("decided_by")))
    if why is None:
        return None
    asked = member(completion, "observer").get("asked")
    looks = f"; a model looked on, {asked} times" if isinstance(asked, int) and asked > 1 else ""
    return f"It ended because {why}{looks}."


def _row(one: dict[str, Json]) -> tuple[str, ...]:
    turn = one.get("turn")
    late = "" if one.get("in_order") is not False else ", out of order"
    return (
        str(one.get("id")),
        str(one.get("action")),
        f"{one.get('status')}{late}",
        str(turn) if isinstance(turn, int) else "",
        str(one.get("seen_by")),
    )
