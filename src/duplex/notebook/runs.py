"""A run's folder as values: the run, its calls, and what was measured of each.

Reads results that exist and holds no copy of them in another form. ``load`` and
``duplex.run`` hand it out; a person at a notebook drives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from duplex.counting import counted
from duplex.errors import DuplexError, InputError
from duplex.grading import Evidence
from duplex.inputs import is_file
from duplex.metrics.pooling import pool
from duplex.notebook import markup
from duplex.notebook.extras import need_frames, need_plots
from duplex.notebook.metrics import Metrics, figures, of_result
from duplex.recording import Recording
from duplex.report.run_report import basis, short
from duplex.report.verdict_report import verdict_lines
from duplex.results import schema
from duplex.results.run import COLUMNS, headline, rows
from duplex.results.stored import call_id, home, load_results
from duplex.runner import Finished
from duplex.store import find_run
from duplex.values import Json
from duplex.verdict.block import judged
from duplex.verdict.case import Case, Reading
from duplex.verdict.gather import gather
from duplex.verdict.readings import find, read
from duplex.viewer import timeline
from duplex.viewer.reading import clean, members, number

if TYPE_CHECKING:
    from pandas import DataFrame

    from duplex.notebook.canvas import Plot


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Call:
    """One call of a run.

    ``id`` names its files, ``result`` is what ``results.json`` says of it, ``case`` which
    test case it belongs to and what each check of the run said of it; ``folder`` is the run's.
    """

    id: str
    result: schema.Result
    case: Case
    folder: Path

    @property
    def scenario(self) -> str:
        return self.result.scenario_id

    @property
    def passed(self) -> bool | None:
        """Whether every check that graded it passed; None for a call that does not count."""
        return self.case.passed

    @property
    def metrics(self) -> Metrics:
        """What was measured of it."""
        return of_result(self.id, self.result)

    def reading(self, name: str) -> Reading:
        """Return one metric as checks spell it, ``response_latency.p95``; None if unmeasured.

        Raises:
            InputError: there is no such metric.
        """
        return read(find(name), self.result)

    def recording(self) -> Recording:
        """Load its events and audio. Raises InputError when it left none."""
        return Recording.load(self.folder, self.id)

    def turns(self) -> DataFrame:
        """Return one row a turn; see :meth:`Metrics.turns`."""
        return self.metrics.turns()

    def plot_timeline(self) -> Plot:
        """Draw both sides over time: voice, overlaps, replies with latencies, tools at work.

        Raises:
            MissingExtra: matplotlib (extra ``plot``) is not installed.
        """
        need_plots()
        from duplex.notebook.timeline_plot import draw

        tracks, duration = self._tracks()
        return draw(f"{self.id} of {self.folder.resolve().name}", tracks, duration)

    def plot_latency(self) -> Plot:
        """Draw its replies' latencies; see :meth:`Metrics.plot_latency`."""
        return self.metrics.plot_latency()

    def _tracks(self) -> tuple[dict[str, Json], float]:
        """What is drawn on its timeline, and its length in ms; without events what there is."""
        recording: Recording | None = None
        evidence = Evidence()
        try:
            recording = self.recording()
            evidence = Evidence.from_recording(recording)
        except DuplexError:
            pass
        timing = self.metrics.timing
        said = number(members(self.result.duplex).get("duration_ms"))
        duration = float(evidence.duration_ms) or said or 0.0
        spoken = timeline.voices(timing, recording)
        return timeline.tracks(timing, spoken, evidence, duration), duration

    def __repr__(self) -> str:
        return f"<Call {clean(self.id)}: {_passed(self.passed)}>"

    def _repr_html_(self) -> str:
        checks = [
            (
                one.id,
                _passed(one.passed),
                "" if one.reading is None else str(one.reading),
                one.reason,
            )
            for one in self.case.checks
        ]
        told = f"{_passed(self.passed)}, {self.result.title}"
        return markup.block(
            self.id,
            f"{told}; {self.metrics.basis}",
            markup.table(("check", "said", "measured", "why"), checks) if checks else "",
            figures(self.metrics),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run(Finished):
    """A run's folder: its calls, its verdict, what was measured of all of them.

    ``run`` is ``results.json`` as it stands, ``folder`` where it lies. A run in progress
    can be loaded too; its verdict is None until it is over.
    """

    @classmethod
    def of(cls, finished: Finished) -> Self:
        """A run that is over, able to show itself."""
        return cls(run=finished.run, folder=finished.folder, stopped=finished.stopped)

    @property
    def id(self) -> str:
        return self.run.run.id

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every attempt at every test case, in the order of the plan."""
        folder = home(self.folder)
        return tuple(
            Call(id=_id(folder, case.result), result=case.result, case=case, folder=folder)
            for case in gather(self.run).cases
        )

    @property
    def passed(self) -> bool | None:
        """The verdict; None while the run goes on."""
        verdict = judged(self.run)[2]
        return None if verdict is None else verdict.passed

    @property
    def metrics(self) -> Metrics:
        """What was measured of all calls that count, pooled; intervals draw whole calls."""
        calls = [call for call in self.calls if call.case.counted and call.case.final]
        blocks = {call.id: block for call in calls if (block := call.metrics.timing)}
        timing: dict[str, Json] = {}
        reasons: dict[str, Json] = {}
        try:
            timing = pool([dict(block) for block in blocks.values()], seed=self.id)
            reasons = {f"/timing{at}": why for at, why in members(timing["unknown"]).items()}
        except InputError as error:
            reasons["/timing"] = str(error)
        return Metrics(
            of=self.id, timing=timing, contract={}, words={}, unknown=reasons, calls=blocks
        )

    @property
    def swept(self) -> str | None:
        """The property that was swept; None for a run without a sweep."""
        return gather(self.run).swept

    def call(self, name: str | None = None) -> Call:
        """Return a call by its id, or the only call of its scenario; without a name the first.

        Raises:
            InputError: the run has no such call, or several.
        """
        calls = self.calls
        found = [one for one in calls if name is None or one.id == name]
        found = found or [one for one in calls if one.scenario == name]
        if not found or (len(found) > 1 and name is not None):
            ids = ", ".join(one.id for one in (found or calls)[:20]) or "it holds none"
            number_of = counted(len(found), "call")
            raise InputError(f'run {self.id} has {number_of} named "{name}", want one of: {ids}')
        return found[0]

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    def to_pandas(self) -> DataFrame:
        """Return one row a call: which it was, its checks, and every metric that any call has.

        Raises:
            MissingExtra: pandas (extra ``notebook``) is not installed.
        """
        need_frames()
        from duplex.notebook.frames import of_calls

        return of_calls(self.run, [call.id for call in self.calls])

    def turns(self) -> DataFrame:
        """Return one row a turn of every call that was measured; see :meth:`Metrics.turns`."""
        need_frames()
        from duplex.notebook.frames import of_turns

        return of_turns({call.id: block for call in self.calls if (block := call.metrics.timing)})

    def plot_latency(self) -> Plot:
        """Draw the latencies of all replies; see :meth:`Metrics.plot_latency`."""
        return self.metrics.plot_latency()

    def plot_timeline(self, call: str | None = None) -> Plot:
        """Draw one call over time, the first if none is named; see :meth:`Call.plot_timeline`."""
        return self.call(call).plot_timeline()

    def plot_sweep(self) -> Plot:
        """Draw a swept property's values: pass rate of each check and latency, with intervals.

        Raises:
            InputError: the run swept nothing.
            MissingExtra: matplotlib (extra ``plot``) is not installed.
        """
        need_plots()
        from duplex.notebook.sweep_plot import draw

        return draw(self.run)

    def __str__(self) -> str:
        return clean(headline(self.run))

    def __repr__(self) -> str:
        return f"<Run {clean(self.id)}: {self}>"

    def _repr_html_(self) -> str:
        told = [*verdict_lines(self.run), *short(self.run)]
        cells = [row.cells() for row in rows(self.run)]
        return markup.block(
            headline(self.run),
            f"{self.id}, {basis(self.run)}",
            markup.table(COLUMNS, cells),
            markup.lines(line for line in told if line != basis(self.run)),
        )


def load(run: str | Path, runs: str | Path = "runs") -> Run:
    """Load a run by its folder, its ``results.json``, or its id below ``runs``.

    Raises:
        InputError: there is no such run, or its results are not of schema 2.0.
    """
    path = Path(run)
    folder = path.parent if is_file(path) else find_run(run, Path(runs))
    return Run(run=load_results(folder / "results.json"), folder=folder)


def _id(folder: Path, result: schema.Result) -> str:
    """The call's id as its run gave it; of a run that gave none, as its files have it."""
    told = members(result.duplex.get("case")).get("call_id")
    return told if isinstance(told, str) and told else call_id(folder, result)


def _passed(said: bool | None) -> str:
    return {True: "passed", False: "failed", None: "not graded"}[said]
