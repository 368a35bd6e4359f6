"""The client's half of the OpenAI Responses API: writes requests, reads answers.

Sans-io. An answer is read whole from one JSON object, or piece by piece from stream
events, which GPT-Live nests in its own messages too. Reading never raises: what
cannot be read is a :class:`Broken`, what nobody knows is passed over. Everything
that is kept is bounded. ``models/client.py`` and the live session drive it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from duplex.protocols.gpt_live import Broken, clean_text, read_object
from duplex.protocols.model_values import (
    CALLS_LIMIT,
    TEXT_LIMIT,
    Answer,
    Ask,
    Call,
    Function,
    Item,
    Message,
    Output,
    Shape,
    Status,
    Tokens,
)
from duplex.protocols.strict_schema import strict_schema
from duplex.values import Json

PATH = "/responses"
_OVER = {
    "response.completed": "completed",
    "response.failed": "failed",
    "response.incomplete": "incomplete",
    "response.cancelled": "cancelled",
}


def request(ask: Ask, *, stream: bool = False) -> dict[str, Json]:
    """Return the body of ``POST /responses``."""
    body: dict[str, Json] = {"model": ask.model}
    items = ask.items if ask.previous_id is not None else ask.whole
    body["input"] = [write_item(item) for item in items]
    if ask.instructions:
        body["instructions"] = ask.instructions
    if ask.functions:
        body["tools"] = [write_function(function) for function in ask.functions]
        body["parallel_tool_calls"] = True
    if ask.must_call is not None:
        body["tool_choice"] = {"type": "function", "name": ask.must_call}
    if ask.effort is not None:
        body["reasoning"] = {"effort": ask.effort}
    if ask.previous_id is not None:
        body["previous_response_id"] = ask.previous_id
    if ask.max_output_tokens is not None:
        body["max_output_tokens"] = ask.max_output_tokens
    if ask.shape is not None:
        body["text"] = {"format": {"type": "json_schema", **write_shape(ask.shape)}}
    if ask.store is not None:
        body["store"] = ask.store
    if stream:
        body["stream"] = True
    return body


def write_function(function: Function) -> dict[str, Json]:
    """Return a function as a strict tool."""
    return {
        "type": "function",
        "name": function.name,
        "description": function.description,
        "parameters": strict_schema(function.parameters),
        "strict": True,
    }


def write_shape(shape: Shape) -> dict[str, Json]:
    """Return the schema an answer must have, for a strict server."""
    return {"name": shape.name, "schema": strict_schema(shape.schema), "strict": True}


def write_item(item: Item) -> dict[str, Json]:
    match item:
        case Message():
            kind = "output_text" if item.role == "assistant" else "input_text"
            part: dict[str, Json] = {"type": kind, "text": item.text}
            return {"type": "message", "role": item.role, "content": [part]}
        case Call():
            return {
                "type": "function_call",
                "call_id": item.call_id,
                "name": item.name,
                "arguments": item.arguments,
            }
        case Output():
            return {"type": "function_call_output", "call_id": item.call_id, "output": item.text}


def read_answer(body: bytes | str) -> Answer | Broken:
    """Read one whole response."""
    found = read_object(body)
    return found if isinstance(found, Broken) else read_response(found)


def read_response(response: Json) -> Answer | Broken:
    """Read a response object that is over; never raises."""
    if not isinstance(response, dict) or not isinstance(response.get("id"), str):
        return Broken(reason="the response has no id")
    status = response.get("status")
    if status is None:
        status = "completed"  # older servers leave it out of what is whole
    if status not in get_args(Status):
        return Broken(reason=f"the response's status is {str(status)[:40]!r}")
    output = response.get("output")
    reader = _Output()
    for item in output if isinstance(output, list) else []:
        reader.take(item)
    return reader.answer(
        clean_text(str(response["id"]))[:200],
        cast(Status, status),
        read_tokens(response.get("usage")),
        _problem(response),
        _code(response),
    )


class StreamReader:
    """Reads one response from its stream events, in order."""

    def __init__(self) -> None:
        self.response_id = ""
        self._output = _Output()

    def take(self, event: Mapping[str, Json]) -> Answer | Broken | None:
        """Take one event; return the answer once the response is over."""
        kind = event.get("type")
        response = event.get("response")
        identity = response.get("id") if isinstance(response, dict) else None
        if isinstance(identity, str):
            self.response_id = clean_text(identity)[:200]
        match kind:
            case "response.output_item.done":
                self._output.take(event.get("item"))
            case "error":
                said = event.get("message")
                text = said if isinstance(said, str) else "the stream ended with an error"
                told = clean_text(text)[:500]
                return self._output.answer(
                    self.response_id, "failed", None, told, _code({"error": dict(event)})
                )
            case str() if kind in _OVER:
                return self._over(cast(Status, _OVER[kind]), response)
        return None

    def _over(self, status: Status, response: Json) -> Answer | Broken:
        if not isinstance(response, dict) or not self.response_id:
            return Broken(reason="a response ended without an id")
        if not self._output.seen:
            # Some servers send items only in the closing snapshot, GPT-Live never does.
            output = response.get("output")
            for item in output if isinstance(output, list) else []:
                self._output.take(item)
        tokens = read_tokens(response.get("usage"))
        return self._output.answer(
            self.response_id, status, tokens, _problem(response), _code(response)
        )


class _Output:
    """Collects output items: text of messages, and calls that are whole."""

    def __init__(self) -> None:
        self.seen = False
        self._texts: list[str] = []
        self._calls: list[Call] = []
        self._broken = ""

    def take(self, item: Json) -> None:
        if not isinstance(item, dict):
            return
        self.seen = True
        if item.get("type") == "message":
            self._take_message(item)
        elif item.get("type") == "function_call":
            self._take_call(item)

    def _take_message(self, item: dict[str, Json]) -> None:
        content = item.get("content")
        for part in content if isinstance(content, list) else []:
            text = part.get("text", part.get("refusal")) if isinstance(part, dict) else None
            if isinstance(text, str):
                self._texts.append(clean_text(text))
        if sum(map(len, self._texts)) > TEXT_LIMIT:
            self._broken = f"the answer is longer than {TEXT_LIMIT} characters"
            self._texts.clear()

    def _take_call(self, item: dict[str, Json]) -> None:
        if item.get("status") not in (None, "completed"):
            return
        call_id, name, arguments = (item.get(key) for key in ("call_id", "name", "arguments"))
        if not (isinstance(call_id, str) and call_id and isinstance(name, str)):
            self._broken = "a function call has no call_id or no name"
        elif not isinstance(arguments, str) or len(arguments) > TEXT_LIMIT:
            self._broken = (
                f"the arguments of {clean_text(name)[:60]} are no text of bearable length"
            )
        elif len(self._calls) >= CALLS_LIMIT:
            self._broken = f"one response makes more than {CALLS_LIMIT} calls"
        elif all(call.call_id != clean_text(call_id) for call in self._calls):
            self._calls.append(
                Call(
                    call_id=clean_text(call_id)[:200],
                    name=clean_text(name)[:200],
                    arguments=clean_text(arguments),
                )
            )

    def answer(
        self, response_id: str, status: Status, tokens: Tokens | None, problem: str, code: str
    ) -> Answer:
        if self._broken and status == "completed":
            status, problem = "failed", self._broken
        return Answer(
            response_id=response_id,
            status=status,
            text="\n".join(text for text in self._texts if text.strip()),
            calls=tuple(self._calls) if status == "completed" else (),
            tokens=tokens,
            problem=problem,
            code=code,
        )


def read_tokens(usage: Json) -> Tokens | None:
    """Read a usage object of this dialect; None when there is none."""
    if not isinstance(usage, dict):
        return None
    inside, outside = usage.get("input_tokens_details"), usage.get("output_tokens_details")
    return Tokens(
        input_tokens=count(usage, "input_tokens"),
        cached_tokens=count(inside, "cached_tokens"),
        cache_write_tokens=count(inside, "cache_write_tokens"),
        output_tokens=count(usage, "output_tokens"),
        reasoning_tokens=count(outside, "reasoning_tokens"),
        total_tokens=count(usage, "total_tokens"),
    )


def count(fields: Json, name: str) -> int | None:
    """Return a count that can be one, else None."""
    value = fields.get(name) if isinstance(fields, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        return None
    return value


def _problem(response: Mapping[str, Json]) -> str:
    error, details = response.get("error"), response.get("incomplete_details")
    said = error.get("message") if isinstance(error, dict) else None
    why = details.get("reason") if isinstance(details, dict) else None
    found = said if isinstance(said, str) else why if isinstance(why, str) else ""
    return clean_text(found)[:500]


def _code(response: Mapping[str, Json]) -> str:
    error = response.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return clean_text(code)[:60] if isinstance(code, str) else ""
