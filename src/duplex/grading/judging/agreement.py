"""How far a judge agrees with people: accuracy, chance-corrected agreement, what it left open.

Pure statistics over labels and judgements. Shares carry Wilson intervals; kappas are
Cohen's (1960), for scores with quadratic weights (1968), with a bootstrap over whole
transcripts, because what one transcript gives is not independent. A figure that nothing
was left to compute from is None, never 0 or 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from duplex.grading.judging.judgement import Judgement
from duplex.grading.judging.labelled import Labelled
from duplex.grading.judging.rubric import DIMENSIONS, FLAGS
from duplex.metrics.stats import Floats, Interval, Rate, interval_json
from duplex.values import Json

RESAMPLES = 2_000
ABSENT = "null"
"""How "no occasion" stands in a confusion."""

Value = str | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One label and what the judge said; ``case`` is the transcript's number."""

    case: int
    label: Value
    said: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One figure over all transcripts.

    ``decided`` is how many labels got a decision, ``equal`` how many the same one. ``near``
    counts scores at most a quarter off. ``confusion`` maps label, then decision, to counts.
    """

    name: str
    labels: int
    decided: int
    equal: Rate
    near: Rate | None
    kappa: float | None
    kappa_ci95: Interval | None
    weighted: bool
    confusion: dict[str, dict[str, int]]

    def as_json(self) -> dict[str, Json]:
        return {
            "labels": self.labels,
            "decided": self.decided,
            "accuracy": self.equal.as_json(),
            "within_a_quarter": None if self.near is None else self.near.as_json(),
            "kappa": None if self.kappa is None else round(self.kappa, 4),
            "kappa_weights": "quadratic" if self.weighted else "none",
            "kappa_ci95": interval_json(self.kappa_ci95, 4),
            "confusion": {label: dict(row) for label, row in self.confusion.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A judge against a labelled set; ``not_assessed`` counts transcripts without an outcome."""

    transcripts: int
    not_assessed: Rate
    wrong_passes: Rate
    wrong_fails: Rate
    parts: tuple[Agreement, ...]
    problems: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Json]:
        return {
            "transcripts": self.transcripts,
            "not_assessed": self.not_assessed.as_json(),
            "wrong_passes": self.wrong_passes.as_json(),
            "wrong_fails": self.wrong_fails.as_json(),
            "agreement": {part.name: part.as_json() for part in self.parts},
            "problems": [{"id": name, "why": why} for name, why in self.problems],
        }


def agreement(cases: Sequence[Labelled], judgements: Sequence[Judgement], seed: int = 7) -> Report:
    """Hold judgements against the labels of the same transcripts, in order."""
    both = list(zip(cases, judgements, strict=True))
    outcomes = _outcomes(both)
    told = [pair for pair in outcomes if pair.said is not None]
    bad = [pair for pair in told if pair.label == "fail"]
    good = [pair for pair in told if pair.label == "pass"]
    parts = [_part("outcome", outcomes, len(both), seed)]
    parts.append(_part("requirements", list(_requirements(both)), len(both), seed))
    for name in DIMENSIONS:
        parts.append(_scored(name, list(_dimension(both, name)), len(both), seed))
    parts.append(_scored("conciseness", list(_conciseness(both)), len(both), seed))
    for name in FLAGS:
        parts.append(_part(name, list(_flags(both, name)), len(both), seed))
    return Report(
        transcripts=len(both),
        not_assessed=Rate(numerator=len(outcomes) - len(told), denominator=len(outcomes)),
        wrong_passes=Rate(numerator=sum(pair.said == "pass" for pair in bad), denominator=len(bad)),
        wrong_fails=Rate(
            numerator=sum(pair.said == "fail" for pair in good), denominator=len(good)
        ),
        parts=tuple(parts),
        problems=tuple(
            (case.id, judgement.outcome.why)
            for case, judgement in both
            if judgement.outcome.value is None
        ),
    )


_Both = Sequence[tuple[Labelled, Judgement]]


def _outcomes(both: _Both) -> list[Pair]:
    return [
        Pair(case=index, label=case.labels.outcome, said=judgement.outcome.value)
        for index, (case, judgement) in enumerate(both)
    ]


def _requirements(both: _Both) -> Iterator[Pair]:
    for index, (case, judgement) in enumerate(both):
        for label, ruling in zip(case.labels.requirements, judgement.requirements, strict=True):
            yield Pair(case=index, label=label, said=ruling.value)


def _dimension(both: _Both, name: str) -> Iterator[Pair]:
    """A label or a decision "no occasion" is a value of its own; undecided is none."""
    for index, (case, judgement) in enumerate(both):
        label = case.labels.dimensions[name]
        ruling = judgement.dimensions.get(name)
        said: Value = None
        if ruling is not None and not ruling.undecided:
            said = ABSENT if ruling.value is None else ruling.value
        yield Pair(case=index, label=ABSENT if label is None else label, said=said)


