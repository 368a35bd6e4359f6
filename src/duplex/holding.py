"""One attempt at one planned call: held, measured, graded, its own folder complete.

A setting is what all calls of one arm share: options, ends, the recordings that
call. It keeps no list and decides nothing about the run; whoever asks gets a
result that is already on disk. The runner and its workers drive it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from duplex.about_run import Held, versions
from duplex.assessing import assess, basis_of, not_held, to_judge
from duplex.call import Call, CallPlan, Watcher
from duplex.clock import Clock, VirtualClock, WallClock, utc_now, wall_seconds
from duplex.conditions import Condition
from duplex.discretion import hidden_scenario
from duplex.ends import REMOTE, Ends, Pair, Shared
from duplex.errors import InputError
from duplex.grading.judging import Judgement
from duplex.grading.matching import state_satisfied
from duplex.hangup import Policy
from duplex.inputs import exists
from duplex.judging import Graders
from duplex.legs import LinePlan, stems_of
from duplex.options import PERSON, RunOptions
from duplex.participants.wav import read_mono
from duplex.plan import Plan, PlannedCall
from duplex.recording import CallRecorder
from duplex.redact import Redactor
from duplex.results import schema
from duplex.results.observed import Basis
from duplex.run_folder import RunFolder
from duplex.scenario import Dataset, Scenario
from duplex.values import SESSION_RATE_HZ, Json

Watching = Callable[[PlannedCall, CallPlan], Watcher | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An attempt that was held and assessed."""

    held: Held
    result: schema.Result
    final: bool


class Setting:
    """What the calls of one arm share; open it before the first of them."""

    def __init__(self, options: RunOptions, dataset: Dataset, shared: Shared) -> None:
        self.options = options
        self.ends = Ends(options, shared)
        self._dataset = dataset

    async def open(self) -> None:
        await self.ends.open()

    async def close(self) -> None:
        await self.ends.close()

    def condition(self, scenario: Scenario) -> Condition:
        """The line of a scenario's calls: what the sweep or the command asks, else its own."""
        return self.options.condition_over(scenario.duplex.conditions)

    def wav(self, scenario: Scenario) -> Path | None:
        """The caller's recording: the option's, or the first of a single-turn scenario."""
        if self.options.caller_is_wav:
            path = Path(self.options.caller)
            if not exists(path):
                raise InputError(f"caller {path}: no such file")
            read_mono(path)  # a recording that cannot be played is refused before any call
            return path
        recordings = scenario.input.recordings
        if scenario.interaction == "single_turn" and recordings:
            return self._dataset.recording(scenario, recordings[0])
        return None

    def basis(self, scenario: Scenario) -> Basis:
        return basis_of(self.options, recorded=self.wav(scenario) is not None)


