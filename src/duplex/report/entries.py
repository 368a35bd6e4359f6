"""One value of a measured block a row: block, metric, statistic, unit, and why it is empty.

Reads blocks as results and measurements hold them, so no number can differ from
theirs; it adds and rounds nothing. Spreadsheets and data frames drive it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from duplex.metrics.definitions import DEFINITIONS
from duplex.values import Json

_SKIPPED = frozenset(
    {
        "turns",
        "segments",
        "backchannels",
        "sounds",
        "unknown",
        "policy",
        "per_turn",
        "spans",
        "text",
        "utterances",
        "entities",
        "libraries",
    }
)
_NOT_STATS = frozenset({"n", "plus_minus_ms", "ci95_of", "resampled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One value; ``n`` and ``plus_minus_ms`` stand beside it, ``why_empty`` for it."""

    block: str
    metric: str
    stat: str
    value: Json
    unit: str
    n: Json
    plus_minus_ms: Json
    why_empty: str


def entries(
    block: str, content: Mapping[str, Json], unknown: Mapping[str, Json]
) -> Iterator[Entry]:
    """Every value of a block, lists of turns and words aside; pointers of ``unknown`` name it."""
    for metric, value in content.items():
        if metric in _SKIPPED:
            continue
        for path, leaf, n, width in _leaves(metric, value):
            yield Entry(
                block=block,
                metric=metric,
                stat=path.removeprefix(metric).lstrip("/").replace("/", "."),
                value=leaf,
                unit=DEFINITIONS[metric].unit
                if block == "timing" and metric in DEFINITIONS
                else "",
                n=n,
                plus_minus_ms=width,
                why_empty=_reason(f"/{block}/{path}", unknown) if leaf is None else "",
            )


def _leaves(
    path: str, value: Json, n: Json = None, width: Json = None
) -> Iterator[tuple[str, Json, Json, Json]]:
    """Every single value below a metric, with the n and ± that stand beside it."""
    if isinstance(value, dict):
        n, width = value.get("n", n), value.get("plus_minus_ms", width)
        for name, item in value.items():
            if name not in _NOT_STATS and name not in _SKIPPED:
                yield from _leaves(f"{path}/{name}", item, n, width)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(f"{path}/{index}", item, n, width)
    else:
        yield path, value, n, width


def _reason(pointer: str, unknown: Mapping[str, Json]) -> str:
    """Why a value is null: its own reason or that of what holds it."""
    while pointer:
        if pointer in unknown:
            return str(unknown[pointer])
        pointer = pointer.rpartition("/")[0]
    return "not measured"
