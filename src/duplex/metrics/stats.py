"""Statistics of the timing block: percentiles, distributions, rates, intervals.

Percentiles are linear (type 7, as in numpy), rates carry their counts and a
Wilson interval (Wilson 1927), distributions a seeded percentile bootstrap
(Efron 1979). A value that is not finite is counted and left out; it must never
reach a mean. Nothing here knows what a turn is.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from duplex.counting import counted
from duplex.values import Json

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Interval = tuple[float, float]

RESAMPLES = 2_000
P95_NEEDS = 20
P99_NEEDS = 100
_Z95 = 1.959963984540054
_CELLS_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One value with its half width in the same unit; None when that is unknown."""

    value: float
    plus_minus: float | None = None
    unreliable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Statistics of one quantity; all None when nothing was measured.

    ``ci95`` belongs to the mean. ``resampled`` names the units the bootstrap
    drew. ``plus_minus`` is the half width of one value: the root mean square
    over those whose width is known. ``reason`` says why statistics are null.
    """

    n: int
    resampled: str
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    min: float | None = None
    max: float | None = None
    plus_minus: float | None = None
    ci95: Interval | None = None
    ci95_p50: Interval | None = None
    ci95_p95: Interval | None = None
    invalid: int = 0
    unreliable: int = 0
    flags: tuple[str, ...] = ()
    reason: str | None = None

    def unknown(self, pointer: str) -> dict[str, Json]:
        """Why which members are null, by JSON pointer below ``pointer``."""
        if self.reason is not None:
            return {pointer: self.reason}
        found: dict[str, Json] = {}
        if self.plus_minus is None:
            found[f"{pointer}/plus_minus_ms"] = "edges without a known width"
        if self.ci95 is None:
            for name in ("ci95", "ci95_p50", "ci95_p95"):
                found[f"{pointer}/{name}"] = f"needs two {self.resampled}"
        return found

    def as_json(self) -> dict[str, Json]:
        """The object of the interface; ``plus_minus_ms`` because all of ours are ms."""
        return {
            "mean": _round(self.mean),
            "p50": _round(self.p50),
            "p95": _round(self.p95),
            "p99": _round(self.p99),
            "min": _round(self.min),
            "max": _round(self.max),
            "n": self.n,
            "plus_minus_ms": _round(self.plus_minus),
            "ci95": interval_json(self.ci95),
            "ci95_of": "mean",
            "ci95_p50": interval_json(self.ci95_p50),
            "ci95_p95": interval_json(self.ci95_p95),
            "resampled": self.resampled,
            "invalid": self.invalid,
            "unreliable": self.unreliable,
            "flags": list(self.flags),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share of opportunities; ``value`` is None when there was none.

    The interval is None too when the numerator counts something else than a
    part of the denominator and exceeds it.
    """

    numerator: int
    denominator: int

    @property
    def value(self) -> float | None:
        return self.numerator / self.denominator if self.denominator else None

    @property
    def ci95(self) -> Interval | None:
        if not self.denominator or self.numerator > self.denominator:
            return None
        return wilson(self.numerator, self.denominator)

    def unknown(self, pointer: str, why: str) -> dict[str, Json]:
        """Why which members are null, by JSON pointer below ``pointer``."""
        if self.value is None:
            return {pointer: why}
        if self.ci95 is None:
            return {f"{pointer}/ci95": "it can count more than one of each"}
        return {}

    def as_json(self) -> dict[str, Json]:
        """``rate`` with its counts and interval."""
        return {
            "rate": None if self.value is None else round(self.value, 6),
            "numerator": self.numerator,
            "denominator": self.denominator,
            "n": self.denominator,
            "ci95": interval_json(self.ci95, 6),
        }


def percentile(ordered: Sequence[float], q: float) -> float:
    """Type 7 percentile ``q`` (0…100) of values in ascending order."""
    assert ordered, "a percentile of nothing"
    position = (len(ordered) - 1) * q / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return _between(ordered[low], ordered[high], position - low)


def wilson(numerator: int, denominator: int) -> Interval:
    """Wilson 95 % interval of a proportion."""
    assert 0 <= numerator <= denominator, (numerator, denominator)
    assert denominator > 0
    share = numerator / denominator
    z2 = _Z95 * _Z95 / denominator
    centre = (share + z2 / 2) / (1 + z2)
    half = _Z95 / (1 + z2) * math.sqrt(share * (1 - share) / denominator + z2 / 4 / denominator)
    low = 0.0 if numerator == 0 else max(0.0, centre - half)
    high = 1.0 if numerator == denominator else min(1.0, centre + half)
    return low, high


def distribution(values: Sequence[Measured], *, seed: str, reason: str) -> Distribution:
    """Statistics of one call's values; the bootstrap draws turns.

    ``seed`` fixes the draws, ``reason`` is what a reader is told when there is
    no finite value.
    """
    return pooled([[value] for value in values], seed=seed, reason=reason, resampled="turns")


