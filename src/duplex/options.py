"""What a run is asked to do, validated once before anything is opened.

The command line, ``duplex.toml`` and Python callers all end here. Secrets are
never part of it: keys are read from the environment where a session connects.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from duplex import agents, conditions, prices
from duplex.application.endpoint import check_endpoint
from duplex.conditions import Condition
from duplex.errors import InputError
from duplex.judge_options import JudgeOptions
from duplex.option_faults import option_fault
from duplex.plan_options import PlanOptions
from duplex.protocols.realtime import DEFAULT_MODEL as REALTIME_MODEL
from duplex.protocols.realtime import Encoding, TurnDetection

DEFAULT_APPLICATION = "duplex.application.restaurant:application"
CALLERS = ("local", "gpt-live", "realtime", "scripted", "a .wav file")
PERSON = "person"
"""The caller that ``duplex talk`` seats at a sound card; no other verb can."""
LOCAL_ENDPOINT = "local"
"""The endpoint at which the embedded voice answers, in this process."""


def _no_empty_path(value: object) -> object:
    if value == "":
        raise ValueError("it is empty, want a path")
    return value


Place = Annotated[Path, BeforeValidator(_no_empty_path), Strict(False)]
Words = Annotated[tuple[str, ...], Strict(False)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class RunOptions(PlanOptions, JudgeOptions):
    """Options of ``duplex run``; the names are the flags' names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    data: Place | None = None
    scenario: Words = ()
    max_examples: int | None = Field(default=None, ge=1)
    application: str = DEFAULT_APPLICATION

    assistant: str = "local"
    caller: str = "local"
    endpoint: str | None = None
    assistant_endpoint: str | None = None
    model: str = "gpt-live-1"
    voice: str = "cedar"
    simulator_model: str = "gpt-live-1"
    simulator_voice: str | None = None
    assistant_opening_prompt: str | None = None
    turn_detection: TurnDetection = "server_vad"
    audio_format: Encoding = "pcm"
    ears_model: Place | None = None
    mouth_model: Place | None = None

    condition: Words = ()
    clock: Literal["wall", "virtual"] = "wall"
    transport_ms: int = Field(default=20, ge=10, le=200)
    tick_ms: int = Field(default=200, ge=1, le=10_000)
    seed: Seed = 7
    first_speaker: Literal["caller", "assistant"] | None = None
    detector: Literal["edge", "rms", "webrtc"] = "edge"
    max_duration_seconds: float = Field(default=90, gt=0, le=7200)
    drain_ms: int = Field(default=1500, ge=0, le=60_000)
    response_deadline_ms: int = Field(default=5000, ge=1, le=600_000)
    concurrency: int = Field(default=1, ge=1, le=8)

    redact: Words = ()
    price: Words = ()
    max_cost_usd: float | None = Field(default=None, ge=0, le=1_000_000)

    out: Place = Path("runs")
    run_name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    ticks: bool = False

    @model_validator(mode="after")
    def _parties_are_known(self) -> RunOptions:
        try:
            agents.parse(self.assistant)
        except InputError as error:
            raise ValueError(str(error)) from None
        is_wav = self.caller_is_wav
        if self.caller not in (*CALLERS, PERSON) and not is_wav:
            raise ValueError(f'caller "{self.caller}" is none of: {", ".join(CALLERS)}')
        return self

    @model_validator(mode="after")
    def _virtual_time_is_lock_step(self) -> RunOptions:
        remote = [] if self.agent.lock_step else [self.assistant]
        elsewhere = self.caller == "realtime" and self.endpoint != LOCAL_ENDPOINT
        remote += [self.caller] if self.caller in ("gpt-live", PERSON) or elsewhere else []
        if self.clock == "virtual" and remote:
            mend = {
                "realtime": ", or --endpoint local: the same protocol with the embedded voice",
                "gpt-live": ", or the embedded voice: local",
                "client": ", or the embedded voice: local",
            }.get(remote[0], ", or local parties")
            raise ValueError(
                f"clock virtual: {remote[0]} is a remote session, which no virtual clock can "
                f"make wait; use --clock wall{mend}"
            )
        return self

    @model_validator(mode="after")
    def _realtime_settings_have_a_session(self) -> RunOptions:
        asked = {"turn_detection", "audio_format"} & self.model_fields_set
        if asked and "realtime" not in (self.agent.kind, self.caller):
            name = min(asked).replace("_", "-")
            raise ValueError(f"{name} is of Realtime sessions; want --assistant realtime")
        return self

    @model_validator(mode="after")
    def _local_endpoint_speaks_realtime(self) -> RunOptions:
        if self.endpoint == LOCAL_ENDPOINT and "gpt-live" in (self.agent.kind, self.caller):
            raise ValueError(
                "endpoint local: it answers the Realtime API; for GPT-Live with the embedded "
                "voice use --assistant local"
            )
        return self

    @model_validator(mode="after")
    def _workers_can_share(self) -> RunOptions:
        limited, private = self.max_cost_usd is not None, bool(self.redact)
        said = self.unsuited(concurrency=self.concurrency, limited=limited, private=private)
        if said is not None:
            raise ValueError(said)
        return self

    @model_validator(mode="after")
    def _models_have_work(self) -> RunOptions:
        if (said := self.misplaced(self.agent.kind, self.caller)) is not None:
            raise ValueError(said)
        return self

    @model_validator(mode="after")
    def _endpoint_has_work(self) -> RunOptions:
        if self.assistant_endpoint is None:
            return self
        try:
            check_endpoint(self.assistant_endpoint)
        except InputError as error:
            raise ValueError(str(error)) from None
        if self.agent.kind not in ("local", "gpt-live") or self.delegation != "client":
            raise ValueError(
                "assistant-endpoint owns the work of client delegation; want --assistant local "
                "or gpt-live, and --delegation client"
            )
        if self.backend_model is not None:
            raise ValueError(
                "assistant-endpoint owns the work; it takes no backend-model beside it"
            )
        return self

    @model_validator(mode="after")
    def _prices_can_be_read(self) -> RunOptions:
        try:
            prices.parse(self.price)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @model_validator(mode="after")
    def _redacted_fields_have_names(self) -> RunOptions:
        for name in self.redact:
            if not re.fullmatch(r"[^\W\d][\w .-]{0,63}", name):
                raise ValueError(f"redact {name[:60]!r} is no name of a field, want like phone")
        return self

    @model_validator(mode="after")
    def _out_is_a_path(self) -> RunOptions:
        if not str(self.out).isprintable():
            raise ValueError(f"out {str(self.out)!r} is no path, it holds control characters")
        return self

    @model_validator(mode="after")
    def _conditions_exist(self) -> RunOptions:
        try:
            conditions.parse(self.condition)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def agent(self) -> agents.Agent:
        """The assistant that was asked for."""
        agent = agents.parse(self.assistant)
        if agent.kind == "realtime" and self.endpoint == LOCAL_ENDPOINT:
            return replace(agent, lock_step=True, keyed=False)
        return agent

    @property
    def assistant_model(self) -> str:
        """The assistant's model; each API has a default of its own."""
        own = self.agent.kind == "realtime" and "model" not in self.model_fields_set
        return REALTIME_MODEL if own else self.model

    @property
    def caller_model(self) -> str:
        """The model of a caller that is a session elsewhere."""
        own = self.caller == "realtime" and "simulator_model" not in self.model_fields_set
        return REALTIME_MODEL if own else self.simulator_model

    @property
    def caller_is_wav(self) -> bool:
        """Whether a recording that was named calls, not one of the scenario's."""
        return self.caller.lower().endswith(".wav")

    def condition_over(self, scenarios: tuple[str, ...] | None) -> Condition:
        """The condition that was asked for, else the scenario's own, else a clean line."""
        return conditions.parse(self.condition or scenarios or ())


def make(values: dict[str, object]) -> RunOptions:
    """Validate option values; one sentence names the first that is wrong."""
    try:
        return RunOptions.model_validate(values)
    except ValidationError as error:
        raise option_fault(error) from None


def checked_seed(seed: int) -> int:
    """Return a seed that can be used; raise InputError for another."""
    try:
        return TypeAdapter(Seed).validate_python(seed)
    except ValidationError:
        raise InputError(f"option seed: got {seed}; want a whole number from 0") from None
