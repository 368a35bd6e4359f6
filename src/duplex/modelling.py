"""The models of one run: who is asked for what, over clients that all calls share.

Built from options before any call, closed with the run. Hosts that ask for time are
left alone by every call at once. It decides which backend does an assistant's work; the
ends of a call are built with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from duplex.application.backend import LocalBackend
from duplex.application.base import Backend
from duplex.application.model import Application
from duplex.application.model_backend import ModelBackend, as_fields
from duplex.application.workbench import Workbench
from duplex.completion.observer import Hide, SemanticObserver
from duplex.completion.seen import Task
from duplex.local.managed_backend import Responder, TellNote, respond_by_rule
from duplex.local.model_brain import HttpModel, Model
from duplex.local.seams import Note
from duplex.models.client import ModelClient
from duplex.models.limiter import Limiter
from duplex.models.place import KEY_VARIABLES, place
from duplex.models.reach import refuse_unreachable
from duplex.options import RunOptions
from duplex.protocols.model_values import Answer, Ask
from duplex.values import Json


class Modelling:
    """Every model that a run asks by itself."""

    def __init__(self, options: RunOptions, limiter: Limiter) -> None:
        """Raise InputError for a model that cannot be asked, such as one without a key."""
        self._options = options
        self._limiter = limiter
        self._backend = self._client("backend-url", options.backend_url, options.backend_model)
        self._brains = {
            "assistant": self._client("brain-url", options.brain_url, options.brain_model),
            "caller": self._client("brain-url", options.brain_url, options.simulator_brain_model),
        }
        watching = options.completion_model if options.observed else None
        self._completion = self._client("completion-url", options.completion_url, watching)

    async def open(self) -> None:
        """Make every model ready to be asked; raise InputError where nobody answers."""
        named = {
            "backend-url": self._backend,
            "brain-url": self._brains["assistant"] or self._brains["caller"],
            "completion-url": self._completion,
        }
        await refuse_unreachable(
            {option: client.where for option, client in named.items() if client is not None}
        )
        for client in self._clients():
            client.open()

    async def close(self) -> None:
        for client in self._clients():
            await client.close()

    def _clients(self) -> list[ModelClient]:
        every = (self._backend, *self._brains.values(), self._completion)
        return [client for client in every if client is not None]

    @property
    def limiter(self) -> Limiter:
        """How long each host is to be left alone, by everybody of this run."""
        return self._limiter

    @property
    def secrets(self) -> tuple[str, ...]:
        """Keys that must never be written anywhere."""
        keys = [os.environ.get(name, "").strip() for name in KEY_VARIABLES]
        return tuple(key for key in keys if key)

    def backend(self, application: Application, state: Mapping[str, Json], seed: int) -> Backend:
        """Who does the delegated work of one call under client delegation."""
        if self._backend is not None and self._options.own_backend:
            return ModelBackend(application, state, self._backend, seed=seed)
        return LocalBackend(application, state, seed=seed)

    def bench(
        self, application: Application, state: Mapping[str, Json], seed: int
    ) -> Workbench | None:
        """The tools that a session's own backend works with; None under client delegation."""
        if self._options.delegation != "responses":
            return None
        return Workbench(application.tools, application.state(state), seed=seed)

    def observer(self, task: Task, rate_hz: int, hide: Hide) -> SemanticObserver | None:
        """Who says when one call is over; None where verified state and words do."""
        if self._completion is None:
            return None
        timeout_ms = round(self._options.completion_timeout_seconds * 1000)
        return SemanticObserver(
            task, self._completion, rate_hz=rate_hz, timeout_ms=timeout_ms, hide=hide
        )

    def brain(self, role: str) -> Model | None:
        """What thinks for the local voice of ``role`` in one call; None for its rules."""
        client = self._brains[role]
        return None if client is None else HttpModel(client, live=self._options.clock == "wall")

    @property
    def responder(self) -> Responder:
        """Who answers as the backend of one local session under responses delegation."""
        client = self._backend
        if client is None or self._options.backend_url is None:
            return respond_by_rule

        model = HttpModel(client, live=self._options.clock == "wall")

        async def ask_client(ask: Ask, response_id: str, note: TellNote) -> Answer:
            answer, waits = await model.answer(ask)
            for waited in waits:
                note(Note(kind="waited", fields=as_fields(waited)))
            return replace(answer, response_id=response_id)

        return ask_client

    def _client(self, option: str, url: str | None, model: str | None) -> ModelClient | None:
        options = self._options
        ours = option != "backend-url" or options.own_backend or url is not None
        if model is None or not ours:
            return None
        efforts = {
            "backend-url": options.backend_reasoning_effort,
            "completion-url": options.completion_reasoning_effort,
        }
        effort = efforts.get(option)
        where = place(option, url, model, effort=effort, insecure=options.allow_plain_http)
        return ModelClient(where, self._limiter)
