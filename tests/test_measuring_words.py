"""Words of a recording: from ears, from a transcript, against labels; never figures by guess."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from booking_call import SCENARIOS
from duplex import remeasuring, wording
from duplex.errors import InputError, MissingExtra
from duplex.intake.two_sides import TwoSides
from duplex.local import weights
from duplex.measuring import command, measure
from duplex.values import Json, Side, Span, Utterance
from duplex.wording import Wording
from stimuli import ASSISTANT, CALLER, conversation, save
from test_remeasuring import run_folder
from viewer_runs import BOOKING, add_call

SAID = {
    Side.CALLER: ("a table for two please", "under Maya", "at seven", "thank you"),
    Side.ASSISTANT: ("for when", "what name", "what time", "goodbye"),
}
SPANS = {Side.CALLER: CALLER, Side.ASSISTANT: ASSISTANT}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return save(tmp_path / "call.wav", *conversation())


@pytest.fixture
def ears(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Ears that hear what was said, but for one word; they stand where speech was found."""

    def install(lost: str = "") -> None:
        def hear(
            sides: TwoSides,
            speech: Mapping[Side, Sequence[Span]],
            model: Path | None = None,
        ) -> dict[Side, tuple[Utterance, ...]]:
            assert sum(len(block[0]) for block in sides.blocks()) > 0
            return {
                side: tuple(
                    Utterance(side=side, text=words.replace(lost, ""), span=span, source="ears")
                    for span, words in zip(speech[side], SAID[side], strict=False)
                )
                for side in Side
            }

        monkeypatch.setattr(wording, "in_words", hear)

    return install


