"""A run before and after it was measured again: the figures, was and is, and what is missing.

Reads results, computes nothing: figures are taken from both by their pointers.
What is not known is shown so with its reason, never as 0. ``remeasuring.py``
drives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from duplex.counting import counted
from duplex.report import words_report
from duplex.report.figures import duration, percent
from duplex.report.markdown import cell, table
from duplex.results import schema
from duplex.results.remeasured import Remeasured, Ruler
from duplex.screen import plain
from duplex.values import Json

UNKNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of one call; None where it is not known, and ``why`` says so."""

    name: str
    pointer: str
    unit: str
    was: float | None
    now: float | None
    why: str | None = None

    @property
    def moved(self) -> bool:
        return self.was != self.now

    def as_json(self) -> dict[str, Json]:
        document: dict[str, Json] = {
            "name": self.name,
            "pointer": self.pointer,
            "unit": self.unit,
            "was": self.was,
            "is": self.now,
        }
        return document if self.why is None else {**document, "why": self.why}


_TIMING = "/duplex/timing"
_FIGURES = (
    ("reply latency, median", f"{_TIMING}/response_latency/p50", "ms"),
    ("reply latency, p95", f"{_TIMING}/response_latency/p95", "ms"),
    ("replies with a latency", f"{_TIMING}/response_latency/n", ""),
    ("caller turns", f"{_TIMING}/ledger/attempted", ""),
    ("answered", f"{_TIMING}/ledger/answered", ""),
    ("late", f"{_TIMING}/ledger/late", ""),
    ("unanswered", f"{_TIMING}/ledger/unanswered", ""),
    ("time to yield, median", f"{_TIMING}/time_to_yield/p50", "ms"),
    ("barge-ins yielded to", f"{_TIMING}/yield_rate/rate", "share"),
    ("false yields", f"{_TIMING}/false_yield/count", ""),
    ("cut in on the caller", f"{_TIMING}/eot_misprediction", ""),
    ("awkward silences", f"{_TIMING}/awkward_silence/count", ""),
    ("both spoke", f"{_TIMING}/floor/overlap_ms", "ms"),
    ("nobody spoke", f"{_TIMING}/floor/silence_ms", "ms"),
    ("turn-taking score", f"{_TIMING}/turn_taking_score", ""),
    ("relay, median", f"{_TIMING}/relay/total_ms/p50", "ms"),
    ("contract: response rate", "/metrics/audio/response_rate", "share"),
    ("contract: response latency", "/metrics/audio/response_latency_ms", "ms"),
    ("contract: interruption rate", "/metrics/audio/interruption_rate", ""),
    ("contract: silence while working", "/metrics/audio/floor_hold_silence_ms/cumulative", "ms"),
)


def figures(one: Remeasured) -> list[Figure]:
    """Every figure of the table, of one call."""
    was, now = (_Document(result) for result in (one.was, one.now))
    return [
        Figure(
            name=name,
            pointer=pointer,
            unit=unit,
            was=was.number(pointer),
            now=now.number(pointer),
            why=now.reason(pointer) if now.number(pointer) is None else None,
        )
        for name, pointer, unit in _FIGURES
    ]


class _Document:
    """A result as JSON, looked up by pointer."""

    def __init__(self, result: schema.Result) -> None:
        self._document: Json = result.model_dump(mode="json")

    def number(self, pointer: str) -> float | None:
        found = self._at(pointer)
        known = isinstance(found, int | float) and not isinstance(found, bool)
        return float(found) if known and isinstance(found, int | float) else None

    def reason(self, pointer: str) -> str:
        """Why there is no figure: by the result's reasons, or the block's own."""
        for home, inside in (("/duplex/unknown", pointer), *_own(pointer)):
            reasons = self._at(home)
            at = inside
            while at and isinstance(reasons, dict):
                found = reasons.get(at)
                if isinstance(found, str):
                    return found
                at = at.rpartition("/")[0]
        return "nothing told it"

    def _at(self, pointer: str) -> Json:
        value = self._document
        for part in pointer.split("/")[1:]:
            value = value.get(part) if isinstance(value, dict) else None
        return value


def _own(pointer: str) -> list[tuple[str, str]]:
    if not pointer.startswith(_TIMING):
        return []
    return [(f"{_TIMING}/unknown", pointer.removeprefix(_TIMING))]


