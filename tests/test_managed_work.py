"""A session whose peer runs the backend: its events, our functions, and what is void."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.application.tools import Tool
from duplex.application.workbench import Workbench
from duplex.clock import VirtualClock
from duplex.local.managed_backend import Responder, TellNote
from duplex.local.server import LocalServer
from duplex.participants.live import LiveSession
from duplex.participants.live_reading import Reading
from duplex.participants.managed import OPEN_LIMIT, ManagedWork
from duplex.protocols.gpt_live import AudioFormat
from duplex.protocols.gpt_live_client import BackendEvent, ClientCodec, Delegated, LiveConfig
from duplex.protocols.model_values import Answer, Ask, Call, Tokens
from duplex.values import Happening, Json, RemoteFault, Side
from gpt_live_peer import BareClient
from gpt_live_voices import Voices
from live_bench import LiveBench

RATE = 24_000


def look(state: dict[str, Json], day: str) -> Json:
    state["looked"] = day
    return {"free": True}


TOOL = Tool(
    name="look",
    description="Looks.",
    parameters={"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]},
    run=look,
)


class Bench:
    """Managed work with everything it told and sent, driven by hand."""

    def __init__(self) -> None:
        self.clock = VirtualClock(RATE)
        self.reading = Reading(Side.ASSISTANT, "gpt-live")
        self.sent: list[dict[str, Json]] = []
        codec = ClientCodec(AudioFormat())
        self.work = ManagedWork(Workbench((TOOL,)), self.reading, self.clock, codec, self._send)

    def _send(self, text: str) -> None:
        self.sent.append(json.loads(text))

    def delegated(self, name: str, response: str | None = None) -> None:
        self.work.delegated(
            Delegated(delegation_id=name, target="responses", offset_ms=0, response_id=response)
        )

    def event(self, owner: str | None, kind: str, **fields: Json) -> None:
        self.work.take(BackendEvent(delegation_id=owner, event={"type": kind, **fields}))

    def begin(self, owner: str | None, response: str) -> None:
        self.event(owner, "response.created", response={"id": response})

    def call(self, owner: str | None, call_id: str, day: Json = "x") -> None:
        item: Json = {
            "type": "function_call",
            "call_id": call_id,
            "name": "look",
            "arguments": json.dumps({"day": day}),
            "status": "completed",
        }
        self.event(owner, "response.output_item.done", item=item)

    def end(self, owner: str | None, response: str, kind: str = "completed", **more: Json) -> None:
        snapshot: Json = {"id": response, "output": [], **more}
        self.event(owner, f"response.{kind}", response=snapshot)

    async def settle(self, ms: int = 1_000) -> None:
        await self.clock.advance(self.clock.position + ms * RATE // 1000)

    def types(self) -> list[str]:
        return [str(one["type"]) for one in self.sent]

    def told(self) -> list[tuple[str, dict[str, Json]]]:
        return [
            (item.type, dict(item.fields))
            for item in self.reading.collect()
            if isinstance(item, Happening)
        ]


async def test_parallel_calls_run_when_their_response_is_over_and_are_answered_at_once() -> None:
    bench = Bench()
    bench.delegated("d", "r1")
    bench.begin("d", "r1")
    bench.call("d", "c1")
    bench.call("d", "c2")
    await bench.settle()
    assert bench.sent == [], "nothing runs before its response has completed"
    bench.end("d", "r1")
    await bench.settle()
    assert bench.types() == ["response.item.create"] * 2 + ["response.create"]
    items = [one["item"] for one in bench.sent[:2]]
    assert [item["call_id"] for item in items if isinstance(item, dict)] == ["c1", "c2"]
    kinds = [kind for kind, _ in bench.told()]
    assert kinds.count("tool.started") == 2
    assert kinds[:2] == ["run.started", "run.ended"]


async def test_the_backend_goes_on_only_when_the_whole_session_owes_nothing() -> None:
    bench = Bench()
    for owner, response in (("d", "r1"), ("e", "r2")):
        bench.delegated(owner)
        bench.begin(owner, response)
        bench.call(owner, f"c-{owner}")
    bench.end("d", "r1")
    await bench.settle()
    assert bench.types() == ["response.item.create"], "another response is still running"
    bench.end("e", "r2")
    await bench.settle()
    assert bench.types() == ["response.item.create"] * 2 + ["response.create"]


@pytest.mark.parametrize("kind", ["failed", "incomplete"])
async def test_a_discarded_response_takes_its_calls_back(kind: str) -> None:
    bench = Bench()
    bench.delegated("d")
    bench.begin("d", "r1")
    bench.call("d", "c1")
    bench.end("d", "r1", kind, error={"message": "no room"})
    await bench.settle()
    assert bench.sent == []
    items = bench.reading.collect()
    (fault,) = [item for item in items if isinstance(item, RemoteFault)]
    assert (fault.stage, fault.code, fault.fatal) == ("backend", f"response_{kind}", False)
    closed = [i.fields for i in items if isinstance(i, Happening) and i.type == "delegation.closed"]
    assert closed == [{"delegation_id": "d", "ok": False}]


async def test_a_delegation_may_be_tried_again_after_a_failure() -> None:
    bench = Bench()
    bench.delegated("d")
    bench.begin("d", "r1")
    bench.end("d", "r1", "failed")
    bench.begin("d", "r2")
    bench.end("d", "r2")
    told = bench.told()
    assert [f["ok"] for kind, f in told if kind == "delegation.closed"] == [False, True]
    assert [f["previous_run_id"] for kind, f in told if kind == "run.started"] == [None, "r1"]


async def test_words_of_the_backend_and_its_tokens_are_told_once_per_response() -> None:
    bench = Bench()
    bench.delegated("d")
    usage: Json = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    for _ in range(2):
        bench.begin("d", "r1")
        part: Json = {"type": "output_text", "text": "It is free."}
        item: Json = {"type": "message", "role": "assistant", "content": [part]}
        bench.event("d", "response.output_item.done", item=item)
        bench.end("d", "r1", usage=usage)
    told = bench.told()
    assert [f["total_tokens"] for kind, f in told if kind == "backend.usage"] == [7]
    assert ("commentary", {"delegation_id": "d", "text": "It is free."}) in told


async def test_a_response_without_a_delegation_is_worked_off_and_closes_none() -> None:
    bench = Bench()
    bench.begin(None, "r1")
    bench.call(None, "c1")
    bench.end(None, "r1")
    await bench.settle()
    assert bench.types() == ["response.item.create", "response.create"]
    bench.begin(None, "r2")
    bench.end(None, "r2")
    assert "delegation.closed" not in [kind for kind, _ in bench.told()]


async def test_what_is_still_open_at_the_end_is_closed_as_not_done() -> None:
    bench = Bench()
    bench.delegated("d")
    bench.begin("d", "r1")
    bench.call("d", "c1")
    bench.end("d", "r1")
    bench.delegated("e")
    bench.begin("e", "r2")
    await bench.work.stop()
    await bench.work.stop()
    told = bench.told()
    assert [f for kind, f in told if kind == "delegation.closed"] == [
        {"delegation_id": "d", "ok": False},
        {"delegation_id": "e", "ok": False},
    ]
    assert [f["outcome"] for kind, f in told if kind == "run.ended"] == ["completed", "failed"]
    await bench.settle()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KINDS = st.sampled_from(
    [
        "response.created",
        "response.output_item.done",
        "response.completed",
        "response.failed",
        "response.incomplete",
        "error",
        "response.in_progress",
    ]
)
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "function_call", "reasoning"]) | JSON,
        "call_id": st.text(max_size=4) | JSON,
        "name": st.sampled_from(["look", "other"]) | JSON,
        "arguments": st.sampled_from(['{"day":"x"}', "{", "[]", "null", '{"day":NaN}']) | JSON,
        "content": st.lists(JSON, max_size=2) | JSON,
        "status": st.sampled_from(["completed", "in_progress"]) | JSON,
    },
)
EVENTS = st.fixed_dictionaries(
    {"type": KINDS},
    optional={
        "response": st.fixed_dictionaries(
            {},
            optional={
                "id": st.sampled_from(["r1", "r2", ""]) | JSON,
                "output": st.lists(ITEMS, max_size=2) | JSON,
                "usage": JSON,
                "error": JSON,
            },
        )
        | JSON,
        "item": ITEMS | JSON,
        "message": JSON,
    },
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["d", "e", None]), EVENTS), max_size=12))
async def test_no_stream_of_backend_events_breaks_a_session(
    stream: list[tuple[str | None, dict[str, Json]]],
) -> None:
    bench = Bench()
    bench.work.begin()
    bench.delegated("d")
    for owner, event in stream:
        bench.work.take(BackendEvent(delegation_id=owner, event=event))
    await bench.settle()
    await bench.work.stop()
    told = bench.told()
    ids = [fields["run_id"] for kind, fields in told if kind in ("run.started", "run.ended")]
    assert len(ids) % 2 == 0, "every run that began has ended"
    started = [f["call_id"] for kind, f in told if kind == "tool.started"]
    ended = [f["call_id"] for kind, f in told if kind == "tool.ended"]
    assert sorted(map(str, started)) == sorted(map(str, ended))
    await bench.settle()


def test_more_delegations_than_can_be_followed_are_a_fault() -> None:
    bench = Bench()
    for number in range(OPEN_LIMIT + 3):
        bench.delegated(f"d{number}")
    faults = [item for item in bench.reading.collect() if isinstance(item, RemoteFault)]
    assert {fault.code for fault in faults} == {"too_many_delegations"}


# -- against the local server -----------------------------------------------


def responding(*answers: tuple[str, Sequence[Call], str]) -> Responder:
    left = list(answers)

    async def respond(ask: Ask, response_id: str, note: TellNote) -> Answer:
        status, calls, text = left.pop(0)
        return Answer(
            response_id=response_id,
            status=status,  # type: ignore[arg-type]
            calls=tuple(calls),
            text=text,
            tokens=Tokens(input_tokens=1, output_tokens=1, total_tokens=2),
        )

    return respond


CALLS = (
    Call(call_id="c1", name="look", arguments='{"day":"x"}'),
    Call(call_id="c2", name="look", arguments='{"day":"y"}'),
)
MANAGED: dict[str, Json] = {"type": "responses", "responses": {"model": "m"}}


async def held(respond: Responder, ms: int = 5_000) -> tuple[LiveBench, Voices]:
    voices = Voices()
    server = LocalServer(voices, respond=respond)
    session = LiveSession(
        side=Side.ASSISTANT,
        connect=server.connector(),
        config=LiveConfig(delegation=MANAGED),
        provider="local",
        lock_step=True,
        opening="delegate this",
        bench=Workbench((TOOL,)),
    )
    bench = LiveBench(session, VirtualClock(RATE))
    await bench.start()
    await bench.run(ms)
    await bench.finish()
    return bench, voices


async def test_a_whole_delegation_over_the_wire() -> None:
    bench, voices = await held(responding(("completed", CALLS, ""), ("completed", (), "Free.")))
    assert bench.faults() == []
    assert [one["target"] for one in bench.told("delegation.created")] == ["responses"]
    assert [one["status"] for one in bench.told("tool.ended")] == ["completed"] * 2
    assert [one["outcome"] for one in bench.told("run.ended")] == ["completed"] * 2
    assert len(bench.told("backend.usage")) == 2
    assert bench.told("delegation.closed")[0]["ok"] is True
    kind, text, owner = voices.made[0].told[-1]
    assert (kind, text) == ("commentary", "Free.")
    assert owner == bench.told("delegation.created")[0]["delegation_id"]


async def test_a_backend_that_fails_is_told_and_the_voice_still_speaks() -> None:
    bench, voices = await held(responding(("failed", CALLS, "")))
    assert bench.faults() == [("backend", "response_failed", False)]
    assert bench.told("tool.started") == []
    assert "could not be done" in voices.made[0].told[-1][1]


async def test_work_handed_over_meanwhile_is_done_afterwards() -> None:
    asked: list[Ask] = []

    async def respond(ask: Ask, response_id: str, note: TellNote) -> Answer:
        asked.append(ask)
        text = f"Answer {len(asked)}."
        return Answer(response_id=response_id, status="completed", text=text)

    clock = VirtualClock(RATE)
    voices = Voices()
    server = LocalServer(voices, respond=respond)
    client = BareClient(await server.connector()(clock), clock)
    await client.start(delegation=MANAGED)
    for words in ("delegate this", "delegate that"):
        await client.send("session.commentary.append", content=words, delegation_id=None)
    await client.push(3_000)
    created = [event["delegation"] for event in client.all("session.delegation.created")]
    ids = [one["id"] for one in created if isinstance(one, dict)]
    assert len(set(ids)) == 2
    assert voices.made[0].told[-2:] == [
        ("commentary", "Answer 1.", ids[0]),
        ("commentary", "Answer 2.", ids[1]),
    ]
    order = [event["delegation_id"] for event in client.all("response.event")]
    assert order == sorted(order, key=ids.index), "one after the other"
    assert asked[1].history[: len(asked[0].items)] == asked[0].items
    client.task.cancel()


async def opened(respond: Responder) -> BareClient:
    """A bare client whose session's backend has just called two functions."""
    clock = VirtualClock(RATE)
    server = LocalServer(Voices(), respond=respond)
    client = BareClient(await server.connector()(clock), clock)
    await client.start(delegation=MANAGED)
    await client.send("session.commentary.append", content="delegate", delegation_id=None)
    await client.push(2_000)
    return client


