"""Many calls as one run: hold each, keep it, measure it, grade it, list it.

A call's own folder is complete before its result is listed, and results.json is
rewritten whole after every call, so a run that dies keeps what it had. Nothing
is computed here that metrics, grading or results do not compute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from duplex import preflight
from duplex import scenario as scenarios
from duplex.about_run import Held, about, configuration, versions
from duplex.assessing import assess, basis_of, not_held, to_judge
from duplex.call import Call, CallPlan, Watcher
from duplex.clock import Clock, VirtualClock, WallClock, wall_seconds
from duplex.discretion import Discreet, hidden_run, hidden_scenario, redactor_of
from duplex.ends import REMOTE, Ends, Pair
from duplex.errors import DuplexError, InputError
from duplex.grading.judging import Judgement
from duplex.grading.matching import state_satisfied
from duplex.hangup import Policy
from duplex.inputs import exists, is_folder, reason
from duplex.judging import Graders
from duplex.legs import LinePlan, stems_of
from duplex.options import RunOptions
from duplex.participants.wav import read_mono
from duplex.recording import CallRecorder, Recording
from duplex.results import schema
from duplex.results.observed import Basis
from duplex.results.run import build_run
from duplex.run_folder import RunFolder
from duplex.scenario import Dataset, Scenario
from duplex.spending import Spending
from duplex.values import SESSION_RATE_HZ, Json


class Audience(Protocol):
    """Whoever follows a run; every method must return at once."""

    def opened(self, call_id: str, title: str, rate_hz: int, limit_ms: int) -> Watcher: ...

    def finished(self, call_id: str, sentence: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run that is over: its results and where they are."""

    run: schema.Run
    folder: Path
    stopped: bool = False


def data_path(options: RunOptions) -> Path:
    """Where scenarios come from: the option, ./scenarios, or the copy in the package."""
    if options.data is not None:
        return options.data
    here = Path("scenarios")
    if is_folder(here):
        return here
    package = Path(__file__).parent
    shipped = package / "scenarios"
    # An editable install has no copy: its scenarios are the checkout's.
    return shipped if shipped.is_dir() else package.parents[1] / "scenarios"


