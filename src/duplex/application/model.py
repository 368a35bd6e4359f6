"""An application under test, as its author declares it.

Everything the local assistant and the local backend do follows from this
description: slots and errands for the conversation, tools for the work, and for
each errand the steps that join the two. No code beyond the application's own
module is needed. ``docs/applications.md`` shows how to write one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from duplex.application.desk import Desk, Errand
from duplex.application.schema import check_schema
from duplex.application.slots import Slot
from duplex.application.template import fields_of
from duplex.application.tools import Tool
from duplex.errors import InputError
from duplex.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the work early when the result holds ``when``, with these words."""

    when: Mapping[str, Json]
    say: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One tool call.

    ``arguments`` maps each parameter to a slot, or to a field of an earlier
    result; parameters whose value is not known are left out. ``spoken_as`` says
    of which slot type a result's field is, so templates can say it.
    """

    tool: str
    arguments: Mapping[str, str]
    stops: tuple[Stop, ...] = ()
    spoken_as: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """How an errand is done: its steps in order, then ``say``.

    When the same call has done the errand already and its details have changed
    since, ``change`` is run instead, if there is one, and ``say_changed`` said.
    Equal details are never worked on twice. ``failed`` is said when a tool
    declines; it may use ``{error}``.
    """

    steps: tuple[Step, ...]
    say: str
    failed: str = "I'm sorry, I couldn't do that: {error}."
    change: tuple[Step, ...] = ()
    say_changed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """The whole of it.

    ``instructions`` is prose for a real assistant. ``today`` is the day the
    application believes it is; a state's own ``today`` (ISO) wins. ``since`` is
    where days without a year start, by default ``today``. ``allowed_from`` maps
    a slot to the key of the initial state that lists the values this caller may
    have handled. ``state_schema`` says what the members of a scenario's initial
    state look like that the application reads (``description`` is what a message
    says is wanted there); others may stand beside them.
    """

    name: str
    instructions: str
    greeting: str
    farewell: str
    slots: tuple[Slot, ...]
    errands: tuple[Errand, ...]
    procedures: Mapping[str, Procedure]
    tools: tuple[Tool, ...]
    today: str
    since: str = ""
    initial_state: Mapping[str, Json] = field(default_factory=dict)
    allowed_from: Mapping[str, str] = field(default_factory=dict)
    state_schema: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self)

    def state(self, initial_state: Mapping[str, Json]) -> dict[str, Json]:
        """Return the state a call starts with: the application's own, then the scenario's."""
        return {**self.initial_state, **initial_state}

    def desk(self, initial_state: Mapping[str, Json]) -> Desk:
        """Return what the assistant is told for a call that starts in this state."""
        state = self.state(initial_state)
        given = state.get("today")
        today = given if isinstance(given, str) else self.today
        since = today if isinstance(given, str) else self.since or today
        return Desk(
            greeting=self.greeting,
            farewell=self.farewell,
            today=today,
            since=since,
            slots=tuple(self._allow(slot, state) for slot in self.slots),
            errands=self.errands,
        )

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self.tools if tool.name == name)

    def _allow(self, slot: Slot, state: Mapping[str, Json]) -> Slot:
        values = state.get(self.allowed_from.get(slot.name, ""))
        if not isinstance(values, list):
            return slot
        return replace(slot, allowed=tuple(str(value) for value in values))


def _check(application: Application) -> None:
    """Raise InputError at the first thing that does not fit together."""
    slots = {slot.name for slot in application.slots}
    tools = {tool.name for tool in application.tools}
    errands = {errand.name for errand in application.errands}
    where = f"application {application.name}"
    if not application.errands:
        raise InputError(f"{where}: has no errands")
    for tool in application.tools:
        check_schema(f"tool {tool.name}: parameters", tool.parameters)
    if application.state_schema:
        check_schema(f"{where}: state_schema", application.state_schema)
    for errand in application.errands:
        for name in errand.slots:
            if name not in slots:
                raise InputError(f"{where}: errand {errand.name} needs unknown slot {name!r}")
        for other in (errand.then, errand.again, *errand.over):
            if other and other not in errands:
                raise InputError(f"{where}: errand {errand.name} leads to unknown {other!r}")
        if errand.one_of and not (errand.ask and set(errand.one_of) <= set(errand.slots)):
            raise InputError(
                f"{where}: errand {errand.name}: one_of wants a question in ask, and slots of may"
            )
        if errand.name not in application.procedures:
            raise InputError(f"{where}: errand {errand.name} has no procedure")
    for name, procedure in application.procedures.items():
        _check_procedure(f"{where}: procedure {name}", procedure, application, slots, tools)


def _check_procedure(
    where: str,
    procedure: Procedure,
    application: Application,
    slots: set[str],
    tools: set[str],
) -> None:
    for steps, say in (
        (procedure.steps, procedure.say),
        (procedure.change, procedure.say_changed),
    ):
        known = set(slots)
        for step in steps:
            if step.tool not in tools:
                raise InputError(f"{where}: uses unknown tool {step.tool!r}")
            properties = application.tool(step.tool).parameters["properties"]
            assert isinstance(properties, dict)
            for parameter in step.arguments:
                if parameter not in properties:
                    raise InputError(f"{where}: {step.tool} has no parameter {parameter!r}")
            known |= set(step.spoken_as)
            for stop in step.stops:
                _check_fields(where, stop.say, known)
        _check_fields(where, say, known)
    _check_fields(where, procedure.failed, {*slots, "error"})


def _check_fields(where: str, template: str, known: set[str]) -> None:
    unknown = sorted(fields_of(template) - known)
    if unknown:
        raise InputError(
            f"{where}: {template!r} uses {{{unknown[0]}}}, which is neither a slot nor in spoken_as"
        )
