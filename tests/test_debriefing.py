"""``duplex debrief``: printed from the numbers, and no model can change one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duplex.cli import app
from duplex.debrief import write
from duplex.debrief.rewording import read_answer, reword, texts_of
from duplex.results.schema import to_json
from duplex.values import Json
from duplex.verdict.block import judged
from fake_models import Asked, Reply, response, serving
from verdict_runs import call, run


def stored(folder: Path, name: str = "run", slow: int = 2) -> Path:
    place = folder / name
    place.mkdir()
    held = [call(sample=n, latencies=(900.0, 4000.0 if n <= slow else 950.0)) for n in (1, 2, 3)]
    (place / "results.json").write_text(to_json(run(*held)))
    return place


def debrief(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["debrief", *arguments])


def texts(asked: Asked) -> dict[str, str]:
    items = asked.body["input"]
    assert isinstance(items, list)
    item = items[-1]
    assert isinstance(item, dict)
    content = item["content"]
    text = content if isinstance(content, str) else content[0]["text"]  # type: ignore[index,call-overload]
    found: dict[str, str] = json.loads(str(text))
    return found


def test_a_debrief_is_a_page_or_the_published_object(tmp_path: Path) -> None:
    place = stored(tmp_path)
    page = debrief(str(place))
    assert page.exit_code == 0
    assert "## Themes" in page.stdout
    told = json.loads(debrief(str(place), "--json").stdout)
    assert told["themes"][0]["affectedCallCount"] == 2


def test_a_debrief_is_held_against_a_baseline(tmp_path: Path) -> None:
    now, then = stored(tmp_path), stored(tmp_path, "before", slow=0)
    told = json.loads(debrief(str(now), "--compare-to", str(then), "--json").stdout)
    assert told["themes"][0]["lifecycle"] == "NEW"
    assert told["trend"]["rows"][0]["checkName"] == "task_completed"


def test_a_model_rewords_texts_that_keep_their_figures(tmp_path: Path) -> None:
    def kind(asked: Asked) -> Reply:
        said: dict[str, Json] = {key: f"In short: {text}" for key, text in texts(asked).items()}
        return response(json.dumps({"texts": said}))

    with serving(kind) as server:
        done = debrief(str(stored(tmp_path)), "--model", "m", "--model-url", server.url)
    assert done.exit_code == 0, done.stderr
    assert "In short: Passed" in done.stdout
    assert "in the words of m" in done.stderr


def test_a_model_that_changes_a_figure_changes_nothing(tmp_path: Path) -> None:
    def liar(asked: Asked) -> Reply:
        said: dict[str, Json] = {
            key: text.replace("2", "7").replace("3", "9") for key, text in texts(asked).items()
        }
        return response(json.dumps({"texts": said}))

    place = stored(tmp_path)
    plain = debrief(str(place)).stdout
    with serving(liar) as server:
        done = debrief(str(place), "--model", "m", "--model-url", server.url)
    assert done.stdout == plain
    assert "figures are others" in done.stderr


@pytest.mark.parametrize("text", ["no", '{"texts": 3}', '{"texts": {"summary": 5}}', ""])
def test_an_answer_that_is_none_leaves_our_own_words(text: str, tmp_path: Path) -> None:
    place = stored(tmp_path)
    plain = debrief(str(place)).stdout
    with serving(lambda _: response(text)) as server:
        done = debrief(str(place), "--model", "m", "--model-url", server.url)
    assert done.exit_code == 0
    assert done.stdout == plain


def test_names_of_calls_and_length_are_held_too() -> None:
    cases, checks, verdict = judged(run(call(latencies=(4000.0,)), call(sample=2)))
    assert verdict is not None
    found = write(cases, checks, verdict)
    original = texts_of(found)
    other = {key: text.replace("booking.s1", "booking.s5") for key, text in original.items()}
    assert "theme.0" in reword(found, other).kept
    assert reword(found, dict.fromkeys(original, "")).taken == 0
    long = {key: text + " and so on" * 500 for key, text in original.items()}
    assert reword(found, long).taken == 0
    assert reword(found, {}).debrief == found


def test_an_answer_in_a_fence_is_read() -> None:
    assert read_answer('```json\n{"texts": {"a": "b"}}\n```') == {"a": "b"}


def test_a_run_with_nothing_graded_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "run"
    place.mkdir()
    (place / "results.json").write_text(to_json(run(call(outcome="invalidated"))))
    done = debrief(str(place))
    assert done.exit_code == 2
    assert "no call that was graded" in done.stderr
