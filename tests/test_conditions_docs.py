"""The page about conditions says what the models say, and its chart shows every bed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from duplex.conditions import EFFECTS, PRESETS, names

DOCS = Path(__file__).parents[1] / "docs"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables", DOCS / "conditions_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_what_the_models_give() -> None:
    page = (DOCS / "conditions.md").read_text(encoding="utf-8")
    assert script().filled(page) == page, "run python docs/conditions_tables.py"


def test_the_chart_is_drawn_from_the_beds_as_they_are() -> None:
    chart = (DOCS / "images" / "beds.svg").read_text(encoding="utf-8")
    assert script().chart() == chart, "run python docs/conditions_tables.py"


def test_every_name_and_key_stands_on_the_page() -> None:
    page = (DOCS / "conditions.md").read_text(encoding="utf-8")
    for name in names():
        assert f"`{name}`" in page, name
    for kind in EFFECTS:
        for key in kind.model_fields:
            assert f"| `{key}` |" in page, f"{kind.title}.{key}"
    assert len(PRESETS) == len({preset.name for preset in PRESETS})
