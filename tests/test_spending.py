"""What a run may cost is said before it begins, and a limit holds before and between calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from booking_call import booking_call
from duplex import prices, spending
from duplex.cli import app
from duplex.errors import InputError
from duplex.local.server import LocalServer
from duplex.models.meter import Meter
from duplex.options import RunOptions, make
from duplex.prices import Price, Prices
from duplex.protocols.model_values import Tokens
from duplex.recording import Recording
from duplex.results import exit_code
from duplex.runner import Runner
from duplex.spending import Spending, parts
from duplex.values import Json, Side
from fake_engines import Parrot, speaking
from gpt_live_voices import Voices

TREE = Path(__file__).parents[1]
ELSEWHERE = "https://models.example/v1"


@pytest.fixture(autouse=True)
def _openai_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def options(**values: object) -> RunOptions:
    return make({"max_duration_seconds": 90.0, **values})


def spend(calls: int = 4, meter: Meter | None = None, **values: object) -> Spending:
    return Spending(options(**values), calls, meter or Meter())


def parts_of(plan: Spending) -> list[dict[str, Json]]:
    found = plan.as_json()["parts"]
    assert isinstance(found, list)
    return [part for part in found if isinstance(part, dict)]


# -- prices -----------------------------------------------------------------


def test_the_table_is_data_with_a_date_and_speaks_of_its_own_host_only() -> None:
    table = prices.noted()
    assert table["noted"] == "2026-11-30"
    known = Prices(said={}).of("gpt-live-1", "api.openai.com")
    assert known is not None
    assert (known.per_minute, known.source) == (0.05, "noted 2026-11-30")
    assert Prices(said={}).of("gpt-live-1", "models.example") is None
    assert Prices(said={}).of("gpt-5", "api.openai.com") is None


def test_prices_that_are_said_go_before_noted_ones() -> None:
    said = prices.parse(["gpt-live-1=0.02/min", "gpt-5=1.25,10/1M", "own/m:1=2,4,0.5/1M"])
    found = said.of("gpt-live-1", "api.openai.com")
    assert found == Price(per_minute=0.02)
    five, own = said.of("gpt-5", "anywhere"), said.of("own/m:1", "anywhere")
    assert five is not None
    assert own is not None
    assert five.of_tokens(1_000_000, 100_000, 500_000) == pytest.approx(2.25)
    assert own.of_tokens(1_000_000, 100_000, 500_000) == pytest.approx(1.65)
    assert own.of_minutes(3) is None


@pytest.mark.parametrize(
    "text",
    ["gpt-5", "gpt-5=1", "gpt-5=1/h", "gpt-5=1,2/min", "gpt-5=1/1M", "a=1,2,3,4/1M", "a=-1/min"],
)
def test_a_price_that_cannot_be_read_is_refused_with_its_form(text: str) -> None:
    with pytest.raises(InputError, match="want MODEL=USD/min"):
        make({"price": (text,)})


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=30))
def test_no_price_breaks_its_reader(text: str) -> None:
    try:
        found = prices.parse([text])
    except InputError:
        return
    assert found.said


# -- what costs -------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"assistant": "gpt-live", "endpoint": "http://127.0.0.1:8123/v1"},
        {"assistant": "gpt-live", "endpoint": "ws://[::1]:8123/v1"},
        {"assistant": "realtime", "endpoint": "local"},
        {"brain_model": "m", "brain_url": "http://localhost:8000/v1"},
        {"assistant": "ws://agent.example/pcm"},
    ],
)
def test_what_stays_on_this_machine_costs_nothing(values: dict[str, object]) -> None:
    plan = Spending(options(**values, max_cost_usd=0.0), 4, Meter())
    plan.refuse()
    assert list(plan.lines()) == []
    assert not plan.exhausted
    assert plan.as_json()["estimated_usd"] == 0


def test_every_model_that_leaves_this_machine_is_a_part() -> None:
    found = parts(
        options(
            assistant="gpt-live",
            delegation="responses",
            backend_model="b",
            caller="gpt-live",
            simulator_backend_model="sb",
            judge_model="j",
            judge_url=ELSEWHERE,
            completion_model="c",
            completion_url=ELSEWHERE,
        )
    )
    assert [(one.who, one.model, one.host) for one in found] == [
        ("caller session", "gpt-live-1", "api.openai.com"),
        ("caller backend", "sb", "api.openai.com"),
        ("assistant session", "gpt-live-1", "api.openai.com"),
        ("assistant backend", "b", "api.openai.com"),
        ("completion observer", "c", "models.example"),
        ("judge", "j", "models.example"),
    ]
    local = parts(options(backend_model="b", backend_url=ELSEWHERE, brain_model="n"))
    assert [(one.who, one.host) for one in local] == [
        ("backend", "models.example"),
        ("assistant brain", "api.openai.com"),
    ]


# -- before the first call --------------------------------------------------


def test_the_estimate_is_calls_times_minutes_times_price() -> None:
    plan = spend(assistant="gpt-live", caller="gpt-live")
    assert plan.estimated == pytest.approx(4 * 1.5 * 0.05 * 2)
    first, *rest = plan.lines()
    assert first == "cost: at most $0.60 for what can be told beforehand"
    assert rest == [
        f"  {side} session gpt-live-1 at api.openai.com: 4 calls of at most 1.5 min at $0.05/min, "
        "$0.30"
        for side in ("caller", "assistant")
    ]


def test_calls_that_may_be_held_again_are_in_the_estimate() -> None:
    plan = spend(assistant="gpt-live", silent_retries=2)
    assert plan.estimated == pytest.approx(4 * 3 * 1.5 * 0.05)
    assert "4 calls, each up to 3 times, of at most 1.5 min" in list(plan.lines())[1]


def test_an_unknown_price_is_said_and_never_guessed() -> None:
    plan = spend(assistant="realtime")
    assert plan.estimated is None
    assert list(plan.lines())[1].endswith("its price is not known (--price says it)")
    told = plan.as_json()
    assert told["estimated_usd"] is None
    (part,) = parts_of(plan)
    assert part["price"] is None
    assert part["unknown"] == {
        "estimated_usd": "its price is not known (--price says it)",
        "used_usd": "its price is not known (--price says it)",
    }


def test_a_limit_wants_a_price_for_everything() -> None:
    with pytest.raises(InputError, match=r"nobody knows what assistant session gpt-realtime-2"):
        spend(assistant="realtime", max_cost_usd=1.0).refuse()
    spend(assistant="realtime", max_cost_usd=1.0, price=("gpt-realtime-2=4,16/1M",)).refuse()


def test_a_run_that_may_cost_more_than_its_limit_is_refused() -> None:
    spend(assistant="gpt-live", max_cost_usd=0.3).refuse()
    with pytest.raises(InputError, match=r"max-cost-usd 0.29: the run may cost \$0.30, 4 calls of"):
        spend(assistant="gpt-live", max_cost_usd=0.29).refuse()


def test_what_workers_use_of_a_model_is_unknown() -> None:
    judged = {"judge_model": "j", "judge_url": ELSEWHERE, "price": ("j=1,1/1M",), "workers": 2}
    plan = Spending(options(**judged), 4, Meter())
    (part,) = parts_of(plan)
    unknown = part["unknown"]
    assert isinstance(unknown, dict)
    assert unknown["used_usd"] == "what other processes use of a model is not summed"


def test_the_command_refuses_before_anything_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-at-all")
    command = ["run", "--assistant", "gpt-live", "--out", str(tmp_path / "runs")]
    command += ["--data", str(TREE / "scenarios"), "--max-cost-usd", "0.01"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "duplex: max-cost-usd 0.01: the run may cost $" in done.stderr
    assert not (tmp_path / "runs").exists()


# -- what was used ----------------------------------------------------------


_OF_COST = ("session.started", "session.usage", "backend.usage")


def recorded(tmp_path: Path, *, seconds: float, final: bool, tokens: list[int | None]) -> Recording:
    log = booking_call()
    theirs = {event.seq for event in log.events() if event.type in _OF_COST}
    log.add(100, Side.ASSISTANT, "session.started", session_id="s", model="m")
    for number, count in enumerate(tokens):
        fields: dict[str, Json] = {"response_id": f"r{number // 2}", "output_tokens": 10}
        log.add(200, Side.ASSISTANT, "backend.usage", **fields, input_tokens=count, cached_tokens=5)
    log.add(300, Side.ASSISTANT, "session.usage", seconds=seconds, final=final)
    path = tmp_path / "events" / "call.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "seq": number,
            "at": event.at,
            "received_at": None,
            "side": None if event.side is None else event.side.label,
            "type": event.type,
            **event.fields,
        }
        for number, event in enumerate(log.without(lambda event: event.seq in theirs))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return Recording.load(tmp_path, "call")


def test_seconds_of_sessions_and_tokens_of_their_backend_are_counted_once(tmp_path: Path) -> None:
    plan = spend(
        assistant="gpt-live",
        delegation="responses",
        backend_model="b",
        price=("gpt-live-1=6/min", "b=1000,2000,100/1M"),
    )
    plan.held(recorded(tmp_path, seconds=30, final=True, tokens=[7, 105, 105]))
    told = plan.as_json()
    session, backend = parts_of(plan)
    assert (session["seconds"], session["used_usd"]) == (30, 3.0)
    assert session["unconfirmed_sessions"] == 0
    # Two responses: each one's last report counts, 5 of its tokens cached.
    assert backend["tokens"] == {"input": 210, "cached": 10, "output": 20}
    assert backend["used_usd"] == pytest.approx((200 * 1000 + 20 * 2000 + 10 * 100) / 1e6)
    assert told["used_usd"] == pytest.approx(3.0 + 0.241)


def test_a_session_that_did_not_confirm_its_usage_is_counted_as_long_as_the_call(
    tmp_path: Path,
) -> None:
    plan = spend(assistant="gpt-live")
    recording = recorded(tmp_path, seconds=1, final=False, tokens=[])
    plan.held(recording)
    (session,) = parts_of(plan)
    assert session["unconfirmed_sessions"] == 1
    seconds = session["seconds"]
    assert isinstance(seconds, int | float)
    assert seconds >= recording.duration / recording.rate_hz


def test_answers_without_tokens_make_the_cost_unknown_with_the_reason(tmp_path: Path) -> None:
    meter = Meter()
    plan = spend(meter=meter, judge_model="j", judge_url=ELSEWHERE, price=("j=1,1/1M",))
    assert plan.as_json()["used_usd"] == 0
    meter.add("models.example", "j", Tokens(input_tokens=500_000, output_tokens=500_000))
    assert plan.measured == pytest.approx(1.0)
    meter.add("models.example", "j", None)
    told = plan.as_json()
    assert told["used_usd"] is None
    (judge,) = parts_of(plan)
    assert judge["unknown"] == {
        "estimated_usd": "at $1/$1 a million tokens in/out; how many it will be cannot be told "
        "beforehand",
        "used_usd": "1 of 2 answers told no tokens",
    }


async def test_no_call_begins_once_the_limit_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The local server's model is on this machine; here it stands for one that costs.
    monkeypatch.setattr(spending, "LOOPBACK", frozenset())
    async with LocalServer(Voices()) as server:
        values: dict[str, object] = {
            "clock": "virtual",
            "detector": "rms",
            "data": TREE / "scenarios",
            "scenario": ("restaurant_booking_complete", "restaurant_slot_taken"),
            "backend_url": server.url,
            "backend_model": "local",
            "price": ("local=1,1/1M",),
            "max_cost_usd": 0.0001,
            "out": tmp_path,
        }
        with speaking(Parrot()):
            done = await Runner(make(values)).run()
    one, two = done.run.results
    assert one.duplex["outcome"] != "not_run"
    assert two.error is not None
    assert two.error.stage == "not_run"
    assert "reaches its limit of $0.0001" in two.error.message
    assert exit_code(done.run) == 1
    cost = done.run.run.duplex["cost"]
    assert isinstance(cost, dict)
    used = cost["used_usd"]
    assert isinstance(used, float)
    assert used >= 0.0001
    assert cost["estimated_usd"] is None