def labels(path: Path, *, without: str = "") -> Path:
    """What was said, as Audacity labels."""
    lines = [
        f"{start}\t{end}\t{side.label}: {words.replace(without, '')}"
        for side in Side
        for (start, end), words in zip(SPANS[side], SAID[side], strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def of_audio(document: Mapping[str, Json], name: str, side: str) -> dict[str, Json]:
    found: Json = dict(document)
    for part in ("words", "from_audio", name, side):
        assert isinstance(found, dict)
        found = found[part]
    assert isinstance(found, dict)
    return found


def run(*paths: Path, **options: object) -> int:
    return command(list(paths), console=Console(stderr=True), **options)  # type: ignore[arg-type]


def test_words_that_nobody_asked_for_are_null_with_the_reason(recording: Path) -> None:
    document = measure(recording).as_json()
    assert document["words"] is None
    unknown = document["unknown"]
    assert isinstance(unknown, dict)
    assert "--words" in str(unknown["/words"])


def test_ears_without_a_reference_give_words_and_no_figure(
    recording: Path, ears: Callable[[str], None]
) -> None:
    ears("")
    document = measure(recording, words=True).as_json()
    caller = of_audio(document, "conversation", "caller")
    assert caller["wer"] is None
    assert [piece["text"] for piece in caller["text"]] == list(SAID[Side.CALLER])  # type: ignore[union-attr,index,call-overload]
    unknown = document["unknown"]
    assert isinstance(unknown, dict)
    pointer = "/words/from_audio/conversation/caller/wer"
    assert unknown[pointer] == "nobody told what the caller said"


@pytest.mark.parametrize("given", ["labels", "transcript"])
def test_ears_are_counted_against_what_somebody_wrote_down(
    recording: Path, tmp_path: Path, ears: Callable[[str], None], given: str
) -> None:
    ears("seven")
    told = labels(tmp_path / "told.txt")
    found = (
        measure(recording, words=True, labels=told)
        if given == "labels"
        else measure(recording, words=True, transcript=told)
    )
    caller = of_audio(found.as_json(), "conversation", "caller")
    wer = caller["wer"]
    assert isinstance(wer, dict)
    assert (wer["numerator"], wer["denominator"], wer["deletions"]) == (1, 11, 1)
    assert caller["said_from"] == ("the labels" if given == "labels" else "the transcript given")
    assert caller["heard_from"] == "our ears, conversation audio"


def test_a_transcript_is_counted_against_labels_without_any_ears(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wording, "in_words", lambda *_: pytest.fail("nobody asked for ears"))
    told, heard = labels(tmp_path / "told.txt"), labels(tmp_path / "heard.txt", without="please")
    document = measure(recording, labels=told, transcript=heard).as_json()
    wer = of_audio(document, "transcript", "caller")["wer"]
    assert isinstance(wer, dict)
    assert (wer["numerator"], wer["denominator"]) == (1, 11)


def test_a_transcript_alone_gives_words_only(recording: Path, tmp_path: Path) -> None:
    found = measure(recording, transcript=labels(tmp_path / "told.txt"))
    assistant = of_audio(found.as_json(), "transcript", "assistant")
    assert assistant["wer"] is None
    assert assistant["heard_from"] == "the transcript given"


def test_words_move_no_time(recording: Path, tmp_path: Path, ears: Callable[[str], None]) -> None:
    ears("")
    plain = measure(recording)
    worded = measure(recording, words=True, transcript=labels(tmp_path / "told.txt"))
    assert plain.timing is not None
    assert worded.timing is not None
    assert worded.timing.as_json() == plain.timing.as_json()
    assert worded.contract == plain.contract


def test_a_call_is_heard_from_its_stems_against_its_own_labels(
    tmp_path: Path, ears: Callable[[str], None]
) -> None:
    ears("")
    add_call(tmp_path, "booking", BOOKING)
    document = measure(tmp_path / "audio" / "booking", words=True).as_json()
    caller = of_audio(document, "stems", "caller")
    assert caller["said_from"] == "caller_intent"
    assert isinstance(caller["wer"], dict)
    words = document["words"]
    assert isinstance(words, dict)
    assert words["heard_by"] == {"caller": None, "assistant": None}


def test_a_refused_recording_has_no_words(tmp_path: Path, ears: Callable[[str], None]) -> None:
    ears("")
    left, _ = conversation()
    found = measure(save(tmp_path / "mono.wav", left, left), words=True)
    assert found.refused
    assert found.as_json()["words"] is None


# -- every form ----------------------------------------------------------------


def test_every_form_shows_words_and_whose_ears_heard_them(
    recording: Path,
    tmp_path: Path,
    ears: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ears("seven")
    told = labels(tmp_path / "told.txt")
    options = {"wording": Wording(ears=True), "labels": told}
    assert run(recording, **options) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 of 11 (9.0 %)" in shown
    assert "caller: under Maya (heard by our ears, conversation audio)" in shown
    assert run(recording, markdown=True, **options) == 0
    page = capsys.readouterr().out
    assert "## Words" in page
    assert "| 1 of 11 (9.0 %) |" in page
    assert run(recording, csv=True, **options) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    (rate,) = [r for r in rows if r["stat"] == "conversation.caller.wer.rate"]
    assert (rate["block"], rate["n"]) == ("words", "11")
    assert float(rate["value"]) == pytest.approx(1 / 11, abs=1e-5)
    assert run(recording, as_json=True, **options) == 0
    assert json.loads(capsys.readouterr().out)["words"]["words_version"] == "1.0"


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_words_of_a_run_heard_anew_are_printed_in_every_form(
    tmp_path: Path,
    ears: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ears("")
    folder = run_folder(tmp_path / "run_offline_1")
    for words in (False, True):
        code = remeasuring.command(
            folder,
            detector=None,
            response_deadline_ms=None,
            policy=(),
            name=f"words{words}",
            words=words,
            as_json=form == "json",
            markdown=form == "markdown",
            console=Console(stderr=True),
        )
        assert code == 0
        shown = capsys.readouterr().out
        assert ("under Maya" in shown) is words
        assert ("our ears" in shown) is words
    if form == "json":
        call = json.loads(shown)["calls"][0]
        heard = call["words"]["from_audio"]["stems"]["caller"]
        assert heard["wer"]["denominator"] > 0


def test_markdown_opens_with_a_sentence_then_checks_then_the_ledger_and_the_basis(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(recording, markdown=True) == 0
    page = capsys.readouterr().out
    assert page.splitlines()[2].startswith("The assistant answered")
    order = [page.index(f"## {name}") for name in ("Checks", "Times", "Ledger", "Basis")]
    assert order == sorted(order)
    assert "## Words" not in page
    assert "| yielded to barge-ins | all within 2 s | not measured |  |  | no barge-in |" in page


def test_hostile_words_stay_words(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "told.txt"
    told.write_text("0.5\t2.0\tcaller: <script>|x|</script> [a](b) \x1b[31m **bold** `c`\n")
    assert run(recording, markdown=True, wording=Wording(transcript=told)) == 0
    page = capsys.readouterr().out
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "\\*\\*bold\\*\\*" in page
    assert "\\[a\\](b)" in page
    assert run(recording, wording=Wording(transcript=told)) == 0
    assert "\x1b" not in capsys.readouterr().out


# -- what is refused -----------------------------------------------------------


def test_without_the_extra_one_sentence_says_how_to_get_it(
    recording: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(weights, "missing_modules", lambda names: list(names))
    with pytest.raises(MissingExtra, match=r"duplex-voice\[local\]"):
        measure(recording, words=True)
    assert run(recording, wording=Wording(ears=True)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.strip().splitlines()) == 1


@pytest.mark.parametrize("content", ["", "0.5\t2.0\tcaller\n"])
def test_a_transcript_without_words_is_refused(
    recording: Path, tmp_path: Path, content: str
) -> None:
    told = tmp_path / "told.txt"
    told.write_text(content)
    with pytest.raises(InputError):
        measure(recording, transcript=told)


def test_a_transcript_belongs_to_one_bare_recording(recording: Path, tmp_path: Path) -> None:
    told = labels(tmp_path / "told.txt")
    with pytest.raises(InputError, match="belongs to one recording"):
        run(recording, recording, wording=Wording(transcript=told))
    add_call(tmp_path, "booking", BOOKING)
    with pytest.raises(InputError, match="words of its own"):
        measure(tmp_path / "audio" / "booking", transcript=told)
    with pytest.raises(InputError, match="nobody asked for words"):
        run(recording, wording=Wording(model=tmp_path))


@pytest.mark.speech
@pytest.mark.skipif(importlib.util.find_spec("ctranslate2") is None, reason="no local extra")
def test_the_embedded_ears_hear_noise_as_no_words_of_a_person(recording: Path) -> None:
    found = measure(recording, words=True)
    assert found.words is not None
    assert set(found.words.audio) == {"conversation"}


def test_key_values_of_a_call_are_those_of_its_scenario(
    tmp_path: Path, ears: Callable[[str], None]
) -> None:
    ears("")
    folder = run_folder(tmp_path / "run")
    path = folder / "results.json"
    document = json.loads(path.read_text())
    document["run"]["dataset"] = str(SCENARIOS)
    path.write_text(json.dumps(document))
    words = measure(folder / "audio" / "booking", words=True).words
    assert words is not None
    assert words.has_keys
    path.unlink()
    words = measure(folder / "audio" / "booking", words=True).words
    assert words is not None
    assert not words.has_keys
