"""Words for people: who heard whom how well, and what was heard, line by line.

Pure: every figure stands in the words block. What nobody can tell is "not
measured" with its reason, and each line says whose ears heard it. Reports of a
recording and of a run measured again drive it, on a terminal and as Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from duplex.metrics.stats import Rate
from duplex.metrics.word_errors import Errors
from duplex.metrics.words import Ears, WordsBlock
from duplex.report import markdown
from duplex.report.figures import moment, percent
from duplex.screen import plain

HEADINGS = ("words of", "heard by", "word errors", "character errors", "key values", "")
UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLine:
    """One line somebody heard, in milliseconds."""

    start_ms: float
    speaker: str
    heard_by: str
    text: str


def as_text(block: WordsBlock) -> Iterator[RenderableType]:
    """How well each side was heard, and the words, for a console of any width."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in HEADINGS:
        table.add_column(column, overflow="fold")
    for row in rows(block):
        table.add_row(*(Text(plain(part)) for part in row))
    if table.row_count:
        yield table
    for why in unheard(block):
        yield Text(f"words: {UNMEASURED}, {plain(why)}", style="dim")
    for line in lines(block):
        told = f"{moment(line.start_ms)}  {line.speaker}: {plain(line.text)}"
        yield Text(f"{told}  (heard by {line.heard_by})", overflow="fold")


def as_markdown(block: WordsBlock) -> list[str]:
    """The same as lines of Markdown."""
    told = markdown.table(HEADINGS, rows(block))
    told += [f"Words were not measured: {markdown.cell(why)}" for why in unheard(block)]
    heard = [(moment(one.start_ms), one.speaker, one.heard_by, one.text) for one in lines(block)]
    if heard:
        told += ["", *markdown.table(("at", "who", "heard by", "words"), heard)]
    return told


def rows(block: WordsBlock) -> Iterator[tuple[str, ...]]:
    """How well each side was heard, a row per pair of ears that heard anything."""
    for ears in _heard(block):
        found = ears.found
        if found is None:
            yield ears.speaker.label, _by(ears), UNMEASURED, UNMEASURED, "", ears.why or ""
        else:
            yield (
                ears.speaker.label,
                _by(ears),
                _errors(found.words),
                _errors(found.characters),
                _keys(found.recognition) if block.has_keys else "",
                f"against {ears.said_from}",
            )


def lines(block: WordsBlock) -> list[WordLine]:
    """Everything that ears of ours, or a transcript, heard; in order of time."""
    found = [
        WordLine(
            start_ms=piece.start_ms,
            speaker=ears.speaker.label,
            heard_by=_by(ears),
            text=piece.text.strip(),
        )
        for sides in block.audio.values()
        for ears in sides.values()
        for piece in ears.text
    ]
    return sorted(found, key=lambda line: (line.start_ms, line.speaker))


def unheard(block: WordsBlock) -> Iterator[str]:
    """Why a side's words are not known at all."""
    if not block.libraries:
        yield next(iter(block.sessions.values())).why or ""


def _heard(block: WordsBlock) -> Iterator[Ears]:
    for ears in (*block.sessions.values(), *(e for s in block.audio.values() for e in s.values())):
        if ears.found is not None or ears.text:
            yield ears


def _by(ears: Ears) -> str:
    return ears.heard_from or "nobody"


def _errors(errors: Errors) -> str:
    if errors.rate is None:
        return f"{errors.count} added, none said"
    return f"{errors.count} of {errors.said} ({percent(errors.rate)})"


def _keys(rate: Rate) -> str:
    return "none said" if rate.value is None else f"{rate.numerator} of {rate.denominator} right"
