"""Runs created as LiveKit creates them: at once with scenarios, or once those are written.

Every run is held by the launcher, like any other. Scenarios are written from uploaded
source by the server's model, behind a record that says how far it is; the source is taken
away as soon as they exist. Whatever fails before a run begins is told by its record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from duplex.clock import real_pause
from duplex.errors import DuplexError, InputError
from duplex.redact import Redactor
from duplex.run_lock import RunLock
from duplex.scenario import Scenario
from duplex.scenario_files import written
from duplex.serve import source
from duplex.serve.archive import read_source
from duplex.serve.generating import Draft, NoScenario, ScenarioWriter
from duplex.serve.launching import Launcher
from duplex.serve.library import Library
from duplex.serve.refusals import Refusal
from duplex.serve.requests import (
    GENERATED,
    ConfirmBody,
    CreateBody,
    Defaults,
    GroupBody,
    ScenarioBody,
    checked,
    invalid,
    options_of,
    precondition,
    scenarios_of,
    slug,
)
from duplex.serve.simulations import ARCHIVE, Record, Simulations

NO_MODEL = "no model writes scenarios here; start duplex serve with --model"
_AGAIN_SECONDS = 2.0
_ROOM_SECONDS = 3600.0
"""How long written scenarios wait for other runs to end."""
_CODES = {422: (400, "InvalidArgument"), 429: (429, "ResourceExhausted"), 503: (503, "Unavailable")}


class Creator:
    """Creates, confirms and gives up runs; ``writer`` is None where no model was named."""

    def __init__(
        self,
        simulations: Simulations,
        launcher: Launcher,
        defaults: Defaults,
        writer: ScenarioWriter | None,
        changed: Callable[[], None],
    ) -> None:
        self.simulations = simulations
        self.writer = writer
        self._launcher = launcher
        self._defaults = defaults
        self._changed = changed
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._given_up: set[str] = set()

    @classmethod
    def plain(cls, library: Library, launcher: Launcher) -> Creator:
        """One beside a folder of runs, without a model and with every option at its default."""
        simulations = Simulations(library.folder)
        return cls(simulations, launcher, Defaults(), None, library.changed)

    async def create(self, project: str, body: CreateBody) -> tuple[Record, str | None]:
        """A new run; with the ticket of its upload where it has to wait for one.

        Raises Refusal.
        """
        checked(body, self._defaults)
        if body.scenarioGroup is None:
            _kept_whole(body)
            return self.simulations.create(project, body, "pending")
        scenarios = scenarios_of(body.scenarioGroup)
        record, _ = self.simulations.create(project, body, "begun")
        try:
            return await self._begin(record, scenarios), None
        except BaseException:
            self.simulations.remove(record)
            raise

    async def confirm(self, record: Record, body: ConfirmBody) -> None:
        """Begin to write the scenarios of a run whose source is there. Raises Refusal."""
        if self.writer is None:
            raise precondition(NO_MODEL)
        record, lock = await asyncio.to_thread(self.simulations.claim, record)
        try:
            if not record.uploaded:
                raise precondition("no source was uploaded")
            shown = await asyncio.to_thread(self._source, record, body.codeEntrypoint)
            record = record.model_copy(update={"state": "generating"})
            self.simulations.put(record)
        except BaseException:
            lock.release()
            raise
        task = asyncio.create_task(self._generate(self.writer, record, shown, lock))
        self._tasks[record.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(record.id, None))

    async def give_up(self, record: Record) -> None:
        """Stop a run that has not begun; no effect on any other."""
        if record.state == "generating":
            task = self._tasks.get(record.id)
            if task is None:
                raise precondition("another server writes the scenarios of this run")
            self._given_up.add(record.id)
            task.cancel()
            await asyncio.wait([task])
            self._given_up.discard(record.id)
        elif record.state == "pending":
            record, lock = await asyncio.to_thread(self.simulations.claim, record)
            self.simulations.put(record.ends("cancelled", self.simulations.now()))
            self.simulations.forget_source(record)
            lock.release()

    def _source(self, record: Record, entrypoint: str) -> str:
        """What the model is shown of an archive. Raises Refusal."""
        try:
            found = read_source(self.simulations.place(record) / ARCHIVE, source.wanted)
            return source.shown(found.texts, source.entrypoint_of(found.texts, entrypoint))
        except InputError as error:
            raise invalid(str(error), "codeEntrypoint") from None

    async def _generate(
        self, writer: ScenarioWriter, record: Record, shown: str, lock: RunLock
    ) -> None:
        """Write scenarios and hold them; the record says what came of it."""
        store = self.simulations
        try:
            made = await writer.from_source(shown, record.body.numSimulations or GENERATED)
            store.forget_source(record)
            group = GroupBody(scenarios=_bodies(made.drafts))
            record = record.model_copy(update={"description": made.description})
            await self._begin_with_patience(record, scenarios_of(group))
        except asyncio.CancelledError:
            if record.id not in self._given_up:
                raise
            store.put(record.ends("cancelled", store.now()))
        except (DuplexError, Refusal) as error:
            store.put(record.ends("failed", store.now(), str(error)[:500]))
        except Exception:
            store.put(record.ends("failed", store.now(), "the scenarios could not be written"))
            raise
        finally:
            store.forget_source(record)
            lock.release()

    async def _begin_with_patience(self, record: Record, scenarios: Sequence[Scenario]) -> None:
        """Begin a run as soon as others leave room for it."""
        waited = 0.0
        while True:
            try:
                await self._begin(record, scenarios)
                return
            except Refusal as refusal:
                if refusal.status != 429 or waited >= _ROOM_SECONDS:
                    raise
            await real_pause(_AGAIN_SECONDS)
            waited += _AGAIN_SECONDS

    async def _begin(self, record: Record, scenarios: Sequence[Scenario]) -> Record:
        """Write the scenarios down and have them held. Raises Refusal."""
        group = record.body.scenarioGroup
        name = slug(group.name if group is not None else record.body.agentName)
        data = self.simulations.place(record) / f"{name}.json"
        data.write_text(written(scenarios), encoding="utf-8")
        options = options_of(record.body, self._defaults, data)
        values = options.model_dump(mode="json", include=options.model_fields_set)
        starting = asyncio.ensure_future(self._launcher.start(_said(values)))
        try:
            run = await _whatever_comes(starting)
        except Refusal as refusal:
            status, code = _CODES.get(refusal.status, (refusal.status, refusal.code))
            raise Refusal(status, code, refusal.message) from None
        record = record.model_copy(update={"state": "begun", "run": run})
        self.simulations.put(record)
        self._changed()
        return record


async def _whatever_comes(starting: asyncio.Future[str]) -> str:
    """A process that was begun is waited for: nobody would know its run otherwise."""
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        return await starting


def _said(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _bodies(drafts: Sequence[Draft]) -> list[ScenarioBody]:
    if not drafts:
        raise NoScenario("the model wrote no scenario")
    return [
        ScenarioBody(
            id=f"{slug(draft.label)}_{number}",
            label=draft.label,
            instructions=draft.instructions,
            agentExpectations=draft.agent_expectations,
        )
        for number, draft in enumerate(drafts, start=1)
    ]


def _kept_whole(body: CreateBody) -> None:
    """Refuse a name that would not be kept on disk until the run begins."""
    if Redactor().text(body.agentName) != body.agentName:
        raise invalid("agentName holds a secret; name the agent with --agent", "agentName")
