"""Every fault there is, in whole calls of either protocol: what it comes to, and what is left.

The table in ``fault_calls.py`` is what docs/faults.md shows; here it is held in virtual
time, and in ``test_fault_calls.py`` over sockets.
"""

from __future__ import annotations

import asyncio
import re
from itertools import product
from pathlib import Path

import pytest

from duplex.errors import InputError
from duplex.local.faults import FAULTS, parse_fault
from duplex.recording import Recording
from duplex.results.run import exit_code
from duplex.runner import Finished
from fault_calls import (
    PROTOCOLS,
    TABLE,
    Row,
    codes,
    events_of,
    heard_ms,
    held,
    struck_ms,
    told,
)

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], tuple[str, int]]:
    """How a call without a fault ends, and how long it is in ms, short and booked."""
    found: dict[tuple[str, bool], tuple[str, int]] = {}
    for protocol, booked in product(PROTOCOLS, (False, True)):
        folder = tmp_path_factory.mktemp("plain")
        finished, _ = asyncio.run(held(folder, protocol, booked=booked))
        found[protocol, booked] = (finished.run.results[0].status, duration_ms(finished, 0))
    return found


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", TABLE)
async def test_a_fault_is_named_bounded_and_gone_with_its_call(
    tmp_path: Path, plain: dict[tuple[str, bool], tuple[str, int]], name: str, protocol: str
) -> None:
    booked = name == "lose_tool_result"
    status, plain_ms = plain[protocol, booked]
    finished, left = await held(tmp_path, protocol, name, calls=2, booked=booked)
    first, second = finished.run.results
    row = TABLE[name]
    assert codes(first) & set(row.seen(protocol)), told(first)
    ends_as_the_table_says(finished, row)
    everything_is_on_disk(finished)
    strikes_once_the_assistant_was_heard(finished, name)
    # Within its time: a call goes on for no more than 30 s longer than without the fault.
    assert duration_ms(finished, 0) <= plain_ms + 30_000
    # The next call is the one that would have been held without any fault.
    assert (second.status, told(second)) == (status, [])
    assert duration_ms(finished, 1) == plain_ms
    assert left.tasks == set()
    assert left.files <= 0


def duration_ms(finished: Finished, index: int) -> int:
    found = finished.run.results[index].duplex["duration_ms"]
    assert isinstance(found, int)
    return found


def ends_as_the_table_says(finished: Finished, row: Row) -> None:
    first = finished.run.results[0]
    if row.stage is None:
        assert first.error is None
        assert first.status != "infrastructure_error"
        return
    assert first.status == "infrastructure_error"
    assert first.error is not None
    assert first.error.stage == row.stage
    assert row.gpt_live[0] != "expired" or "expired" in first.error.message
    assert exit_code(finished.run.model_copy(update={"results": [first]})) == 2
    assert first.assessment.passed is None


def everything_is_on_disk(finished: Finished) -> None:
    events = events_of(finished.folder, "call1")
    assert events[0]["type"] == "call.started"
    assert events[-1]["type"] == "call.ended"
    recording = Recording.load(finished.folder, "call1")
    assert recording.duration == events[-1]["position"]
    assert (finished.folder / "audio" / "call1" / "conversation.result.json").exists()


def strikes_once_the_assistant_was_heard(finished: Finished, name: str) -> None:
    first = finished.run.results[0]
    if FAULTS[name].make is None:
        return
    at_ms = struck_ms(first)
    assert at_ms <= 8_000
    assert heard_ms(finished.folder, "call1", at_ms) >= 500


@pytest.mark.parametrize("delegation", ["client", "responses"])
async def test_a_tools_result_that_was_lost_is_sent_again_and_the_table_is_booked(
    tmp_path: Path, delegation: str
) -> None:
    finished, _ = await held(
        tmp_path, "gpt-live", "lose_tool_result", booked=True, delegation=delegation
    )
    (result,) = finished.run.results
    assert "tool_result_lost" in codes(result)
    ran = [(tool.name, tool.status) for tool in result.observability.tools.executed]
    assert ran == [("check_availability", "completed"), ("create_reservation", "completed")]


async def test_a_cancelled_backend_runs_no_tool(tmp_path: Path) -> None:
    finished, _ = await held(tmp_path, "gpt-live", "answer_after_cancel", delegation="responses")
    (result,) = finished.run.results
    assert {"answer_after_cancel", "response_cancelled"} <= codes(result)
    assert "cancelled_work" not in [t.name for t in result.observability.tools.executed]


async def test_a_host_that_is_always_busy_is_given_up_and_nobody_is_blamed(tmp_path: Path) -> None:
    finished, _ = await held(tmp_path, "gpt-live", "429,times=1000,retry_after=3600")
    (result,) = finished.run.results
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert result.error.stage == "assistant_connection"
    assert "429" in result.error.message
    assert exit_code(finished.run) == 2


async def test_a_message_beyond_bearing_is_passed_over_too_in_memory(tmp_path: Path) -> None:
    finished, _ = await held(tmp_path, "realtime", "oversize,mib=20")
    assert "oversize" in codes(finished.run.results[0])


async def test_several_faults_strike_one_session(tmp_path: Path) -> None:
    faults = ("garbage", "odd-bytes", "duplicate,messages=5", "drop,after_ms=2500")
    finished, _ = await held(tmp_path, "gpt-live", *faults)
    (result,) = finished.run.results
    assert {"unreadable", "odd_bytes", "duplicate_event", "dropped"} <= codes(result)


# -- the option -------------------------------------------------------------


def test_the_table_and_the_help_know_every_fault() -> None:
    assert set(TABLE) == set(FAULTS)
    text = (ROOT / "src" / "duplex" / "cli" / "calls.py").read_text()
    for name in FAULTS:
        assert re.search(rf"[^a-z_]{name}[^a-z_]", text), name


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_read_with_its_defaults_and_either_dash(name: str) -> None:
    plan = parse_fault(name.replace("_", "-"))
    assert plan == parse_fault(name) or plan.make is not None
    assert (plan.name, plan.sessions) == (name, 0)
    assert set(plan.options) == set(FAULTS[name].takes) - {"sessions"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fire", "wanted one of refuse, 429, delay, jitter, stall, drop, half_close"),
        ("drop,bang=1", "takes no 'bang', wanted code, after_ms, sessions"),
        ("stall,seconds", "is not key=number"),
        ("stall,seconds=x", "seconds=x is not a number from 0.1 to 600"),
        ("stall,seconds=nan", "not a number"),
        ("stall,seconds=-1", "not a number from"),
        ("429,times=1.5", "not a whole number from 1 to 1000"),
        ("refuse,status=200", "status=200"),
        ("refuse,after_ms=3", "takes no 'after_ms'"),
        ("drop,code=1005", "no close code"),
        ("oversize,mib=inf", "mib=inf"),
        ("", "not known"),
    ],
)
def test_what_no_fault_is_or_takes_is_refused_with_what_is_wanted(text: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        parse_fault(text)


def test_the_page_shows_the_table() -> None:
    text = (ROOT / "docs" / "faults.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]*) \| ([^|]*) \|$", text, re.MULTILINE)
    shown = {name: (re.findall(r"`(\w+)`", said), code) for name, said, code in rows}
    for name, row in TABLE.items():
        said, exit_said = shown[name]
        for protocol in PROTOCOLS:
            assert set(row.seen(protocol)) & set(said), (name, said)
        assert (row.stage in said, exit_said) == ((True, "2") if row.stage else (False, "0 or 1"))
