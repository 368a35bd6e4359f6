"""The server's half of the Responses API: reads requests, writes responses and streams.

Sans-io and strict where a client could be misled: what is not served is refused with
the path at fault. It keeps earlier responses, a bounded number of them, so that
``previous_response_id`` works. What is answered is decided by whoever drives it
(``local/responses_http.py``, ``local/managed_backend.py``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    StrictBool,
    Tag,
    ValidationError,
)

from duplex.protocols.gpt_live import clean_text
from duplex.protocols.gpt_live_models import CODES, Problem
from duplex.protocols.model_values import (
    TEXT_LIMIT,
    Answer,
    Ask,
    Call,
    Function,
    Item,
    Message,
    Output,
    Tokens,
)
from duplex.values import Json

KEPT = 512
"""Responses that can be continued; older ones are forgotten."""
KEPT_CHARACTERS = 64 << 20
"""Text of all remembered responses together; beyond it the oldest are forgotten."""
ITEMS_LIMIT = 2_000
Text = Annotated[str, Field(max_length=16 * TEXT_LIMIT)]


class _Loose(BaseModel):
    """Requests may hold settings that mean nothing here, such as a temperature."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Part(_Loose):
    type: Literal["input_text", "output_text", "text", "refusal"] = "input_text"
    text: Text = ""


class _MessageItem(_Loose):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: Text | list[_Part]


class _CallItem(_Loose):
    type: Literal["function_call"]
    call_id: Text
    name: Text
    arguments: Text


class _OutputItem(_Loose):
    type: Literal["function_call_output"]
    call_id: Text
    output: Text | list[_Part]


class _ReasoningItem(_Loose):
    type: Literal["reasoning"]


def _kind(item: object) -> str:
    """The type of an input item; a message may leave it out."""
    kind = item.get("type", "message") if isinstance(item, dict) else None
    return kind if isinstance(kind, str) else ""


_Item = Annotated[
    Annotated[_MessageItem, Tag("message")]
    | Annotated[_CallItem, Tag("function_call")]
    | Annotated[_OutputItem, Tag("function_call_output")]
    | Annotated[_ReasoningItem, Tag("reasoning")],
    Discriminator(_kind),
]


class _Tool(_Loose):
    type: Literal["function"]
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    strict: bool | None = None


class _Reasoning(_Loose):
    effort: str | None = None


class _Request(_Loose):
    model: Text
    input: Text | Annotated[list[_Item], Field(max_length=ITEMS_LIMIT)] = ""
    instructions: Text | None = None
    tools: Annotated[list[_Tool], Field(max_length=128)] | None = None
    tool_choice: JsonValue = "auto"
    parallel_tool_calls: bool | None = None
    previous_response_id: str | None = None
    reasoning: _Reasoning | None = None
    stream: StrictBool | None = None
    store: bool | None = None
    max_output_tokens: int | None = None
    metadata: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A request that can be answered: what is asked, and how the answer is to come."""

    ask: Ask
    stream: bool
    store: bool
    echo: Mapping[str, Json]


class Memory:
    """Earlier responses by their id, the newest within :data:`KEPT` and its characters."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Item, ...]] = OrderedDict()
        self._characters = 0

    def keep(self, response_id: str, items: tuple[Item, ...]) -> None:
        self._kept[response_id] = items
        self._characters += _characters(items)
        while len(self._kept) > KEPT or (
            self._characters > KEPT_CHARACTERS and len(self._kept) > 1
        ):
            _, forgotten = self._kept.popitem(last=False)
            self._characters -= _characters(forgotten)

    def recall(self, response_id: str) -> tuple[Item, ...] | None:
        return self._kept.get(response_id)


def _characters(items: tuple[Item, ...]) -> int:
    return sum(
        len(item.name) + len(item.arguments) if isinstance(item, Call) else len(item.text)
        for item in items
    )