def sentence(calls: Sequence[Remeasured]) -> str:
    """What came of it in one sentence."""
    done = [one for one in calls if one.measured]
    moved = [one for one in done if any(figure.moved for figure in figures(one))]
    told = f"{len(done)} of {counted(len(calls), 'call')} measured again"
    if done:
        told += ", figures moved in " + (f"{len(moved)} of them" if moved else "none")
    unheld = sum(not one.held for one in calls)
    if unheld:
        told += f"; {unheld} {'was' if unheld == 1 else 'were'} never held"
    return f"{told}."


def as_text(calls: Sequence[Remeasured]) -> RenderableType:
    """Sentence, rulers and a table a call, for a console of any width."""
    parts: list[RenderableType] = [Text(sentence(calls), style="bold")]
    for was, now in _rulers(calls):
        parts += [Text(f"was: {was}"), Text(f"is:  {now}")]
    if any(one.measured and not one.old.same_as(one.new) for one in calls):
        parts.append(Text("Two rulers: their figures are shown side by side and never pooled."))
    for one in calls:
        parts += [Text(""), *_call(one)]
    return Group(*parts)


def as_markdown(calls: Sequence[Remeasured]) -> str:
    """The same as Markdown."""
    lines = [sentence(calls), ""]
    for was, now in _rulers(calls):
        lines += [f"- was: {was}", f"- is: {now}"]
    for one in calls:
        lines += ["", f"## {cell(one.was.scenario_id)}", ""]
        if not one.measured:
            lines.append(f"Not measured again: {cell(one.why)}.")
            continue
        lines += table(("figure", "was", "is", ""), _rows(one))
        lines += ["", *(f"- note: {cell(note)}" for note in one.notes)]
        if one.words is not None:
            lines += ["", "### Words", "", *words_report.as_markdown(one.words)]
    return "\n".join(lines).rstrip() + "\n"


def as_json(calls: Sequence[Remeasured]) -> list[Json]:
    return [
        {
            "scenario_id": one.was.scenario_id,
            "sample": one.was.duplex.get("sample"),
            "measured": one.measured,
            "held": one.held,
            "why": one.why or None,
            "repeats": one.repeats,
            "was": one.old.as_json(),
            "is": one.new.as_json(),
            "notes": list(one.notes),
            "figures": [figure.as_json() for figure in figures(one)],
            "words": None if one.words is None else one.words.as_json(),
        }
        for one in calls
    ]


def _rulers(calls: Sequence[Remeasured]) -> list[tuple[str, str]]:
    """What the calls that could be measured were, and are, measured with."""
    return sorted({(_told(one.old), _told(one.new)) for one in calls if one.measured})


def _call(one: Remeasured) -> Iterator[RenderableType]:
    sample = one.was.duplex.get("sample")
    name = f"{one.was.scenario_id} #{sample}" if isinstance(sample, int) and sample > 1 else None
    yield Text(plain(name or one.was.scenario_id), style="bold")
    if not one.measured:
        yield Text(f"not measured again: {plain(one.why)}", style="dim")
        return
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("figure", "was", "is", ""):
        shown.add_column(column, overflow="fold")
    for row in _rows(one):
        shown.add_row(*(Text(plain(cell)) for cell in row))
    yield shown
    for note in one.notes:
        yield Text(f"note: {plain(note)}", style="yellow")
    if one.words is not None:
        yield Text("")
        yield from words_report.as_text(one.words)


def _rows(one: Remeasured) -> Iterator[tuple[str, str, str, str]]:
    """Figures known before or after; what is known in neither is left out."""
    for figure in figures(one):
        if figure.was is None and figure.now is None:
            continue
        mark = "" if figure.why is None else figure.why
        moved = "moved" if figure.moved and not mark else mark
        yield figure.name, _shown(figure.was, figure.unit), _shown(figure.now, figure.unit), moved


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return UNKNOWN
    if unit == "ms":
        return duration(value)
    return percent(value) if unit == "share" else f"{value:g}"


def _told(ruler: Ruler) -> str:
    deadline = duration(ruler.policy.response_deadline_ms)
    version = "no timing block" if ruler.version is None else f"timing {ruler.version}"
    differs = {
        name: value
        for name, value in ruler.policy.as_json().items()
        if value != type(ruler.policy)().as_json()[name] and name != "response_deadline_ms"
    }
    more = "".join(f", {name} {value}" for name, value in differs.items())
    return f"{version}, detector {ruler.detector}, deadline {deadline}{more}"
