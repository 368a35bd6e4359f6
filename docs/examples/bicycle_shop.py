"""A workshop that repairs bicycles: an application of your own, in one file.

Try it:  duplex run --application docs/examples/bicycle_shop.py:application \\
                    --data docs/examples/bicycle_shop.scenarios.json

Its state: ``closed`` (ISO days), ``per_day`` (repairs taken a day, 3 unless
given), ``repairs`` (what is booked). A booking adds ``repair_booked`` and the
details of the repair.
"""

from __future__ import annotations

import datetime as dt

from duplex.application.desk import Errand
from duplex.application.model import Application, Procedure, Step, Stop
from duplex.application.slots import Slot
from duplex.application.tools import State, Tool, ToolRefused
from duplex.values import Json


def find_day(state: State, day: str) -> Json:
    """Say whether the workshop can take a bicycle on a day, and the next days it can."""
    if _has_room(state, day):
        return {"day": day, "open": True, "next_days": []}
    start = dt.date.fromisoformat(day)
    later = [(start + dt.timedelta(days=n)).isoformat() for n in range(1, 15)]
    return {"day": day, "open": False, "next_days": [d for d in later if _has_room(state, d)][:2]}


def book_repair(
    state: State,
    owner: str,
    day: str,
    drop_off: str,
    bicycle: str,
    problem: str,
    phone: str | None = None,
) -> Json:
    """Book a repair; the workshop opens at eight and closes at six."""
    if not "08:00" <= drop_off <= "18:00":
        raise ToolRefused("the workshop is open from eight to six")
    if not _has_room(state, day):
        raise ToolRefused("that day is full")
    repair: State = {
        "owner": owner,
        "day": day,
        "drop_off": drop_off,
        "bicycle": bicycle,
        "problem": problem,
    }
    if phone is not None:
        repair["phone"] = phone
    repairs = state.get("repairs")
    state["repairs"] = [*(repairs if isinstance(repairs, list) else []), repair]
    state.update({"repair_booked": True, **repair})
    return {"repair_booked": True}


def _has_room(state: State, day: str) -> bool:
    closed = state.get("closed")
    sunday = dt.date.fromisoformat(day).weekday() == 6
    if sunday or (isinstance(closed, list) and day in closed):
        return False
    repairs, most = state.get("repairs"), state.get("per_day", 3)
    booked = [r for r in repairs if isinstance(r, dict)] if isinstance(repairs, list) else []
    return sum(r.get("day") == day for r in booked) < (most if isinstance(most, int) else 3)


_DAY: dict[str, Json] = {
    "type": "string",
    "format": "date",
    "description": "a day as 2026-03-12",
}
_WORDS: dict[str, Json] = {"type": "string", "minLength": 1}
_TIME: dict[str, Json] = {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"}

application = Application(
    name="bicycle shop",
    instructions=(
        "You answer the telephone of a bicycle workshop. To book a repair you need the kind of "
        "bicycle, what is wrong with it, the day and the time it will be brought in, and the "
        "owner's name. Ask for one or two of these at a time, hand the work over once you have "
        "them all, and say only what comes back."
    ),
    greeting="Spoke and Chain workshop, good day. What can I do for you?",
    farewell="Thanks for calling. Goodbye!",
    today="2026-03-02",
    state_schema={
        "type": "object",
        "properties": {
            "closed": {"type": "array", "items": _DAY, "description": "a list of days"},
            "per_day": {"type": "integer", "minimum": 0, "description": "a whole number"},
            "repairs": {"type": "array", "description": "a list of repairs"},
        },
    },
    slots=(
        Slot(
            name="bicycle",
            type="choice",
            label="the kind of bicycle",
            questions=("What kind of bicycle is it?",),
            cues=("kind of bicycle", "kind of bike", "type of bike"),
            choices={
                "road bike": ("racing bike", "racer"),
                "mountain bike": (),
                "city bike": ("town bike", "hybrid"),
                "electric bike": ("e-bike", "ebike"),
                "cargo bike": (),
            },
        ),
        Slot(
            name="problem",
            type="text",
            label="what is wrong with it",
            questions=("What seems to be the problem?", "What is wrong with it?"),
            cues=("problem", "wrong", "the problem is", "because"),
        ),
        Slot(
            name="day",
            type="date",
            label="the day",
            questions=("What day would you like to bring it in?",),
        ),
        Slot(
            name="drop_off",
            type="time",
            label="the time",
            questions=("At what time will you bring it?",),
            bare_hours="day",
        ),
        Slot(
            name="owner",
            type="name",
            label="your name",
            questions=("May I have your name?", "What name is it under?"),
        ),
        Slot(name="phone", type="phone", label="a telephone number"),
    ),
    errands=(
        Errand(
            name="repair",
            cues=("repair", "fix", "fixed", "repaired", "service"),
            needs=("bicycle", "problem", "day", "drop_off", "owner"),
            may=("phone",),
        ),
    ),
    procedures={
        "repair": Procedure(
            steps=(
                Step(
                    tool="find_day",
                    arguments={"day": "day"},
                    spoken_as={"next_days": "date"},
                    stops=(
                        Stop(
                            when={"open": False},
                            say="I'm sorry, we cannot take it on {day}."
                            "[ I could offer {next_days} instead. Would that suit you?]",
                        ),
                    ),
                ),
                Step(
                    tool="book_repair",
                    arguments={
                        name: name
                        for name in ("owner", "day", "drop_off", "bicycle", "problem", "phone")
                    },
                ),
            ),
            say="Your {bicycle} is booked in for {day} at {drop_off}, under {owner}.",
            failed="I'm sorry, that can't be booked: {error}. What time would suit you instead?",
        )
    },
    tools=(
        Tool(
            name="find_day",
            description="Look whether the workshop has room on a day; changes nothing.",
            parameters={"type": "object", "properties": {"day": _DAY}, "required": ["day"]},
            run=find_day,
        ),
        Tool(
            name="book_repair",
            description="Book a repair with details the caller gave.",
            parameters={
                "type": "object",
                "properties": {
                    "owner": _WORDS,
                    "day": _DAY,
                    "drop_off": _TIME,
                    "bicycle": _WORDS,
                    "problem": _WORDS,
                    "phone": _WORDS,
                },
                "required": ["owner", "day", "drop_off", "bicycle", "problem"],
            },
            run=book_repair,
        ),
    ),
)
