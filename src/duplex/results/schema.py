"""The shapes of ``results.json``, schema 2.0 of the public harness, field by field.

Fields stand in the order they are written. What duplex adds lives under keys
named ``duplex`` only. A value that is not known is null, and the result's
``duplex.unknown`` says why. The models hold no arithmetic and write strict JSON.
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from duplex.errors import DuplexError

SCHEMA_VERSION = "2.0"
METRICS_VERSION = "2.0"

Status = Literal["passed", "failed", "infrastructure_error"]


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("is not finite")
    return value


Number = Annotated[float, AfterValidator(_finite)]


class Shape(BaseModel):
    """Base of every object in a results file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Configuration(Shape):
    """What a run was held with; null where an end has no such thing."""

    model: str | None
    backend_model: str | None
    assistant_mode: str
    assistant_endpoint: str
    voice: str | None
    first_speaker: str
    simulator_model: str | None
    simulator_voice: str | None
    simulator_backend_model: str | None
    simulator_backend_reasoning_effort: str | None
    semantic_drain: bool
    completion_model: str | None
    completion_timeout_seconds: Number | None
    concurrency: int
    audio_condition: str
    audio_realism: dict[str, JsonValue]
    tick_ms: int
    metrics_version: str = METRICS_VERSION
    response_deadline_ms: int
    seed: int


class RunInfo(Shape):
    """What a run is and how it was held; ``duplex`` is open to our additions."""

    id: str
    module: Literal["run"] = "run"
    execution_mode: Literal["live", "offline"]
    interaction: str
    dataset: str
    configuration: Configuration
    duplex: dict[str, JsonValue] = Field(default_factory=dict)


class Summary(Shape):
    total: int
    passed: int
    failed: int
    infrastructure_errors: int


class Dimensions(Shape):
    task_understanding: Number | None
    context_fidelity: Number | None
    clarification_quality: Number | None
    grounded_communication: Number | None
    conversational_coherence: Number | None


class SemanticQuality(Shape):
    score: Number | None
    dimensions: Dimensions


class ActualExpected(Shape):
    actual: int | None
    expected: int


class TaskMetrics(Shape):
    task_completed: bool | None
    semantic_quality: SemanticQuality
    tool_accuracy: Number | None
    tool_calls: ActualExpected
    delegation_accuracy: Number | None
    delegations: ActualExpected
    turns: ActualExpected


class Extent(Shape):
    cumulative: int | None
    maximum: int | None


class Opportunities(Shape):
    caller_turn_count: int | None
    response_eligible_count: int | None
    response_censored_count: int | None
    response_excluded_count: int | None
    response_late_count: int | None
    response_total: int | None
    response_count: int | None
    no_response_count: int | None


class AudioMetrics(Shape):
    """Contract 2.0, as measured elsewhere."""

    response_rate: Number | None
    response_latency_ms: Number | None
    interruption_rate: Number | None
    speaking_duration_ms: Extent
    floor_hold_silence_ms: Extent
    metrics_version: str = METRICS_VERSION
    response_deadline_ms: int
    response_opportunities: Opportunities
    response_exclusion_reasons: dict[str, int] | None


class Frontend(Shape):
    audio_duration_ms: int | None


class InputTokens(Shape):
    total_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    text_tokens: int | None


class OutputTokens(Shape):
    total_tokens: int | None
    text_tokens: int | None
    reasoning_tokens: int | None


class BackendTokens(Shape):
    total_tokens: int | None
    input: InputTokens
    output: OutputTokens


class Consumption(Shape):
    frontend: Frontend
    backend: BackendTokens


class Metrics(Shape):
    task: TaskMetrics
    audio: AudioMetrics
    consumption: Consumption


class Artifacts(Shape):
    """Files of one call, relative to the run's folder; null when there is none."""

    conversation_audio: str | None
    conversation_transcript: str | None


class Failure(Shape):
    stage: str
    message: str


class CheckResult(Shape):
    id: str
    status: Literal["passed", "failed", "not_applicable", "not_assessed"]
    required: bool


class Assessment(Shape):
    """The verdict; ``passed`` is null for a call that does not count."""

    passed: bool | None
    source: Literal["deterministic", "semantic_judge"]
    rationale: str
    checks: list[CheckResult]


class AgendaSeen(Shape):
    """Agenda items by what was observed of them; null where the caller cannot tell."""

    total: int
    completed: list[str] | None
    skipped: list[str] | None
    bypassed: list[str] | None
    pending_required: list[str] | None


class Interaction(Shape):
    mode: str
    audio_source: str
    caller_mode: str
    caller_actions: dict[str, int]
    attribution: str
    assistant_turns: int
    caller_turns: int
    delegations: int


class Executed(Shape):
    name: str
    status: str
    arguments: dict[str, JsonValue]
    call_id: str


class Tools(Shape):
    executed: list[Executed]
    expected_count: int
    matched_count: int
    unexpected_completed_count: int
    failed_count: int


class Completion(Shape):
    termination_reason: str | None
    policy: str
    passed: bool | None
    source: Literal["deterministic", "semantic_judge"]
    rationale: str
    failed_checks: list[str]
    failed_procedure_steps: list[str]
    procedure_is_diagnostic: bool = True


class Observability(Shape):
    agenda: AgendaSeen
    interaction: Interaction
    tools: Tools
    completion: Completion


class Validity(Shape):
    """Whether the caller's side was sound enough for the call to count."""

    scope: str
    status: Literal["valid", "invalid"]
    target_metrics_eligible: bool
    reason: str | None
    unexpected_delegation_count: int
    delegation_ids: list[str]


class Result(Shape):
    """One call; ``duplex`` is open to our additions."""

    scenario_id: str
    status: Status
    metrics: Metrics
    artifacts: Artifacts
    error: Failure | None
    title: str
    assessment: Assessment
    observability: Observability
    validity: Validity
    duplex: dict[str, JsonValue] = Field(default_factory=dict)


class Run(Shape):
    """A whole results file."""

    schema_version: Literal["2.0"] = "2.0"
    run: RunInfo
    summary: Summary
    results: list[Result]


def to_json(shape: Shape, *, indent: int | None = 2) -> str:
    """Write strict JSON, fields in schema order; raise DuplexError for a number JSON lacks."""
    try:
        return json.dumps(
            shape.model_dump(mode="python"), indent=indent, ensure_ascii=False, allow_nan=False
        )
    except ValueError as error:
        raise DuplexError(f"results hold a number that is not finite: {error}") from None


def read_run(text: str) -> Run:
    """Read a results file; raise DuplexError when it is not schema 2.0."""
    try:
        return Run.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where}: {first['msg']}" if where else str(first["msg"])
        raise DuplexError(f"not a results file of schema {SCHEMA_VERSION}: {said}") from None
    except ValueError as error:
        raise DuplexError(f"not a results file of schema {SCHEMA_VERSION}: {error}") from None
