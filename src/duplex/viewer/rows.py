"""Rows of the metrics panel: one value each, its meaning, and why if it is not known.

The timing block is written out by the shapes of the interface (distributions,
rates, objects of these, plain values), so a name that joins the table of
definitions shows up by itself. A null is "not known" with its reason, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from duplex.metrics.definitions import DEFINITIONS, Definition
from duplex.values import Json
from duplex.viewer import say
from duplex.viewer.reading import Reasons, clean, compact, items, members, number, objects, text

_DRAWN = frozenset({"turns", "backchannels", "sounds", "segments", "ledger"})
"""Shown on the timeline, in the table of turns or in the ledger."""
_LATER = frozenset({"floor", "floor_share"})
_INSTRUMENT = frozenset({"tick_panel", "clock"})
_FATES = ("answered", "late", "unanswered", "censored", "excluded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a panel; ``exact`` is the number as it stands in the file."""

    name: str
    value: str
    known: bool = True
    details: tuple[str, ...] = ()
    exact: str = ""
    meaning: str = ""
    source: str = ""

    def as_json(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "value": self.value,
            "known": self.known,
            "details": list(self.details),
            "exact": self.exact,
            "meaning": self.meaning,
            "source": self.source,
        }


def not_known(name: str, reason: str, meaning: str = "", source: str = "") -> Row:
    return Row(name=name, value=f"not known: {reason}", known=False, meaning=meaning, source=source)


def timing_rows(timing: Mapping[str, Json]) -> list[Row]:
    """What is said of the call, in the order of the definitions, shares of the floor last."""
    present = [name for name in DEFINITIONS if name in timing and name not in _DRAWN | _INSTRUMENT]
    return _rows(timing, sorted(present, key=lambda name: name in _LATER))


def instrument_rows(timing: Mapping[str, Json]) -> list[Row]:
    """What is said of the instrument, and the panel kept for comparison."""
    return _rows(timing, [name for name in DEFINITIONS if name in timing and name in _INSTRUMENT])


def _rows(timing: Mapping[str, Json], names: list[str]) -> list[Row]:
    reasons = Reasons(timing.get("unknown"))
    return [
        row
        for name in names
        for row in _Shown(DEFINITIONS[name], reasons).rows(label(name), timing[name], f"/{name}")
    ]


def label(name: str) -> str:
    """A name as people read it: ``response_latency`` → ``response latency``."""
    if name == "ms":
        return "in all"
    if name[:1].isupper():
        return clean(name)
    return clean(name.removesuffix("_ms").removesuffix("_samples").replace("_", " "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """One tile of the ledger: what became of so many caller turns."""

    name: str
    count: str
    known: bool


def ledger(timing: Mapping[str, Json], contract: Mapping[str, Json]) -> tuple[list[Fate], str]:
    """What became of the caller's turns, and whose count it is."""
    ours = members(timing.get("ledger"))
    if ours:
        return [_fate(name, ours.get(name)) for name in ("attempted", *_FATES)], "timing block"
    counted = members(contract.get("response_opportunities"))
    names = {
        "attempted": "caller_turn_count",
        "answered": "response_count",
        "late": "response_late_count",
        "missed": "no_response_count",
        "censored": "response_censored_count",
        "excluded": "response_excluded_count",
    }
    return [_fate(name, counted.get(key)) for name, key in names.items()], "contract 2.0"


def _fate(name: str, value: Json) -> Fate:
    return Fate(name=name, count=say.whole(value), known=number(value) is not None)


class _Shown:
    """One definition's value as rows, whatever its shape."""

    def __init__(self, definition: Definition, reasons: Reasons) -> None:
        self._definition = definition
        self._reasons = reasons

    def rows(self, name: str, value: Json, pointer: str) -> Iterator[Row]:
        if isinstance(value, dict):
            yield from self._object(name, value, pointer)
        elif isinstance(value, list):
            yield self._list(name, value)
        else:
            yield self._scalar(name, value, pointer)

    def _object(self, name: str, value: Mapping[str, Json], pointer: str) -> Iterator[Row]:
        if "p50" in value and "n" in value:
            unit = "" if self._definition.unit == "0-1" else "ms"
            yield self._told(name, say.distribution(value, unit), value, pointer)
        elif "rate" in value and "denominator" in value:
            yield self._told(name, say.rate(value), value, pointer)
        elif any(isinstance(item, dict) for item in value.values()):
            for key, item in value.items():
                yield from self.rows(f"{name} · {label(key)}", item, f"{pointer}/{_token(key)}")
        else:
            yield self._parts(name, value, pointer)

    def _parts(self, name: str, value: Mapping[str, Json], pointer: str) -> Row:
        """An object of plain values as one row; what is not known is told below."""
        told, missing = [], []
        for key, item in value.items():
            if item == []:
                continue
            (row,) = self.rows(label(key), item, f"{pointer}/{_token(key)}")
            if row.known:
                told.append(f"{row.name} {row.value}")
            else:
                missing.append(f"{row.name} {row.value}")
        if not told:
            inside = next((f"{pointer}/{_token(key)}" for key in value), pointer)
            return self._unknown(name, inside)
        return self._row(name, " · ".join(told), "", tuple(missing))

    def _told(
        self,
        name: str,
        told: tuple[str, list[str]] | None,
        value: Mapping[str, Json],
        pointer: str,
    ) -> Row:
        if told is None:
            return self._unknown(name, pointer)
        words, details = told
        exact = value.get("p50", value.get("rate"))
        return self._row(name, words, compact(exact), tuple(details))

    def _scalar(self, name: str, value: Json, pointer: str) -> Row:
        found = number(value)
        if found is None:
            words = text(value)
            return self._unknown(name, pointer) if words is None else self._row(name, words, "")
        return self._row(
            name, say.in_unit(found, _unit(pointer, self._definition.unit)), compact(value)
        )

    def _list(self, name: str, value: list[Json]) -> Row:
        spans = [
            f"{say.clock(start)} to {say.clock(end)}"
            for item in objects(value)
            if (start := number(item.get("start_ms"))) is not None
            and (end := number(item.get("end_ms"))) is not None
        ]
        told = spans or [compact(item) for item in items(value)]
        return self._row(name, "; ".join(told) or "none", "")

    def _row(self, name: str, value: str, exact: str, details: tuple[str, ...] = ()) -> Row:
        return Row(
            name=name,
            value=value,
            details=tuple(one for one in details if one),
            exact=exact,
            meaning=self._definition.sentence,
            source=self._definition.source,
        )

    def _unknown(self, name: str, pointer: str) -> Row:
        reason = self._reasons.why(pointer)
        return not_known(name, reason, self._definition.sentence, self._definition.source)


def _unit(pointer: str, whole: str) -> str:
    """The unit of one value: its own name's, or its definition's where that has one."""
    parts = pointer.split("/")
    if parts[-1] == "ms" or parts[-1].endswith("_ms"):
        return "ms"
    if parts[-1].endswith("_samples"):
        return "samples"
    if "drift_ppm" in parts:
        return "ppm"
    if parts[-1].startswith("L_"):
        return "s"
    return "" if "," in whole else whole


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
