"""The default application: a restaurant that books, checks and cancels tables.

Its state is the scenario's ``initial_state`` and grows by what tools do. Keys it
reads: ``today`` (ISO day), ``unavailable`` (full slots, ``YYYY-MM-DDTHH:MM``, or
a whole day ``YYYY-MM-DD``), ``capacity`` (most guests at one time over all its
reservations), ``reservations`` (list), ``authorized_reservation_ids`` (what this
caller may cancel), ``large_party`` (``{"size", "last_seating"}``). Keys it writes
after a booking: ``reservation_created``, ``guest_name``, ``date``, ``time``,
``party_size``, ``seating`` if asked for, ``reservation_id`` and ``reservations``.

Policies, chosen so that scenarios need not spell them out: an hour without a.m.
or p.m. is in the evening; without a ``today`` in the state it is Saturday
2026-08-01, and a day without a year is in 2026; parties of six or more are
seated no later than half past eight.
"""

from __future__ import annotations

import datetime as dt

from duplex.application.desk import Errand
from duplex.application.model import Application, Procedure, Step, Stop
from duplex.application.slots import Slot, spoken_date, spoken_time
from duplex.application.tools import State, Tool, ToolRefused
from duplex.values import Json

_TIME = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}
_TABLE: dict[str, Json] = {
    "date": {"type": "string", "format": "date", "description": "Day as YYYY-MM-DD"},
    "time": {**_TIME, "description": "Local time as HH:MM, 24 hours"},
    "party_size": {"type": "integer", "minimum": 1, "description": "Number of guests"},
    "seating": {"type": "string", "minLength": 1, "description": "Where, if the caller said"},
}
_NAME: dict[str, Json] = {
    "guest_name": {"type": "string", "minLength": 1, "description": "Name the caller gave"}
}
_LARGE_PARTY: dict[str, Json] = {"size": 6, "last_seating": "20:30"}
_ID: dict[str, Json] = {"reservation_id": {"type": "string", "minLength": 1}}


def check_availability(
    state: State, date: str, time: str, party_size: int, seating: str | None = None
) -> Json:
    """Say whether a table is free, and the nearest free times if not."""
    asked: State = {"date": date, "time": time, "party_size": party_size}
    if seating is not None:
        asked["seating"] = seating
    free = _is_free(state, date, time, party_size)
    alternatives: list[Json] = [] if free else list(_nearest(state, date, time, party_size))
    return {**asked, "available": free, "alternatives": alternatives}


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
    reservation_id = f"R-{len(booked) + 1:03d}"
    booked.append({"reservation_id": reservation_id, **details, "cancelled": False})
    state["reservations"] = booked
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
    found = _reservation(booked, reservation_id)
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
    if not _is_free(
        state, str(new["date"]), str(new["time"]), int(str(new["party_size"])), but=reservation_id
    ):
        raise ToolRefused(_none_free(str(new["date"]), str(new["time"]), new["party_size"]))
    found.update(changes)
    state["reservations"] = booked
    state.update(changes)
    return {"reservation_id": reservation_id, **changes}


def cancel_reservation(state: State, reservation_id: str) -> Json:
    """Cancel a reservation that this caller may manage."""
    allowed = state.get("authorized_reservation_ids")
    if isinstance(allowed, list) and reservation_id not in allowed:
        raise ToolRefused(f"reservation {reservation_id} is not yours to cancel")
    booked = _reservations(state)
    found = _reservation(booked, reservation_id)
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


def _reservation(booked: list[Json], reservation_id: str) -> State | None:
    for item in booked:
        if isinstance(item, dict) and item.get("reservation_id") == reservation_id:
            return item
    return None


def _is_free(state: State, date: str, time: str, party_size: int, but: str = "") -> bool:
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


def _nearest(state: State, date: str, time: str, party_size: int) -> list[str]:
    """Return up to two free times of the same day, nearest first, in steps of half an hour."""
    wanted = dt.datetime.fromisoformat(f"{date}T{time}")
    found: list[str] = []
    for steps in range(1, 7):
        for sign in (1, -1):
            at = wanted + dt.timedelta(minutes=30 * steps * sign)
            clock = at.strftime("%H:%M")
            if at.date() == wanted.date() and _is_free(state, date, clock, party_size):
                found.append(clock)
    return found[:2]


