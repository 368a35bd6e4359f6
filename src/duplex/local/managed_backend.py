"""A session's own backend: delegated work done on the server's side, functions on the client's.

Under Responses delegation the session streams the backend's responses to the client as
nested events, takes the outputs of the functions it called, goes on when it is told to,
and has the voice say what came out. It sees the transcripts the client sees and nothing
else. Thinking costs declared media time. The session drives it and owns its tasks.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from duplex.application.base import Line
from duplex.application.model_prompts import NUDGE, Transcript
from duplex.clock import Clock, utc_seconds
from duplex.errors import DuplexError
from duplex.local import rule_model
from duplex.local.seams import Note
from duplex.local.telling import as_info
from duplex.protocols.gpt_live_models import MessageItem
from duplex.protocols.gpt_live_server import ServerSession, Submit
from duplex.protocols.model_values import Answer, Ask, Function, Item, Message, Output
from duplex.protocols.responses_server import stream_events
from duplex.values import Json

MODEL_MS = 800
"""Declared media time of one response, in ms."""
WAITING_LIMIT = 16
"""Delegations that may wait for the one being worked on."""
TellNote = Callable[[Note], None]
Responder = Callable[[Ask, str, TellNote], Awaitable[Answer]]
"""Answers one request under a response id that is given, and may tell of it in notes.

Raises DuplexError when it could not ask, which is nobody's answer: a ``fault`` note.
"""
Emit = Callable[[str], None]
SayOut = Callable[[str, str], None]
"""Has the voice say a backend's words: (text, delegation id)."""
log = logging.getLogger(__name__)


async def respond_by_rule(ask: Ask, response_id: str, note: TellNote) -> Answer:
    """The responder that needs no model."""
    return rule_model.answer(ask, response_id)


class ManagedBackend:
    """The backend of one session."""

    def __init__(
        self,
        machine: ServerSession,
        clock: Clock,
        emit: Emit,
        say: SayOut,
        *,
        respond: Responder = respond_by_rule,
        model_ms: int = MODEL_MS,
    ) -> None:
        self._machine = machine
        self._clock = clock
        self._emit = emit
        self._say = say
        self._respond = respond
        self._model_ms = model_ms
        self._lines: list[Line] = []
        self._transcript = Transcript()
        self._history: list[Item] = []
        self._fresh: list[Item] = []
        self._numbers = itertools.count(1)
        self._current: str | None = None
        self._waiting: deque[tuple[str, str]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def heard(self, *, said: bool, text: str, start_ms: int) -> None:
        """Take a piece of transcript as the client is sent it."""
        role = "assistant" if said else "user"
        if self._lines and self._lines[-1].role == role:
            last = self._lines[-1]
            self._lines[-1] = replace(last, text=last.text + text)
        else:
            self._lines.append(Line(role=role, text=text.strip(), start_ms=start_ms))

    def delegated(self, offset_ms: int) -> None:
        """The voice hands work over: announce it and begin, or queue it."""
        identity, response_id = self._machine.new_delegation(), self._new_response()
        self._emit(self._machine.say_delegation(offset_ms, identity, response_id))
        if self._current is None:
            self._begin(identity, response_id)
        elif len(self._waiting) < WAITING_LIMIT:
            self._waiting.append((identity, response_id))

    def submit(self, effect: Submit) -> None:
        """Keep what the client adds for the next response."""
        item = effect.item
        if isinstance(item, MessageItem):
            parts = item.content
            text = parts if isinstance(parts, str) else "".join(part.text for part in parts)
            self._fresh.append(Message(role=item.role, text=text))
        else:
            self._fresh.append(Output(call_id=item.call_id, text=item.output))

    def go_on(self) -> None:
        """The client has given every output: ask for the next response."""
        if self._current is None:
            # Asked by the application, not by the voice.
            self._current = ""
        self._spawn(self._current, self._new_response())

    async def close(self) -> None:
        """Cancel what is still being worked on."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- one response -------------------------------------------------------

    def _begin(self, identity: str, response_id: str) -> None:
        self._current = identity
        self._fresh += [*self._transcript.fresh(self._lines), Message(role="user", text=NUDGE)]
        self._spawn(identity, response_id)

    def _spawn(self, identity: str, response_id: str) -> None:
        task = self._clock.spawn(self._run(identity, response_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, identity: str, response_id: str) -> None:
        settings = self._machine.backend or {}
        items, self._fresh = tuple(self._fresh), []
        ask = _ask(settings, items, tuple(self._history))
        due = self._clock.position + self._model_ms * self._clock.rate_hz // 1000
        begun = Answer(response_id=response_id, status="completed")
        self._pass(identity, self._events(begun, ask)[0])
        answer = await self._answer(ask, response_id)
        await self._clock.until(due)
        for event in self._events(answer, ask)[1:]:
            self._pass(identity, event)
        self._history += items
        if answer.status == "completed":
            self._history += answer.items
        self._ended(identity, answer)

    async def _answer(self, ask: Ask, response_id: str) -> Answer:
        try:
            return await self._respond(ask, response_id, self._note)
        except DuplexError as error:
            fields: dict[str, Json] = {"code": "no_response", "message": str(error)[:500]}
            self._note(Note(kind="fault", fields=fields))
            return Answer(response_id=response_id, status="failed", problem=str(error)[:200])
        except Exception as error:
            log.exception("no response in %s", self._machine.session_id)
            return Answer(response_id=response_id, status="failed", problem=str(error)[:200])

    def _note(self, note: Note) -> None:
        self._emit(self._machine.say_info(*as_info(note)))

    def _ended(self, identity: str, answer: Answer) -> None:
        if answer.status == "completed" and answer.calls:
            return  # the client runs them and says when to go on
        self._current = None
        text = answer.text if answer.status == "completed" else ""
        self._say(text or "I'm sorry, that could not be done just now.", identity)
        if self._waiting:
            self._begin(*self._waiting.popleft())

    def _events(self, answer: Answer, ask: Ask) -> list[dict[str, Json]]:
        """The stream of one response, its snapshots without what makes them large."""
        echo: dict[str, Json] = {
            "model": ask.model,
            "instructions": None,
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        }
        events = list(stream_events(answer, echo, int(utc_seconds())))
        for event in events:
            snapshot = event.get("response")
            if isinstance(snapshot, dict):
                event["response"] = {**snapshot, "output": []}
        return events

    def _pass(self, identity: str, event: dict[str, Json]) -> None:
        self._emit(self._machine.say_backend(identity, event))

    def _new_response(self) -> str:
        base = self._machine.session_id.replace("sess_", "resp_", 1)
        return f"{base}_{next(self._numbers)}"


def _ask(settings: Mapping[str, Json], items: tuple[Item, ...], history: tuple[Item, ...]) -> Ask:
    tools = settings.get("tools")
    effort = settings.get("reasoning")
    functions = [
        Function(
            name=str(tool["name"]),
            description=str(tool.get("description") or ""),
            parameters=found if isinstance(found := tool.get("parameters"), dict) else {},
        )
        for tool in (tools if isinstance(tools, list) else [])
        if isinstance(tool, dict)
    ]
    level = effort.get("effort") if isinstance(effort, dict) else None
    return Ask(
        model=str(settings.get("model")),
        instructions=str(settings.get("instructions") or ""),
        items=items,
        history=history,
        functions=tuple(functions),
        effort=level if isinstance(level, str) else None,
    )
