"""What one call is about: the caller's side, the application's state, what is expected.

These are the shapes of scenario files, schema 1.0 of the public harness plus one
optional object ``duplex``. They are strict: no value is coerced and no unknown
field is kept. They never read a file (``load`` does) and hold no
behaviour beyond reading themselves. The caller is given
``simulation_parameters`` and ``input`` only, the assistant's application
``application`` and ``input.context`` only, and graders ``expected``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, Protocol

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    Strict,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from duplex.scenario.options import DuplexOptions

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DEVICE = re.compile(r"(CON|PRN|AUX|NUL|COM[0-9]|LPT[0-9])(\.|$)", re.IGNORECASE)


def wrong(message: str, at: str = "") -> PydanticCustomError:
    """Make a validation error in our words, at a place below the one being validated."""
    return PydanticCustomError("duplex", "{message}", {"message": message, "at": at})


def safe_id(value: str) -> str:
    """Return ``value`` if it can name a folder on every system; refuse it otherwise."""
    if _ID.fullmatch(value) is None or value.endswith("."):
        raise wrong(
            "cannot name a folder: want 1 to 100 letters, digits, '.', '_' or '-', "
            "a letter or digit first and no '.' last"
        )
    if _DEVICE.match(value):
        raise wrong("is the name of a device on some systems")
    return value


def quoted(value: str) -> str:
    """Show text from a file in a message: quoted, short, without control characters."""
    return json.dumps(value if len(value) <= 60 else value[:57] + "...")


def _not_blank(value: str) -> str:
    if not value.strip():
        raise wrong("is blank")
    return value


Id = Annotated[str, AfterValidator(safe_id)]
Text = Annotated[str, AfterValidator(_not_blank)]
Fact = str | int | float | bool
Texts = Annotated[tuple[Text, ...], Strict(False)]
Share = Annotated[float, Field(ge=0, le=1)]


class Strictly(BaseModel):
    """Base of every object in a scenario file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Recorded(Strictly):
    """One recording of the caller's request; ``path`` is relative to the file."""

    id: Text
    path: Text
    condition: Literal[
        "clean", "noisy", "telephony", "background_speech", "echo", "packet_loss", "realistic"
    ] = "clean"
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class PriorLine(Strictly):
    """One line said before the call began."""

    role: Literal["user", "assistant"]
    text: Text


class Context(Strictly):
    """What the assistant may know from before the call."""

    summary: str = ""
    history: Annotated[tuple[PriorLine, ...], Strict(False)] = ()


class Input(Strictly):
    """The caller's first request, as text and possibly as recordings of it."""

    text: Text
    recordings: Annotated[tuple[Recorded, ...], Strict(False)] = ()
    context: Context | None = None

    @model_validator(mode="after")
    def _recordings_are_distinct(self) -> Input:
        _distinct("recordings", (recording.id for recording in self.recordings))
        return self


class ApplicationStart(Strictly):
    """The state the application under test begins with."""

    initial_state: dict[str, JsonValue] = Field(default_factory=dict)


class ExpectedTool(Strictly):
    """A tool call that must, or must not, happen; ``arguments`` is a subset."""

    name: Text
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    status: Literal["any", "completed"] = "completed"


class ExpectedTools(Strictly):
    required: Annotated[tuple[ExpectedTool, ...], Strict(False)] = ()
    prohibited: Annotated[tuple[ExpectedTool, ...], Strict(False)] = ()


class GoldenPath(Strictly):
    """A reference conversation; diagnostic only."""

    turns: Annotated[int, Field(ge=0)] = 0
    delegations: Annotated[int, Field(ge=0)] | None = None
    steps: Texts = ()

    @property
    def expected_turns(self) -> int:
        """``turns``, or the number of steps when only those are written."""
        return self.turns or len(self.steps)


class Step(Strictly):
    """One observable step of a procedure."""

    id: Text
    kind: Literal[
        "clarification",
        "tool",
        "correction",
        "authorization",
        "state",
        "grounded_confirmation",
        "refusal",
    ]
    tool: str | None = None
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    after: Texts = ()
    required: bool = True
    critical: bool = False

    @model_validator(mode="after")
    def _is_whole(self) -> Step:
        if self.kind == "tool" and not (self.tool or "").strip():
            raise wrong('has kind "tool" and names no tool')
        if self.critical and not self.required:
            raise wrong("is critical and not required, want both or neither")
        return self


class Procedure(Strictly):
    """Steps with what each must come after: a partial order."""

    id: Text
    steps: Annotated[tuple[Step, ...], Strict(False), Field(min_length=1)]

    @model_validator(mode="after")
    def _is_ordered(self) -> Procedure:
        _partial_order("steps", self.steps)
        return self


class Expected(Strictly):
    """What graders look for; neither the caller nor the assistant sees it."""

    answer: Text
    criteria: Texts = ()
    tools: ExpectedTools = Field(default_factory=ExpectedTools)
    golden_path: GoldenPath = Field(default_factory=GoldenPath)
    diagnostic_terms: Texts = ()
    delegation: Literal["required", "forbidden", "optional"] = "optional"
    state: dict[str, JsonValue] = Field(default_factory=dict)
    procedure: Procedure | None = None


