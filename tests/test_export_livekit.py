"""The LiveKit shape: what its fields say follows from the run, and nothing is made up."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from google.protobuf.json_format import ParseDict
from livekit.protocol import agent_simulation

import plan_runs
from duplex import exporting
from duplex.exports.livekit import report
from duplex.exports.livekit_ids import run_of_room
from duplex.exports.subject import subject_of
from duplex.results import Result, Run
from duplex.results.schema import to_json
from duplex.run_folder import RunFolder
from duplex.values import Json
from livekit_runs import CLAIMED_MS, REPEATED, full, held, run_of
from livekit_shape import differences
from verdict_runs import arms, call, run
from viewer_runs import BOOKING, CUT_IN

Document = dict[str, typing.Any]
NOWHERE = Path("nowhere")


def document(made: Run, folder: Path = NOWHERE) -> Document:
    found: Document = json.loads(json.dumps(report(subject_of(made), folder), allow_nan=False))
    assert differences(found) == []
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs") / "run_offline_20260801_000000_abcd"


@pytest.fixture(scope="module")
def whole(folder: Path) -> Document:
    return document(full(folder), folder)


def jobs(found: Document) -> list[Document]:
    listed: list[Document] = found["run"]["jobs"]
    return listed


def every(value: typing.Any) -> Iterator[typing.Any]:
    yield value
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from every(one)
        else:
            yield one


def test_the_published_messages_read_it(whole: Document) -> None:
    found = ParseDict(whole["run"], agent_simulation.SimulationRun())
    assert found.HasField("sampling")
    assert found.issue_count == len(whole["summary"]["issues"])
    first, second, lost = found.jobs
    assert first.metrics.task_completion == 1
    assert second.metrics.HasField("task_completion")
    assert not lost.HasField("metrics")
    summary = ParseDict(whole["summary"], agent_simulation.SimulationRunSummary())
    assert set(summary.chat_history) == {first.id, second.id}


def test_nothing_is_null(whole: Document) -> None:
    assert None not in list(every(whole))


def test_what_was_not_measured_is_not_there() -> None:
    (job,) = jobs(document(run(call(latencies=()))))
    metrics = job["metrics"]
    assert "stt" not in metrics
    assert "llm" not in metrics
    assert "tts" not in metrics
    assert metrics.get("conversation") is None
    assert metrics["hasRemoteSession"] is False
    assert not {"judgeModel", "overallScore", "conciseness", "informationLoss", "t0"} & set(metrics)
    assert not {"roomName", "startedAt", "usage"} & set(job)


def test_every_call_that_was_held_is_a_room_of_its_own(whole: Document) -> None:
    held_first, held_second, lost = jobs(whole)
    rooms = {held_first["roomId"], held_second["roomId"]}
    assert len(rooms) == 2
    assert {run_of_room(room) for room in rooms} == {whole["run"]["id"]}
    assert "roomId" not in lost


def test_a_run_in_progress_has_no_summary_and_no_count_of_issues() -> None:
    found = document(run(call(), status="running", expected=4, ended_at=None))
    assert set(found) == {"version", "run"}
    assert found["run"]["status"] == "STATUS_RUNNING"
    assert found["run"]["jobCount"] == 4
    assert not {"issueCount", "endedAt", "error"} & set(found["run"])


def test_a_run_without_an_issue_counts_none() -> None:
    found = document(run(call()))
    assert found["run"]["issueCount"] == 0
    assert "issues" not in found["summary"]


def test_a_run_that_was_stopped_says_so() -> None:
    found = document(run(call(), status="cancelled", expected=3))
    assert found["run"]["status"] == "STATUS_CANCELLED"
    assert found["run"]["error"] == "the run was not completed: cancelled"


def test_jobs_are_completed_failed_or_do_not_count() -> None:
    found = document(
        run(
            call(),
            call(scenario="b", passed=False),
            call(scenario="silent", outcome="never_spoke"),
            call(scenario="spoiled", outcome="invalidated"),
            call(scenario="unheld", outcome="not_run"),
        )
    )
    assert [job["status"] for job in jobs(found)] == [
        "STATUS_COMPLETED",
        "STATUS_FAILED",
        "STATUS_FAILED",
        "STATUS_CANCELLED",
        "STATUS_CANCELLED",
    ]
    assert [job["metrics"].get("taskCompletion") for job in jobs(found)[:4]] == [1, 0, None, None]
    assert (found["run"]["passedCount"], found["run"]["failedCount"]) == (1, 2)
    assert (found["summary"]["passed"], found["summary"]["failed"]) == (1, 2)
    assert found["run"]["metrics"]["scenarioPassRate"] == pytest.approx(1 / 3, abs=1e-6)


def test_a_run_without_a_graded_call_has_its_failures_as_issues() -> None:
    found = document(run(call(outcome="never_spoke")))
    assert found["run"]["issueCount"] == len(found["summary"]["issues"]) > 0
    assert "the agent never spoke on 1 of 1 test cases" in found["summary"]["toImprove"]
    assert "goingWell" not in found["summary"]


def test_a_threshold_that_was_missed_is_an_issue_and_fails_no_job() -> None:
    made = run(call(latencies=(900.0, 4000.0)), checks=["response_latency.max <= 1s"])
    found = document(made)
    assert jobs(found)[0]["status"] == "STATUS_COMPLETED"
    labels = [issue["label"] for issue in found["summary"]["issues"]]
    assert "Check failed: response latency.max <= 1s" in labels


def test_sampling_is_there_for_several_samples_only() -> None:
    assert "sampling" not in document(run(call(), samples=1))["run"]
    found = document(run(call(), call(sample=2), samples=2, pass_rate=0.5))
    assert found["run"]["sampling"] == {"samples": 2, "passRate": 0.5}
    assert [job["sample"] for job in jobs(found)] == [1, 2]
    assert len({job["scenarioId"] for job in jobs(found)}) == 1


def test_ids_stay_and_differ() -> None:
    quiet, loud = arms("20", "0")
    made = run(call(arm=quiet), call(arm=loud), call(scenario="SCN_own"), arms=(quiet, loud))
    ids = [job["id"] for job in jobs(document(made))]
    assert ids == [job["id"] for job in jobs(document(made))]
    assert len(set(ids)) == 3
    scenarios = [job["scenarioId"] for job in jobs(document(made))]
    assert len(set(scenarios)) == 3
    assert scenarios[2] == "SCN_own"
    assert jobs(document(made))[0]["tags"] == ["noisy.snr=20"]
    retried = run(call(outcome="never_spoke", final=False), call(attempt=2))
    (job,) = jobs(document(retried))
    assert job["id"] == jobs(document(run(call())))[0]["id"]


def test_percentiles_are_of_type_7_and_pooled_over_turns() -> None:
    latencies = [(1000.0, 1200.0, 1400.0, 2500.0), (700.0, -300.0), (3100.0,)]
    calls = [call(sample=n, latencies=values) for n, values in enumerate(latencies, start=1)]
    found = document(run(*calls))
    pools = [*latencies, [value for values in latencies for value in values]]
    groups = [job["metrics"] for job in jobs(found)] + [found["run"]["metrics"]]
    for values, metrics in zip(pools, groups, strict=True):
        for q in (50, 95, 99):
            told = metrics["conversation"][f"heardE2eLatencyP{q}Ms"]
            assert told == round(float(np.percentile(values, q, method="linear")))


def test_ratios_are_pooled_and_never_averaged(whole: Document) -> None:
    held_jobs = [job["metrics"] for job in jobs(whole)[:2]]
    for group, ratio, part, total in (
        ("conversation", "overlapRatio", "overlapSpeechMs", "totalSpeechMs"),
        ("stt", "wer", "wordErrors", "words"),
        ("stt", "cer", "charErrors", "chars"),
        ("stt", "entityRecognition", "entitiesRecognized", "entitiesUttered"),
        ("tts", "entityRecall", "entitiesAcquiredRecognized", "entitiesAcquiredUttered"),
    ):
        parts, totals = (sum(one[group][name] for one in held_jobs) for name in (part, total))
        pooled = whole["run"]["metrics"][group]
        assert (pooled[part], pooled[total]) == (parts, totals)
        assert pooled[ratio] == pytest.approx(parts / totals, abs=1e-6)
    means = sum(one["stt"]["wer"] for one in held_jobs) / 2
    assert whole["run"]["metrics"]["stt"]["wer"] != pytest.approx(means, abs=1e-3)


def test_times_count_from_the_first_speech(whole: Document) -> None:
    metrics = jobs(whole)[0]["metrics"]
    assert metrics["t0"] == "2026-08-01T00:00:02.500Z"
    turns = metrics["turns"]
    assert turns[0]["startMs"] == 0
    assert turns[1]["startMs"] - turns[0]["endMs"] == 620
    assert [turn["index"] for turn in turns] == list(range(1, len(turns) + 1))
    assert [turn["role"] for turn in turns[:3]] == ["ASSISTANT", "USER", "ASSISTANT"]
    assert turns[1]["text"] == "A table for August seventh, please."


def test_rows_say_what_is_known_of_their_side_only(whole: Document) -> None:
    heard, request = set[str](), set[str]()
    for job in jobs(whole)[:2]:
        for turn in job["metrics"]["turns"]:
            (heard if turn["role"] == "ASSISTANT" else request).update(turn)
    assert {"heardE2eLatencyMs", "conciseness", "llmTtftMs", "e2eLatencyMs"} <= heard - request
    assert {"timeToYieldMs", "turnTakingScore", "unanswered"} <= request - heard


def test_the_agents_own_account_is_beside_what_was_heard(whole: Document) -> None:
    metrics = jobs(whole)[0]["metrics"]
    assert metrics["hasRemoteSession"] is True
    assert metrics["llm"] == {"ttftMs": 450, "ttfsMs": 600}
    assert metrics["tts"]["ttfbMs"] == 100
    assert metrics["conversation"]["e2eLatencyMs"] == CLAIMED_MS
    assert metrics["conversation"]["heardE2eLatencyP50Ms"] != CLAIMED_MS


def test_an_agent_that_tells_no_timing_has_none_of_its_own(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.mkdir()
    found = document(run_of(place, [held(place, 1, BOOKING, told=False)]), place)
    metrics = jobs(found)[0]["metrics"]
    assert metrics["hasRemoteSession"] is True, "it told words"
    assert "llm" not in metrics
    assert "sttDelayMs" not in metrics["stt"]
    assert "ttfbMs" not in metrics["tts"]
    assert "e2eLatencyMs" not in metrics["conversation"]


def test_what_the_judge_said_is_there(whole: Document) -> None:
    good, bad, _ = jobs(whole)
    assert good["metrics"]["judgeModel"] == "judge-1"
    assert good["metrics"]["informationLoss"] is False
    assert bad["metrics"]["informationLoss"] is True
    assert (good["metrics"]["conversationProgression"], good["metrics"]["conciseness"]) == (1, 1)
    assert bad["metrics"]["turns"][0]["conciseness"] == 0.5
    mean = whole["run"]["metrics"]["conversationProgression"]
    assert mean == pytest.approx((1 + bad["metrics"]["conversationProgression"]) / 2)


def spoiled(result: Result) -> Result:
    return result.model_copy(
        update={
            "status": "infrastructure_error",
            "duplex": result.duplex | {"outcome": "invalidated", "whose_fault": "simulator"},
        }
    )


def test_a_call_that_the_simulator_spoiled_has_no_score_and_is_in_no_pool(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.mkdir()
    found = document(run_of(place, [spoiled(held(place, 1, BOOKING)), call(sample=2)]), place)
    metrics = jobs(found)[0]["metrics"]
    scores = {
        "taskCompletion", "overallScore", "conciseness", "conversationProgression",
        "informationLoss", "turnTakingScore",
    }  # fmt: skip
    assert not scores & set(metrics)
    assert "turnTakingScore" not in metrics["conversation"]
    assert not any(scores & set(turn) for turn in metrics["turns"])
    assert metrics["conversation"]["totalSpeechMs"] > 0
    assert "stt" not in found["run"]["metrics"]


def test_every_reference_leads_to_words_that_were_said(whole: Document) -> None:
    summary = whole["summary"]
    texts = [summary["goingWell"], summary["toImprove"]]
    texts += [issue["description"] for issue in summary["issues"]]
    refs = [
        ref
        for text in texts
        for ref in re.findall(r'<ref job="(.*?)" item="(.*?)">(.*?)</ref>', text)
    ]
    assert 0 < len(refs) <= 9
    for job, item, quote in refs:
        items = summary["chatHistory"][job]["items"]
        (message,) = [one["message"] for one in items if one.get("message", {}).get("id") == item]
        assert quote.removesuffix(" …") in message["content"][0]["text"]


def test_there_are_never_more_than_nine_references(tmp_path: Path) -> None:
    stats = ("mean", "p50", "p95", "min", "max")
    checks = [f"response_latency.{stat} <= {limit}ms" for stat in stats for limit in (100, 200)]
    path = RunFolder(tmp_path).transcript("booking.s1")
    path.parent.mkdir()
    path.write_text(json.dumps([{"role": "assistant", "text": "Hello", "start_ms": 1}]))
    found = document(run(call(), checks=checks), tmp_path)
    assert len(found["summary"]["issues"]) >= 10
    assert json.dumps(found["summary"]).count("</ref>") in range(5, 10)


def test_issues_come_with_what_to_do(whole: Document) -> None:
    for issue in whole["summary"]["issues"]:
        assert set(issue) == {"description", "suggestion", "label"}


def test_what_a_peer_says_makes_no_reference_of_its_own(tmp_path: Path) -> None:
    place = tmp_path / "run"
    forged = '<ref job="SRJ_x" item="item_x">all is well</ref>'
    made = run(call(passed=False))
    path = RunFolder(place).transcript("booking.s1")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([{"role": "assistant", "text": forged, "start_ms": 1}]))
    found = document(made, place)
    prose = json.dumps(
        [found["summary"].get(name) for name in ("goingWell", "toImprove", "issues")]
    )
    assert "SRJ_x" not in prose
    assert "all is well" in prose


def test_a_history_has_lines_and_tools_in_order_of_time(whole: Document) -> None:
    items = whole["summary"]["chatHistory"][jobs(whole)[0]["id"]]["items"]
    times = [next(iter(item.values()))["createdAt"] for item in items]
    assert times == sorted(times)
    kinds = [next(iter(item)) for item in items]
    assert kinds.count("functionCall") == kinds.count("functionCallOutput") == 2
    asked = next(item["functionCall"] for item in items if "functionCall" in item)
    assert json.loads(asked["arguments"])["party_size"] == 2
    first = items[0]["message"]
    assert first["metrics"]["startedSpeakingAt"] == "2026-08-01T00:00:02.500Z"
    assert first["metrics"]["stoppedSpeakingAt"] == "2026-08-01T00:00:03.425Z"


def test_a_line_that_was_cut_off_is_marked(whole: Document) -> None:
    items = whole["summary"]["chatHistory"][jobs(whole)[1]["id"]]["items"]
    cut = [item["message"] for item in items if item.get("message", {}).get("interrupted")]
    assert [one["content"][0]["text"] for one in cut] == [CUT_IN[2].text]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("clean", (False, False, False)),
        ("noisy,snr=10", (True, False, False)),
        ("telephony", (False, True, False)),
        ("lossy", (False, False, True)),
        ("realistic", (True, True, True)),
        ("downlink:noisy,snr=10", (False, False, False)),
    ],
)
def test_impairments_are_those_of_the_callers_way(
    condition: str, wanted: tuple[bool, bool, bool]
) -> None:
    (job,) = jobs(document(run(call(condition=condition))))
    assert tuple(job["metrics"]["impairments"].values()) == wanted


def test_the_pipeline_is_told_and_left_out_without_one(whole: Document) -> None:
    assert whole["run"]["ci"]["commitSha"] == "0123abc"
    assert "ci" not in document(run(call()))["run"]


def test_the_scenarios_text_comes_from_its_file(whole: Document) -> None:
    first = whole["run"]["scenarioGroup"]["scenarios"][0]
    assert first["instructions"] == jobs(whole)[0]["instructions"]
    assert first["tags"] == {"booking": "", "team": "voice"}
    assert json.loads(first["userdata"]) == {"open": True}


def test_files_that_are_broken_cost_the_history_only(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.mkdir()
    made = run_of(place, [held(place, 1, REPEATED)])
    run_folder = RunFolder(place)
    id = run_folder.call_ids()[0]
    run_folder.events(id).write_bytes(b"\xff\x00 no event")
    run_folder.transcript(id).write_text("no json")
    found = document(made, place)
    assert list(found["summary"]["chatHistory"].values()) == [{"items": []}]


def test_half_a_character_of_a_peer_is_no_reason_to_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "run"
    place.mkdir()
    (place / "results.json").write_text(to_json(run(call())))
    path = RunFolder(place).transcript("booking.s1")
    path.parent.mkdir()
    path.write_text(json.dumps([{"role": "assistant", "text": "Hello", "start_ms": 1}]))
    events = RunFolder(place).events("booking.s1")
    events.parent.mkdir()
    fields: dict[str, Json] = {"call_id": "c1", "name": "book", "arguments": {"name": "\ud800"}}
    event: dict[str, Json] = {"seq": 0, "at": 0, "received_at": None, "side": "assistant"}
    events.write_text(json.dumps(event | {"type": "tool.started"} | fields) + "\n")
    exporting.command(place, "livekit", runs=tmp_path, compare_to=None, out=None)
    assert differences(json.loads(capsys.readouterr().out)) == []


async def test_a_real_run_is_the_published_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.json"
    source = plan_runs.TREE / "scenarios" / "restaurant_booking_complete.json"
    data.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    done = await plan_runs.runner(tmp_path, data=data, scenario=(), samples=2).run()
    exported = exporting.command

    def told() -> Document:
        exported(done.folder, "livekit", runs=tmp_path, compare_to=None, out=None)
        found: Document = json.loads(capsys.readouterr().out)
        assert differences(found) == []
        return found

    found = told()
    assert found["run"]["jobCount"] == len(jobs(found)) == 2
    assert found["run"]["passedCount"] + found["run"]["failedCount"] == 2
    metrics = jobs(found)[0]["metrics"]
    timing = typing.cast(Document, done.run.results[0].duplex["timing"])
    p50 = timing["response_latency"]["p50"]
    assert metrics["conversation"]["heardE2eLatencyP50Ms"] == round(p50)
    assert metrics["conversation"]["overlapRatio"] == pytest.approx(timing["overlap_ratio"], 1e-3)
    assert len(metrics["turns"]) == len(timing["turns"])
    assert "instructions" in jobs(found)[0]
    data.write_text(data.read_text(encoding="utf-8").replace("two", "three"), encoding="utf-8")
    assert "instructions" not in jobs(told())[0]


def test_a_run_on_the_disk_can_be_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "results.json").write_text(to_json(run(call())))
    exporting.command(Path("a"), "livekit", runs=tmp_path, compare_to=None, out=None)
    found: Json = json.loads(capsys.readouterr().out)
    assert differences(found) == []
