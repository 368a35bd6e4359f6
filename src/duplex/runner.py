"""Many calls as one run: hold each, keep it, measure it, grade it, list it.

A call's own folder is complete before its result is listed, and results.json is
rewritten whole after every call, so a run that dies keeps what it had. Nothing
is computed here that metrics, grading or results do not compute.
"""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol

from duplex import scenario as scenarios
from duplex.call import Call, CallEnd, CallPlan, Watcher
from duplex.clock import Clock, VirtualClock, WallClock, process_seconds, wall_seconds
from duplex.ends import PLAYOUT_HOLD_MS, Ends, Pair
from duplex.errors import DuplexError, InputError
from duplex.grading.evidence import Evidence
from duplex.grading.matching import state_satisfied
from duplex.hangup import Policy
from duplex.inputs import exists, is_folder
from duplex.local.engines import engine_versions
from duplex.metrics.contract import Settings
from duplex.metrics.from_recording import contract_of
from duplex.metrics.of_call import timing_of_call
from duplex.metrics.ticks import ticks_of
from duplex.metrics.timing_policy import TimingPolicy
from duplex.metrics.transcript import transcript_text, transcripts
from duplex.metrics.words import words_of
from duplex.options import RunOptions
from duplex.participants.wav import read_mono
from duplex.recording import CallRecorder, Recording
from duplex.results import schema
from duplex.results.build import CallFigures, build_result
from duplex.results.observed import Basis
from duplex.results.run import build_run
from duplex.run_folder import RunFolder
from duplex.scenario import Dataset, Scenario
from duplex.values import SESSION_RATE_HZ, Json

