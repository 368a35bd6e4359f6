"""What LiveKit's writes may ask for, and what it is for us: options of a run, scenarios.

Protobuf JSON in camelCase, unknown fields refused. Scenarios are taken over as ``duplex
scenario import`` takes over a file of theirs. What is no request here is an
``InvalidArgument`` that names its field; nothing is opened or begun.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict

from duplex import agents, importing
from duplex.errors import InputError
from duplex.options import RunOptions, make
from duplex.scenario import Scenario
from duplex.scenario.text import read_json
from duplex.serve.refusals import Refusal
from duplex.values import Json

MOST_AT_ONCE = 20
MOST_GENERATED = 50
GENERATED = 5
"""Scenarios that are written unless a number is asked for."""
_CALLS_AT_ONCE = 8
_IMPAIRMENTS = {
    "backgroundNoise": "background_noise",
    "lowQualityMicrophone": "low_quality_microphone",
    "packetLoss": "lossy",
}
_NOT_FROM_BASE = ("data", "scenario", "max_examples", "out", "run_name")

Mode = Literal["SIMULATION_MODE_UNSPECIFIED", "SIMULATION_MODE_TEXT", "SIMULATION_MODE_AUDIO"]
_Text = Annotated[str, Field(max_length=1000)]
_Truth = Annotated[bool, Strict()]
_Count = Annotated[int, Strict(), Field(ge=0, lt=2**31)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScenarioBody(_Message):
    """One scenario; ``userdata`` is a JSON object as text."""

    label: str = ""
    instructions: str = ""
    agentExpectations: str = ""
    tags: dict[str, str] = {}
    userdata: str = ""
    id: str = ""


class GroupBody(_Message):
    """The contents of a scenarios.yaml."""

    name: _Text = ""
    scenarios: list[ScenarioBody] = []
    id: _Text = ""


class CiBody(_Message):
    """The pipeline that a run came from."""

    provider: _Text = ""
    commitSha: _Text = ""
    ref: _Text = ""
    pullRequest: _Text = ""
    runUrl: _Text = ""
    actor: _Text = ""


class SamplingBody(_Message):
    """Every scenario so many times, and the share of them that must pass."""

    samples: Annotated[int, Strict(), Field(gt=1, le=10_000)]
    passRate: float = Field(gt=0, le=1)


class CreateBody(_Message):
    """A run to create."""

    agentName: Annotated[str, Field(max_length=200)] = ""
    numSimulations: _Count = 0
    region: _Text = ""
    scenarioGroup: GroupBody | None = None
    concurrency: _Count = 0
    mode: Mode = "SIMULATION_MODE_UNSPECIFIED"
    backgroundNoise: _Truth = False
    lowQualityMicrophone: _Truth = False
    packetLoss: _Truth = False
    ci: CiBody | None = None
    sampling: SamplingBody | None = None


class ConfirmBody(_Message):
    """Which file of the source the agent begins in."""

    codeEntrypoint: str = Field(default="", max_length=1024)


class SessionBody(_Message):
    """The recorded call to write a scenario of; the region is ignored."""

    roomId: str = Field(default="", max_length=200)
    region: _Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What runs created here are held with: options of ``duplex run``, and agents by name."""

    options: Mapping[str, object] = field(default_factory=dict)
    agents: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, options: Mapping[str, object], named: tuple[str, ...]) -> Defaults:
        """``named`` are ``NAME=ASSISTANT``. Raises InputError."""
        found: dict[str, str] = {}
        for text in named:
            name, equals, assistant = text.partition("=")
            if not equals or not name.strip():
                raise InputError(f'agent "{text}": want NAME=ASSISTANT')
            agents.parse(assistant.strip())
            found[name.strip()] = assistant.strip()
        kept = {name: one for name, one in options.items() if name not in _NOT_FROM_BASE}
        make(dict(kept))
        return cls(options=kept, agents=found)


def checked(body: CreateBody, defaults: Defaults) -> None:
    """Raise the Refusal of a run that cannot be created."""
    audio = body.mode == "SIMULATION_MODE_AUDIO"
    for name in _asked(body):
        if not audio:
            raise invalid(f"{name} applies in SIMULATION_MODE_AUDIO only", name)
    if not audio:
        raise invalid(
            "text mode, which an unset mode means, is not held here; want SIMULATION_MODE_AUDIO",
            "mode",
        )
    if body.region:
        raise invalid("region is not empty", "region")
    if body.concurrency > MOST_AT_ONCE:
        raise invalid(f"concurrency is more than {MOST_AT_ONCE}", "concurrency")
    if body.scenarioGroup is None and body.numSimulations > MOST_GENERATED:
        raise invalid(f"numSimulations is more than {MOST_GENERATED}", "numSimulations")
    options_of(body, defaults)


def options_of(body: CreateBody, defaults: Defaults, data: Path | None = None) -> RunOptions:
    """The options of its run; raises Refusal for those that do not go together."""
    values: dict[str, object] = dict(defaults.options)
    if body.agentName:
        values["assistant"] = _assistant(body.agentName, defaults)
    if lines := [_IMPAIRMENTS[name] for name in _asked(body)]:
        values["condition"] = lines
    if body.concurrency:
        values |= {"concurrency": min(body.concurrency, _CALLS_AT_ONCE), "workers": 1}
    if body.sampling is not None:
        values |= {"samples": body.sampling.samples, "pass_rate": body.sampling.passRate}
    group = body.scenarioGroup
    values["run_name"] = slug(group.name if group is not None else body.agentName)
    if data is not None:
        values["data"] = str(data)
    try:
        return make(values)
    except InputError as error:
        raise invalid(str(error), None) from None


def scenarios_of(group: GroupBody) -> tuple[Scenario, ...]:
    """Its scenarios as ours. Raises Refusal."""
    try:
        return importing.taken_over(_file(group), "scenarioGroup").scenarios
    except InputError as error:
        raise invalid(str(error), "scenarioGroup") from None


def _file(group: GroupBody) -> dict[str, Json]:
    """The group as its scenarios.yaml says it."""
    scenarios: list[Json] = []
    for at, one in enumerate(group.scenarios):
        where = f"scenarioGroup: scenarios[{at}].userdata"
        userdata = read_json(one.userdata, where) if one.userdata.strip() else {}
        scenarios.append(
            {
                "id": one.id,
                "label": one.label,
                "instructions": one.instructions,
                "agent_expectations": one.agentExpectations,
                "tags": dict(one.tags),
                "userdata": userdata,
            }
        )
    return {"id": group.id, "name": group.name, "scenarios": scenarios}


def slug(text: str) -> str:
    """A name for a run and its file of scenarios."""
    clean = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40].strip("_")
    return clean or "simulation"


def invalid(message: str, param: str | None) -> Refusal:
    return Refusal(400, "InvalidArgument", message, param=param)


def precondition(message: str) -> Refusal:
    return Refusal(400, "FailedPrecondition", message)


def _asked(body: CreateBody) -> list[str]:
    return [name for name in _IMPAIRMENTS if getattr(body, name)]


def _assistant(name: str, defaults: Defaults) -> str:
    if name in defaults.agents:
        return defaults.agents[name]
    try:
        agents.parse(name)
    except InputError as error:
        known = ", ".join(defaults.agents) or "none"
        raise invalid(
            f"agentName: {error}; names told with --agent: {known}", "agentName"
        ) from None
    return name
