"""What became of a call: whose fault it is, by whose word it ended, and its agenda.

Rows and items come from a result as it stands; nothing is judged here. A call that says
none of it, as those of other makers, has neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from duplex.report.outcome_report import ended_words
from duplex.values import Json
from duplex.viewer import say
from duplex.viewer.checks import Place
from duplex.viewer.reading import items, members, number, objects, text
from duplex.viewer.rows import Row

_FAULT = (
    "Only the agent's fault counts against it; calls that failed for the simulator, the platform "
    "or the user are left out of the verdict."
)
_SHOWN_MS = 400


def outcome_rows(ours: Mapping[str, Json]) -> list[Row]:
    """Whose fault and who ended it, of ``results[].duplex``."""
    return [*_fault(ours), *_ended(ours)]


def agenda(ours: Mapping[str, Json]) -> list[Json]:
    """Every item of the caller's agenda with the moment it was seen, in the shape of steps."""
    return [_item(at, one) for at, one in enumerate(objects(ours.get("agenda")), start=1)]


def agenda_note(ours: Mapping[str, Json]) -> str:
    """How far the agenda came."""
    found = objects(ours.get("agenda"))
    done = sum(one.get("status") == "completed" for one in found)
    return f"the caller's, {done} of {len(found)} carried out"


def _fault(ours: Mapping[str, Json]) -> Iterator[Row]:
    whose = text(ours.get("whose_fault"))
    if whose is not None:
        yield Row(name="whose fault", value=whose, meaning=_FAULT)


def _ended(ours: Mapping[str, Json]) -> Iterator[Row]:
    completion = members(ours.get("completion"))
    by = text(completion.get("decided_by"))
    if by is not None:
        meaning = ended_words(completion) or "Nobody said that it was over."
        yield Row(name="ended by", value=by.replace("_", " "), meaning=meaning)


def _item(at: int, one: Mapping[str, Json]) -> Json:
    place = number(one.get("at_ms"))
    places: list[Json] = []
    if place is not None:
        places.append(Place(name="seen", start_ms=place, end_ms=place + _SHOWN_MS).as_json())
    return {
        "name": f"{at}. {_words(one.get('id'))}",
        "status": text(one.get("status")) or "not known",
        "reason": "; ".join(_told(one)),
        "required": one.get("required") is not False,
        "places": places,
        "more": 0,
    }


def _told(one: Mapping[str, Json]) -> Iterator[str]:
    if one.get("in_order") is False:
        yield "out of order"
    if (turn := number(one.get("turn"))) is not None:
        yield f"in caller turn {say.plain(turn)}"
    if (seen := text(one.get("seen_by"))) is not None:
        yield f"seen by {seen}"
    if missing := _names(items(one.get("facts_missing"))):
        yield f"never said: {missing}"


def _names(found: Sequence[Json]) -> str:
    return ", ".join(words for one in found if (words := text(one)))


def _words(value: Json) -> str:
    return (text(value) or "").replace("_", " ")