def read_request(body: Mapping[str, Json], memory: Memory) -> Wanted | Problem:
    """Read the body of ``POST /responses``; never raises."""
    try:
        request = _Request.model_validate(body)
    except ValidationError as error:
        # Of several shapes an input may have, the one that fitted furthest says most.
        found = error.errors(include_url=False, include_input=False)
        first = max(found, key=lambda one: len(one["loc"]))
        path = _path(first["loc"])
        code = CODES.get(first["type"], "invalid_type")
        return Problem(code=code, message=f"{path}: {first['msg'].lower()}", param=path)
    except RecursionError:
        return Problem(code="invalid_value", message="the request is nested too deeply")
    earlier: tuple[Item, ...] = ()
    if request.previous_response_id is not None:
        kept = memory.recall(request.previous_response_id)
        if kept is None:
            shown = clean_text(request.previous_response_id)[:80]
            message = f"Previous response with id '{shown}' not found."
            code = "previous_response_not_found"
            return Problem(code=code, message=message, param="previous_response_id")
        earlier = kept
    items = _items(request)
    if isinstance(items, Problem):
        return items
    ask = Ask(
        model=clean_text(request.model),
        instructions=clean_text(request.instructions or ""),
        items=items,
        history=earlier,
        functions=tuple(_function(tool) for tool in request.tools or ()),
        must_call=_must_call(request.tool_choice),
        effort=request.reasoning.effort if request.reasoning is not None else None,
        previous_id=request.previous_response_id,
        max_output_tokens=request.max_output_tokens,
    )
    missing = unanswered(ask.whole)
    if missing:
        message = f"No tool output found for function call {missing[0]}."
        return Problem(code="invalid_value", message=message, param="input")
    return Wanted(
        ask=ask,
        stream=bool(request.stream),
        store=request.store is not False,
        echo=_echo(request, body),
    )


_CHOICES = frozenset({"str", "message", "function_call", "function_call_output", "reasoning"})


def _path(location: tuple[int | str, ...]) -> str:
    """Join a location, leaving out the tags of unions."""
    path = ""
    for index, part in enumerate(location):
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier() and (part not in _CHOICES or index == 0):
            path += f".{part}" if path else part
    return path or "body"


def unanswered(items: tuple[Item, ...]) -> list[str]:
    """Return the ids of calls without an output, in order."""
    outputs = {item.call_id for item in items if isinstance(item, Output)}
    return [
        item.call_id for item in items if isinstance(item, Call) and item.call_id not in outputs
    ]


def _items(request: _Request) -> tuple[Item, ...] | Problem:
    if isinstance(request.input, str):
        text = clean_text(request.input)
        return (Message(role="user", text=text),) if text.strip() else ()
    items: list[Item] = []
    for index, item in enumerate(request.input):
        match item:
            case _MessageItem():
                role = "developer" if item.role == "system" else item.role
                items.append(Message(role=role, text=_text(item.content)))
            case _CallItem():
                items.append(
                    Call(
                        call_id=clean_text(item.call_id),
                        name=clean_text(item.name),
                        arguments=clean_text(item.arguments),
                    )
                )
            case _OutputItem():
                if not item.call_id:
                    param = f"input[{index}].call_id"
                    return Problem(code="invalid_value", message=f"{param}: is empty", param=param)
                items.append(Output(call_id=clean_text(item.call_id), text=_text(item.output)))
            case _ReasoningItem():
                pass
    return tuple(items)


def _text(content: str | list[_Part]) -> str:
    whole = content if isinstance(content, str) else "".join(part.text for part in content)
    return clean_text(whole)


def _function(tool: _Tool) -> Function:
    return Function(
        name=tool.name,
        description=clean_text(tool.description or ""),
        parameters=tool.parameters or {"type": "object", "properties": {}},
    )


def _must_call(choice: Json) -> str | None:
    name = choice.get("name") if isinstance(choice, dict) else None
    return clean_text(name) if isinstance(name, str) else None


def _echo(request: _Request, body: Mapping[str, Json]) -> dict[str, Json]:
    """The request's settings as a response repeats them."""
    tools = body.get("tools")
    return {
        "model": clean_text(request.model),
        "instructions": request.instructions,
        "tools": [_shown_tool(tool) for tool in request.tools or ()] if tools else [],
        "tool_choice": request.tool_choice,
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": request.previous_response_id,
        "reasoning": {"effort": request.reasoning.effort if request.reasoning else None},
        "max_output_tokens": request.max_output_tokens,
        "metadata": dict(request.metadata or {}),
        "store": request.store is not False,
    }


