"""Words on the page: figures of every pair of ears, and each line as it was heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from duplex import wording
from duplex.intake.two_sides import TwoSides
from duplex.remeasuring import remeasure
from duplex.results.stored import load_results
from duplex.values import Json, Side, Span, Utterance
from duplex.viewer.call import call_page
from duplex.viewer.words_rows import word_rows
from test_remeasuring import inside, run_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_folder(tmp_path_factory.mktemp("runs") / "run_offline_1")


@pytest.fixture
def heard(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run with words of ears that hear the same of everything."""

    def hear(
        sides: TwoSides, speech: Mapping[Side, Sequence[Span]], model: Path | None = None
    ) -> dict[Side, tuple[Utterance, ...]]:
        return {
            side: tuple(
                Utterance(side=side, text="this is the restaurant", span=span, source="ears")
                for span in speech[side]
            )
            for side in Side
        }

    monkeypatch.setattr(wording, "in_words", hear)
    return remeasure(folder, words=True).folder


def page(folder: Path, home: Path, index: int = 0) -> dict[str, Json]:
    return call_page(home, load_results(folder / "results.json"), index).view


def panel(view: Mapping[str, Json], title: str) -> list[dict[str, Json]]:
    panels = view["panels"]
    assert isinstance(panels, list)
    (found,) = [one for one in panels if isinstance(one, dict) and one["title"] == title]
    rows = found["rows"]
    assert isinstance(rows, list)
    return [row for row in rows if isinstance(row, dict)]


def said(view: Mapping[str, Json]) -> list[dict[str, Json]]:
    lines = view["lines"]
    assert isinstance(lines, list)
    return [line for line in lines if isinstance(line, dict) and line["kind"] == "said"]


def test_every_figure_of_our_ears_has_a_row_with_its_meaning(heard: Path, folder: Path) -> None:
    rows = panel(page(heard, folder), "Words")
    names = [str(row["name"]) for row in rows]
    assert "our ears, stems audio on the caller · word errors" in names
    assert "our ears, stems audio on the assistant · character errors" in names
    assert all(row["meaning"] for row in rows)


def test_a_line_tells_what_our_ears_heard_and_how_much_was_wrong(heard: Path, folder: Path) -> None:
    found = []
    for index in (0, 1):
        for line in said(page(heard, folder, index)):
            details = line["details"]
            assert isinstance(details, list)
            (detail,) = details
            assert isinstance(detail, dict)
            assert str(detail["name"]).startswith("heard by our ears, stems audio")
            found.append(detail["text"])
    assert "this is the restaurant" in found
    assert all(found)


def test_words_that_nobody_told_are_lines_marked_as_ours() -> None:
    words: dict[str, Json] = {
        "heard_by": {},
        "from_audio": {
            "conversation": {
                "caller": {
                    "speaker": "caller",
                    "heard_from": "our ears, conversation audio",
                    "wer": None,
                    "text": [{"start_ms": 10.0, "end_ms": 900.0, "text": " hello"}],
                }
            }
        },
        "unknown": {"/from_audio/conversation/caller/wer": "nobody told what the caller said"},
    }
    from duplex.viewer.words_rows import heard_lines

    told, untold = heard_lines(words)
    assert told == []
    assert [(one.heard, one.ours, one.side) for one in untold] == [("hello", True, "caller")]
    (row,) = word_rows(words)
    assert not row.known
    assert row.value == "not known: nobody told what the caller said"


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"heard_by": None, "from_audio": None, "unknown": {}},
        {"heard_by": {"caller": None}, "from_audio": []},
        {"heard_by": {"caller": {"utterances": [{"start_ms": "x"}, 3], "wer": 5}}},
    ],
)
def test_a_damaged_block_shows_what_it_can(words: dict[str, Json]) -> None:
    assert all(not row.known for row in word_rows(words))


def test_without_words_of_ours_lines_carry_none(folder: Path) -> None:
    lines = said(page(folder, folder))
    assert all(line["details"] == [] for line in lines)


def test_remeasured_words_stand_in_the_results(heard: Path) -> None:
    document = load_results(heard / "results.json").model_dump(mode="json")
    ears = inside(document, "results", 0, "duplex", "words", "from_audio", "stems", "caller")
    assert ears["heard_from"] == "our ears, stems audio"
