"""The restaurant's book: what its state holds, and the tools that read and change it.

Keys read: ``today`` (ISO day), ``unavailable`` (full slots, ``YYYY-MM-DDTHH:MM``,
or a whole day ``YYYY-MM-DD``), ``capacity`` (most guests at one time over all its
reservations), ``reservations`` (list), ``authorized_reservation_ids`` (what this
caller may look up, change and cancel), ``large_party`` (``{"size", "last_seating"}``),
``seating_every_minutes`` (15 unless given: tables are given at these minutes past
the hour only). Keys written after a booking: ``reservation_created``,
``guest_name``, ``date``, ``time``, ``party_size``, ``seating`` if asked for,
``reservation_id`` and ``reservations``. It knows nothing of conversations.
"""

from __future__ import annotations

from duplex.application.slots import spoken_date, spoken_time
from duplex.application.tools import State, ToolRefused
from duplex.values import Json

SEATING_EVERY_MINUTES = 15
TIME: dict[str, Json] = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}
_LARGE_PARTY: dict[str, Json] = {"size": 6, "last_seating": "20:30"}
_DAY: dict[str, Json] = {"type": "string", "format": "date", "description": "a day as 2026-08-07"}
_CLOCK: dict[str, Json] = {**TIME, "description": "a time as 19:30"}
_SOME: dict[str, Json] = {"type": "integer", "minimum": 1, "description": "a whole number from 1"}
_TEXT: dict[str, Json] = {"type": "string", "minLength": 1, "description": "some text"}
_FLAG: dict[str, Json] = {"type": "boolean", "description": "true or false"}
STATE: dict[str, Json] = {
    "type": "object",
    "properties": {
        "today": _DAY,
        "unavailable": {
            "type": "array",
            "description": "a list of full slots and days",
            "items": {
                "type": "string",
                "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
                "(T([01][0-9]|2[0-3]):[0-5][0-9])?$",
                "description": "a full slot as 2026-08-07T19:00 or a full day as 2026-08-07",
            },
        },
        "capacity": {"type": "integer", "minimum": 0, "description": "a whole number of guests"},
        "seating_every_minutes": {
            "type": "integer",
            "enum": [5, 10, 15, 20, 30, 60],
            "description": "5, 10, 15, 20, 30 or 60",
        },
        "authorized_reservation_ids": {
            "type": "array",
            "description": "a list of reservation numbers",
            "items": {**_TEXT, "description": "a reservation number as R-100"},
        },
        "large_party": {
            "type": ["object", "null"],
            "description": 'null, or an object as {"size": 6, "last_seating": "20:30"}',
            "properties": {"size": _SOME, "last_seating": _CLOCK},
            "required": ["size", "last_seating"],
        },
        "reservations": {
            "type": "array",
            "description": "a list of reservations",
            "items": {
                "type": "object",
                "description": "a reservation",
                "additionalProperties": True,
                "required": ["reservation_id"],
                "properties": {
                    "reservation_id": _TEXT,
                    "guest_name": _TEXT,
                    "date": _DAY,
                    "time": _CLOCK,
                    "party_size": _SOME,
                    "cancelled": _FLAG,
                },
            },
        },
    },
}


def check_availability(
    state: State,
    date: str,
    time: str,
    party_size: int,
    seating: str | None = None,
    reservation_id: str = "",
) -> Json:
    """Say whether a table is free, and the nearest free times if not.

    The guests of the reservation that is to be moved there do not count against it.
    """
    asked: State = {"date": date, "time": time, "party_size": party_size}
    if seating is not None:
        asked["seating"] = seating
    free = _is_free(state, date, time, party_size, but=reservation_id)
    alternatives: list[Json] = []
    if not free:
        alternatives += _nearest(state, date, time, party_size, but=reservation_id)
    return {**asked, "available": free, "alternatives": alternatives}


def find_reservation(state: State, reservation_id: str) -> Json:
    """Return the details of a reservation that this caller may manage."""
    found = _own(state, reservation_id, "look up")
    if found is None:
        raise ToolRefused(f"there is no reservation {reservation_id}")
    if found.get("cancelled") is True:
        raise ToolRefused(f"reservation {reservation_id} is cancelled already")
    return dict(found)


def create_reservation(
    state: State,
    guest_name: str,
    date: str,
    time: str,
    party_size: int,
    seating: str | None = None,
) -> Json:
    """Book a table that is free."""
    if not _is_free(state, date, time, party_size):
        raise ToolRefused(_none_free(date, time, party_size))
    booked = _reservations(state)
    details: State = {
        "guest_name": guest_name.strip(),
        "date": date,
        "time": time,
        "party_size": party_size,
    }
    if seating is not None:
        details["seating"] = seating
    reservation_id = _free_number(booked)
    booked.append({"reservation_id": reservation_id, **details, "cancelled": False})
    state["reservations"] = booked
    allowed = state.get("authorized_reservation_ids")
    if isinstance(allowed, list):
        # Whoever books may manage what was booked.
        state["authorized_reservation_ids"] = [*allowed, reservation_id]
    state.update({"reservation_created": True, "reservation_id": reservation_id, **details})
    return {"reservation_created": True, "reservation_id": reservation_id, **details}


