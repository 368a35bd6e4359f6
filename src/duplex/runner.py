"""Many calls as one run: hold each, keep it, list it, and judge the whole.

The journal is the truth: every attempt stands there once its own folder is
complete, ``results.json`` is derived from it, and a run that was killed is taken
up again by it, each call listed once. Nothing is computed here that metrics,
grading, results or the verdict do not compute.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from duplex import ci, preflight
from duplex import scenario as scenarios
from duplex.about_run import Held
from duplex.call import CallPlan, Watcher
from duplex.card.seat import Seat
from duplex.clock import utc_now, wall_seconds
from duplex.discretion import Discreet, redactor_of
from duplex.ends import Shared
from duplex.errors import DuplexError, InputError
from duplex.first_error import first_error
from duplex.holding import Done, Holder, Setting, unheld
from duplex.journal import Ending, Journal, Opening
from duplex.judging import Graders
from duplex.options import RunOptions, make
from duplex.plan import Plan, PlannedCall, lay_out
from duplex.recording import Recording
from duplex.results import schema
from duplex.run_folder import RunFolder
from duplex.run_lock import RunLock, WorkersLock
from duplex.run_results import Listed, Progress, RunResults, data_path, was_stopped
from duplex.scenario import Dataset, Scenario
from duplex.spending import Spending
from duplex.stopping import StopFile
from duplex.taking_up import adopt, digest, kept_options, take_up
from duplex.verdict import criteria
from duplex.verdict.sampling import needed
from duplex.waiting import pause
from duplex.workers import Workers


class Audience(Protocol):
    """Whoever follows a run; every method must return at once."""

    def opened(self, call_id: str, title: str, rate_hz: int, limit_ms: int) -> Watcher: ...

    def finished(self, call_id: str, sentence: str) -> None: ...


class Executor(Protocol):
    """Whoever holds attempts: this process, or others."""

    async def hold(self, planned: PlannedCall, attempt: int) -> Done: ...


Hold = Callable[[str, int], Awaitable[Done]]
"""Holds an attempt at a test case, by its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run that is over: its results and where they are."""

    run: schema.Run
    folder: Path
    stopped: bool = False


class Runner:
    """One run from options to results; :meth:`run` holds every call.

    ``resume`` is the folder of a run to take up again; its options are then the run's.
    ``seat`` is the open sound card of a person who calls.
    """

    def __init__(
        self,
        options: RunOptions,
        *,
        audience: Audience | None = None,
        stop: Callable[[], bool] = lambda: False,
        resume: Path | None = None,
        seat: Seat | None = None,
    ) -> None:
        self._options = options
        self._resume = resume
        self.audience = audience
        self._stop = stop
        self._dataset: Dataset = scenarios.load(data_path(options))
        chosen = self._dataset.select(options.scenario)
        self.chosen: tuple[Scenario, ...] = chosen[: options.max_examples]
        if not self.chosen:
            raise InputError(f"data {data_path(options)} holds no scenario")
        self.plan: Plan = lay_out(options, self.chosen)
        self._criteria = criteria.pinned(
            options.check,
            {one.id: one.duplex.checks or () for one in self.chosen},
            questions={one.id: one.duplex.questions or () for one in self.chosen},
            asked=options.question,
            task_rate=100 * needed(options.samples, options.pass_rate) / options.samples,
        )
        self._shared = Shared(options.seed, seat)
        self._settings = tuple(
            Setting(one, self._dataset, self._shared) for one in self.plan.settings
        )
        self._graders = Graders(options, self._shared.limiter)
        self._preflight()
        secrets = {one for setting in self._settings for one in setting.ends.secrets}
        self._redactor = redactor_of(options.redact, self.chosen, sorted(secrets))
        self.spending = Spending(options, len(self.plan.calls), self._shared.limiter.meter)
        self.spending.refuse()
        self._listed = Listed(self.plan)
        self._run_results = RunResults(
            options=options,
            chosen=self.chosen,
            plan=self.plan,
            settings=self._settings,
            criteria=self._criteria,
            redactor=self._redactor,
            listed=self._listed,
        )
        self.announce: Callable[[str], None] = lambda _: None
        """Told, a line at a time, what the run may cost before it costs anything."""
        self._held: list[Held] = []
        self._opened_in = 0.0
        self._started = utc_now()
        self._status: Ending | None = None
        self._broken: str | None = None
        self._write_again = 0.0
        self._workers_lock = WorkersLock()

    @classmethod
    def taking_up(
        cls,
        folder: Path,
        *,
        audience: Audience | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Runner:
        """A runner for a run that was cut off. Raises InputError when it cannot be taken up."""
        opening = take_up(folder)
        runner = cls(make(dict(opening.options)), audience=audience, stop=stop, resume=folder)
        runner._refuse_changes(opening)
        return runner

    def _refuse_changes(self, opening: Opening) -> None:
        changed = [one.id for one in self.chosen if opening.scenarios.get(one.id) != digest(one)]
        if changed or [call.id for call in self.plan.calls] != opening.calls:
            what = f"scenario {changed[0]}" if changed else "the plan"
            raise InputError(f"run {self._resume}: {what} is not what it was when the run began")

    # -- the run -----------------------------------------------------------

    async def run(self) -> Finished:
        """Hold all calls, ``concurrency`` at a time, and write the run's folder."""
        async with AsyncExitStack() as stack:
            await self._open(stack)
            for line in self.spending.lines():
                self.announce(line)
            lock = RunLock()
            stack.callback(lock.release)
            self._folder = self._opened_folder(lock)
            stack.callback(self._journal.close)
            self._stop_file = StopFile(self._folder)
            if self._options.workers > 1:
                stack.callback(self._workers_lock.release)
                await self._workers_lock.take(self._folder.path)
            self._stop_file.clear()
            adopt(self._folder, self._journal, self._listed)
            await self._all()
            run = self._over()
            return Finished(run=run, folder=self._folder.path, stopped=self._stopping())

    @asynccontextmanager
    async def helping(self) -> AsyncIterator[Hold]:
        """Open everything to hold attempts for another runner; nothing is listed."""
        assert self._resume is not None, "a helper has a run to help"
        async with AsyncExitStack() as stack:
            await self._open(stack)
            self._folder = RunFolder.open(self._resume, redactor=self._redactor)
            self._stop_file = StopFile(self._folder)
            holder = self._holder()
            cases = {planned.id: planned for planned in self.plan.calls}
            yield lambda case, attempt: holder.hold(cases[case], attempt)

    async def _open(self, stack: AsyncExitStack) -> None:
        began = wall_seconds()
        stack.push_async_callback(self._shared.close)
        stack.push_async_callback(self._graders.close)
        await self._graders.open()
        for setting in self._settings:
            stack.push_async_callback(setting.close)
            await setting.open()
        self._opened_in = wall_seconds() - began

    async def _all(self) -> None:
        workers = self._options.workers
        executor: Executor = self._holder()
        gate = asyncio.Semaphore(max(self._options.concurrency, workers))
        pool = None
        if workers > 1:
            executor = pool = Workers(
                self._folder.path,
                count=workers,
                stop=self._cutting,
                inherited=self._workers_lock.inherited,
            )
        try:
            async with asyncio.TaskGroup() as group:
                for planned in self.plan.calls:
                    group.create_task(self._case(planned, gate, executor))
        except BaseExceptionGroup as errors:
            problem = first_error(errors)
            self._status = "failed"
            # What was held stays listed, if there is still anywhere to write it.
            with suppress(DuplexError):
                self._over()
            raise problem from problem.__cause__
        finally:
            if pool is not None:
                await pool.close()

    async def _case(self, planned: PlannedCall, gate: asyncio.Semaphore, hold: Executor) -> None:
        """Hold one test case: attempts until one is final, or the run is stopped."""
        attempts = self._journal.told.attempts(planned.id)
        if attempts and attempts[-1].final:
            return
        attempt = len(attempts) + 1
        while True:
            async with gate:
                if self._stopping():
                    return
                done = await self._attempt(planned, attempt, hold)
            if done.final:
                return
            doubled = self._options.silent_retry_backoff_seconds * 2 ** (attempt - 1)
            if not await pause(min(doubled, 600.0), self._stopping):
                return
            attempt += 1

    async def _attempt(self, planned: PlannedCall, attempt: int, hold: Executor) -> Done:
        call_id = planned.attempt_id(attempt)
        self._journal.began(planned.id, attempt, call_id)
        done = await hold.hold(planned, attempt)
        self._held.append(done.held)
        self.spending.held(Recording.load(self._folder.path, call_id))
        if not was_stopped(done.result):
            self._journal.ended(planned.id, attempt, call_id, final=done.final)
        self._listed.add(planned, attempt, done.result)
        if self._options.early_stop:
            self._broken = self._broken or self._listed.broken
        self._write()
        if self.audience is not None:
            self.audience.finished(call_id, self._redactor.text(_sentence(done)))
        return done

    def _stopping(self) -> bool:
        """Whether no further call is to begin."""
        return self._cutting() or self.spending.exhausted

    def _cutting(self) -> bool:
        """Whether calls in progress are to end too; a spent limit cuts none, it was paid for."""
        return self._stop() or self._stop_file() or self._broken is not None

    def _ending_early(self) -> bool:
        return self._broken is not None or self.spending.exhausted

    # -- what was there before ----------------------------------------------

    def _opened_folder(self, lock: RunLock) -> RunFolder:
        """The run's folder with its journal, made or taken up again, and nobody else's."""
        if self._resume is not None:
            lock.take(self._resume)
            self._journal = Journal.reopen(self._resume)
            return RunFolder.open(self._resume, redactor=self._redactor)

        def furnish(path: Path) -> None:
            Journal.create(path, self._opening()).close()
            lock.take(path)

        folder = RunFolder.create(
            self._options.out,
            live=self._options.clock == "wall",
            name=self._options.run_name,
            redactor=self._redactor,
            furnish=furnish,
        )
        self._journal = Journal.reopen(folder.path)
        return folder

    def _opening(self) -> Opening:
        kept = kept_options(self._options, data_path(self._options), self._redactor)
        if self._options.workers > 1 and not kept.whole:
            raise InputError("workers: an option holds a secret, which is passed to no process")
        return Opening(
            created_at=self._started,
            options=kept.options,
            resumable=kept.whole,
            scenarios={one.id: digest(one) for one in self.chosen},
            calls=[call.id for call in self.plan.calls],
            criteria=[self._redactor.fields(one.as_json()) for one in self._criteria],
            ci=ci.metadata(),
        )

    # -- results ------------------------------------------------------------

    def _over(self) -> schema.Run:
        """Say how the run ended, list what was not held, and judge it."""
        if self._status is None:
            stopped: Ending = "failed" if self._ending_early() else "cancelled"
            self._status = "completed" if self._listed.whole else stopped
        why = self._broken
        if self.spending.exhausted:
            why = self.spending.why_stopped
        status, over = self._status, self._journal.told.over
        if over is None or over.status != status:
            self._journal.over(status, why or "")
            over = self._journal.told.over
        for planned in self._listed.unheld():
            result = unheld(planned, self._settings[planned.setting], why, self._redactor)
            self._listed.add(planned, 1, result)
        self._stop_file.clear()
        # A run that was over before and had nothing left to hold ended when it did.
        ended = utc_now() if over is None else over.at
        run = self._built(Progress(status=status, ended_at=ended))
        self._put(run)
        return run

    def _write(self) -> None:
        """Put the run as it is so far on disk, at most as often as costs a twentieth of the time.

        The journal and the calls' own folders have every result in the meantime.
        """
        now = wall_seconds()
        if now < self._write_again:
            return
        self._put(self._built(Progress()))
        self._write_again = wall_seconds() + 20 * (wall_seconds() - now)

    def _put(self, run: schema.Run) -> None:
        self._folder.write_json(self._folder.results, run.model_dump(mode="json"))

    def _built(self, progress: Progress) -> schema.Run:
        return self._run_results.built(
            self._folder.id,
            self._journal.told.opening,
            progress,
            held=self._held,
            opened_in=self._opened_in,
            cost=self.spending.as_json(),
        )

    # -- parts --------------------------------------------------------------

    def _preflight(self) -> None:
        """Refuse what could not be held, in any arm, before anything is opened."""
        for at, setting in enumerate(self._settings):
            mine = {
                call.scenario.id: call.scenario for call in self.plan.calls if call.setting == at
            }
            held = tuple(mine.values())
            preflight.refuse(self._dataset, held, setting.ends.application, setting.options)
            for scenario in held:
                setting.wav(scenario)

    def _holder(self) -> Holder:
        return Holder(
            self.plan,
            self._settings,
            self._folder,
            redactor=self._redactor,
            graders=self._graders,
            stop=self._cutting,
            watching=self._watcher,
        )

    def _watcher(self, planned: PlannedCall, plan: CallPlan) -> Watcher | None:
        if self.audience is None:
            return None
        limit = plan.policy.max_duration_ms
        title = self._redactor.text(planned.scenario.title)
        shown = self.audience.opened(plan.call_id, title, plan.rate_hz, limit)
        return None if shown is None else Discreet(shown, self._redactor)


def _sentence(done: Done) -> str:
    result = done.result
    why = f" ({result.error.message})" if result.error is not None else ""
    again = "" if done.final else "; it is held again"
    return f"{result.status} after {done.held.media_seconds:.1f} s of call{why}{again}"
