"""When a run need not go on: nothing but an agent that does not work.

The rule is narrow on purpose: not one call has counted, and the first ones all
failed because the agent could not be reached or never spoke. One call that counts
rules it out for the whole run. It is told of every test case once, and keeps none.
"""

from __future__ import annotations

from duplex.results import schema

ENOUGH = 3
"""Test cases that must all have failed this way."""
_STAGES = ("assistant_connection", "assistant_opening")


class Early:
    """Follows the last attempts of a run's test cases as they come."""

    def __init__(self) -> None:
        self._cases = 0
        self._works = False
        self._last = ""

    def saw(self, result: schema.Result) -> None:
        """Take in the last attempt of one more test case."""
        self._cases += 1
        error = result.error
        self._works = self._works or error is None or error.stage not in _STAGES
        self._last = "" if error is None else error.message

    @property
    def broken(self) -> str | None:
        """Say why the rest of the run is not worth holding; None while it may be."""
        if self._works or self._cases < ENOUGH:
            return None
        return (
            f"the first {self._cases} test cases never reached a speaking agent, "
            f"the last because {self._last}"
        )
