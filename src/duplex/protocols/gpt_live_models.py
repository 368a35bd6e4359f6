"""What a GPT-Live server accepts, as strict models, and what is wrong with the rest.

:func:`check` turns a client's JSON object into a model or into one
:class:`Problem` that names the offending path the way the wire does
(``session.audio.format.rate``, ``session.input[2].content``). Pure; the
server's state machine drives it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from duplex.protocols.gpt_live import (
    APPEND_TOKENS,
    CLIENT_TYPES,
    FORBIDDEN_VOICES,
    HISTORY_MESSAGES,
    HISTORY_TOKENS,
    INSTRUCTIONS_TOKENS,
    VOICES,
    clean_text,
    estimate_tokens,
)
from duplex.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a client's event is refused; ``param`` is the path at fault."""

    code: str
    message: str
    param: str | None = None


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LinearFormat(Strict):
    type: Literal["audio/pcm"]
    rate: Literal[16000, 24000] = 24000


class MuLawFormat(Strict):
    type: Literal["audio/pcmu"]
    rate: Literal[8000] = 8000


class ALawFormat(Strict):
    type: Literal["audio/pcma"]
    rate: Literal[8000] = 8000


Format = Annotated[LinearFormat | MuLawFormat | ALawFormat, Field(discriminator="type")]


