"""No meaning without a version: the tables of definitions, pinned, and used by every face."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import duplex
from duplex.metrics.contract import METRICS_VERSION, Settings
from duplex.metrics.contract_definitions import CONTRACT_DEFINITIONS, contract_digest
from duplex.metrics.definitions import DEFINITIONS, Definition
from duplex.metrics.word_definitions import WORD_DEFINITIONS
from duplex.results import schema
from duplex.viewer.contract import _NAMES

PINNED = {"2.0": "9a2d0d204b72f02f7cce413ed99c71cce5581c0f462469056a39d1fa0c726edf"}
TABLES = {"contract": CONTRACT_DEFINITIONS, "timing": DEFINITIONS, "words": WORD_DEFINITIONS}


def test_the_contract_changes_only_with_its_version() -> None:
    assert contract_digest() == PINNED[METRICS_VERSION]


def test_a_changed_setting_is_another_digest() -> None:
    assert contract_digest(Settings(yield_window_ms=1)) != contract_digest()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_definition_is_one_sentence_with_a_source(table: dict[str, Definition]) -> None:
    for name, entry in table.items():
        assert entry.sentence.endswith("."), name
        assert ". " not in entry.sentence, name
        assert entry.source, name


def test_every_name_is_a_field_of_the_results() -> None:
    for pointer in CONTRACT_DEFINITIONS:
        shape: type[schema.Shape] = schema.Metrics
        *inner, last = pointer.split("/")
        for part in inner:
            annotation = shape.model_fields[part].annotation
            assert isinstance(annotation, type), pointer
            assert issubclass(annotation, schema.Shape), pointer
            shape = annotation
        assert last in shape.model_fields, pointer


def test_every_definition_has_a_row_in_the_viewer() -> None:
    assert set(_NAMES) == set(CONTRACT_DEFINITIONS)


def test_faces_define_nothing() -> None:
    root = Path(duplex.__file__).parent
    for path in sorted([*(root / "viewer").glob("*.py"), *(root / "report").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            assert not (named and node.func.id == "Definition"), path  # type: ignore[attr-defined]