def pooled(
    units: Sequence[Sequence[Measured]], *, seed: str, reason: str, resampled: str = "calls"
) -> Distribution:
    """Statistics over the values of several units; the bootstrap draws whole units."""
    kept = [(unit, v) for unit, values in enumerate(units) for v in values if _finite(v.value)]
    invalid = sum(map(len, units)) - len(kept)
    if not kept:
        why = f"{counted(invalid, 'value is', 'values are')} not finite" if invalid else reason
        return Distribution(n=0, resampled=resampled, invalid=invalid, reason=why)
    kept.sort(key=lambda item: item[1].value)
    ordered = [measured.value for _, measured in kept]
    drawn = len({unit for unit, _ in kept})
    means, medians, tails = _bootstrap(ordered, [unit for unit, _ in kept], seed)
    enough = drawn > 1
    return Distribution(
        n=len(ordered),
        resampled=resampled,
        mean=math.fsum(ordered) / len(ordered),
        p50=percentile(ordered, 50),
        p95=percentile(ordered, 95),
        p99=percentile(ordered, 99),
        min=ordered[0],
        max=ordered[-1],
        plus_minus=_typical([measured for _, measured in kept]),
        ci95=means if enough else None,
        ci95_p50=medians if enough else None,
        ci95_p95=tails if enough else None,
        invalid=invalid,
        unreliable=sum(measured.unreliable for _, measured in kept),
        flags=_flags(len(ordered), enough),
    )


def interval_json(interval: Interval | None, digits: int = 3) -> Json:
    """``[low, high]``, or null."""
    return None if interval is None else [round(bound, digits) for bound in interval]


def _bootstrap(
    ordered: Sequence[float], unit_of: Sequence[int], seed: str
) -> tuple[Interval, Interval, Interval]:
    """95 % intervals of mean, p50 and p95 when whole units are drawn again.

    A resample is a count per unit, so a value repeats as often as its unit was
    drawn and the order of the values never changes: no sorting per resample.
    """
    values = np.asarray(ordered, dtype=np.float64)
    _, owner = np.unique(np.asarray(unit_of), return_inverse=True)
    count = int(owner.max()) + 1
    draws = Draws(seed)
    rows: list[Floats] = []
    at_once = max(1, _CELLS_AT_ONCE // max(count, len(values)))
    for first in range(0, RESAMPLES, at_once):
        drawn = draws.below(count, (min(at_once, RESAMPLES - first), count))
        weights = counts(drawn, count)[:, owner]
        rows.append(resampled(values, weights))
    stats = np.concatenate(rows)
    low, high = np.percentile(stats, [2.5, 97.5], axis=0)
    mean, p50, p95 = ((float(a), float(b)) for a, b in zip(low, high, strict=True))
    return mean, p50, p95


def resampled(values: Floats, weights: Ints) -> Floats:
    """Mean, p50 and p95 of ``values`` repeated ``weights`` times; rows are resamples."""
    upto = np.cumsum(weights, axis=1)
    size = upto[:, -1]
    columns = [weights @ values / size]
    for share in (0.5, 0.95):
        position = (size - 1) * share
        low = np.floor(position).astype(np.int64)
        high = np.minimum(low + 1, size - 1)
        below = values[_index(upto, low)]
        columns.append(below + (position - low) * (values[_index(upto, high)] - below))
    return np.stack(columns, axis=1)


def _index(upto: Ints, rank: Ints) -> Ints:
    """Per row, the index of the value that has ``rank`` among the repeated ones."""
    found: Ints = (upto <= rank[:, None]).sum(axis=1)
    return found


def counts(drawn: Ints, count: int) -> Ints:
    """How often each of ``count`` units was drawn, a row a resample."""
    rows = np.arange(len(drawn), dtype=np.int64)[:, None] * count
    flat = np.bincount((drawn + rows).ravel(), minlength=len(drawn) * count)
    return flat.reshape(len(drawn), count).astype(np.int64)


class Draws:
    """Uniform whole numbers from a text seed; the bit stream is numpy's PCG64."""

    def __init__(self, seed: str) -> None:
        digest = hashlib.sha256(seed.encode()).digest()
        self._bits = np.random.PCG64(int.from_bytes(digest, "big"))

    def below(self, bound: int, shape: tuple[int, int]) -> Ints:
        raw = self._bits.random_raw(shape[0] * shape[1])
        unit = (np.asarray(raw, dtype=np.uint64) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return np.minimum((unit * bound).astype(np.int64), bound - 1).reshape(shape)


def _typical(values: Sequence[Measured]) -> float | None:
    widths = [v.plus_minus for v in values if v.plus_minus is not None and _finite(v.plus_minus)]
    if not widths:
        return None
    return math.sqrt(math.fsum(width * width for width in widths) / len(widths))


def _flags(n: int, enough: bool) -> tuple[str, ...]:
    flags = []
    if n < P95_NEEDS:
        flags.append(f"p95 rests on {counted(n, 'value')}, wanted {P95_NEEDS}")
    if n < P99_NEEDS:
        flags.append(f"p99 rests on {counted(n, 'value')}, wanted {P99_NEEDS}")
    if not enough:
        flags.append("no interval from one alone")
    return tuple(flags)


def _between(low: float, high: float, share: float) -> float:
    """Linear interpolation, exact at both ends and never outside them."""
    if share >= 0.5:
        return high - (high - low) * (1 - share)
    return low + (high - low) * share


def _finite(value: float) -> bool:
    return math.isfinite(value)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
