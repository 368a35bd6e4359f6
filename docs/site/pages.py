"""Pages of the site that follow from the code, and what a page needs to be one of a site.

MkDocs drives it. The commands' page is what ``--help`` prints, the Python page lists
``duplex.__all__``, and pages that name no place of their own are found a place: nothing
here can be out of date, because nothing of it is kept.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.core import TyperGroup, TyperOption
from typer.testing import CliRunner

import duplex
from duplex.cli import app

ROOT = Path(__file__).parents[2]
CHANGES = "reference/changes.md"
GUIDES = "Look and share"
"""Where a page stands that the navigation does not name."""
PYTHON: dict[str, tuple[str, ...]] = {
    "Hold calls": ("run", "RunOptions", "Runner", "Finished"),
    "Load, show, plot": ("load", "Run", "Call", "Metrics"),
    "Measure": ("measure", "Measured", "remeasure", "calibrate"),
    "Grade": ("grade", "CheckedCall"),
    "Scenarios and recordings": ("Dataset", "Scenario", "Recording"),
    "Inside a call": ("Participant", "Engine", "Side"),
    "Errors": ("DuplexError", "InputError", "MissingExtra"),
}
_FENCE = re.compile(r"^(```\w+) ([\w./-]+)$", re.MULTILINE)
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give every page of docs/ that the navigation does not name a place in it."""
    assert isinstance(config.nav, list)
    named = str(config.nav)
    here = sorted(path.name for path in Path(config.docs_dir).glob("*.md"))
    for section in config.nav:
        if GUIDES in section:
            section[GUIDES] += [name for name in here if f"'{name}'" not in named]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    made = {
        "reference/commands.md": commands(),
        "reference/python.md": python(),
        CHANGES: (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Markdown as GitHub reads it, for a stricter reader."""
    outside = "../" * page.file.src_uri.count("/")
    found = re.sub(r"\]\(\.\./CHANGELOG\.md", f"]({outside}{CHANGES}", markdown)
    found = re.sub(r"\]\(\s*\.\./(?:src|README)[^)]*\)", "]", found)
    found = _FENCE.sub(r'\1 title="\2"', found)
    return "\n".join(_lists(found.split("\n")))


def commands() -> str:
    """Every verb with what ``--help`` prints, in 80 columns."""
    lines = [
        "# Commands",
        "",
        "What each command's `--help` prints. Options may also stand in a",
        "",
    ]
    lines[2] += " `duplex.toml` that `--config` names: a table a verb, a name a flag."
    for verb in _verbs():
        lines += [f"## duplex {' '.join(verb)}".rstrip(), "", "```text", _help(verb), "```", ""]
    return "\n".join(lines)


def python() -> str:
    """Every public name, from its docstring."""
    grouped = {name for names in PYTHON.values() for name in names}
    missing = sorted(set(duplex.__all__) ^ grouped)
    if missing:
        raise ValueError(f"the Python page and duplex.__all__ differ in: {', '.join(missing)}")
    told = inspect.getdoc(duplex) or ""
    lines = ["# Python", "", told.replace("``", "`"), ""]
    for heading, names in PYTHON.items():
        lines += [f"## {heading}", ""]
        for name in names:
            lines += [f"::: {duplex._HOMES[name]}.{name}", ""]
            if name == "RunOptions":
                lines[-1:] = ["    options:", "      members: false", "", *_options(), ""]
    return "\n".join(lines)


def _options() -> Iterator[str]:
    """The options of a run as a table, in the words of ``duplex run --help``."""
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    params = root.commands["run"].params
    told = {one.name: one.help or "" for one in params if isinstance(one, TyperOption)}
    yield "| option | default | is |"
    yield "|---|---|---|"
    for name, field in duplex.RunOptions.model_fields.items():
        default = field.get_default(call_default_factory=True)
        shown = (
            ""
            if default in (None, ())
            else f"`{str(default) if isinstance(default, Path) else default!r}`"
        )
        words = told.get(name, "").replace("|", "\\|").replace("<", "&lt;")
        yield f"| `{name}` | {shown} | {words} |"


def _verbs() -> Iterator[tuple[str, ...]]:
    def below(group: TyperGroup, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield before
        for name, command in group.commands.items():
            if isinstance(command, TyperGroup):
                yield from below(command, (*before, name))
            else:
                yield (*before, name)

    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    yield from below(root, ())


def _help(verb: tuple[str, ...]) -> str:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        done = CliRunner().invoke(app, [*verb, "--help"], prog_name="duplex")
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    if done.exit_code:
        raise ValueError(f"duplex {' '.join(verb)} --help ended with {done.exit_code}")
    return done.stdout.strip()


def _lists(lines: list[str]) -> Iterator[str]:
    """A list behind a line of text begins after an empty line."""
    fenced = False
    before = ""
    for line in lines:
        fenced ^= line.startswith("```")
        text = bool(before.strip()) and not before.startswith((" ", "|", "#"))
        if not fenced and _ITEM.match(line) and text and not _ITEM.match(before):
            yield ""
        yield line
        before = line
