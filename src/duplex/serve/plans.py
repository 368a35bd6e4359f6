"""A plan held again: the options of a run as its journal kept them. Reading only."""

from __future__ import annotations

from collections.abc import Iterable

from duplex.serve.library import Library
from duplex.serve.refusals import Refusal
from duplex.store import Row


def again(library: Library, rows: Iterable[Row]) -> dict[str, object]:
    """The options of the first of these runs that kept them; raises Refusal."""
    for row in rows:
        told = library.seen(row).told
        if told is not None and told.opening.resumable:
            given = dict(told.opening.options)
            given.pop("out", None)
            return dict(given)
    raise Refusal(
        400, "plan_not_kept", "no run of the plan kept its options; hold it with duplex run"
    )