def _conciseness(both: _Both) -> Iterator[Pair]:
    for index, (case, judgement) in enumerate(both):
        said = {one.turn: one.ruling.value for one in judgement.conciseness}
        for one in case.labels.conciseness:
            yield Pair(case=index, label=one.score, said=said.get(one.turn))


def _flags(both: _Both, name: str) -> Iterator[Pair]:
    for index, (case, judgement) in enumerate(both):
        ruling = judgement.flags.get(name)
        said = None if ruling is None else ruling.value
        yield Pair(case=index, label=case.labels.flags[name], said=said)


# -- one figure ------------------------------------------------------------------


def _part(name: str, pairs: Sequence[Pair], cases: int, seed: int) -> Agreement:
    return _figure(name, pairs, cases, seed, scored=False)


def _scored(name: str, pairs: Sequence[Pair], cases: int, seed: int) -> Agreement:
    return _figure(name, pairs, cases, seed, scored=True)


def _figure(name: str, pairs: Sequence[Pair], cases: int, seed: int, *, scored: bool) -> Agreement:
    told = [pair for pair in pairs if pair.said is not None]
    numbers = [pair for pair in told if _number(pair.label) and _number(pair.said)]
    value, interval = kappa(numbers if scored else told, cases, f"{seed}:{name}", weighted=scored)
    near = sum(_distance(pair) <= 0.25 for pair in numbers)
    return Agreement(
        name=name,
        labels=len(pairs),
        decided=len(told),
        equal=Rate(numerator=sum(pair.label == pair.said for pair in told), denominator=len(told)),
        near=Rate(numerator=near, denominator=len(numbers)) if scored else None,
        kappa=value,
        kappa_ci95=interval,
        weighted=scored,
        confusion=_confusion(pairs),
    )


def kappa(
    pairs: Sequence[Pair], cases: int, seed: str, *, weighted: bool
) -> tuple[float | None, Interval | None]:
    """Cohen's kappa of ``pairs`` and the middle 95 % of it over transcripts drawn again.

    ``weighted``: values are numbers, and a disagreement weighs its distance squared.
    None where chance alone would always agree, or nothing was decided.
    """
    values = sorted({_shown(one) for pair in pairs for one in (pair.label, pair.said)})
    if not values:
        return None, None
    places = {value: index for index, value in enumerate(values)}
    cells = np.zeros((cases, len(values), len(values)))
    for pair in pairs:
        cells[pair.case, places[_shown(pair.label)], places[_shown(pair.said)]] += 1
    if weighted:
        numbers = np.array([float(value) for value in values])
        weights = (numbers[:, None] - numbers[None, :]) ** 2
    else:
        weights = 1.0 - np.eye(len(values))
    value = _kappas(cells.sum(axis=0)[None], weights)[0]
    if np.isnan(value):
        return None, None
    if int((cells.sum(axis=(1, 2)) > 0).sum()) < 2:
        return float(value), None
    generator = np.random.default_rng(list(seed.encode()))
    drawn = generator.multinomial(cases, np.full(cases, 1 / cases), size=RESAMPLES)
    again = _kappas(np.einsum("rc,cij->rij", drawn, cells), weights)
    low, high = np.nanpercentile(again, (2.5, 97.5))
    return float(value), (float(low), float(high))


def _kappas(counts: Floats, weights: Floats) -> Floats:
    """Kappa of each confusion matrix of a stack; NaN where it is not defined."""
    totals = counts.sum(axis=(1, 2))
    observed = (counts * weights).sum(axis=(1, 2))
    chance = np.einsum("ri,rj,ij->r", counts.sum(axis=2), counts.sum(axis=1), weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = 1 - observed * totals / chance
    found[chance <= 0] = np.nan
    return found


def _confusion(pairs: Sequence[Pair]) -> dict[str, dict[str, int]]:
    counted = Counter((_shown(pair.label), _shown(pair.said)) for pair in pairs)
    rows: dict[str, dict[str, int]] = {}
    for (label, said), count in sorted(counted.items()):
        rows.setdefault(label, {})[said] = count
    return rows


def _shown(value: Value) -> str:
    if value is None:
        return "not_assessed"
    if isinstance(value, bool):
        return "present" if value else "absent"
    return f"{value:g}" if isinstance(value, float | int) else value


def _number(value: Value) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def _distance(pair: Pair) -> float:
    assert isinstance(pair.label, float | int)
    assert isinstance(pair.said, float | int)
    return abs(pair.label - pair.said)
