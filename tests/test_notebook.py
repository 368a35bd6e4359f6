"""Runs, calls and metrics as values: loaded, shown as HTML, given to pandas."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import duplex
from duplex import Call, InputError, Measured, Metrics, MissingExtra, Run, load
from duplex.notebook import extras
from duplex.results import schema
from duplex.run_folder import RunFolder
from verdict_runs import arms, call, run
from viewer_runs import make_run

HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m&\"'"
ALLOWED = {
    "div", "span", "strong", "small", "table", "thead", "tbody", "tr", "th", "td", "br",
    "details", "summary",
}  # fmt: skip


class Tags(HTMLParser):
    """Which tags and attributes a piece of HTML has, and whether they close."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def harmless(html: str) -> Tags:
    found = Tags()
    found.feed(html)
    found.close()
    assert found.open == []
    assert found.tags <= ALLOWED
    assert found.attributes <= {"style", "title", "scope"}
    for word in ("url(", "http", "script", "color:#", "\u202e", "\x1b"):
        assert word not in html.replace("background:none", "")
    return found


def stored(folder: Path, made: schema.Run) -> Path:
    folder.mkdir(parents=True)
    RunFolder(folder).write_json(folder / "results.json", made.model_dump(mode="json"))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs") / "run_offline_20260801_000000_abcd"
    make_run(made)
    return made


@pytest.fixture(scope="module")
def held(folder: Path) -> Run:
    return load(folder)


def test_a_run_is_loaded_by_folder_results_file_or_id(folder: Path) -> None:
    for name, runs in (
        (folder, "runs"),
        (folder / "results.json", "runs"),
        (folder.name, folder.parent),
    ):
        found = load(name, runs)
        assert isinstance(found, Run)
        assert found.id == folder.name
    with pytest.raises(InputError, match="there is no such folder"):
        load("nothing", folder.parent)


def test_a_run_is_what_its_results_file_says(held: Run, folder: Path) -> None:
    assert [one.id for one in held] == ["booking.s1", "booking.s2", "cut_in", "refused"]
    assert held.run == schema.read_run((folder / "results.json").read_text(encoding="utf-8"))
    assert held.passed is False
    assert str(held) == "2 of 4 calls passed, 1 failed, 1 could not be counted."
    first = held.call("booking.s1")
    assert isinstance(first, Call)
    assert first.passed is True
    assert held.call("refused").passed is None
    assert first.recording().duration_ms > 1000
    assert first.reading("response_latency.n") == len(first.metrics.latencies["booking.s1"])


def test_a_call_is_found_by_scenario_and_a_wrong_name_is_told(held: Run) -> None:
    assert held.call("cut_in").id == "cut_in"
    assert held.call() == held.calls[0]
    with pytest.raises(InputError, match=r"has 0 calls named \"x\", want one of: booking.s1"):
        held.call("x")
    with pytest.raises(InputError, match="has 2 calls named"):
        held.call(held.calls[0].scenario)


def test_metrics_of_a_run_pool_the_calls_that_count(held: Run) -> None:
    pooled = held.metrics
    assert isinstance(pooled, Metrics)
    assert sorted(pooled.calls) == ["booking.s1", "booking.s2", "cut_in"]
    values = [value for found in pooled.latencies.values() for value in found]
    spread = pooled.timing["response_latency"]
    assert isinstance(spread, dict)
    assert spread["n"] == len(values)
    assert spread["mean"] == pytest.approx(sum(values) / len(values), abs=0.001)


def test_calls_of_two_rulers_are_not_pooled_and_the_reason_is_told(
    held: Run, tmp_path: Path
) -> None:
    document = held.run.model_dump(mode="json")
    document["results"][1]["duplex"]["timing"]["detector"] = "rms"
    made = schema.Run.model_validate(document)
    found = load(stored(tmp_path / "r", made)).metrics
    assert found.timing == {}
    assert "wanted one ruler" in str(found.unknown["/timing"])
    assert "wanted one ruler" in found._repr_html_()


@pytest.mark.parametrize("of", ["run", "call", "refused", "metrics"])
def test_what_is_shown_is_one_harmless_piece_of_html(held: Run, of: str) -> None:
    every: dict[str, Run | Call | Metrics] = {
        "run": held,
        "call": held.call("booking.s1"),
        "refused": held.call("refused"),
        "metrics": held.metrics,
    }
    html = every[of]._repr_html_()
    harmless(html)
    wanted = {"run": "could not be counted", "refused": "left no recording"}
    assert wanted.get(of, "response latency") in html


def test_no_word_of_a_run_becomes_markup(tmp_path: Path) -> None:
    one = call(scenario=f"a{HOSTILE}")
    one = one.model_copy(update={"title": HOSTILE, "scenario_id": HOSTILE})
    found = load(stored(tmp_path / "r", run(one, call())))
    for html in (found._repr_html_(), found.calls[0]._repr_html_(), found.metrics._repr_html_()):
        harmless(html)
        assert "<img" not in html
    assert "&lt;img" in found._repr_html_()
    assert not any("\x1b" in text or "\u202e" in text for text in (repr(found), str(found)))


def test_in_a_terminal_each_is_one_line(held: Run, folder: Path) -> None:
    assert repr(held) == f"<Run {folder.name}: {held}>"
    assert repr(held.call("refused")) == "<Call refused: not graded>"
    assert repr(held.metrics) == f"<Metrics of {folder.name}: timing 1.0, detector edge>"
    wav = folder / "audio" / "cut_in" / "conversation.wav"
    found = duplex.measure(wav, channels="caller,assistant", detector="rms", witness=False)
    assert repr(found) == "<Measured conversation.wav: timing 1.0, detector rms>"


