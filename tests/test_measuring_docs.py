"""The examples of docs/measuring.md are read, and give what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from duplex.cli import app
from duplex.intake import read_labels
from duplex.intake.roles import ASSUMED
from duplex.metrics import timeline
from duplex.values import Action, Side

PAGE = (Path(__file__).parents[1] / "docs" / "measuring.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w+ (\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LABELS = [text for kind, text in BLOCKS if kind == "labels"]


def only(kind: str) -> str:
    (found,) = (str(text) for name, text in BLOCKS if name == kind)
    return found


@pytest.mark.parametrize("text", LABELS, ids=["json", "audacity", "rttm"])
def test_every_kind_of_label_file_is_read_as_the_page_shows_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "labels"
    path.write_text(text, encoding="utf-8")
    found = read_labels(path, 1_000, ASSUMED)
    places = [(item.span.start, item.span.end) for item in found.of(Side.ASSISTANT)]
    assert places == [(650, 3_900), (10_200, 13_900)]
    caller = found.of(Side.CALLER)
    assert (caller[0].span.start, caller[0].span.end) == (5_640, 8_795)
    if "SPEAKER" in text:
        return
    assert [item.action for item in caller] == [Action.OPENING, Action.BACKCHANNEL]
    assert [item.text for item in caller] == ["A table for two, please.", "Mhm."]
    assert [(one.kind, one.span.start) for one in found.sounds] == [("tic", 9_300)]


def test_the_timeline_of_the_page_gives_the_figures_of_the_page(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(only("timeline"), encoding="utf-8")
    done = CliRunner().invoke(app, ["measure", "--timeline", str(path)])
    assert done.exit_code == 0, done.output
    metrics: dict[str, Any] = json.loads(done.stdout)["metrics"]
    wanted = json.loads(only("expected"))
    assert {name: metrics[name] for name in wanted} == wanted


def test_the_page_names_every_member_of_both_forms() -> None:
    from duplex.intake import labels

    models: list[type[BaseModel]] = [
        timeline._Input,
        timeline._CallerTurn,
        labels._Said,
        labels._Sounded,
    ]
    models += [timeline._Open, timeline._RunStart, timeline._RunEnd, timeline._Call]
    missing = [
        name
        for model in models
        for name in model.model_fields
        if not re.search(rf"\b{name}\b", PAGE)
    ]
    assert missing == []
    assert "`--timeline" in PAGE
    assert "`--transcript" in PAGE
