"""The default application: a restaurant that books, checks, changes and cancels tables.

What its state holds, and its tools, are in ``bookings.py``.

Policies, chosen so that scenarios need not spell them out: an hour without a.m.
or p.m. is in the evening; without a ``today`` in the state it is Saturday
2026-08-01, and a day without a year is in 2026; parties of six or more are
seated no later than half past eight; tables are given at every quarter of an hour.
"""

from __future__ import annotations

from dataclasses import replace

from duplex.application.bookings import (
    STATE,
    TIME,
    cancel_reservation,
    check_availability,
    create_reservation,
    find_reservation,
    modify_reservation,
)
from duplex.application.desk import Errand
from duplex.application.model import Application, Procedure, Step, Stop
from duplex.application.slots import Slot
from duplex.application.tools import Tool
from duplex.values import Json

_TABLE: dict[str, Json] = {
    "date": {"type": "string", "format": "date", "description": "Day as YYYY-MM-DD"},
    "time": {**TIME, "description": "Local time as HH:MM, 24 hours"},
    "party_size": {"type": "integer", "minimum": 1, "description": "Number of guests"},
    "seating": {"type": "string", "minLength": 1, "description": "Where, if the caller said"},
}
_NAME: dict[str, Json] = {
    "guest_name": {"type": "string", "minLength": 1, "description": "Name the caller gave"}
}
_ID: dict[str, Json] = {"reservation_id": {"type": "string", "minLength": 1}}
_MOVING: dict[str, Json] = {
    "reservation_id": {
        "type": "string",
        "minLength": 1,
        "description": "A reservation that is to be moved there: its own guests count once",
    }
}


def _object(properties: dict[str, Json], required: list[Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_WANTED: list[Json] = ["date", "time", "party_size"]
_BOOKING = {name: name for name in ("date", "time", "party_size", "seating")}
_NOUNS = ("reservation", "booking", "table")
# "To change" may come out of ears as "exchange".
_CHANGE_CUES = (
    *(f"{verb} ... {noun}" for verb in ("change", "exchange", "move") for noun in _NOUNS),
    *("reschedule", "modify", "need to move it", "like to move it", "have it moved"),
)
_NUMBER = {"reservation_id": "reservation_id"}
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
_MODIFY = Step(
    tool="modify_reservation", arguments={**_NUMBER, "guest_name": "guest_name", **_BOOKING}
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
    state_schema=STATE,
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
            read_back="So that's a[ {seating}] table for {party_size} on {date} at {time}, "
            "under {guest_name}. Is that right?",
        ),
        Errand(
            name="check",
            cues=("do you have", "is there", "available", "availability", "check", "any tables"),
            needs=("date", "party_size", "time"),
            may=("seating",),
            then="book",
        ),
        Errand(
            name="change",
            cues=_CHANGE_CUES,
            needs=("reservation_id",),
            may=("date", "time", "party_size", "seating", "guest_name"),
            one_of=("date", "time", "party_size", "seating", "guest_name"),
            ask="What would you like to change?",
            read_back="So that's[ {date},][ {time},][ {party_size} guests,][ {seating},]"
            "[ under {guest_name},] for reservation {reservation_id}. Is that right?",
            over=("book", "check"),
            again="book",
        ),
        Errand(
            name="cancel",
            cues=("cancel", "cancelled", "canceled", "cancellation", "call off", "exception"),
            needs=("reservation_id",),
            confirm="Would you like me to cancel reservation {reservation_id}?",
            over=("book", "check"),
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
            change=(_MODIFY,),
            say_changed="I've changed it. Your [{seating} ]table for {party_size} is booked for "
            "{date} at {time}, under {guest_name}.",
        ),
        "check": Procedure(
            steps=(_CHECK,),
            say="Yes, a[ {seating}] table for {party_size} is available on {date} at {time}. "
            "Would you like me to book it?",
        ),
        "change": Procedure(
            steps=(
                Step(tool="find_reservation", arguments=_NUMBER),
                replace(_CHECK, arguments={**_BOOKING, **_NUMBER}),
                _MODIFY,
            ),
            say="I've changed reservation {reservation_id}. It is now a[ {seating}] table for "
            "{party_size} on {date} at {time}, under {guest_name}.",
        ),
        "cancel": Procedure(
            steps=(Step(tool="cancel_reservation", arguments=_NUMBER),),
            say="I've cancelled reservation {reservation_id}.",
        ),
    },
    tools=(
        Tool(
            name="check_availability",
            description="Look whether a table is free; changes nothing.",
            parameters=_object({**_TABLE, **_MOVING}, _WANTED),
            run=check_availability,
        ),
        Tool(
            name="find_reservation",
            description="Look up a reservation the caller may manage; changes nothing.",
            parameters=_object(_ID, ["reservation_id"]),
            run=find_reservation,
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
