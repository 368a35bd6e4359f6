"""The documentation: links lead somewhere, tables follow the code, and every page has a place."""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import duplex
from duplex.calibration import table
from duplex.calibration.matching import Metric
from duplex.metrics.contract_definitions import CONTRACT_DEFINITIONS
from duplex.metrics.definitions import DEFINITIONS
from duplex.metrics.timing_policy import TimingPolicy
from duplex.metrics.word_definitions import WORD_DEFINITIONS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(name).stem, DOCS / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    seen: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        kept = (c for c in words if c in "-_ " or unicodedata.category(c)[0] in "LN")
        slug = "".join(kept).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def links(path: Path) -> list[str]:
    return LINK.findall(CODE.sub("code", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_relative_link_leads_to_a_file_and_a_heading_of_it(page: Path) -> None:
    broken = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_link_test_sees_what_is_broken(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b` c: d\n[x](#a-b-c-d) ![y](gone.png)\n```\n[z](no)\n```\n`[w](no)`\n")
    assert links(page) == ["#a-b-c-d", "gone.png"]
    assert anchors(page) == {"a-b-c-d"}


def test_the_tables_of_the_metrics_page_are_what_the_code_gives() -> None:
    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    made = script("metrics_tables.py").filled(page)
    assert made == page, "run python docs/metrics_tables.py"


def test_every_metric_and_constant_is_defined_on_the_page() -> None:
    page = (DOCS / "metrics.md").read_text(encoding="utf-8")
    for name in (*DEFINITIONS, *CONTRACT_DEFINITIONS, *WORD_DEFINITIONS):
        assert re.search(rf"^\| `{re.escape(name)}` \|[^|]*\| [A-Z]", page, re.MULTILINE), name
    for name, value in TimingPolicy().as_json().items():
        assert f"| `{name}` | {value} | " in page


def test_the_calibration_page_is_one_that_the_command_writes_today() -> None:
    page = (DOCS / "calibration.md").read_text(encoding="utf-8")
    assert page.startswith(table._HEAD)
    heads = "| " + " | ".join(("row", *table.COLUMNS, "goal")) + " |"
    for metric in Metric:
        assert f"\n## `{metric.value}`\n\n{table.ABOUT[metric].capitalize()}.\n\n{heads}\n" in page
    rows = re.findall(r"^\| [^|]+ / .*$", page, re.MULTILINE)
    assert len(rows) > 100
    cells = {len(re.split(r"(?<!\\)\|", row)) for row in rows}
    assert cells == {len(table.COLUMNS) + 4}


def test_the_python_page_lists_every_public_name_once() -> None:
    pages = script("site/pages.py")
    page = pages.python()
    assert re.findall(r"^::: duplex[\w.]*\.(\w+)$", page, re.MULTILINE) == [
        name for names in pages.PYTHON.values() for name in names
    ]
    assert {name for names in pages.PYTHON.values() for name in names} == set(duplex.__all__)


def test_the_commands_page_has_the_help_of_every_verb() -> None:
    page = script("site/pages.py").commands()
    headings = re.findall(r"^## duplex ?(.*)$", page, re.MULTILINE)
    assert len(headings) == len(set(headings)) > 20
    assert {"", "run", "serve", "scenario from-run", "plot"} <= set(headings)
    assert "Usage: duplex scenario from-run" in page
    assert page.count("```text") == len(headings)


def test_the_navigation_names_pages_that_exist() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").replace("!!python", "!python")
    yaml.SafeLoader.add_multi_constructor("!python", lambda *_: None)
    nav = yaml.safe_load(text)["nav"]
    named = re.findall(r"[\w/.-]+\.md", str(nav))
    assert len(named) == len(set(named))
    made = {"reference/commands.md", "reference/python.md", "reference/changes.md"}
    assert made <= set(named)
    for name in set(named) - made:
        assert (DOCS / name).exists(), name


def test_a_page_reads_the_same_with_lists_and_file_names_of_github() -> None:
    pages = script("site/pages.py")
    lines = ["Text:", "- one", "  goes on", "- two", "", "```sh", "x", "- no list", "```", ""]
    assert "\n".join(pages._lists(lines)).startswith("Text:\n\n- one\n  goes on\n- two\n\n```sh")
    assert "\nx\n- no list\n" in "\n".join(pages._lists(lines))
    assert pages._FENCE.sub(r'\1 title="\2"', "```python agent.py") == '```python title="agent.py"'


def test_roles_of_docstrings_become_names() -> None:
    roles = script("site/roles.py")
    text = "fields of :class:`~duplex.options.RunOptions`, see :func:`build`"
    assert roles._ROLE.sub(roles._name, text) == "fields of `RunOptions`, see `build`"


def test_the_site_needs_nothing_from_anywhere() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in text
    assert "http" not in text
