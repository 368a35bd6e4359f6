"""``duplex remeasure``: a run under another ruler, beside the one it was measured with."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from booking_call import booking
from duplex.errors import InputError
from duplex.grading import Evidence
from duplex.metrics.contract import Settings
from duplex.metrics.from_recording import contract_of
from duplex.metrics.of_call import timing_of_call
from duplex.metrics.timing_policy import TimingPolicy
from duplex.metrics.words import words_of
from duplex.recording import Recording
from duplex.remeasuring import RemeasuredRun, command, remeasure
from duplex.results import CallFigures, build_result, schema
from duplex.results.observed import Basis
from duplex.results.stored import load_results
from duplex.run_folder import RunFolder
from duplex.values import Json, Side
from duplex.viewer import build
from duplex.wavfile import Pcm
from stimuli import pcm, speechlike
from viewer_runs import BOOKING, CUT_IN, Line, add_call, refused, write_results

CALLS: dict[str, tuple[Line, ...]] = {"booking": BOOKING, "cut_in": CUT_IN}


def voice(side: Side, text: str) -> Pcm:
    """Something that every detector takes for a voice, as long as the words would take."""
    return pcm(speechlike(max(len(text), 8) / 18, seed=2 * len(text) + side))


def measured(folder: Path, call_id: str, deadline_ms: int = 5_000) -> schema.Result:
    """The result of a call as the runner measures it, from the folder."""
    recording = Recording.load(folder, call_id)
    policy = TimingPolicy(response_deadline_ms=deadline_ms)
    result = build_result(
        booking(),
        Evidence.from_recording(recording),
        CallFigures(
            audio=contract_of(recording, Settings(response_deadline_ms=deadline_ms)),
            response_deadline_ms=deadline_ms,
            timing=timing_of_call(recording, policy=policy).as_json(),
            extra={"words": words_of(recording, booking()).as_json()},
        ),
        basis=Basis(),
        conversation_audio=f"audio/{call_id}/conversation.wav",
    )
    return result.model_copy(update={"scenario_id": call_id})


def run_folder(folder: Path, *, deadline_ms: int = 5_000) -> Path:
    """A run of two calls and a refused one, measured from their files."""
    folder.mkdir()
    results = []
    for call_id, lines in CALLS.items():
        add_call(folder, call_id, lines, voice=voice, booked=call_id == "booking")
        results.append(measured(folder, call_id, deadline_ms))
    write_results(folder, [*results, refused(folder, "refused")])
    return folder


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_folder(tmp_path_factory.mktemp("runs") / "run_offline_1")


@pytest.fixture
def folder(_made: Path, tmp_path: Path) -> Path:
    """A copy of the run that a test may damage."""
    return Path(shutil.copytree(_made, tmp_path / _made.name))


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "remeasured" not in path.parts
    }


def stored(done: RemeasuredRun) -> schema.Run:
    return load_results(done.folder / "results.json")


def edit(folder: Path, change: Callable[[dict[str, Json]], None]) -> None:
    path = folder / "results.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def inside(document: Json, *path: str | int) -> dict[str, Json]:
    """The object at a place in a document."""
    for part in path:
        assert isinstance(document, dict | list)
        document = document[part]  # type: ignore[index]
    assert isinstance(document, dict)
    return document


def run(folder: Path, *policy: str, **options: object) -> int:
    given: dict[str, object] = {
        "detector": None, "response_deadline_ms": None, "name": None, "as_json": False,
        "markdown": False, **options,
    }  # fmt: skip
    return command(folder, policy=policy, console=Console(stderr=True), **given)  # type: ignore[arg-type]


# -- the same ruler ------------------------------------------------------------


def test_the_calls_of_these_tests_hold_turns_to_measure(folder: Path) -> None:
    for result in load_results(folder / "results.json").results[:2]:
        document = result.model_dump(mode="json")
        ledger = inside(document, "duplex", "timing", "ledger")
        assert ledger["attempted"] == 3
        assert ledger["answered"] in (2, 3)
        assert inside(document, "metrics", "audio")["response_rate"] is not None


def test_an_unchanged_ruler_gives_every_figure_again(folder: Path) -> None:
    before = load_results(folder / "results.json")
    done = stored(remeasure(folder))
    for was, now in zip(before.results, done.results, strict=True):
        assert now.duplex["timing"] == was.duplex["timing"]
        assert now.metrics == was.metrics
        assert now.duplex.get("words") == was.duplex.get("words")
        assert now.assessment == was.assessment
        assert now.status == was.status


def test_nothing_of_the_run_is_touched(folder: Path) -> None:
    before = digests(folder)
    remeasure(folder, detector="rms")
    remeasure(folder, response_deadline_ms=1_000)
    assert digests(folder) == before
    assert len(list((folder / "remeasured").iterdir())) == 2


def test_a_run_held_under_another_policy_keeps_it_unless_told(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", deadline_ms=1_200)
    done = remeasure(folder)
    assert all(one.new.policy.response_deadline_ms == 1_200 for one in done.calls[:2])
    assert [one.repeats for one in done.calls] == [True, True, None]


def test_results_say_what_they_were_made_from_and_with(folder: Path) -> None:
    digest = hashlib.sha256((folder / "results.json").read_bytes()).hexdigest()
    done = stored(remeasure(folder, detector="rms", policy={"awkward_silence_ms": 1_500}))
    origin, now = done.run.duplex["remeasured_from"], done.run.duplex["remeasured"]
    assert isinstance(origin, dict)
    assert isinstance(now, dict)
    assert origin["run"] == folder.name
    assert origin["results_sha256"] == digest
    assert now["changed"] == {"detector": "rms", "policy": {"awkward_silence_ms": 1_500}}
    assert now["timing_version"] == "1.0"
    call = done.results[0].duplex
    before, timing = call["remeasured_from"], call["timing"]
    assert isinstance(before, dict)
    assert isinstance(timing, dict)
    assert before["detector"] == "edge"
    assert before["repeats"] is True
    assert timing["detector"] == "rms"
    assert isinstance(timing["policy"], dict)
    assert timing["policy"]["awkward_silence_ms"] == 1_500


# -- another ruler -------------------------------------------------------------


def test_another_deadline_moves_both_blocks_and_the_configuration(folder: Path) -> None:
    done = stored(remeasure(folder, response_deadline_ms=800))
    assert done.run.configuration.response_deadline_ms == 800
    audio = done.results[0].metrics.audio
    assert audio.response_deadline_ms == 800
    recording = Recording.load(folder, "booking")
    expected = contract_of(recording, Settings(response_deadline_ms=800))
    assert audio.response_rate == expected.response_rate
    policy = TimingPolicy(response_deadline_ms=800)
    assert done.results[0].duplex["timing"] == timing_of_call(recording, policy=policy).as_json()


@pytest.mark.parametrize("detector", ["rms", "webrtc"])
def test_another_detector_gives_what_it_would_have_given(folder: Path, detector: str) -> None:
    done = stored(remeasure(folder, detector=detector))
    expected = timing_of_call(Recording.load(folder, "cut_in"), detector).as_json()
    assert done.results[1].duplex["timing"] == expected


def test_pooled_figures_of_the_run_are_made_again(folder: Path) -> None:
    def pooled(document: dict[str, Json]) -> None:
        inside(document, "run", "duplex")["timing"] = {"calls": 99}

    edit(folder, pooled)
    timing = stored(remeasure(folder, detector="rms")).run.duplex["timing"]
    assert isinstance(timing, dict)
    assert timing["calls"] == 2
    assert timing["detector"] == "rms"


def test_the_viewer_shows_it_with_the_sound_of_the_run(folder: Path) -> None:
    done = remeasure(folder, detector="rms")
    page = build(done.folder).read_text()
    assert page.count('id="sound-') == 2
    assert "rms detector" in page


# -- what cannot be known any more ---------------------------------------------


def test_a_call_never_held_is_carried_over_with_its_reason(folder: Path) -> None:
    done = remeasure(folder)
    assert [one.held for one in done.calls] == [True, True, False]
    assert done.code == 0
    unknown = done.calls[2].now.duplex["unknown"]
    assert isinstance(unknown, dict)
    assert unknown["/duplex/timing"] == "the call was not held"


def test_a_call_whose_files_are_gone_has_no_figures_and_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "events" / "cut_in.jsonl").unlink()
    assert run(folder, name="n") == 1
    assert "cut_in: not measured again: events" in capsys.readouterr().err
    lost = load_results(folder / "remeasured" / "n" / "results.json").results[1]
    assert lost.duplex["timing"] is None
    assert lost.metrics.audio.response_rate is None
    unknown = lost.duplex["unknown"]
    assert isinstance(unknown, dict)
    assert str(unknown["/metrics/audio/response_rate"]).startswith("not measured again: events")
    assert lost.metrics.task == load_results(folder / "results.json").results[1].metrics.task


def test_work_that_the_events_lost_leaves_its_silence_unknown(folder: Path) -> None:
    path = folder / "events" / "booking.jsonl"
    kept = [line for line in path.read_text().splitlines() if '"tool.' not in line]
    path.write_text("\n".join(kept) + "\n")
    one = remeasure(folder).calls[0]
    assert one.was.metrics.audio.floor_hold_silence_ms.cumulative is not None
    assert one.now.metrics.audio.floor_hold_silence_ms.cumulative is None
    assert one.now.metrics.audio.response_rate is not None
    unknown = one.now.duplex["unknown"]
    assert isinstance(unknown, dict)
    pointer = "/metrics/audio/floor_hold_silence_ms/cumulative"
    assert "no longer hold the work" in str(unknown[pointer])


def test_labels_that_the_events_lost_are_noted(folder: Path) -> None:
    path = folder / "events" / "booking.jsonl"
    kept = [line for line in path.read_text().splitlines() if "BACKCHANNEL" not in line]
    path.write_text("\n".join(kept) + "\n")
    one = remeasure(folder).calls[0]
    assert any("caller labels" in note for note in one.notes)


def test_changed_sound_is_told(folder: Path) -> None:
    source = folder / "audio" / "cut_in" / "assistant_source.wav"
    content = bytearray(source.read_bytes())
    content[44:] = bytes(len(content) - 44)
    source.write_bytes(content)
    one = remeasure(folder).calls[1]
    assert one.repeats is False
    assert any("files have changed" in note for note in one.notes)


def test_a_policy_of_another_version_is_never_compared_silently(folder: Path) -> None:
    def other(document: dict[str, Json]) -> None:
        for index in (0, 1):
            timing = inside(document, "results", index, "duplex", "timing")
            timing["timing_version"] = "0.9"
            policy = inside(timing, "policy")
            policy["patience_ms"] = policy.pop("resume_ms")

    edit(folder, other)
    one = remeasure(folder).calls[0]
    assert one.repeats is None
    assert not one.old.same_as(one.new)
    assert any("patience_ms" in note for note in one.notes)
    assert any("lacks resume_ms" in note for note in one.notes)


# -- what is refused -----------------------------------------------------------


def test_an_empty_folder_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no results\.json"):
        remeasure(tmp_path)
    with pytest.raises(InputError, match="is no folder"):
        remeasure(tmp_path / "nowhere")


def test_a_run_killed_before_its_results_is_sent_to_measure(folder: Path) -> None:
    (folder / "results.json").unlink()
    with pytest.raises(InputError, match=r"no results\.json.*duplex measure .* measures its calls"):
        remeasure(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema_version": "1.0"}', '{"a": NaN}'])
def test_another_kind_of_file_is_one_sentence(folder: Path, content: str) -> None:
    (folder / "results.json").write_text(content)
    with pytest.raises(InputError, match=r"results .*results\.json") as error:
        remeasure(folder)
    assert "\n" not in str(error.value)


def test_a_run_without_calls_or_sound_is_refused(folder: Path) -> None:
    shutil.rmtree(folder / "audio")
    with pytest.raises(InputError, match="can be measured again"):
        remeasure(folder)
    assert not (folder / "remeasured").exists()
    edit(folder, lambda document: document.update(results=[]))
    with pytest.raises(InputError, match="lists no call"):
        remeasure(folder)


def test_a_damaged_policy_is_refused(folder: Path) -> None:
    def damage(document: dict[str, Json]) -> None:
        policy = inside(document, "results", 0, "duplex", "timing", "policy")
        policy["resume_ms"] = "long"

    edit(folder, damage)
    with pytest.raises(InputError, match="timing policy resume_ms is 'long'"):
        remeasure(folder)


def test_a_name_is_used_once_and_stays_inside(folder: Path) -> None:
    remeasure(folder, name="strict")
    with pytest.raises(InputError, match="exists already"):
        remeasure(folder, name="strict")
    with pytest.raises(InputError, match="no file name"):
        remeasure(folder, name="../strict")
    with pytest.raises(InputError, match="name the run itself"):
        remeasure(folder / "remeasured" / "strict")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (["awkward_silense_ms=3"], "did you mean awkward_silence_ms"),
        (["awkward_silence_ms"], "NAME=VALUE"),
        (["awkward_silence_ms=-3"], "NAME=VALUE"),
        (["awkward_silence_ms=1", "awkward-silence-ms=2"], "given twice"),
        (["panel_tick_ms=0"], "wanted 1 to"),
        (["resume_ms=600001"], "wanted 0 to 600000"),
    ],
)
def test_a_policy_that_does_not_exist_is_refused(
    folder: Path, policy: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run(folder, *policy)
    with pytest.raises(InputError, match='"ten" is not one of'):
        remeasure(folder, detector="ten")


@pytest.mark.parametrize("value", [0, 1, 600_000])
def test_any_policy_within_its_bounds_measures(folder: Path, value: int) -> None:
    names = [name for name in TimingPolicy().as_json() if value or name != "panel_tick_ms"]
    policy = dict.fromkeys(names, value) | ({} if value else {"response_deadline_ms": 1})
    assert remeasure(folder, policy=policy).code == 0


# -- what is printed -----------------------------------------------------------


def test_the_table_shows_was_and_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, detector="rms", response_deadline_ms=900) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 of 3 calls measured again")
    assert "was: timing 1.0, detector edge, deadline 5 s" in out
    assert "is:  timing 1.0, detector rms, deadline 900 ms" in out
    assert "never pooled" in out
    assert "moved" in out


def test_json_names_every_figure_by_its_pointer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    call = document["calls"][0]
    assert call["repeats"] is True
    results = json.loads(Path(document["results"]).read_text())
    for figure in call["figures"]:
        value = results["results"][0]
        for part in figure["pointer"].split("/")[1:]:
            value = value[part]
        assert figure["is"] == value, figure
        assert figure["was"] == figure["is"]
        assert (figure["is"] is None) == ("why" in figure)


def test_markdown_keeps_hostile_names_in_their_cells(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def hostile(document: dict[str, Json]) -> None:
        inside(document, "results", 0)["scenario_id"] = "a|b<script>\n# c"

    edit(folder, hostile)
    assert run(folder, markdown=True) == 0
    out = capsys.readouterr().out
    assert "a\\|b\\<script\\>" in out
    assert "\n# c" not in out
    assert "| figure | was | is |  |" in out


def test_a_result_written_again_reads_as_schema_two(folder: Path) -> None:
    done = remeasure(folder, detector="rms")
    assert load_results(done.folder / "results.json") == done.run
    assert (done.folder / "results.json").stat().st_mode & 0o777 == 0o600
    assert RunFolder(folder).call_ids() == ["booking", "cut_in", "refused"]
