"""Plots of results: what is drawn is what was measured, and the same bytes every time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.text import Text
from typer.testing import CliRunner

from duplex import InputError, Run, load
from duplex.cli import app
from duplex.metrics.stats import wilson
from duplex.notebook.canvas import Plot
from duplex.notebook.timeline_plot import draw
from duplex.results import schema
from duplex.run_folder import RunFolder
from duplex.values import Json
from verdict_runs import arms, call, run
from viewer_runs import make_run

PNG = b"\x89PNG\r\n"
HOSTILE = "$\\frac{1}{$ \u202e<b>\x1b"


def stored(folder: Path, made: schema.Run) -> Run:
    folder.mkdir(parents=True)
    RunFolder(folder).write_json(folder / "results.json", made.model_dump(mode="json"))
    return load(folder)


def swept(folder: Path, worse: bool = True) -> Run:
    values = arms("none", "20", "0")
    calls = [
        call(
            arm=arm,
            sample=sample,
            passed=not (worse and arm.value == "0" and sample < 7),
            latencies=(1000.0 + 10 * sample, 1300.0),
        )
        for arm in values
        for sample in range(1, 9)
    ]
    return stored(folder, run(*calls, arms=values, checks=("response_latency.p95 <= 1350ms",)))


def words(figure: Plot) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "run_offline_20260801_000000_abcd"
    make_run(folder)
    return load(folder)


@pytest.fixture(autouse=True)
def _same_looks_outside() -> Iterator[None]:
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before


def test_a_timeline_draws_every_segment_and_says_every_latency(held: Run) -> None:
    found = held.call("booking.s1")
    figure = found.plot_timeline()
    told = words(figure)
    for latency in found.metrics.latencies[found.id]:
        assert f"{abs(latency):,.0f}".replace(",", "\u202f") in told
    (axes,) = figure.axes
    segments = found.metrics.timing["segments"]
    assert isinstance(segments, list)
    lanes = [one for one in axes.collections if isinstance(one, PolyCollection)]
    assert len(lanes) >= len(segments)
    assert "caller speaks" in told
    assert "both" in told


def test_a_long_call_is_broken_into_lines_and_nothing_is_drawn_twice() -> None:
    spans: list[Json] = [
        {"side": "caller", "start": at * 10_000.0, "end": at * 10_000.0 + 4_000} for at in range(12)
    ]
    brackets: list[Json] = [
        {
            "kind": "latency",
            "start": at * 10_000.0 + 4_000,
            "end": at * 10_000.0 + 5_000,
            "label": f"reply {at}",
        }
        for at in range(12)
    ]
    figure = draw("x", {"segments": spans, "brackets": brackets, "found_by": "edge"}, 120_000.0)
    assert len(figure.axes) == 4
    told = words(figure)
    assert all(told.split("\n").count(f"reply {at}") == 1 for at in range(12))


def test_labels_without_room_are_counted_and_not_laid_over_others() -> None:
    brackets: list[Json] = [
        {"kind": "latency", "start": at * 100.0, "end": at * 100.0 + 50, "label": "1 000 ms"}
        for at in range(50)
    ]
    figure = draw("x", {"brackets": brackets}, 20_000.0)
    assert "labels had no room" in words(figure)


def test_a_call_that_left_nothing_still_has_a_picture(held: Run) -> None:
    assert held.call("refused").plot_timeline()._repr_png_().startswith(PNG)
    assert "no reply was measured" in words(held.call("refused").plot_latency())


def test_the_latency_plot_tells_the_figures_of_the_block(held: Run) -> None:
    pooled = held.metrics
    spread = pooled.timing["response_latency"]
    assert isinstance(spread, dict)
    figure = held.plot_latency()
    told = words(figure)
    assert f"{spread['n']} replies" in told
    assert f"median {spread['p50']:.0f}" in told
    line = figure.axes[0].get_lines()[0]
    assert list(line.get_xdata())[1:-1] == sorted(  # type: ignore[arg-type]
        value for found in pooled.latencies.values() for value in found
    )
    assert "95 %: " in told


def test_a_sweep_has_the_rates_and_wilson_intervals_of_its_calls(tmp_path: Path) -> None:
    figure = swept(tmp_path / "r").plot_sweep()
    rates, times = figure.axes
    points = {
        (round(float(x)), round(float(y), 6))  # type: ignore[arg-type]
        for line in rates.get_lines()
        if line.get_marker() == "o"
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)  # type: ignore[arg-type]
    }
    assert points == {(0, 1.0), (1, 1.0), (2, 0.25)}
    low, high = wilson(2, 8)
    ends = {
        round(float(y), 6)
        for bars in rates.collections
        for segment in bars.get_segments()  # type: ignore[attr-defined]
        for y in segment[:, 1]
    }
    assert {round(low, 6), round(high, 6)} <= ends
    told = words(figure)
    assert "worse than the rest" in told
    assert "noisy.snr 0" in told
    assert "8 calls, baseline" in told
    assert times.get_ylabel() == "median reply, ms"


def test_a_sweep_without_a_culprit_says_what_could_not_be_seen(tmp_path: Path) -> None:
    assert "could not have been seen" in words(swept(tmp_path / "r", worse=False).plot_sweep())


def test_a_run_without_a_sweep_is_one_sentence(held: Run) -> None:
    with pytest.raises(InputError, match="swept nothing"):
        held.plot_sweep()


def test_words_of_a_run_are_never_formulas(tmp_path: Path) -> None:
    values = arms(HOSTILE, "20", swept=HOSTILE)
    made = run(*(call(arm=arm) for arm in values), arms=values, swept=HOSTILE)
    found = stored(tmp_path / "r", made)
    for figure in (found.plot_sweep(), found.plot_latency(), found.plot_timeline()):
        assert figure._repr_png_().startswith(PNG)
    assert "\u202e" not in words(found.plot_sweep())


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_same_run_gives_the_same_bytes(held: Run, tmp_path: Path, kind: str) -> None:
    places = [held.plot_latency().save(tmp_path / f"{at}.{kind}") for at in (1, 2)]
    first, second = (place.read_bytes() for place in places)
    assert first == second
    assert len(first) > 1000


def test_a_wrong_ending_and_a_place_that_is_none_are_one_sentence(
    held: Run, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"wanted \.png, \.svg or \.pdf"):
        held.plot_latency().save(tmp_path / "x.bmp")
    with pytest.raises(InputError, match="cannot be written"):
        held.plot_latency().save(tmp_path / "nowhere" / "x.png")


def test_the_command_writes_a_picture_and_prints_its_path(held: Run, tmp_path: Path) -> None:
    out = tmp_path / "x.png"
    done = CliRunner().invoke(
        app, ["plot", str(held.folder), "--what", "latency", "--call", "cut_in", "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{out}\n"
    assert out.read_bytes().startswith(PNG)


def test_without_a_choice_a_sweep_is_drawn_if_there_is_one_else_the_first_call(
    held: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    swept(tmp_path / "r")
    for folder in (str(held.folder), "r"):
        assert CliRunner().invoke(app, ["plot", folder]).exit_code == 0
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["sweep.png", "timeline.png"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--what", "pie"], 'what "pie" is none of'),
        (["--what", "sweep", "--call", "cut_in"], "a sweep is of a whole run"),
        (["--call", "gone"], 'named "gone"'),
    ],
)
def test_a_wrong_wish_is_exit_code_2(held: Run, options: list[str], sentence: str) -> None:
    done = CliRunner().invoke(app, ["plot", str(held.folder), *options])
    assert done.exit_code == 2
    assert sentence in done.output


@pytest.mark.parametrize("far", [1e308, -1e308])
def test_a_latency_that_no_call_can_have_is_refused(tmp_path: Path, far: float) -> None:
    found = stored(tmp_path / "run", run(call(latencies=(900.0, far))))
    with pytest.raises(InputError, match=r"a latency of -?1e\+308 ms cannot be drawn"):
        found.plot_latency()


def test_a_run_without_a_sweep_says_so_in_one_harmless_line(tmp_path: Path) -> None:
    made = run(call())
    made = made.model_copy(update={"run": made.run.model_copy(update={"id": HOSTILE})})
    with pytest.raises(InputError, match="swept nothing") as refused:
        stored(tmp_path / "run", made).plot_sweep()
    assert "\x1b" not in str(refused.value)
    assert "\u202e" not in str(refused.value)
