"""Timelines in files: what is read, and how what is wrong is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from duplex.errors import InputError
from duplex.metrics.timeline import measure_file
from duplex.values import Json

MINIMAL: dict[str, Json] = {
    "caller_turns": [{"start_ms": 0, "end_ms": 1000, "action": "SPEAK", "voiced": [[0, 1000]]}],
    "assistant_turns": [{"start_ms": 2000, "end_ms": 3000, "voiced": [[2000, 3000]]}],
    "caller_other_voiced": [],
    "assistant_other_voiced": [],
    "work_events": [{"t_ms": 10, "ev": "open", "kind": "client", "id": "d"}],
    "observation_end_ms": 9000,
    "response_deadline_ms": 5000,
    "yield_window_ms": 2000,
    "backchannel_window_ms": 1000,
}


def line(**changes: Json) -> str:
    return json.dumps({"id": "t", "input": {**MINIMAL, **changes}})


def write(path: Path, *lines: str) -> Path:
    file = path / "lines.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_lines_are_measured_in_order_and_blank_lines_skipped(tmp_path: Path) -> None:
    other = json.dumps({"id": "u", "tags": [], "input": MINIMAL, "expected": {}})
    measured = list(measure_file(write(tmp_path, line(), "", other)))
    assert [m["id"] for m in measured] == ["t", "u"]
    metrics = measured[0]["metrics"]
    assert isinstance(metrics, dict)
    assert metrics["response_latency_ms"] == 1000.0
    assert metrics["delegation_active_ms"] == [[10, 9000]]
    json.dumps(measured, allow_nan=False)


def test_settings_left_out_take_their_defaults(tmp_path: Path) -> None:
    names = ("response_deadline_ms", "yield_window_ms", "backchannel_window_ms", "work_events")
    short = {key: value for key, value in MINIMAL.items() if key not in names}
    late = {**short, "assistant_turns": [], "assistant_other_voiced": [[6000, 6100]]}
    file = write(tmp_path, json.dumps({"id": "t", "input": late}))
    metrics = next(measure_file(file))["metrics"]
    assert isinstance(metrics, dict)
    assert metrics["response_rate"] == 1.0


def test_one_indented_object_is_a_timeline_too(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"id": "whole", "input": MINIMAL}, indent=1))
    assert [m["id"] for m in measure_file(file)] == ["whole"]


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    file = tmp_path / "win.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + line().encode() + b"\r\n" + line().encode() + b"\r\n")
    assert len(list(measure_file(file))) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"observation_end_ms": "9000"}, "input.observation_end_ms"),
        ({"observation_end_ms": 9000.5}, "input.observation_end_ms"),
        ({"observation_end_ms": True}, "input.observation_end_ms"),
        ({"observation_end_ms": -1}, "input.observation_end_ms"),
        ({"surprise": 1}, "input.surprise"),
        ({"caller_turns": [{"start_ms": 5, "end_ms": 2, "voiced": []}]}, "input.caller_turns[0]"),
        (
            {"caller_turns": [{"start_ms": 0, "end_ms": 9, "voiced": [[0, 1], [4, 2]]}]},
            "voiced[1] ends at 2, before its start 4",
        ),
        (
            {"caller_turns": [{"start_ms": 0, "end_ms": 9, "action": "SING"}]},
            "input.caller_turns[0].action",
        ),
        ({"caller_turns": [{"start_ms": 0}]}, "input.caller_turns[0].end_ms field required"),
        ({"caller_other_voiced": [[1, 2, 3]]}, "input.caller_other_voiced[0]"),
        ({"assistant_other_voiced": [[3, 2]]}, "assistant_other_voiced[0] ends at 2"),
        ({"work_events": [{"t_ms": 1, "ev": "fly"}]}, "input.work_events[0]"),
        (
            {"work_events": [{"t_ms": 1, "ev": "run_end", "run": "r", "outcome": "maybe"}]},
            "input.work_events[0].outcome",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_line_and_path(
    tmp_path: Path, changes: dict[str, Json], said: str
) -> None:
    file = write(tmp_path, line(), line(**changes))
    measured = measure_file(file)
    assert next(measured)["id"] == "t"
    with pytest.raises(InputError) as caught:
        next(measured)
    message = str(caught.value)
    assert f"lines.jsonl:2: {said}" in message or (":2:" in message and said in message)
    assert "\n" not in message


@pytest.mark.parametrize(
    "text", ['{"id": "x"', "[]", "null", "7", '"s"', '{"id": "x"}', '{"input": {}}', "\x00"]
)
def test_lines_that_are_no_timeline_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"lines\.jsonl:1: "):
        list(measure_file(write(tmp_path, text)))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(b'{"id": "\xff"}\n')
    with pytest.raises(InputError, match=r"bad\.jsonl:1: "):
        list(measure_file(file))


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(measure_file(tmp_path / "none.jsonl"))
    with pytest.raises(InputError, match="is no regular file but a folder"):
        list(measure_file(tmp_path))
    with pytest.raises(InputError, match="is empty"):
        list(measure_file(write(tmp_path, "", "")))
