"""A team's voice tests beside its unit tests: the mark ``duplex`` and the fixture ``duplex_call``.

``@pytest.mark.duplex(scenario=…, condition=…)`` takes the options of ``duplex run``;
the fixture holds the call before the test and hands over what came of it. Calls
run in virtual time unless told otherwise, and their files stay in the test's
``tmp_path``. Installed with the package; it does nothing until it is asked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from duplex.results import Result
    from duplex.runner import Finished
    from duplex.verdict.case import Reading

MARK = "duplex"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCall:
    """A call that was held for a test; of several (samples, a sweep) ``result`` is the first."""

    finished: Finished

    @property
    def result(self) -> Result:
        return self.finished.run.results[0]

    @property
    def results(self) -> list[Result]:
        return self.finished.run.results

    @property
    def folder(self) -> Path:
        """The run's folder, with recordings, events and page."""
        return self.finished.folder

    @property
    def passed(self) -> bool:
        """Whether the whole run passed its verdict."""
        from duplex.results import exit_code

        return exit_code(self.finished.run) == 0

    def reading(self, name: str) -> Reading:
        """A metric of the call, as ``response_latency.p95``; None when it was not measured.

        Raises:
            InputError: there is no such metric.
        """
        from duplex.verdict.readings import find, read

        return read(find(name), self.result)

    def check(self, text: str) -> None:
        """Fail the test unless every call passes a check, as ``response_latency.p95 <= 1500ms``.

        Raises:
            InputError: the check cannot be read.
        """
        from duplex.verdict.criteria import read_check

        criterion = read_check(text)
        for result in self.results:
            graded = criterion.grade(result)
            if graded.passed is not True:
                why = graded.reason if graded.passed is False else "it was not measured"
                pytest.fail(f"{result.scenario_id}: {criterion.name}: {why}", pytrace=False)

    def __str__(self) -> str:
        from duplex.results.run import headline

        return headline(self.finished.run)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "duplex(**options): hold a voice call for duplex_call; options are those of duplex run",
    )


@pytest.fixture
def duplex_call(request: pytest.FixtureRequest, tmp_path: Path) -> HeldCall:
    """The call that the test's mark asks for, held and measured."""
    from duplex.errors import DuplexError
    from duplex.options import make
    from duplex.runner import Runner

    given: dict[str, object] = {"clock": "virtual", "out": tmp_path / "duplex"}
    marks = list(request.node.iter_markers(MARK))
    for mark in reversed(marks):  # the nearest wins
        if mark.args:
            raise pytest.UsageError("the mark duplex takes options by name only")
        given |= mark.kwargs
    if not marks:
        raise pytest.UsageError("duplex_call wants @pytest.mark.duplex(scenario=…) on the test")
    for name in ("scenario", "condition", "check"):
        if isinstance(given.get(name), str):
            given[name] = (given[name],)
    try:
        finished = asyncio.run(Runner(make(given)).run())
    except DuplexError as error:
        raise pytest.UsageError(f"duplex: {error}") from None
    held = HeldCall(finished=finished)
    request.node.user_properties.append(("duplex_run", str(finished.folder)))
    return held