def _shown_tool(tool: _Tool) -> Json:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict,
    }


# -- what the server says ----------------------------------------------------


def resource(
    answer: Answer,
    echo: Mapping[str, Json],
    created_at: int,
    *,
    status: str | None = None,
) -> dict[str, Json]:
    """Return a response object; with ``status`` in_progress, one that has just begun."""
    begun = status is not None
    error: Json = None
    if answer.status == "failed" and not begun:
        error = {"code": "server_error", "message": answer.problem}
    return {
        "id": answer.response_id,
        "object": "response",
        "created_at": created_at,
        "status": status or answer.status,
        "error": error,
        "incomplete_details": {"reason": answer.problem}
        if answer.status == "incomplete" and not begun
        else None,
        "output": [] if begun else list(output_items(answer)),
        "usage": None if begun or answer.tokens is None else write_tokens(answer.tokens),
        "temperature": None,
        "top_p": None,
        **echo,
    }


def output_items(answer: Answer) -> Iterator[dict[str, Json]]:
    """The output items of an answer: its message, then its calls."""
    suffix = answer.response_id.removeprefix("resp_")
    if answer.text:
        yield {
            "type": "message",
            "id": f"msg_{suffix}",
            "status": "completed",
            "role": "assistant",
            "content": [_part(answer.text)],
        }
    for index, call in enumerate(answer.calls):
        yield {
            "type": "function_call",
            "id": f"fc_{suffix}_{index}",
            "status": "completed",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
        }


def _part(text: str) -> dict[str, Json]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def write_tokens(tokens: Tokens) -> dict[str, Json]:
    return {
        "input_tokens": tokens.input_tokens or 0,
        "input_tokens_details": {
            "cached_tokens": tokens.cached_tokens or 0,
            "cache_write_tokens": tokens.cache_write_tokens or 0,
        },
        "output_tokens": tokens.output_tokens or 0,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning_tokens or 0},
        "total_tokens": tokens.total_tokens or 0,
    }


def stream_events(
    answer: Answer, echo: Mapping[str, Json], created_at: int
) -> Iterator[dict[str, Json]]:
    """Return every event of a stream, in order, with their sequence numbers."""
    for number, event in enumerate(_events(answer, echo, created_at)):
        yield {**event, "sequence_number": number}


def _events(answer: Answer, echo: Mapping[str, Json], created_at: int) -> Iterator[dict[str, Json]]:
    begun = resource(answer, echo, created_at, status="in_progress")
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(output_items(answer)):
        yield from _item_events(item, index)
    over = {"completed": "completed", "incomplete": "incomplete"}.get(answer.status, "failed")
    yield {"type": f"response.{over}", "response": resource(answer, echo, created_at)}


def _item_events(item: dict[str, Json], index: int) -> Iterator[dict[str, Json]]:
    place: dict[str, Json] = {"output_index": index}
    within: dict[str, Json] = {**place, "item_id": item["id"]}
    if item["type"] == "message":
        content = item["content"]
        assert isinstance(content, list)
        part = content[0]
        assert isinstance(part, dict)
        text = str(part["text"])
        begun: dict[str, Json] = {**item, "status": "in_progress", "content": []}
        inside: dict[str, Json] = {**within, "content_index": 0}
        yield {"type": "response.output_item.added", **place, "item": begun}
        yield {"type": "response.content_part.added", **inside, "part": _part("")}
        for piece in _pieces(text):
            yield {"type": "response.output_text.delta", **inside, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **inside, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **inside, "part": part}
    else:
        yield {
            "type": "response.output_item.added",
            **place,
            "item": {**item, "status": "in_progress", "arguments": ""},
        }
        kind = "response.function_call_arguments"
        yield {"type": f"{kind}.delta", **within, "delta": item["arguments"]}
        yield {"type": f"{kind}.done", **within, "arguments": item["arguments"]}
    yield {"type": "response.output_item.done", **place, "item": item}


def _pieces(text: str) -> Iterator[str]:
    """Cut a text the way a model's words come, a few characters at a time."""
    for start in range(0, len(text), 24):
        yield text[start : start + 24]