class Persona(Strictly):
    """How the caller behaves and sounds."""

    id: str = "default"
    description: str = "A polite caller who is brief and stops when the request is settled."
    voice: Text = "coral"
    speech_instructions: str = "Speak clearly, in an everyday tone."
    verbosity: str = "brief"
    interrupt_tendency: Share = 0.15
    backchannel_tendency: Share = 0.25
    backchannels: Texts = ("Mm-hmm.", "Right.")


class AgendaItem(Strictly):
    """One thing the caller means to bring about; the assistant never sees it."""

    id: Text
    commitment: Text
    trigger_condition: Text
    completion_condition: Text
    completion_basis: Literal["expression", "live_context"] = "expression"
    wording_policy: Literal["adapt_to_live_context", "source_exact_preferred"] = (
        "adapt_to_live_context"
    )
    action: Literal["answer", "correct", "backchannel", "interrupt", "finish", "wait"]
    facts: Texts = ()
    response_hint: str = ""
    after: Texts = ()
    required: bool = True


class Simulation(Strictly):
    """The caller's private side: goal, facts, agenda and persona."""

    goal: str = ""
    known_facts: dict[str, Fact] = Field(default_factory=dict)
    agenda: Annotated[tuple[AgendaItem, ...], Strict(False)] = ()
    persona: Persona = Field(default_factory=Persona)
    expectations: Texts = ()

    @field_validator("known_facts", mode="before")
    @classmethod
    def _facts_are_scalars(cls, value: object) -> object:
        if isinstance(value, dict):
            for name, fact in value.items():
                if not isinstance(fact, str | int | float | bool):
                    raise wrong("is not a string, number or boolean", at=f"[{quoted(str(name))}]")
        return value

    @field_validator("agenda", mode="after")
    @classmethod
    def _facts_are_known(
        cls, agenda: tuple[AgendaItem, ...], info: ValidationInfo
    ) -> tuple[AgendaItem, ...]:
        known = info.data.get("known_facts")
        if known is not None:
            for index, item in enumerate(agenda):
                _all_known(f"[{index}].facts", item.facts, known, "known_facts")
        return agenda

    @model_validator(mode="after")
    def _is_ordered(self) -> Simulation:
        _partial_order("agenda", self.agenda)
        return self


class Scenario(Strictly):
    """One task, as a scenario file states it.

    ``duplex`` is what the file says beside schema 1.0; a loader has already laid
    the scenario's own options over those of its dataset.
    """

    id: Id
    title: Text
    type: Text | None = None
    interaction: Literal["single_turn", "multi_turn"]
    tags: Texts = ()
    input: Input
    application: ApplicationStart = Field(default_factory=ApplicationStart)
    expected: Expected
    simulation_parameters: Simulation | None = None
    duplex: DuplexOptions = Field(default_factory=DuplexOptions)

    @property
    def simulation(self) -> Simulation:
        """The caller's side; an empty one when the file has none."""
        return self.simulation_parameters or Simulation()

    @property
    def goal(self) -> str:
        """What the caller wants; never taken from ``expected``."""
        return self.simulation.goal or self.input.text

    @property
    def persona(self) -> Persona:
        """The persona with the levels of ``duplex.persona`` laid over it."""
        levels = self.duplex.persona
        persona = self.simulation.persona
        return persona.model_copy(update=levels.tendencies()) if levels else persona


class ScenarioFile(Strictly):
    """A whole scenario file."""

    schema_version: Literal["1.0"] = "1.0"
    scenarios: Annotated[tuple[Scenario, ...], Strict(False)] = ()
    duplex: DuplexOptions = Field(default_factory=DuplexOptions)


def _distinct(where: str, ids: Iterable[str]) -> None:
    seen: dict[str, int] = {}
    for index, one in enumerate(ids):
        if one in seen:
            first = f"{where}[{seen[one]}].id"
            raise wrong(f"{quoted(one)} repeats {first}", at=f".{where}[{index}].id")
        seen[one] = index


def _all_known(at: str, names: Iterable[str], known: Iterable[str], what: str) -> None:
    have = sorted(known)
    for name in names:
        if name not in have:
            listed = ", ".join(map(quoted, have)) or "none"
            raise wrong(f"names {quoted(name)}, want one of {what}: {listed}", at=at)


class _Ordered(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def after(self) -> tuple[str, ...]: ...


def _partial_order(where: str, items: Sequence[_Ordered]) -> None:
    """Refuse repeated ids, unknown predecessors and circles."""
    _distinct(where, (item.id for item in items))
    ids = [item.id for item in items]
    for index, item in enumerate(items):
        _all_known(f".{where}[{index}].after", item.after, ids, f"the ids of {where}")
    done: set[str] = set()
    left = list(items)
    while left:
        ready = [item for item in left if done.issuperset(item.after)]
        if not ready:
            circle = ", ".join(quoted(item.id) for item in left)
            raise wrong(f"wait for each other in a circle: {circle}", at=f".{where}")
        done.update(item.id for item in ready)
        left = [item for item in left if item.id not in done]