class OutputModel(Strict):
    voice: JsonValue = None

    @field_validator("voice")
    @classmethod
    def _known(cls, value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            identity = value.get("id")
            if set(value) == {"id"} and isinstance(identity, str) and identity.strip():
                return value
            raise PydanticCustomError("invalid_value", "a custom voice is an object with an id")
        if value is None or value in VOICES:
            return value
        if value in FORBIDDEN_VOICES:
            raise PydanticCustomError("forbidden", "this voice may not be used in live sessions")
        names = ", ".join(VOICES)
        raise PydanticCustomError("invalid_value", f"voice is not one of {names}")


class AudioModel(Strict):
    format: Format | None = None
    output: OutputModel | None = None


class FunctionModel(Strict):
    type: Literal["function"]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    strict: bool | None = None


class ReasoningModel(Strict):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    summary: Literal["concise", "detailed", "auto"] | None = None


class TextModel(Strict):
    verbosity: Literal["low", "medium", "high"] | None = None


class BackendUpdateModel(Strict):
    """Settings of the backend that this side runs; an update names those that change."""

    model: str | None = None
    instructions: str | None = None
    tools: Annotated[list[FunctionModel], Field(max_length=128)] | None = None
    tool_choice: JsonValue = None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningModel | None = None
    text: TextModel | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    service_tier: str | None = None


class BackendModel(BackendUpdateModel):
    model: str


class ClientDelegation(Strict):
    type: Literal["client"]
    acknowledgement_delay_ms: Annotated[int, Field(ge=0)] | None = None


class ResponsesDelegation(Strict):
    type: Literal["responses"]
    responses: BackendModel
    acknowledgement_delay_ms: Annotated[int, Field(ge=0)] | None = None


class ResponsesChange(Strict):
    type: Literal["responses"]
    responses: BackendUpdateModel | None = None
    acknowledgement_delay_ms: Annotated[int, Field(ge=0)] | None = None


DelegationModel = Annotated[ClientDelegation | ResponsesDelegation, Field(discriminator="type")]
DelegationChange = Annotated[ClientDelegation | ResponsesChange, Field(discriminator="type")]


class InputText(Strict):
    text: str
    type: Literal["input_text"] = "input_text"


class OutputText(Strict):
    text: str
    type: Literal["output_text", "text"] = "text"


class Spoken(Strict):
    """Common fields of a history message."""

    id: str | None = None
    status: Literal["incomplete", "completed"] | None = None
    type: Literal["message"] | None = None


class DeveloperMessage(Spoken):
    role: Literal["developer"]
    content: Annotated[list[InputText], Field(min_length=1, max_length=1)]


class UserMessage(Spoken):
    role: Literal["user"]
    content: Annotated[list[InputText], Field(min_length=1, max_length=1)]


class AssistantMessage(Spoken):
    role: Literal["assistant"]
    content: Annotated[list[OutputText], Field(min_length=1, max_length=1)]


Message = Annotated[DeveloperMessage | UserMessage | AssistantMessage, Field(discriminator="role")]


class SessionModel(Strict):
    model: str
    audio: AudioModel | None = None
    delegation: DelegationModel | None = None
    input: Annotated[list[Message], Field(max_length=HISTORY_MESSAGES)] | None = None
    instructions: str | None = None
    safety_identifier: str | None = None
    store: bool | None = None
    triggers: Annotated[list[JsonValue], Field(max_length=0)] | None = None

    @field_validator("model")
    @classmethod
    def _served(cls, value: str) -> str:
        if not value.startswith("gpt-live"):
            raise PydanticCustomError("invalid_model", "model is not a live model, as gpt-live-1")
        return value

    @field_validator("instructions")
    @classmethod
    def _short_enough(cls, value: str | None) -> str | None:
        return _limited(value, INSTRUCTIONS_TOKENS)

    @field_validator("input")
    @classmethod
    def _history(cls, value: list[Message] | None) -> list[Message] | None:
        _limited(" ".join(item.content[0].text for item in value or ()), HISTORY_TOKENS)
        return value


class UpdateModel(Strict):
    delegation: DelegationChange | None = None
    triggers: Annotated[list[JsonValue], Field(max_length=0)] | None = None


class Command(Strict):
    """A client event without fields of its own."""

    type: str
    event_id: str | None = None


class Start(Command):
    session: SessionModel


class Update(Command):
    session: UpdateModel


class MessageItem(Strict):
    type: Literal["message"]
    role: Literal["user", "developer", "system"]
    content: str | Annotated[list[InputText], Field(min_length=1)]


class OutputItem(Strict):
    type: Literal["function_call_output"]
    call_id: Annotated[str, Field(min_length=1)]
    output: str
    id: str | None = None
    status: Literal["completed", "in_progress", "incomplete"] | None = None


class WithItem(Command):
    item: Annotated[MessageItem | OutputItem, Field(discriminator="type")]


class WithAudio(Command):
    audio: str


class Append(Command):
    content: str
    delegation_id: str | None

    @field_validator("content")
    @classmethod
    def _short_enough(cls, value: str) -> str | None:
        return _limited(value, APPEND_TOKENS)


_MODELS: Mapping[str, type[Command]] = {
    "session.start": Start,
    "session.update": Update,
    "session.input_audio.append": WithAudio,
    "session.output_audio.fixture.play": WithAudio,
    "session.commentary.append": Append,
    "session.thinking.append": Append,
    "session.instructions.append": Append,
    "session.input_audio.mute": Command,
    "session.input_audio.unmute": Command,
    "response.item.create": WithItem,
    "response.create": Command,
    "session.close": Command,
}
CODES = {
    "extra_forbidden": "unknown_parameter",
    "missing": "missing_required_parameter",
    "union_tag_not_found": "missing_required_parameter",
    "union_tag_invalid": "invalid_value",
    "literal_error": "invalid_value",
    "greater_than_equal": "invalid_value",
    "too_long": "invalid_value",
    "too_short": "invalid_value",
    "invalid_value": "invalid_value",
    "invalid_model": "invalid_model",
    "forbidden": "forbidden",
    "string_above_max_tokens": "string_above_max_tokens",
    "string_pattern_mismatch": "invalid_value",
    "string_too_short": "invalid_value",
}
_TAGGED = ("format", "delegation", "item")
"""Fields whose models are told apart by their type."""
_TAGS = frozenset(
    {
        *("audio/pcm", "audio/pcmu", "audio/pcma"),
        *("developer", "user", "assistant", "client", "responses"),
        *("message", "function_call_output"),
    }
)


def check(kind: str, event: Mapping[str, Json]) -> Command | Problem:
    """Return the event of type ``kind`` as its model, or the first thing wrong with it."""
    try:
        return _MODELS[kind].model_validate(event)
    except ValidationError as error:
        return _problem(error.errors(include_url=False, include_input=False)[0])
    except RecursionError:
        return Problem(code="invalid_value", message="the event is nested too deeply")


def unknown_type(kind: Json) -> Problem:
    """Refuse a type that is not a client event, naming those that are."""
    names = [f"'{name}'" for name in CLIENT_TYPES]
    supported = f"{', '.join(names[:-1])}, and {names[-1]}"
    shown = clean_text(kind)[:100] if isinstance(kind, str) else json.dumps(kind)[:100]
    message = f"Invalid value: '{shown}'. Supported values are: {supported}."
    return Problem(code="invalid_value", message=message, param="type")


def unserved_delegation(event: Mapping[str, Json]) -> Problem | None:
    """Refuse delegation this server does not serve before its settings are looked at."""
    session = event.get("session")
    delegation = session.get("delegation") if isinstance(session, dict) else None
    kind = delegation.get("type") if isinstance(delegation, dict) else None
    if kind != "decisions":
        return None
    wanted = "wanted 'client' or 'responses'"
    message = f"session.delegation.type '{kind}' is not served here, {wanted}"
    return Problem(code="unsupported_value", message=message, param="session.delegation.type")


def _problem(error: ErrorDetails) -> Problem:
    path = _path(error["loc"])
    if error["type"].startswith("union_tag"):
        context = error.get("ctx") or {}
        path += "." + str(context.get("discriminator", "'type'")).strip("'")
    code = CODES.get(error["type"], "invalid_type")
    return Problem(code=code, message=f"{path}: {error['msg'].lower()}", param=path)


def _path(location: tuple[int | str, ...]) -> str:
    """Join a location as the wire writes it, leaving out the tags of unions."""
    path = ""
    previous: int | str = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not (part in _TAGS and (isinstance(previous, int) or previous in _TAGGED)):
            path += f".{part}" if path else part
        previous = part
    return path


def _limited(text: str | None, limit: int) -> str | None:
    tokens = estimate_tokens(text or "")
    if tokens > limit:
        raise PydanticCustomError(
            "string_above_max_tokens", f"about {tokens} tokens, more than the {limit} allowed"
        )
    return text
