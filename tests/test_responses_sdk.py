"""The official SDK asks the local server's Responses API, whole and streamed, with functions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from openai.types.responses import FunctionToolParam, Response, ResponseInputParam

from duplex.application.restaurant import application
from duplex.local.server import LocalServer
from duplex.protocols.model_values import Function
from duplex.protocols.responses import write_function
from duplex.values import Json
from gpt_live_voices import Voices

ASKS = "Hello, a table for two on August 7th at 7 p.m., under Maya, please."


def tools() -> list[FunctionToolParam]:
    return [
        write_function(
            Function(name=tool.name, description=tool.description, parameters=tool.parameters)
        )  # type: ignore[misc]
        for tool in application.tools
    ]


@pytest.fixture
async def server() -> AsyncIterator[LocalServer]:
    async with LocalServer(Voices(), api_key="right") as running:
        yield running


@pytest.fixture
async def client(server: LocalServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=server.url, api_key="right", max_retries=0) as made:
        yield made


def calls(response: Response) -> list[tuple[str, dict[str, Json]]]:
    return [
        (item.name, json.loads(item.arguments))
        for item in response.output
        if item.type == "function_call"
    ]


async def booked(client: AsyncOpenAI) -> Response:
    """Have a table booked through two functions; return the last response."""
    response = await client.responses.create(model="local", input=ASKS, tools=tools())
    outputs = ({"available": True}, {"reservation_created": True, "reservation_id": "R-001"})
    for wanted, output in zip(("check_availability", "create_reservation"), outputs, strict=True):
        (call,) = [item for item in response.output if item.type == "function_call"]
        assert call.name == wanted
        given: ResponseInputParam = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": json.dumps(output),
            }
        ]
        response = await client.responses.create(
            model="local", input=given, tools=tools(), previous_response_id=response.id
        )
    return response


async def test_a_response_is_whole_and_counts_its_tokens(client: AsyncOpenAI) -> None:
    response = await client.responses.create(model="local", input="Hello, a table, please.")
    assert response.status == "completed"
    assert "day" in response.output_text
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


async def test_functions_are_called_one_after_the_other_until_it_is_done(
    client: AsyncOpenAI,
) -> None:
    response = await client.responses.create(model="local", input=ASKS, tools=tools())
    slot = {"date": "2026-08-07", "time": "19:00", "party_size": 2}
    assert calls(response) == [("check_availability", slot)]
    last = await booked(client)
    assert last.output_text == "Your table for two is booked for August 7 at 7 p.m., under Maya."


async def test_the_same_work_is_never_done_twice_and_a_change_is_a_change(
    client: AsyncOpenAI,
) -> None:
    last = await booked(client)
    again = await client.responses.create(
        model="local", input="Is that done now?", tools=tools(), previous_response_id=last.id
    )
    assert calls(again) == []
    assert "is booked for August 7" in again.output_text
    change = await client.responses.create(
        model="local", input="No, make it eight p.m.", tools=tools(), previous_response_id=last.id
    )
    [(name, arguments)] = calls(change)
    assert (name, arguments["reservation_id"], arguments["time"]) == (
        "modify_reservation",
        "R-001",
        "20:00",
    )


@pytest.mark.parametrize("text", [ASKS, "Hello, a table, please."])
async def test_a_stream_ends_in_what_the_whole_response_says(
    client: AsyncOpenAI, text: str
) -> None:
    whole = await client.responses.create(model="local", input=text, tools=tools())
    async with client.responses.stream(model="local", input=text, tools=tools()) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert final.output_text == whole.output_text
    assert calls(final) == calls(whole)
    events = await client.responses.create(model="local", input=text, tools=tools(), stream=True)
    deltas = [event.delta async for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text


async def test_a_response_is_what_the_sdks_own_types_want(server: LocalServer) -> None:
    body = {"model": "local", "input": ASKS, "tools": tools()}
    async with httpx2.AsyncClient() as http:
        answered = await http.post(
            f"{server.url}/responses", json=body, headers={"Authorization": "Bearer right"}
        )
    Response.model_validate(answered.json(), strict=True)


@pytest.mark.parametrize(
    ("settings", "code", "param"),
    [
        ({"previous_response_id": "resp_x"}, "previous_response_not_found", "previous_response_id"),
        ({"input": [{"role": "robot", "content": "x"}]}, "invalid_value", "input[0].role"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "invalid_value", "input[0]"),
        ({"tools": [{"type": "web_search"}]}, "invalid_value", "tools[0].type"),
        (
            {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]},
            "invalid_value",
            "input",
        ),
    ],
)
async def test_what_cannot_be_answered_is_refused_with_its_place(
    client: AsyncOpenAI, settings: dict[str, Json], code: str, param: str
) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        await client.post(
            "/responses", cast_to=Response, body={"model": "local", "input": "x", **settings}
        )
    assert refused.value.code == code, refused.value
    assert refused.value.param == param


async def test_keys_browsers_and_long_bodies_are_turned_away(server: LocalServer) -> None:
    url = f"{server.url}/responses"
    key = {"Authorization": "Bearer right"}
    async with httpx2.AsyncClient() as http:
        asked = {
            401: await http.post(url, json={}, headers={"Authorization": "Bearer wrong"}),
            403: await http.post(url, json={}, headers={**key, "Origin": "http://evil.example"}),
            405: await http.put(url, json={}, headers=key),
            413: await http.post(url, content=b" " * (5 << 20), headers=key),
            400: await http.post(url, content=b"[1,2", headers=key),
        }
    assert {status: answer.status_code for status, answer in asked.items()} == {
        status: status for status in asked
    }