def test_a_long_run_shows_twenty_calls_and_says_how_many_more(tmp_path: Path) -> None:
    made = run(*(call(sample=at, latencies=(900.0,)) for at in range(1, 31)))
    html = load(stored(tmp_path / "r", made))._repr_html_()
    assert html.count("booking.s") == 20
    assert "and 10 more" in html


def test_a_frame_has_a_row_a_call_with_typed_columns(held: Run) -> None:
    frame = held.to_pandas()
    assert list(frame["call"]) == [one.id for one in held]
    assert set(held.turns()["call"]) <= set(frame["call"])
    assert str(frame["passed"].dtype) == "boolean"
    assert str(frame["response_latency"].dtype) == "Float64"
    assert str(frame["sample"].dtype) == "Int64"
    assert frame["response_latency"].isna().tolist() == [False, False, False, True]
    assert frame["response_latency"][0] == held.calls[0].reading("response_latency")


def test_a_frame_has_a_row_a_turn_and_its_answers_point_at_turns(held: Run) -> None:
    frame = held.call("booking.s1").turns()
    assert set(frame["side"]) == {"caller", "assistant"}
    replies = frame[frame["response_latency_ms"].notna()]
    assert len(replies) == len(held.call("booking.s1").metrics.latencies["booking.s1"])
    for _, reply in replies.iterrows():
        asked = frame[frame["turn"] == reply["answers"]].iloc[0]
        assert asked["side"] == "caller"
        assert asked["answered_by"] == reply["turn"]
    whole = held.turns()
    assert set(whole["call"]) == {"booking.s1", "booking.s2", "cut_in"}
    assert whole.dtypes["yielded"].name == "boolean"


def test_a_frame_of_nothing_has_the_same_columns_and_types(held: Run) -> None:
    none, some = held.call("refused").turns(), held.call("booking.s1").turns()
    assert len(none) == 0
    assert dict(none.dtypes).items() <= dict(some.dtypes).items()


def test_a_frame_of_metrics_has_a_row_a_value_and_a_reason_for_each_that_is_missing(
    held: Run,
) -> None:
    frame = held.call("booking.s1").metrics.to_pandas()
    median = frame[(frame["metric"] == "response_latency") & (frame["stat"] == "p50")].iloc[0]
    assert median["value"] == held.calls[0].reading("response_latency")
    assert median["unit"] == "ms"
    missing = frame[frame["value"].isna() & frame["text"].isna()]
    assert len(missing)
    assert (missing["why_empty"] != "").all()
    assert set(frame["block"]) >= {"timing", "contract"}
    assert len(held.call("refused").metrics.to_pandas()) > 0


def test_a_measured_recording_shows_itself_as_a_call_does(held: Run, folder: Path) -> None:
    wav = folder / "audio" / "booking.s1" / "conversation.wav"
    found = duplex.measure(wav, channels="caller,assistant", detector="rms", witness=False)
    assert isinstance(found, Measured)
    harmless(found._repr_html_())
    assert len(found.turns()) == len(found.metrics.calls["conversation.wav"]["turns"])  # type: ignore[arg-type]
    assert "conversation.wav" in found._repr_html_()
    frame = found.to_pandas()
    assert found.timing is not None
    expected = found.timing.response_latency.p50
    value = frame[(frame["metric"] == "response_latency") & (frame["stat"] == "p50")]["value"]
    assert value.iloc[0] == pytest.approx(expected, abs=0.001)


def test_a_run_in_progress_has_no_verdict_yet(tmp_path: Path) -> None:
    found = load(stored(tmp_path / "r", run(call(), status="running", expected=4)))
    assert found.passed is None
    assert len(found.calls) == 1
    harmless(found._repr_html_())


def test_what_duplex_run_returns_shows_itself(tmp_path: Path) -> None:
    from plan_runs import options

    found = duplex.run(**{**options(tmp_path), "scenario": ["restaurant_slot_taken"]})
    assert isinstance(found, Run)
    assert load(found.folder).run == found.run
    harmless(found._repr_html_())
    assert len(found.to_pandas()) == 1


@pytest.mark.parametrize(
    ("package", "extra"), [("pandas", "notebook"), ("matplotlib", "plot")], ids=["pandas", "plot"]
)
def test_what_is_missing_is_one_sentence(
    held: Run, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    ways = {
        "pandas": (held.to_pandas, held.turns, held.metrics.to_pandas, held.calls[0].turns),
        "matplotlib": (held.plot_latency, held.plot_timeline, held.plot_sweep),
    }
    for way in ways[package]:
        with pytest.raises(MissingExtra, match=rf"{package} is missing.*duplex-voice\[{extra}\]"):
            way()


def test_neither_pandas_nor_matplotlib_is_loaded_before_it_is_asked_for(folder: Path) -> None:
    program = (
        "import sys, duplex\n"
        "run = duplex.load(sys.argv[1])\n"
        "run._repr_html_(), run.calls[0]._repr_html_(), duplex.measure\n"
        "print([m for m in ('pandas', 'matplotlib', 'fastapi') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "[]"
    assert extras.need_plots.__doc__


def test_a_swept_run_says_so(tmp_path: Path) -> None:
    values = arms("none", "10")
    made = run(*(call(arm=arm) for arm in values), arms=values)
    assert load(stored(tmp_path / "r", made)).swept == "noisy.snr"