def modify_reservation(
    state: State,
    reservation_id: str,
    guest_name: str | None = None,
    date: str | None = None,
    time: str | None = None,
    party_size: int | None = None,
    seating: str | None = None,
) -> Json:
    """Change a reservation made in this call or one the caller may manage."""
    booked = _reservations(state)
    found = _own(state, reservation_id, "change")
    if found is None or found.get("cancelled") is True:
        raise ToolRefused(f"there is no reservation {reservation_id}")
    changes: State = {
        name: value
        for name, value in (
            ("guest_name", guest_name),
            ("date", date),
            ("time", time),
            ("party_size", party_size),
            ("seating", seating),
        )
        if value is not None
    }
    new = {**found, **changes}
    if lacking := {"date", "time", "party_size"} - new.keys():
        raise ToolRefused(f"reservation {reservation_id} has no {min(lacking)}")
    if not _is_free(
        state, str(new["date"]), str(new["time"]), int(str(new["party_size"])), but=reservation_id
    ):
        raise ToolRefused(_none_free(str(new["date"]), str(new["time"]), new["party_size"]))
    found.update(changes)
    state["reservations"] = booked
    state.update({"reservation_id": reservation_id, **changes})
    return {"reservation_id": reservation_id, **changes}


def cancel_reservation(state: State, reservation_id: str) -> Json:
    """Cancel a reservation that this caller may manage."""
    booked = _reservations(state)
    found = _own(state, reservation_id, "cancel")
    if found is None:
        raise ToolRefused(f"there is no reservation {reservation_id}")
    if found.get("cancelled") is True:
        raise ToolRefused(f"reservation {reservation_id} is cancelled already")
    found["cancelled"] = True
    state["reservations"] = booked
    state.update({"reservation_id": reservation_id, "cancelled": True})
    return {"reservation_id": reservation_id, "cancelled": True}


def _none_free(date: str, time: str, party_size: Json) -> str:
    """Say it as it would be spoken: the refusal is read out to the caller."""
    return f"no table for {party_size} on {spoken_date(date)} at {spoken_time(time)}"


def _reservations(state: State) -> list[Json]:
    booked = state.get("reservations")
    return booked if isinstance(booked, list) else []


def _own(state: State, reservation_id: str, to_do: str) -> State | None:
    """Return a reservation that the caller may manage, None if there is none; or refuse."""
    allowed = state.get("authorized_reservation_ids")
    if isinstance(allowed, list) and reservation_id not in allowed:
        raise ToolRefused(f"reservation {reservation_id} is not yours to {to_do}")
    return _reservation(_reservations(state), reservation_id)


def _free_number(booked: list[Json]) -> str:
    number = len(booked) + 1
    while _reservation(booked, f"R-{number:03d}") is not None:
        number += 1
    return f"R-{number:03d}"


def _reservation(booked: list[Json], reservation_id: str) -> State | None:
    for item in booked:
        if isinstance(item, dict) and item.get("reservation_id") == reservation_id:
            return item
    return None


def _is_free(state: State, date: str, time: str, party_size: int, but: str = "") -> bool:
    if _minutes(time) % _step(state):
        return False
    full = state.get("unavailable")
    if isinstance(full, list) and (f"{date}T{time}" in full or date in full):
        return False
    large = state.get("large_party", _LARGE_PARTY)
    if isinstance(large, dict):
        size, last = large.get("size"), large.get("last_seating")
        if isinstance(size, int) and isinstance(last, str) and party_size >= size and time > last:
            return False
    capacity = state.get("capacity")
    if not isinstance(capacity, int):
        return True
    seated = 0
    for item in _reservations(state):
        if not isinstance(item, dict) or item.get("cancelled") is True:
            continue
        same = item.get("date") == date and item.get("time") == time
        guests = item.get("party_size")
        if same and isinstance(guests, int) and item.get("reservation_id") != but:
            seated += guests
    return seated + party_size <= capacity


def _nearest(state: State, date: str, time: str, party_size: int, but: str = "") -> list[str]:
    """Return up to two free times of the same day, nearest first.

    They lie half an hour or more away, but right beside a time at which no table
    is ever given.
    """
    wanted, step = _minutes(time), _step(state)
    apart = 1 if wanted % step else 30
    found: list[str] = []
    for distance in range(apart, 181):
        for minutes in (wanted + distance, wanted - distance):
            on_time = minutes % step == 0 and (apart == 1 or distance % 30 == 0)
            if on_time and 0 <= minutes < 24 * 60:
                clock = f"{minutes // 60:02}:{minutes % 60:02}"
                if _is_free(state, date, clock, party_size, but):
                    found.append(clock)
    return found[:2]


def _step(state: State) -> int:
    """Minutes from one time at which tables are given to the next."""
    given = state.get("seating_every_minutes")
    return given if isinstance(given, int) and given > 0 else SEATING_EVERY_MINUTES


def _minutes(time: str) -> int:
    hours, minutes = time.split(":")
    return int(hours) * 60 + int(minutes)
