"""Ids, times and the one rule of LiveKit's shape: what is not known is left out.

Ids have LiveKit's prefixes and are made of names, never drawn: the same run, test case
and scenario have the same id on every machine. Times are RFC 3339, as protobuf JSON
wants them. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from duplex.values import Json
from duplex.verdict.case import Case
from duplex.verdict.ids import stable_id

_LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_LENGTH = 12


def run_id(run: str) -> str:
    return f"SR_{_short('run', run)}"


def job_id(run: str, case: Case) -> str:
    """The id of a test case; its attempts share it."""
    scenario, arm, sample = case.test_case
    return f"SRJ_{_short('job', run, scenario, arm, str(sample))}"


def room_id(run: str, case: Case) -> str:
    """The id of a recorded call; it begins as its run's does, so that the run can be found."""
    return f"RM_{_short('run', run)}{_short('room', run, case.call_id)}"


def run_of_room(room: str) -> str:
    """The id of the run whose call a room is; that of none for what is no room."""
    return f"SR_{room[3 : 3 + _LENGTH]}" if room.startswith("RM_") else ""


def scenario_of_room(room: str) -> str:
    """The id of the scenario that is written of a recorded call."""
    return f"SCN_{_short('session', room)}"


def scenario_id(case: Case) -> str:
    """What the samples of a scenario share; an arm of a sweep is a scenario of its own."""
    if case.arm is None:
        own = case.scenario
        return own if own.startswith("SCN_") else f"SCN_{_short('scenario', own)}"
    return f"SCN_{_short('scenario', case.scenario, case.arm.key)}"


def group_id(scenarios: list[str]) -> str:
    """The id of a file of scenarios: of what it holds, not of its name."""
    return f"SCNG_{_short('group', *sorted(scenarios))}"


def item_id(job: str, kind: str, at: int) -> str:
    """The id of one entry of a job's chat history."""
    return f"item_{_short('item', job, kind, str(at))}"


def some(**values: Json) -> dict[str, Json]:
    """What is known: no None, no empty text, list or object."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def moment(start: str | None, ms: float | None) -> str | None:
    """``ms`` after ``start`` as a time in UTC; None where either is not known."""
    if start is None or ms is None:
        return None
    try:
        began = datetime.fromisoformat(start.replace("Z", "+00:00"))
    except ValueError:
        return None
    then = began + timedelta(milliseconds=round(ms))
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def number(value: Json) -> float | None:
    """A number of a stored result; None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def unsigned(value: float | None) -> int | None:
    """A whole number from 0 on; None for what the shape's unsigned fields cannot say."""
    return None if value is None or round(value) < 0 else round(value)


def inside(document: Mapping[str, Json], *path: str) -> Json:
    """What stands at a place of a stored result; None where it has no such place."""
    found: Json = dict(document)
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def objects(value: Json) -> list[dict[str, Json]]:
    """The objects of a list; none of anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _short(kind: str, *parts: str) -> str:
    left = UUID(stable_id(f"livekit {kind}", *parts)).int
    letters = []
    for _ in range(_LENGTH):
        left, at = divmod(left, len(_LETTERS))
        letters.append(_LETTERS[at])
    return "".join(letters)