class Runner:
    """One run from options to results; :meth:`run` holds every call."""

    def __init__(
        self,
        options: RunOptions,
        *,
        audience: Audience | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._options = options
        self.audience = audience
        self._stop = stop
        self._dataset: Dataset = scenarios.load(data_path(options))
        chosen = self._dataset.select(options.scenario)
        self.chosen: tuple[Scenario, ...] = chosen[: options.max_examples]
        if not self.chosen:
            raise InputError(f"data {data_path(options)} holds no scenario")
        self._conditions = {
            scenario.id: options.condition_over(scenario.duplex.conditions)
            for scenario in self.chosen
        }
        self._ends = Ends(options)
        self._graders = Graders(options, self._ends.limiter)
        preflight.refuse(self._dataset, self.chosen, self._ends.application, options)
        self._wavs = {scenario.id: self._wav(scenario) for scenario in self.chosen}
        self._redactor = redactor_of(options.redact, self.chosen, self._ends.secrets)
        self.spending = Spending(options, len(self.chosen), self._ends.limiter.meter)
        self.spending.refuse()
        self._results: dict[str, schema.Result] = {}
        self._held: list[Held] = []
        self._opened_in = 0.0

    async def run(self) -> Finished:
        """Hold all calls, ``concurrency`` at a time, and write the run's folder."""
        options = self._options
        began = wall_seconds()
        await self._graders.open()
        await self._ends.open()
        self._opened_in = wall_seconds() - began
        self._folder = RunFolder.create(
            options.out,
            live=options.clock == "wall",
            name=options.run_name,
            redactor=self._redactor,
        )
        gate = asyncio.Semaphore(options.concurrency)
        try:
            async with asyncio.TaskGroup() as group:
                for scenario in self.chosen:
                    group.create_task(self._one(scenario, gate))
        except BaseExceptionGroup as errors:
            problem = _first(errors)
            # What was held stays listed, if there is still anywhere to write it.
            with suppress(DuplexError):
                self._written(over=True)
            raise problem from problem.__cause__
        finally:
            await self._graders.close()
            await self._ends.close()
        return Finished(
            run=self._written(over=True), folder=self._folder.path, stopped=self._stop()
        )

    async def _one(self, scenario: Scenario, gate: asyncio.Semaphore) -> None:
        async with gate:
            if self._stop() or self.spending.exhausted:
                return
            held = await self._hold(scenario)
            self._held.append(held)
            self.spending.held(Recording.load(self._folder.path, scenario.id))
            result = await asyncio.to_thread(
                assess,
                self._folder,
                self._options,
                hidden_scenario(scenario, self._redactor),
                self._basis(scenario),
                await self._judged(scenario),
                self._graders.own,
            )
            self._results[scenario.id] = result
            self._written()
            if self.audience is not None:
                sentence = self._redactor.text(_sentence(result, held))
                self.audience.finished(scenario.id, sentence)

    async def _judged(self, scenario: Scenario) -> Judgement | None:
        """What the judge makes of a call that was held; None where none is to be asked."""
        if not self._graders.judges:
            return None
        shown, basis = hidden_scenario(scenario, self._redactor), self._basis(scenario)
        case = await asyncio.to_thread(to_judge, self._folder, shown, basis)
        return None if case is None else await self._graders.judge(case)

    # -- one call -----------------------------------------------------------

    async def _hold(self, scenario: Scenario) -> Held:
        options = self._options
        rate = scenario.duplex.rate_hz or SESSION_RATE_HZ
        clock: Clock = WallClock(rate) if options.clock == "wall" else VirtualClock(rate)
        recorder = CallRecorder(
            self._folder.path,
            scenario.id,
            rate_hz=rate,
            redactor=self._redactor,
            legs=stems_of(self._conditions[scenario.id]),
        )
        began = wall_seconds()
        async with AsyncExitStack() as stack:
            stack.callback(recorder.close)
            pair = await self._ends.pair(
                scenario, self._wavs[scenario.id], self._seed(scenario), stack
            )
            plan = self._plan(scenario, rate, pair)
            call = Call(
                plan,
                caller=pair.caller,
                assistant=pair.assistant,
                clock=clock,
                recorder=recorder,
                verified=_verifier(scenario),
                observer=self._ends.observer(scenario, rate),
                watcher=self._watcher(scenario, plan),
                stop=self._stop,
            )
            end = await call.hold()
        return Held(
            end=end,
            media_seconds=end.position / rate,
            began=began,
            ended=wall_seconds(),
        )

    def _seed(self, scenario: Scenario) -> int:
        """The seed that was asked for, else the scenario's own, else the default."""
        asked = "seed" in self._options.model_fields_set
        own = scenario.duplex.seed
        return self._options.seed if asked or own is None else own

    def _plan(self, scenario: Scenario, rate: int, pair: Pair) -> CallPlan:
        options = self._options
        return CallPlan(
            call_id=scenario.id,
            scenario_id=scenario.id,
            rate_hz=rate,
            transport_ms=options.transport_ms,
            tick_ms=options.tick_ms,
            seed=self._seed(scenario),
            first_speaker=self._ends.first_speaker(scenario),
            line=LinePlan(
                condition=self._conditions[scenario.id],
                seed=self._seed(scenario),
                live=(options.caller in REMOTE, options.agent.kind != "local"),
            ),
            detector=options.detector,
            hold_ms=pair.hold_ms,
            adaptive=pair.adaptive,
            policy=Policy(
                drain_ms=options.drain_ms,
                max_duration_ms=round(options.max_duration_seconds * 1000),
            ),
            versions=versions(),
        )

    def _watcher(self, scenario: Scenario, plan: CallPlan) -> Watcher | None:
        if self.audience is None:
            return None
        limit = plan.policy.max_duration_ms
        title = self._redactor.text(scenario.title)
        shown = self.audience.opened(scenario.id, title, plan.rate_hz, limit)
        return None if shown is None else Discreet(shown, self._redactor)

    def _wav(self, scenario: Scenario) -> Path | None:
        """The caller's recording: the option's, or the first of a single-turn scenario."""
        if self._options.caller_is_wav:
            path = Path(self._options.caller)
            if not exists(path):
                raise InputError(f"caller {path}: no such file")
            read_mono(path)  # a recording that cannot be played is refused before any call
            return path
        recordings = scenario.input.recordings
        if scenario.interaction == "single_turn" and recordings:
            return self._dataset.recording(scenario, recordings[0])
        return None

    # -- results ------------------------------------------------------------

    def _basis(self, scenario: Scenario) -> Basis:
        return basis_of(self._options, recorded=self._wavs[scenario.id] is not None)

    def _written(self, *, over: bool = False) -> schema.Run:
        """Build the run from the results so far and put it on disk whole.

        Once the run is ``over``, calls that were not held are listed as such.
        """
        if over:
            for scenario in self.chosen:
                if scenario.id not in self._results:
                    basis = self._basis(scenario)
                    why = self.spending.why_stopped if self.spending.exhausted else None
                    self._results[scenario.id] = not_held(self._options, scenario, basis, why)
        listed = [
            self._results[scenario.id] for scenario in self.chosen if scenario.id in self._results
        ]
        first = {self._ends.first_speaker(scenario) for scenario in self.chosen}
        run = build_run(
            listed,
            run_id=self._folder.id,
            execution_mode="live" if self._options.clock == "wall" else "offline",
            dataset=str(data_path(self._options)),
            configuration=configuration(self._options, first, self._conditions.values()),
            duplex=about(self._options, self._held, self._opened_in)
            | {"cost": self.spending.as_json()},
        )
        hidden = hidden_run(run, self._redactor)
        self._folder.write_json(self._folder.results, hidden.model_dump(mode="json"))
        return hidden


def _verifier(scenario: Scenario) -> Callable[[Json], bool] | None:
    expected = scenario.expected.state
    if not expected:
        return None
    initial: Json = dict(scenario.application.initial_state)
    return lambda state: state_satisfied(expected, state, initial)


def _sentence(result: schema.Result, held: Held) -> str:
    why = f" ({result.error.message})" if result.error is not None else ""
    return f"{result.status} after {held.media_seconds:.1f} s of call{why}"


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception to tell of several: ours first, the system's in our words."""
    found = list(_leaves(errors))
    ours = [error for error in found if isinstance(error, DuplexError)]
    if ours:
        return ours[0]
    if isinstance(found[0], OSError):
        return InputError(f"{found[0].filename or 'the run'}: {reason(found[0])}")
    return found[0]


def _leaves(errors: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
