"""The parts of a run's page that say how it came out: checks, failures, spreads, sweep.

Numbers are the verdict's and its aggregates'; intervals Wilson's. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from duplex.counting import counted
from duplex.exports.subject import Subject
from duplex.serve.pages import charts
from duplex.serve.pages.charts import Share
from duplex.serve.pages.markup import Child, Markup, tag
from duplex.serve.pages.words import section, share_words, table, verdict_pill
from duplex.verdict.aggregates import Aggregate, Group, aggregates, groups
from duplex.verdict.case import Case, graded
from duplex.verdict.criteria import Criterion
from duplex.verdict.readings import METRICS, turn_readings
from duplex.verdict.sweeps import sweep_of
from duplex.viewer import say

_FOR_P95 = 5
"""Of fewer values a 95th percentile is the largest and says nothing."""
_DRAWN = ("response_latency", "assistant_own_latency", "time_to_yield", "greeting_latency")
_KINDS: tuple[tuple[str, Callable[[Case], str]], ...] = (
    ("scenario", lambda case: case.scenario),
    ("condition", lambda case: case.condition),
    ("persona", lambda case: case.persona),
    ("agent", lambda case: case.agent),
)
_ATTRIBUTED = {
    "PROPERTY_ATTRIBUTABLE": "fails more often at some values",
    "FOUND_UNATTRIBUTED": "fails often, at no value more than at the others",
    "WITHIN_NOISE": "no value stands out",
}


def parts(subject: Subject) -> Iterator[Markup]:
    """Every section there is something to say in."""
    found = (
        _checks(subject),
        _failures(subject),
        _sweep(subject),
        _spreads(subject),
        _groups(subject),
    )
    yield from (one for one in found if one is not None)


def _checks(subject: Subject) -> Markup | None:
    if not subject.criteria:
        return None
    cases = subject.run.final
    rows = [_check(one, cases) for one in subject.criteria]
    names = ("check", "limit", "passed", "share", "95 %", "wanted", "")
    told = None if subject.verdict is not None else tag("p", "So far.", class_="hint")
    return section("Checks", table(names, rows), told, id="checks")


def _check(one: Criterion, cases: Sequence[Case]) -> Sequence[Child]:
    passed, total = graded(cases, one.id)
    share = Share(name=one.name, passed=passed, graded=total)
    met = None if share.percent is None else share.percent >= one.min_pass_rate - 1e-9
    mark = {True: "met", False: "missed", None: "not graded"}[met]
    between = share.interval
    return (
        one.name,
        one.text if one.text != one.name else "",
        f"{passed}/{total}",
        share_words(share.percent),
        "" if between is None else f"{between[0]:.0f} – {between[1]:.0f} %",
        f"{one.min_pass_rate:.4g} %",
        tag("span", {True: "✓ ", False: "✕ ", None: ""}[met], mark, class_=mark.replace(" ", "-")),
    )


def _failures(subject: Subject) -> Markup | None:
    if subject.verdict is None or subject.verdict.passed:
        return None
    listed = [tag("li", one.sentence) for one in subject.verdict.failures]
    return section("Why it failed", tag("ul", listed, class_="plain"), id="failures")


def _spreads(subject: Subject) -> Markup | None:
    """Milliseconds drawn, and a table of everything that was measured."""
    cases, criteria = subject.run.final, subject.criteria
    found = {one.id: one for one in aggregates(cases, criteria) if one.numbers is not None}
    if not found:
        return None
    drawn = [_spread(found[name], cases, criteria) for name in _DRAWN if name in found]
    rows = [_numbers(one) for one in found.values()]
    names = ("metric", "calls", "values", "median", "mean", "95th", "least", "most")
    all_of_them = tag(
        "details",
        tag("summary", f"All {counted(len(rows), 'metric')} in numbers"),
        table(names, rows),
    )
    return section("Measured", tag("div", drawn, class_="pair"), all_of_them, id="measured")


def _spread(one: Aggregate, cases: Sequence[Case], criteria: Sequence[Criterion]) -> Markup:
    assert one.numbers is not None
    values = [v for case in cases if case.counted for v in turn_readings(one.id, case.result)]
    marks = [("median", one.numbers.median)]
    marks += [("p95", one.numbers.p95)] if len(values) >= _FOR_P95 else []
    title = f"{_named(one.id)}: {counted(one.values, 'value')} of {counted(one.calls, 'call')}"
    return charts.spread(title, values, marks, _limit(one.id, criteria))


def _limit(metric: str, criteria: Sequence[Criterion]) -> float | None:
    """The limit that some check sets to a metric of its own, in ms."""
    for one in criteria:
        only = one.expression.only
        if only is not None and only.metric.name == metric and one.op in ("<=", "<"):
            return one.limit
    return None


def _numbers(one: Aggregate) -> Sequence[Child]:
    found = one.numbers
    assert found is not None
    values = (found.median, found.average, found.p95, found.min, found.max)
    unit = METRICS[one.id].unit if one.id in METRICS else one.unit
    shown = (say.in_unit(value, unit) for value in values)
    return (_named(one.id), one.calls, one.values, *shown)


def _named(id: str) -> str:
    return id.replace("_", " ").replace(".", ": ")


def _groups(subject: Subject) -> Markup | None:
    """Passed calls apart by whatever differs between them."""
    drawn = []
    for name, key in _KINDS:
        found = groups(subject.run.final, subject.criteria, key)
        if len(found) > 1:
            rows = [_share(group) for group in found]
            drawn.append(charts.shares(f"Calls that passed, by {name}", rows))
    if not drawn:
        return None
    return section("Broken down", tag("div", drawn, class_="pair"), id="groups")


def _share(group: Group) -> Share:
    return Share(name=group.key or "–", passed=group.passed, graded=group.evaluated)


def _sweep(subject: Subject) -> Markup | None:
    """Every check over the values of what was swept, and what the analysis says."""
    run = subject.run
    if run.swept is None:
        return None
    drawn = []
    for one in subject.criteria:
        rows = []
        for arm in run.arms:
            own = [case for case in run.final if case.arm is not None and case.arm.key == arm.key]
            passed, total = graded(own, one.id)
            name = f"{arm.label} (baseline)" if arm.baseline else arm.label
            rows.append(Share(name=name, passed=passed, graded=total))
        drawn.append(charts.shares(one.name, rows, wanted=one.min_pass_rate))
    found = sweep_of(run, subject.criteria)
    told: list[Child] = []
    if found is not None:
        names = {one.id: one.name for one in subject.criteria}
        for check in found.checks:
            worse = "; ".join(
                f"{value.of.label} {value.failure_rate:.0f} % against "
                f"{value.rest_failure_rate:.0f} % (corrected p {value.adjusted_p:.2g})"
                for value in check.worse
            )
            said = f"{names.get(check.check, check.check)}: {_ATTRIBUTED[check.attribution]}"
            told.append(tag("li", f"{said}: {worse}" if worse else said))
        told += [tag("li", caveat, class_="muted") for caveat in found.caveats]
    return section(
        f"Swept: {run.swept}",
        tag("div", drawn, class_="pair"),
        tag("ul", told, class_="plain") if told else None,
        id="sweep",
    )


def score_words(subject: Subject) -> list[Child]:
    """The verdict's mark and score."""
    verdict = subject.verdict
    if verdict is None:
        return []
    score = None if verdict.score is None else f"score {verdict.score:.1f}"
    return [verdict_pill(verdict.passed), tag("span", score, class_="muted") if score else None]