async def test_outputs_are_required_before_the_backend_goes_on() -> None:
    client = await opened(responding(("completed", CALLS, ""), ("completed", (), "Free.")))
    await client.send("response.create")
    assert client.all("error")[-1]["error"]["code"] == "function_call_outputs_required"  # type: ignore[index, call-overload]
    output: dict[str, Json] = {"type": "function_call_output", "output": "{}"}
    await client.send("response.item.create", item={**output, "call_id": "c1"})
    await client.send("response.create")
    assert len(client.all("error")) == 2, "one of two outputs is not enough"
    await client.send("response.item.create", item={**output, "call_id": "c1"})
    await client.send("response.item.create", item={**output, "call_id": "nobody's"})
    assert len(client.all("error")) == 4, "twice, and for no call"
    await client.send("response.item.create", item={**output, "call_id": "c2"})
    await client.send("response.create")
    await client.send("response.create")
    assert client.all("error")[-1]["error"]["code"] == "response_already_active"  # type: ignore[index, call-overload]
    await client.push(2_000)
    kinds = [event["event"]["type"] for event in client.all("response.event")]  # type: ignore[index, call-overload]
    assert kinds.count("response.completed") == 2
    client.task.cancel()


async def test_an_output_of_a_discarded_call_is_refused() -> None:
    client = await opened(responding(("failed", CALLS, "")))
    item: Json = {"type": "function_call_output", "call_id": "c1", "output": "{}"}
    await client.send("response.item.create", item=item)
    error = client.all("error")[-1]["error"]
    assert isinstance(error, dict)
    assert error["param"] == "item.call_id"
    client.task.cancel()


async def test_settings_of_the_backend_may_change_and_its_kind_may_not() -> None:
    client = await opened(responding(("completed", (), "x")))
    change: Json = {"type": "responses", "responses": {"instructions": "new"}}
    await client.send("session.update", session={"delegation": change})
    session = client.all("session.updated")[-1]["session"]
    assert isinstance(session, dict)
    assert session["delegation"] == {
        "type": "responses",
        "responses": {"model": "m", "instructions": "new"},
    }
    await client.send("session.update", session={"delegation": {"type": "client"}})
    await client.send("session.commentary.append", content="x", delegation_id="any")
    assert [e["error"]["param"] for e in client.all("error")] == [  # type: ignore[index, call-overload]
        "session.delegation.type",
        "delegation_id",
    ]
    client.task.cancel()
