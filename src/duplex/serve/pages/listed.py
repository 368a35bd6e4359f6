"""The page at ``/``: runs with their verdicts, filters, and how one plan went over time.

It formats rows and points; nothing is judged here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from duplex.serve.pages import charts
from duplex.serve.pages.charts import Point
from duplex.serve.pages.markup import Child, Markup, address, tag
from duplex.serve.pages.words import day, options, run_pill, table
from duplex.store import Row

SHOWN = 50
"""Runs on one page."""
Only = Literal["all", "failed", "running"]
_NAMES: dict[Only, str] = {"all": "All", "failed": "Failed", "running": "In progress"}
_COLUMNS = ("run", "verdict", "when", "calls", "score", "agent", "condition", "report")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the list is narrowed to; empty texts narrow nothing."""

    only: Only = "all"
    scenario: str = ""
    agent: str = ""
    plan: str = ""
    skip: int = 0
    """How many newer runs stand on the pages before."""

    def fits(self, row: Row) -> bool:
        status = {"all": True, "failed": row.passed is False, "running": row.status == "running"}
        return (
            status[self.only]
            and (not self.scenario or self.scenario in row.scenarios)
            and self.agent in ("", row.agent)
            and self.plan in ("", row.plan_id)
        )

    def address(self, only: Only, skip: int = 0) -> str:
        given = {"scenario": self.scenario, "agent": self.agent, "plan": self.plan}
        return address(only="" if only == "all" else only, skip=skip or None, **given)


def trend_of(chosen: Chosen, rows: Sequence[Row]) -> Row | None:
    """The newest run of those whose trend is shown, which have its plan and its agent.

    Of the plan that was chosen, else of the first that was held several times; none for a
    scenario, whose calls may belong to any plan.
    """
    if chosen.plan:
        among = (row for row in rows if row.plan_id == chosen.plan)
        return next((row for row in among if chosen.agent in ("", row.agent)), None)
    if chosen.scenario:
        return None
    held = Counter((row.plan_id, row.agent) for row in rows if row.plan_id)
    among = (row for row in rows if held[row.plan_id, row.agent] > 1)
    return next((row for row in among if chosen.agent in ("", row.agent)), None)


def content(
    chosen: Chosen, rows: Sequence[Row], points: Sequence[Point], trend_of: str
) -> list[Child]:
    """The page: ``rows`` are all runs, ``points`` those of the trend."""
    found = [row for row in rows if chosen.fits(row)]
    shown = found[chosen.skip :][:SHOWN]
    listed: Child = tag("p", "No run is here." if not rows else "No run fits.", class_="muted")
    if shown:
        listed = table(_COLUMNS, [_row(row) for row in shown])
    return [
        tag("h1", "Runs"),
        _filters(chosen, rows),
        _trend(points, trend_of),
        tag("div", listed, _steps(chosen, len(shown), len(found)), class_="panel"),
    ]


def _steps(chosen: Chosen, shown: int, of: int) -> Markup | None:
    """Which part of a long list this is, and the way to what is newer and older."""
    first = chosen.skip + 1
    if first == 1 and shown == of:
        return None
    links = []
    if first > 1:
        newer = chosen.address(chosen.only, max(0, chosen.skip - SHOWN))
        links.append(tag("a", "‹ Newer", href=newer, class_="button"))
    if chosen.skip + shown < of:
        older = chosen.address(chosen.only, chosen.skip + SHOWN)
        links.append(tag("a", "Older ›", href=older, class_="button"))
    words = f"Runs {first} to {first + shown - 1} of {of}." if shown else f"There are {of} runs."
    return tag(
        "nav", links, tag("span", words, class_="hint"), aria_label="Pages", class_="row steps"
    )


def _filters(chosen: Chosen, rows: Sequence[Row]) -> Markup:
    links = []
    for only, words in _NAMES.items():
        here = "page" if only == chosen.only else None
        link = tag("a", words, href=chosen.address(only), aria_current=here, class_="button")
        links.append(link)
    scenarios = sorted({name for row in rows for name in row.scenarios})
    agents = sorted({row.agent for row in rows if row.agent})
    plans = list(dict.fromkeys((row.plan_id, plan_name(row)) for row in rows if row.plan_id))
    selects = [
        _select("scenario", [(one, one) for one in scenarios], chosen.scenario),
        _select("agent", [(one, one) for one in agents], chosen.agent),
        _select("plan", list(dict(plans).items()), chosen.plan),
    ]
    kept = None
    if chosen.only != "all":
        kept = tag("input", type="hidden", name="only", value=chosen.only)
    form = tag(
        "form", kept, selects, tag("button", "Filter"), method="get", action="/", class_="filters"
    )
    which = tag("nav", links, aria_label="Which runs", class_="row")
    return tag("div", which, form)


def plan_name(row: Row) -> str:
    """A plan as people tell it from others."""
    what = ", ".join(row.scenarios[:2]) + (" …" if len(row.scenarios) > 2 else "")
    return f"{row.name or 'plan'}: {what or 'no call yet'}, {row.agent}, {row.condition}"


def _select(name: str, values: Sequence[tuple[str, str]], chosen: str) -> Markup:
    known = chosen in dict(values)
    odd = [] if known or not chosen else [(chosen, chosen)]
    given = options([("", "any"), *values, *odd], chosen)
    label = tag("span", name.capitalize())
    return tag("label", label, tag("select", given, name=name))


def _trend(points: Sequence[Point], of: str) -> Markup | None:
    if not points:
        return None
    shown = [charts.trend("Calls that passed, with 95 % intervals", points)]
    if any(point.median_ms is not None for point in points):
        key = tag(
            "p",
            tag("span", tag("i", class_="i-median"), "median"),
            tag("span", tag("i", class_="i-p95"), "95th percentile"),
            class_="key",
        )
        shown.append(tag("div", charts.latency_trend("Latency of replies", points), key))
    return tag(
        "section",
        tag("h2", f"Trend of {of}", id="trend-title"),
        tag("div", shown, class_="pair"),
        class_="panel",
        aria_labelledby="trend-title",
    )


def _row(row: Row) -> Sequence[Child]:
    name: Child = row.id
    if row.status != "damaged":
        name = tag("a", row.id, href=address("runs", row.id))
    place = address("api", "runs", row.id, "report.md")
    report = tag("a", "report", href=place, aria_label=f"report of {row.id}")
    return (
        name,
        (run_pill(row), f" {row.problem}" if row.problem else None),
        day(row.created_at),
        f"{row.passed_calls}/{row.total or row.expected}",
        "–" if row.score is None else f"{row.score:.1f}",
        row.agent,
        row.condition,
        None if row.status == "damaged" else report,
    )