PACKAGES = ("duplex-voice", "numpy", "soxr", "webrtcvad-wheels", "websockets")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """One call that was held, with how much media went by in how much time."""

    end: CallEnd
    media_seconds: float
    began: float
    ended: float


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
        for scenario in self.chosen:
            _check_conditions(scenario)
        self._ends = Ends(options)
        self._wavs = {scenario.id: self._wav(scenario) for scenario in self.chosen}
        self._results: dict[str, schema.Result] = {}
        self._held: list[_Held] = []
        self._opened_in = 0.0

    async def run(self) -> Finished:
        """Hold all calls, ``concurrency`` at a time, and write the run's folder."""
        options = self._options
        began = wall_seconds()
        await self._ends.open()
        self._opened_in = wall_seconds() - began
        self._folder = RunFolder.create(
            options.out,
            live=options.clock == "wall",
            name=options.run_name,
            secrets=self._ends.secrets,
        )
        gate = asyncio.Semaphore(options.concurrency)
        try:
            async with asyncio.TaskGroup() as group:
                for scenario in self.chosen:
                    group.create_task(self._one(scenario, gate))
        except* DuplexError as errors:
            raise errors.exceptions[0] from None
        finally:
            await self._ends.close()
        return Finished(run=self._written(), folder=self._folder.path, stopped=self._stop())

    async def _one(self, scenario: Scenario, gate: asyncio.Semaphore) -> None:
        async with gate:
            if self._stop():
                return
            held = await self._hold(scenario)
            self._held.append(held)
            result = await asyncio.to_thread(self._judge, scenario)
            self._results[scenario.id] = result
            self._written()
            if self.audience is not None:
                self.audience.finished(scenario.id, _sentence(result, held))

    # -- one call -----------------------------------------------------------

    async def _hold(self, scenario: Scenario) -> _Held:
        options = self._options
        rate = scenario.duplex.rate_hz or SESSION_RATE_HZ
        clock: Clock = WallClock(rate) if options.clock == "wall" else VirtualClock(rate)
        recorder = CallRecorder(
            self._folder.path, scenario.id, rate_hz=rate, secrets=self._ends.secrets
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
                watcher=self._watcher(scenario, plan),
                stop=self._stop,
            )
            end = await call.hold()
        return _Held(
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
        return self.audience.opened(scenario.id, scenario.title, plan.rate_hz, limit)

    def _wav(self, scenario: Scenario) -> Path | None:
        """The caller's recording: the option's, or the first of a single-turn scenario."""
        if self._options.caller.lower().endswith(".wav"):
            path = Path(self._options.caller)
            if not exists(path):
                raise InputError(f"caller {path}: no such file")
            read_mono(path)  # a recording that cannot be played is refused before any call
            return path
        recordings = scenario.input.recordings
        if scenario.interaction == "single_turn" and recordings:
            return self._dataset.recording(scenario, recordings[0])
        return None

    # -- after the call -----------------------------------------------------

    def _judge(self, scenario: Scenario) -> schema.Result:
        """Measure and grade one call from its files; write its own folder whole."""
        folder = self._folder
        recording = Recording.load(folder.path, scenario.id)
        settings = Settings(response_deadline_ms=self._options.response_deadline_ms)
        audio = folder.audio(scenario.id)
        words = audio / "conversation.transcript.txt"
        heard = recording.duration > 0
        result = build_result(
            scenario,
            Evidence.from_recording(recording),
            CallFigures(
                audio=contract_of(recording, settings) if heard else None,
                response_deadline_ms=settings.response_deadline_ms,
                timing=self._timing(recording) if heard else None,
                extra={"words": words_of(recording, scenario).as_json()},
                unknown={"/duplex/timing": "no sound was recorded"},
            ),
            basis=self._basis(scenario),
            conversation_audio=folder.relative(audio / "conversation.wav"),
            conversation_transcript=folder.relative(words),
        )
        folder.write_text(words, transcript_text(recording))
        folder.write_json(folder.transcript(scenario.id), transcripts(recording))
        folder.write_json(audio / "conversation.result.json", result.model_dump(mode="json"))
        if self._options.ticks:
            ticks = ticks_of(recording, self._options.tick_ms)
            lines = "".join(json.dumps(tick, allow_nan=False) + "\n" for tick in ticks)
            folder.write_text(audio / "ticks.jsonl", lines)
        return result

    def _timing(self, recording: Recording) -> Mapping[str, Json]:
        policy = TimingPolicy(response_deadline_ms=self._options.response_deadline_ms)
        return timing_of_call(recording, policy=policy).as_json()

    def _basis(self, scenario: Scenario) -> Basis:
        options = self._options
        if self._wavs[scenario.id] is not None:
            return Basis(
                audio_source=f"recording_{_word(options.assistant)}",
                caller_mode="recording",
                attribution="scenario_text",
                validity_scope="recorded_caller",
                caller_tells_agenda=False,
            )
        if options.caller == "local":
            source = "dual_local" if options.assistant == "local" else "local_gpt_live"
            return Basis(audio_source=source)
        source = "dual_gpt_live" if options.assistant != "local" else "gpt_live_local"
        return Basis(
            audio_source=source,
            caller_mode="gpt-live",
            attribution="post_hoc_audio_and_transcript",
            validity_scope="frontend_only_caller_delegation",
            caller_tells_agenda=False,
        )

    # -- results ------------------------------------------------------------

    def _written(self) -> schema.Run:
        """Build the run from the results so far and put it on disk whole."""
        listed = [
            self._results[scenario.id] for scenario in self.chosen if scenario.id in self._results
        ]
        run = build_run(
            listed,
            run_id=self._folder.id,
            execution_mode="live" if self._options.clock == "wall" else "offline",
            dataset=str(data_path(self._options)),
            configuration=self._configuration(),
            duplex=self._about(),
        )
        self._folder.write_json(self._folder.results, run.model_dump(mode="json"))
        return run

    def _configuration(self) -> schema.Configuration:
        options = self._options
        remote_caller = options.caller == "gpt-live"
        remote = options.assistant != "local"
        first = {self._ends.first_speaker(scenario) for scenario in self.chosen}
        return schema.Configuration(
            model=options.model if remote else "local",
            backend_model=None,
            assistant_mode=options.delegation,
            assistant_endpoint="",
            voice=options.voice,
            first_speaker=first.pop() if len(first) == 1 else "mixed",
            simulator_model=options.simulator_model if remote_caller else options.caller,
            simulator_voice=options.simulator_voice,
            simulator_backend_model=None,
            simulator_backend_reasoning_effort=None,
            semantic_drain=False,
            completion_model=None,
            completion_timeout_seconds=None,
            concurrency=options.concurrency,
            audio_condition="clean",
            audio_realism={},
            tick_ms=options.tick_ms,
            response_deadline_ms=options.response_deadline_ms,
            seed=options.seed,
        )

    def _about(self) -> dict[str, Json]:
        options = self._options
        return {
            "versions": dict(versions()),
            "machine": {"processor": _processor(), "python": platform.python_version()},
            "clock": options.clock,
            "transport_ms": options.transport_ms,
            "detector": options.detector,
            "playout_hold": {"start_ms": PLAYOUT_HOLD_MS, "adaptive": True},
            "application": options.application,
            "speed": self._speed(),
        }

    def _speed(self) -> dict[str, Json]:
        """How much faster than real time: the calls alone, and with all start-up."""
        media = sum(held.media_seconds for held in self._held)
        # From the first call's start to the last one's end: calls may be held side by side.
        spent = max((held.ended for held in self._held), default=0.0) - min(
            (held.began for held in self._held), default=0.0
        )
        whole = process_seconds()
        return {
            "media_seconds": round(media, 3),
            "call_seconds": round(spent, 3),
            "opening_seconds": round(self._opened_in, 3),
            "process_seconds": round(whole, 3),
            "call": round(media / spent, 2) if spent > 0 else None,
            "with_start_up": round(media / whole, 2) if whole > 0 else None,
        }


def versions() -> Mapping[str, str]:
    """Versions of the packages that decide a call's bytes, those installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found | {name: at for name, at in engine_versions().items() if at is not None}


def _check_conditions(scenario: Scenario) -> None:
    unknown = [name for name in scenario.duplex.conditions or () if name != "clean"]
    if unknown:
        raise InputError(f'scenario {scenario.id}: condition "{unknown[0]}" does not exist (clean)')


def _verifier(scenario: Scenario) -> Callable[[Json], bool] | None:
    expected = scenario.expected.state
    if not expected:
        return None
    initial: Json = dict(scenario.application.initial_state)
    return lambda state: state_satisfied(expected, state, initial)


def _sentence(result: schema.Result, held: _Held) -> str:
    why = f" ({result.error.message})" if result.error is not None else ""
    return f"{result.status} after {held.media_seconds:.1f} s of call{why}"


def _word(kind: str) -> str:
    return "local" if kind == "local" else "gpt_live"


def _processor() -> str:
    """The processor's name where the system tells it; its kind elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