class Holder:
    """Holds the calls of a plan in a run's folder."""

    def __init__(
        self,
        plan: Plan,
        settings: tuple[Setting, ...],
        folder: RunFolder,
        *,
        redactor: Redactor,
        graders: Graders,
        stop: Callable[[], bool],
        watching: Watching = lambda _planned, _plan: None,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._folder = folder
        self._redactor = redactor
        self._graders = graders
        self._stop = stop
        self._watching = watching

    async def hold(self, planned: PlannedCall, attempt: int) -> Done:
        """Hold one attempt and assess it; raises only for what ends the whole run."""
        setting = self._settings[planned.setting]
        call_id = planned.attempt_id(attempt)
        started = utc_now()
        held = await self._held(planned, setting, call_id)
        ended = utc_now()
        scenario = hidden_scenario(planned.scenario, self._redactor)
        basis = setting.basis(planned.scenario)
        judgement = await self._judged(call_id, scenario, basis)
        retries = setting.options.silent_retries

        def final(outcome: str) -> bool:
            return outcome != "never_spoke" or attempt > retries

        about = about_case(planned, setting, attempt) | {"started_at": started, "ended_at": ended}
        result = await asyncio.to_thread(
            assess,
            self._folder,
            setting.options,
            scenario,
            basis,
            judgement,
            self._graders.own,
            call_id=call_id,
            sample=planned.sample,
            about=lambda outcome: about | {"final": final(outcome)},
        )
        return Done(held=held, result=result, final=final(str(result.duplex.get("outcome"))))

    async def _judged(self, call_id: str, scenario: Scenario, basis: Basis) -> Judgement | None:
        """What the judge makes of a call that was held; None where none is to be asked."""
        if not self._graders.judges:
            return None
        case = await asyncio.to_thread(to_judge, self._folder, call_id, scenario, basis)
        return None if case is None else await self._graders.judge(case)

    async def _held(self, planned: PlannedCall, setting: Setting, call_id: str) -> Held:
        scenario, options = planned.scenario, setting.options
        rate = scenario.duplex.rate_hz or SESSION_RATE_HZ
        clock: Clock = WallClock(rate) if options.clock == "wall" else VirtualClock(rate)
        condition = setting.condition(scenario)
        recorder = CallRecorder(
            self._folder.path,
            call_id,
            rate_hz=rate,
            redactor=self._redactor,
            legs=stems_of(condition),
        )
        began = wall_seconds()
        async with AsyncExitStack() as stack:
            stack.callback(recorder.close)
            pair = await setting.ends.pair(scenario, setting.wav(scenario), planned.seed, stack)
            plan = _call_plan(planned, setting, call_id, rate, condition, pair)
            call = Call(
                plan,
                caller=pair.caller,
                assistant=pair.assistant,
                clock=clock,
                recorder=recorder,
                verified=_verifier(scenario),
                observer=setting.ends.observer(scenario, rate, self._redactor.json),
                watcher=self._watching(planned, plan),
                stop=self._stop,
            )
            end = await call.hold()
        return Held(end=end, media_seconds=end.position / rate, began=began, ended=wall_seconds())


def unheld(
    planned: PlannedCall, setting: Setting, why: str | None, redactor: Redactor
) -> schema.Result:
    """The result of a planned call that was never held."""
    return not_held(
        setting.options,
        hidden_scenario(planned.scenario, redactor),
        setting.basis(planned.scenario),
        why,
        sample=planned.sample,
        about=about_case(planned, setting, 1) | {"final": True},
    )


def about_case(planned: PlannedCall, setting: Setting, attempt: int) -> dict[str, Json]:
    """``results[].duplex.case``: which test case a result belongs to."""
    arm = planned.arm
    return {
        "call_id": planned.attempt_id(attempt),
        "case_id": planned.id,
        "attempt": attempt,
        "seed": planned.seed,
        "condition": str(setting.condition(planned.scenario)),
        "persona": planned.scenario.persona.id,
        "agent": agent_name(setting.options),
        "arm": None
        if arm is None
        else {"key": arm.key, "value": arm.value, "label": arm.label, "baseline": arm.baseline},
    }


def agent_name(options: RunOptions) -> str:
    """What an assistant is called in breakdowns: its kind, and its model where it has one."""
    agent = options.agent
    if agent.kind == "local":
        return "local" if options.brain_model is None else f"local {options.brain_model}"
    return f"{agent.kind} {options.assistant_model}" if agent.hosted else options.assistant


def _call_plan(
    planned: PlannedCall,
    setting: Setting,
    call_id: str,
    rate: int,
    condition: Condition,
    pair: Pair,
) -> CallPlan:
    options = setting.options
    return CallPlan(
        call_id=call_id,
        scenario_id=planned.scenario.id,
        rate_hz=rate,
        transport_ms=options.transport_ms,
        tick_ms=options.tick_ms,
        seed=planned.seed,
        first_speaker=setting.ends.first_speaker(planned.scenario),
        line=LinePlan(
            condition=condition,
            seed=planned.seed,
            live=(options.caller in (*REMOTE, PERSON), options.agent.kind != "local"),
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


def _verifier(scenario: Scenario) -> Callable[[Json], bool] | None:
    expected = scenario.expected.state
    if not expected:
        return None
    initial: Json = dict(scenario.application.initial_state)
    return lambda state: state_satisfied(expected, state, initial)
