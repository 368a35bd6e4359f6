"""When a run need not go on: nothing but an agent that does not work.

The rule is narrow on purpose: not one call has counted, and the first ones all
failed because the agent could not be reached or never spoke. One call that counts
rules it out for the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence

from duplex.results import schema

ENOUGH = 3
"""Test cases that must all have failed this way."""
_STAGES = ("assistant_connection", "assistant_opening")


def plainly_broken(finals: Sequence[schema.Result]) -> str | None:
    """Say why the rest of a run is not worth holding; None while it may be."""
    if len(finals) < ENOUGH or any(one.error is None for one in finals):
        return None
    stages = [one.error.stage for one in finals if one.error is not None]
    if any(stage not in _STAGES for stage in stages):
        return None
    last = finals[-1].error
    said = "" if last is None else f", the last because {last.message}"
    return f"the first {len(finals)} test cases never reached a speaking agent{said}"
