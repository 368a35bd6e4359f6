"""Chat Completions, for servers that offer nothing else: the same values, an older wire.

Sans-io, the client's half only. It keeps no conversation on the server, so a request
always holds everything that was said. Reading never raises. ``models/client.py``
turns to it when a server has no Responses API.
"""

from __future__ import annotations

from duplex.protocols.gpt_live import Broken, clean_text, read_object
from duplex.protocols.model_values import (
    CALLS_LIMIT,
    TEXT_LIMIT,
    Answer,
    Ask,
    Call,
    Item,
    Message,
    Output,
    Status,
    Tokens,
)
from duplex.protocols.responses import count, write_shape
from duplex.protocols.strict_schema import strict_schema
from duplex.values import Json

PATH = "/chat/completions"
_ENDS: dict[str, Status] = {
    "stop": "completed",
    "tool_calls": "completed",
    "function_call": "completed",
    "length": "incomplete",
    "content_filter": "incomplete",
}


def request(ask: Ask) -> dict[str, Json]:
    """Return the body of ``POST /chat/completions``."""
    messages: list[Json] = []
    if ask.instructions:
        messages.append({"role": "system", "content": ask.instructions})
    _add(messages, ask.whole)
    body: dict[str, Json] = {"model": ask.model, "messages": messages}
    if ask.functions:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": function.name,
                    "description": function.description,
                    "parameters": strict_schema(function.parameters),
                },
            }
            for function in ask.functions
        ]
    if ask.must_call is not None:
        body["tool_choice"] = {"type": "function", "function": {"name": ask.must_call}}
    if ask.effort is not None:
        body["reasoning_effort"] = ask.effort
    if ask.max_output_tokens is not None:
        body["max_tokens"] = ask.max_output_tokens
    if ask.shape is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": write_shape(ask.shape)}
    return body


def _add(messages: list[Json], items: tuple[Item, ...]) -> None:
    """Append items; calls that follow each other belong to one assistant message."""
    calling: list[Json] | None = None
    for item in items:
        match item:
            case Message():
                role = "system" if item.role == "developer" else item.role
                messages.append({"role": role, "content": item.text})
                calling = None
            case Call():
                if calling is None:
                    calling = []
                    messages.append({"role": "assistant", "content": None, "tool_calls": calling})
                function: dict[str, Json] = {"name": item.name, "arguments": item.arguments}
                calling.append({"id": item.call_id, "type": "function", "function": function})
            case Output():
                messages.append(
                    {"role": "tool", "tool_call_id": item.call_id, "content": item.text}
                )
                calling = None


def read_answer(body: bytes | str) -> Answer | Broken:
    """Read one whole completion; never raises."""
    found = read_object(body)
    if isinstance(found, Broken):
        return found
    choices = found.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Broken(reason="the completion has no choices[0].message")
    identity = found.get("id")
    ended = choice.get("finish_reason")
    status = _ENDS.get(ended, "completed") if isinstance(ended, str) else "completed"
    said = message.get("content", message.get("refusal"))
    text = clean_text(said) if isinstance(said, str) else ""
    calls = _calls(message.get("tool_calls"))
    if isinstance(calls, Broken):
        return calls
    if len(text) > TEXT_LIMIT:
        return Broken(reason=f"the answer is longer than {TEXT_LIMIT} characters")
    return Answer(
        response_id=clean_text(identity)[:200] if isinstance(identity, str) else "",
        status=status,
        text=text.strip(),
        calls=calls if status == "completed" else (),
        tokens=_tokens(found.get("usage")),
        problem="" if status == "completed" else str(ended),
    )


def _calls(found: Json) -> tuple[Call, ...] | Broken:
    calls: list[Call] = []
    for one in found if isinstance(found, list) else []:
        function = one.get("function") if isinstance(one, dict) else None
        identity = one.get("id") if isinstance(one, dict) else None
        if not isinstance(function, dict) or not isinstance(identity, str):
            return Broken(reason="a tool call has no id or no function")
        name, arguments = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, str):
            return Broken(reason="a tool call has no name or no arguments")
        if len(arguments) > TEXT_LIMIT or len(calls) >= CALLS_LIMIT:
            return Broken(reason="there are too many tool calls, or too long ones")
        calls.append(
            Call(
                call_id=clean_text(identity)[:200],
                name=clean_text(name)[:200],
                arguments=clean_text(arguments),
            )
        )
    return tuple(calls)


def _tokens(usage: Json) -> Tokens | None:
    if not isinstance(usage, dict):
        return None
    return Tokens(
        input_tokens=count(usage, "prompt_tokens"),
        cached_tokens=count(usage.get("prompt_tokens_details"), "cached_tokens"),
        output_tokens=count(usage, "completion_tokens"),
        reasoning_tokens=count(usage.get("completion_tokens_details"), "reasoning_tokens"),
        total_tokens=count(usage, "total_tokens"),
    )
