"""``duplex export RUN --as SHAPE``: one run in a shape that another tool reads.

stdout is complete or empty: a shape is made whole before a byte of it is printed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from duplex.errors import InputError
from duplex.exports import livekit, roark
from duplex.exports.inspect_log import inspect_log
from duplex.exports.junit import junit
from duplex.exports.subject import Subject, subject_of
from duplex.exports.summary import summary
from duplex.exports.table import table
from duplex.results.stored import load_results
from duplex.store import Store, find_run
from duplex.values import Json

_RESULTS = "results.json"


Written = Callable[[Subject, Path], str]


def _as_json(make: Callable[[Subject, Path], dict[str, Json]]) -> Written:
    def written(subject: Subject, folder: Path) -> str:
        found = make(subject, folder)
        text = json.dumps(found, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        # Half a character, which a peer may have sent, is no UTF-8.
        return text.encode("utf-8", "replace").decode("utf-8")

    return written


SHAPES: dict[str, Written] = {
    "roark": _as_json(lambda subject, _: roark.report(subject)),
    "livekit": _as_json(livekit.report),
    "junit": lambda subject, _: junit(subject),
    "csv": lambda subject, _: table(subject),
    "markdown": lambda subject, _: summary(subject),
    "inspect": _as_json(inspect_log),
}
"""What a run can be exported as; each is given the run's folder too."""


def command(
    run: Path, shape: str, *, runs: Path, compare_to: Path | None, out: Path | None
) -> None:
    """Print the export, or write it to ``out``. Raises InputError."""
    if shape not in SHAPES:
        raise InputError(f'shape "{shape}" is none of: {", ".join(SHAPES)}')
    place = find_run(run, runs)
    text = SHAPES[shape](opened(place, runs=runs, compare_to=compare_to), place)
    if out is None:
        print(text, end="")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None


def opened(run: Path, *, runs: Path, compare_to: Path | None = None) -> Subject:
    """A run read and judged, against ``compare_to`` where that is given."""
    place = find_run(run, runs)
    baseline = None if compare_to is None else find_run(compare_to, runs)
    return subject_of(
        load_results(place / _RESULTS),
        None if baseline is None else load_results(baseline / _RESULTS),
        number=_number(place),
    )


def _number(place: Path) -> int | None:
    """The run's place among those of its folder, the oldest being 1."""
    rows = [row for row in Store(place.resolve().parent).rows() if row.created_at]
    for number, row in enumerate(reversed(rows), start=1):
        if row.id == place.resolve().name:
            return number
    return None
