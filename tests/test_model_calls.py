"""Whole calls in which models do the work or the thinking, in virtual time, on loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import duplex
from duplex.local.server import LocalServer
from duplex.options import make
from duplex.results import schema
from duplex.runner import Finished, Runner
from duplex.values import Json
from fake_engines import Parrot, speaking
from fake_models import Asked, FakeModels, Reply, error, response, serving
from gpt_live_voices import Voices

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
SLOT: dict[str, Json] = {"date": "2026-08-07", "time": "19:00", "party_size": 2}


@pytest.fixture(autouse=True)
def parrot() -> Iterator[Parrot]:
    with speaking(Parrot()) as made:
        yield made


def lines(asked: Asked) -> list[tuple[str, str]]:
    """The conversation a model was sent, as (role or kind, text)."""
    out = []
    items = asked.body["input"]
    assert isinstance(items, list)
    for item in items:
        assert isinstance(item, dict)
        if item["type"] == "message":
            content = item["content"]
            assert isinstance(content, list)
            assert isinstance(content[0], dict)
            out.append((str(item["role"]), str(content[0]["text"])))
        else:
            out.append((str(item["type"]), str(item.get("output", item.get("arguments")))))
    return out


class People:
    """A model server with a caller, a host and a worker, each a few rules over words."""

    def __init__(self) -> None:
        self.numbers = 0

    def __call__(self, asked: Asked) -> Reply:
        self.numbers += 1
        name = f"resp_{self.numbers}"
        make_reply = {"caller": self.caller, "host": self.host, "worker": self.worker}
        return make_reply[str(asked.body["model"])](lines(asked), name)

    def caller(self, said: list[tuple[str, str]], name: str) -> Reply:
        last = said[-1][1].lower()
        reply: dict[str, Json] = {"say": "", "done": [], "finish": "no"}
        if "what name" in last:
            reply |= {"say": "For two people, under Maya.", "done": ["give_name_and_party"]}
        elif "what time" in last:
            reply |= {"say": "At seven p.m., please."}
        elif "is booked" in last:
            reply |= {"say": "Perfect, thank you. Goodbye.", "finish": "completed"}
        return response(calls=[("speak", reply)], name=name)

    def host(self, said: list[tuple[str, str]], name: str) -> Reply:
        heard = " ".join(text for role, text in said if role == "user").lower()
        last = said[-1][1]
        reply: dict[str, Json] = {"say": "", "hand_over": False}
        if last.startswith("[The caller is on the line"):
            reply |= {"say": "Welcome to the restaurant. How can I help?"}
        elif last.startswith("[What came"):
            reply |= {"say": last.partition("handed over: ")[2].rstrip("]")}
        elif "maya" not in heard:
            reply |= {"say": "What name shall I put it under?"}
        elif "seven p.m." not in heard:
            reply |= {"say": "And what time would you like?"}
        elif "goodbye" in last.lower():
            reply |= {"say": "Goodbye."}
        elif "handed the work over" not in " ".join(text for _, text in said):
            reply |= {"say": "One moment, please.", "hand_over": True}
        return response(calls=[("speak", reply)], name=name)

    def worker(self, said: list[tuple[str, str]], name: str) -> Reply:
        if said[-1][0] != "function_call_output":
            calls: list[tuple[str, Json]] = [
                ("check_availability", {**SLOT, "seating": None}),
                ("create_reservation", {**SLOT, "seating": None, "guest_name": "Maya"}),
            ]
            return response(calls=calls, name=name)
        return response("Your table for two is booked for August 7 at 7 p.m.", name=name)


def hold(out: Path, **options: object) -> Finished:
    return duplex.run(scenario=["restaurant_booking_complete"], clock="virtual", out=out, **options)


def events(finished: Finished, *kinds: str) -> list[dict[str, Json]]:
    (path,) = (finished.folder / "events").glob("*.jsonl")
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [event for event in found if event["type"] in kinds]


def only(finished: Finished) -> schema.Result:
    (result,) = finished.run.results
    return result


# -- the backend ------------------------------------------------------------


def test_a_model_does_the_work_with_parallel_calls_and_its_tokens_count(tmp_path: Path) -> None:
    with serving(People()) as fake:
        finished = hold(tmp_path, backend_url=fake.url, backend_model="worker")
    result = only(finished)
    assert result.status == "passed", result.assessment
    assert result.metrics.task.tool_accuracy == 1.0
    started = events(finished, "tool.started")
    assert len({event["at"] for event in started}) == 1, "both calls of a response run at once"
    runs = events(finished, "run.started", "run.ended")
    assert [run["type"] for run in runs] == ["run.started", "run.ended"] * 2
    assert runs[2]["previous_run_id"] == runs[0]["run_id"]
    backend = result.metrics.consumption.backend
    assert backend.total_tokens == 2 * 20
    assert finished.run.run.configuration.backend_model == "worker"
    second = fake.asked[1].body
    assert second["previous_response_id"] == "resp_1"
    assert [item["type"] for item in second["input"]] == ["function_call_output"] * 2  # type: ignore[union-attr, index, call-overload]


def test_arguments_are_checked_before_anything_runs(tmp_path: Path) -> None:
    class Careless(People):
        def worker(self, said: list[tuple[str, str]], name: str) -> Reply:
            if said[-1][0] != "function_call_output":
                wrong: list[tuple[str, Json]] = [
                    ("create_reservation", {**SLOT, "party_size": "2", "guest_name": "Maya"}),
                    ("create_reservation", "{not json"),
                    ("drop_tables", {}),
                ]
                return response(calls=wrong, name=name)
            return response("I could not do that.", name=name)

    with serving(Careless()) as fake:
        finished = hold(
            tmp_path, backend_url=fake.url, backend_model="worker", max_duration_seconds=45
        )
    ended = events(finished, "tool.ended")
    assert [event["status"] for event in ended] == ["failed"] * 3
    assert sorted(str(event["error"]).split(":")[0] for event in ended) == [
        "arguments.party_size",
        "no tool named drop_tables",
        "tool_args_error",
    ]
    assert [event["state"] for event in events(finished, "state")] == [{}]
    assert only(finished).status == "failed"


def test_calls_of_a_discarded_response_never_run(tmp_path: Path) -> None:
    status = "incomplete"

    class Breaking(People):
        def worker(self, said: list[tuple[str, str]], name: str) -> Reply:
            calls: list[tuple[str, Json]] = [("create_reservation", SLOT)]
            return response(calls=calls, name=name, status=status)

    with serving(Breaking()) as fake:
        finished = hold(
            tmp_path, backend_url=fake.url, backend_model="worker", max_duration_seconds=45
        )
    assert events(finished, "tool.started") == []
    faults = events(finished, "fault")
    assert {(fault["stage"], fault["code"]) for fault in faults} == {
        ("backend", f"response_{status}")
    }
    assert {run["outcome"] for run in events(finished, "run.ended")} == {status}
    assert {closed["ok"] for closed in events(finished, "delegation.closed")} == {False}


def test_a_rate_limit_is_waited_out_and_the_call_is_as_if_it_had_not_been(tmp_path: Path) -> None:
    class Busy(People):
        limited = 2

        def __call__(self, asked: Asked) -> Reply:
            if self.limited:
                self.limited -= 1
                return error(429, "rate_limit_exceeded", retry_after_ms="20")
            return super().__call__(asked)

    calls = []
    for name, people in (("free", People()), ("busy", Busy())):
        with serving(people) as fake:
            finished = hold(tmp_path / name, backend_url=fake.url, backend_model="worker")
        assert only(finished).status == "passed"
        calls.append(finished)
    waited = events(calls[1], "backend.waited")
    assert [event["status"] for event in waited] == [429, 429]
    audio = [next(one.folder.glob("audio/*/conversation.wav")).read_bytes() for one in calls]
    assert audio[0] == audio[1], "virtual time stands still while a server makes us wait"


def test_a_model_that_cannot_be_asked_is_never_the_agents_fault(tmp_path: Path) -> None:
    with serving(lambda asked: error(401, "invalid_api_key", "who are you")) as fake:
        finished = hold(tmp_path, backend_url=fake.url, backend_model="worker")
    result = only(finished)
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert result.error.stage == "backend"
    assert "who are you" in result.error.message


async def test_the_local_servers_own_model_does_the_work(tmp_path: Path) -> None:
    async with LocalServer(Voices()) as server:
        options = make(
            {
                "scenario": ["restaurant_booking_complete"],
                "clock": "virtual",
                "out": tmp_path,
                "backend_url": server.url,
                "backend_model": "local",
            }
        )
        finished = await Runner(options).run()
    assert only(finished).status == "passed", only(finished).assessment
    names = [event["name"] for event in events(finished, "tool.started")]
    assert names == ["check_availability", "create_reservation"]


# -- the brains -------------------------------------------------------------


def test_models_think_for_both_voices_and_everything_is_still_spoken(
    tmp_path: Path, parrot: Parrot
) -> None:
    with serving(People()) as fake:
        finished = hold(
            tmp_path,
            brain_url=fake.url,
            brain_model="host",
            simulator_brain_model="caller",
            backend_url=fake.url,
            backend_model="worker",
        )
    assert only(finished).status == "passed", only(finished).assessment
    assert "For two people, under Maya." in parrot.said
    assert "For two people, under Maya." in parrot.heard
    done = events(finished, "agenda")
    assert {"item_id", "status"} <= set(done[0])
    assert events(finished, "caller.finished")[0]["outcome"] == "completed"
    for asked in fake.asked:
        if asked.body["model"] == "host":
            assert "duplex-desk" not in str(asked.body["instructions"])
        if asked.body["model"] == "caller":
            assert "check_availability" not in json.dumps(asked.body), "a caller knows no tools"


def test_the_same_models_make_the_same_bytes_however_slow_they_are(tmp_path: Path) -> None:
    class Slow(People):
        def __call__(self, asked: Asked) -> Reply:
            time.sleep(0.02 * (self.numbers % 3))
            return super().__call__(asked)

    heard = []
    for name, people in (("fast", People()), ("slow", Slow())):
        with serving(people) as fake:
            finished = hold(
                tmp_path / name,
                brain_url=fake.url,
                brain_model="host",
                simulator_brain_model="caller",
            )
        heard.append(next(finished.folder.glob("audio/*/conversation.wav")).read_bytes())
    assert heard[0] == heard[1]


@pytest.mark.parametrize(
    ("side", "stage"), [("brain_model", "backend"), ("simulator_brain_model", "caller_simulation")]
)
def test_a_brain_that_cannot_think_ends_the_call_as_nobodys_failure(
    tmp_path: Path, side: str, stage: str
) -> None:
    with serving(lambda asked: error(403, "forbidden", "not you")) as fake:
        finished = hold(tmp_path, brain_url=fake.url, **{side: "x"})
    result = only(finished)
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert result.error.stage == stage


# -- delegation to the session's own backend --------------------------------


def test_a_session_may_have_a_backend_of_its_own(tmp_path: Path) -> None:
    finished = hold(tmp_path, delegation="responses")
    result = only(finished)
    assert result.status == "passed", result.assessment
    assert [one["target"] for one in events(finished, "delegation.created")] == ["responses"]
    checks = {check.id: check.status for check in result.assessment.checks}
    assert checks["delegation_policy"] == "passed"
    assert result.metrics.audio.floor_hold_silence_ms.cumulative
    assert finished.run.run.configuration.assistant_mode == "responses"
    assert finished.run.run.configuration.backend_model == "local"


def test_the_rule_model_works_off_any_application_by_its_recipe(tmp_path: Path) -> None:
    finished = duplex.run(
        clock="virtual",
        out=tmp_path,
        delegation="responses",
        application=f"{EXAMPLES / 'bicycle_shop.py'}:application",
        data=EXAMPLES / "bicycle_shop.scenarios.json",
    )
    result = only(finished)
    assert result.status == "passed", result.assessment
    assert result.metrics.task.tool_calls.actual == 3, "refused once, then another day or time"
    assert result.metrics.task.delegations.actual == 2


def test_the_sessions_backend_may_be_a_model_elsewhere(tmp_path: Path) -> None:
    with serving(People()) as fake:
        finished = hold(
            tmp_path, delegation="responses", backend_url=fake.url, backend_model="worker"
        )
    assert only(finished).status == "passed", only(finished).assessment
    assert len({event["at"] for event in events(finished, "tool.started")}) == 1


def test_a_sessions_model_that_cannot_be_asked_is_never_the_agents_fault(tmp_path: Path) -> None:
    with serving(lambda asked: error(401, "invalid_api_key", "who are you")) as fake:
        finished = hold(
            tmp_path, delegation="responses", backend_url=fake.url, backend_model="worker"
        )
    result = only(finished)
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert result.error.stage == "backend"
    assert "who are you" in result.error.message


def test_faked_servers_see_no_key_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key-0123456789")
    monkeypatch.setenv("DUPLEX_BACKEND_API_KEY", "own-key-of-this-server")
    fake: FakeModels
    with serving(lambda asked: error(401, "no", f"bad {asked.headers['authorization']}")) as fake:
        finished = hold(tmp_path, backend_url=fake.url, backend_model="worker")
    assert fake.asked[0].headers["authorization"] == "Bearer own-key-of-this-server"
    text = "".join(path.read_text() for path in finished.folder.rglob("*.json*") if path.is_file())
    assert "own-key-of-this-server" not in text
    assert "very-secret" not in text