def _object(properties: dict[str, Json], required: list[Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_WANTED: list[Json] = ["date", "time", "party_size"]
_BOOKING = {name: name for name in ("date", "time", "party_size", "seating")}
_CHECK = Step(
    tool="check_availability",
    arguments=_BOOKING,
    spoken_as={"alternatives": "time"},
    stops=(
        Stop(
            when={"available": False},
            say="I'm sorry, a table for {party_size} is not available on {date} at {time}."
            "[ I can offer {alternatives} instead. Would that work for you?]",
        ),
    ),
)

application = Application(
    name="restaurant",
    instructions=(
        "You answer the telephone of a small restaurant. Be warm and brief, one or two sentences "
        "at a time. To book a table you need the day, the name for the booking, the number of "
        "guests and the time; ask for what is missing, one or two details at a time, and never "
        "guess. Hand the work over once the details are complete, and say only what comes back: "
        "never tell the caller that a table is free, booked, changed or cancelled before the "
        "result says so. Reservations that are not the caller's own are not to be touched."
    ),
    greeting="Thank you for calling the restaurant. How can I help you?",
    farewell="Thank you for calling. Goodbye!",
    today="2026-08-01",
    since="2026-01-01",
    allowed_from={"reservation_id": "authorized_reservation_ids"},
    slots=(
        Slot(
            name="date",
            type="date",
            label="the day you'd like to come",
            questions=("What day would you like to come?", "Which day would you like?"),
        ),
        Slot(
            name="guest_name",
            type="name",
            label="the name for the reservation",
            questions=(
                "What name should I put the reservation under?",
                "Could I have a name for the reservation?",
            ),
        ),
        Slot(
            name="party_size",
            type="count",
            label="the number of guests",
            questions=("How many guests will there be?", "How many people is it for?"),
            cues=("guests", "party", "people"),
        ),
        Slot(
            name="time",
            type="time",
            label="the time",
            questions=("What time would you like?", "And what time would you like to come?"),
        ),
        Slot(
            name="seating",
            type="choice",
            label="where you'd like to sit",
            cues=("seating", "sit"),
            choices={
                # "Patty o" is how small ears write it.
                "patio": ("terrace", "outside", "outdoors", "patty o", "patty oh"),
                "window": ("by the window",),
                "bar": ("at the counter",),
                "booth": (),
                "indoor": ("inside", "indoors"),
            },
        ),
        Slot(
            name="reservation_id",
            type="code",
            prefix="R",
            label="the reservation number",
            questions=(
                "What is the reservation number, please?",
                "Which reservation is it? Could I have its number?",
            ),
            cues=("reservation number", "confirmation number", "booking number"),
            refusal="I'm sorry, reservation {reservation_id} is not in your name, "
            "so I'm not able to change or cancel it.",
        ),
    ),
    errands=(
        Errand(
            name="book",
            cues=("book", "booking", "reserve", "make a reservation", "a reservation for"),
            needs=("date", "guest_name", "party_size", "time"),
            may=("seating",),
        ),
        Errand(
            name="check",
            cues=("do you have", "is there", "available", "availability", "check", "any tables"),
            needs=("date", "party_size", "time"),
            may=("seating",),
            then="book",
        ),
        Errand(
            name="cancel",
            cues=("cancel", "cancelled", "canceled", "cancellation", "call off", "exception"),
            needs=("reservation_id",),
            confirm="Would you like me to cancel reservation {reservation_id}?",
        ),
    ),
    procedures={
        "book": Procedure(
            steps=(
                _CHECK,
                Step(tool="create_reservation", arguments={"guest_name": "guest_name", **_BOOKING}),
            ),
            say="Your [{seating} ]table for {party_size} is booked for {date} at {time}, "
            "under {guest_name}.",
            change=(
                Step(
                    tool="modify_reservation",
                    arguments={
                        "reservation_id": "reservation_id",
                        "guest_name": "guest_name",
                        **_BOOKING,
                    },
                ),
            ),
            say_changed="I've changed it. Your [{seating} ]table for {party_size} is booked for "
            "{date} at {time}, under {guest_name}.",
        ),
        "check": Procedure(
            steps=(_CHECK,),
            say="Yes, a[ {seating}] table for {party_size} is available on {date} at {time}. "
            "Would you like me to book it?",
        ),
        "cancel": Procedure(
            steps=(
                Step(tool="cancel_reservation", arguments={"reservation_id": "reservation_id"}),
            ),
            say="Reservation {reservation_id} is cancelled.",
        ),
    },
    tools=(
        Tool(
            name="check_availability",
            description="Look whether a table is free; changes nothing.",
            parameters=_object(_TABLE, _WANTED),
            run=check_availability,
        ),
        Tool(
            name="create_reservation",
            description="Book a table with details the caller gave.",
            parameters=_object({**_NAME, **_TABLE}, ["guest_name", *_WANTED]),
            run=create_reservation,
        ),
        Tool(
            name="modify_reservation",
            description="Change details of a reservation the caller may manage.",
            parameters=_object({**_ID, **_NAME, **_TABLE}, ["reservation_id"]),
            run=modify_reservation,
        ),
        Tool(
            name="cancel_reservation",
            description="Cancel a reservation the caller may manage.",
            parameters=_object(_ID, ["reservation_id"]),
            run=cancel_reservation,
        ),
    ),
)
