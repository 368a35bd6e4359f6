"""Brains that ask a language model what to say: a caller and a host for the local voices.

The model gets what its side is told and what was really heard and said, as words, and
answers through one function; words and audio travel as they do for the rules. Every
decision is a :class:`Ponder`, so thinking costs declared media time, and new words
replace what was thought about old ones. A model that cannot be asked ends the call by a
``fault`` note, never by silence that somebody else would be blamed for.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from duplex.application.model_backend import AUDIBLE_WAIT_SECONDS, as_fields
from duplex.application.prompts import Brief, brief_from
from duplex.application.workbench import read_arguments
from duplex.clock import WallClock
from duplex.local.agenda import Agenda
from duplex.local.chance import Chance
from duplex.local.interjections import Interjections
from duplex.local.seams import Act, Delegate, Finish, Heard, Note, Ponder, Said, Say
from duplex.models.client import ModelClient, ModelError, Waited
from duplex.protocols.model_values import Answer, Ask, Function, Item, Message
from duplex.values import Action, Json

REMEMBERED = 80
"""Lines of the conversation that a model is given; older ones are left out."""
PATIENCE = 3
"""Silences in a row after which a voice takes its leave."""
CALLER_QUIET_MS = 8_000
HOST_QUIET_MS = 6_000
OPEN_QUIET_MS = 5_000
SAY = "speak"
_BLOCK = re.compile(r"```duplex-\w+.*?```", re.DOTALL)
_STYLE = (
    "This is a telephone call. Speak as people do on the telephone: one or two short sentences, "
    "plain words, no lists, no markup, nothing in brackets. What you hear may be misheard. Answer "
    f"only by calling the function {SAY}; lines in square brackets tell you what happened and are "
    "never spoken. Say nothing, with empty words, when nothing is to be said."
)


class Model(Protocol):
    """What a brain asks."""

    async def answer(self, ask: Ask) -> tuple[Answer, Sequence[Waited]]:
        """Return the answer and the waits before it; raise ModelError."""


class HttpModel:
    """A model behind HTTP; its time-outs are real time, whatever the call's clock."""

    def __init__(self, client: ModelClient, *, live: bool) -> None:
        self._client = client
        self._live = live
        self._waited = 0.0

    async def answer(self, ask: Ask) -> tuple[Answer, Sequence[Waited]]:
        waits: list[Waited] = []
        answer = await self._client.answer(ask, WallClock(1000), waits.append)
        self._waited += sum(one.seconds for one in waits)
        if self._live and self._waited > AUDIBLE_WAIT_SECONDS:
            host = self._client.where.host
            message = f"{host} made this call wait {self._waited:.1f} s for a voice's model"
            raise ModelError(message, code="rate_limited")
        return answer, waits


Decide = Callable[[dict[str, Json]], Sequence[Act]]
"""Turns a model's reply into acts."""


class _Mind:
    """One conversation with a model: what was heard, said and happened, as lines."""

    def __init__(self, model: Model, instructions: str, function: Function) -> None:
        self._model = model
        self._instructions = f"{_BLOCK.sub('', instructions).strip()}\n\n{_STYLE}"
        self._function = function
        self._items: list[Item] = []

    def note(self, text: str, role: str = "user") -> None:
        if text.strip():
            self._items.append(Message(role=role, text=text.strip()))

    def think(self, decide: Decide) -> Sequence[Act]:
        """Ask what to do now; the voice gives up whatever was being thought before."""
        ask = Ask(
            model="",
            instructions=self._instructions,
            items=tuple(self._items[-REMEMBERED:]),
            functions=(self._function,),
            must_call=self._function.name,
        )
        return (Ponder(asyncio.get_running_loop().create_task(self._asked(ask, decide))),)

    async def _asked(self, ask: Ask, decide: Decide) -> Callable[[], Sequence[Act]]:
        try:
            answer, waits = await self._model.answer(ask)
        except ModelError as error:
            told = _fault(error.code, str(error))
            return lambda: (told,)
        if answer.status != "completed":
            why = f"the model's response was {answer.status}: {answer.problem or 'no reason'}"
            failed = _fault(f"response_{answer.status}", why)
            return lambda: (failed,)
        waited = [Note(kind="waited", fields=as_fields(one)) for one in waits]
        reply = _reply(answer)
        return lambda: (*waited, *decide(reply))


class ModelCaller:
    """A caller that a model thinks for (see ``seams.Brain``)."""

    def __init__(self, brief: Brief, instructions: str, model: Model, seed: int) -> None:
        self._brief = brief
        self._agenda = Agenda(brief.agenda)
        self._chance = Chance(seed, "caller")
        self._interjections = Interjections(brief, self._chance)
        self._mind = _Mind(model, _with_agenda(instructions, brief), _caller_function(brief))
        self._opened = False
        self._finishing = ""
        self._finished = False
        self._outstanding = 0
        self._silences = 0

    @classmethod
    def from_instructions(cls, instructions: str, model: Model, seed: int) -> ModelCaller:
        """Build from a session's instructions; raise InputError without a brief block."""
        return cls(brief_from(instructions), instructions, model, seed)

    def opening(self) -> Sequence[Act]:
        return self._open() if self._brief.first_speaker == "caller" else ()

    def on_commentary(self, text: str, delegation_id: str | None) -> Sequence[Act]:
        return () if self._opened else self._open()

    def on_heard(self, heard: Heard) -> Sequence[Act]:
        self._interjections.ended()
        if self._finishing or self._finished:
            return ()
        self._silences = 0
        self._mind.note(heard.text or "[They said something you could not make out.]")
        return self._mind.think(self._decide) if self._opened else self._open()

    def on_said(self, said: Said) -> Sequence[Act]:
        self._outstanding = max(0, self._outstanding - 1)
        if not said.complete:
            self._agenda.cut(said.items)
            self._mind.note(f'[You were cut off while saying: "{said.text}"]')
            return self._leave_now() if self._finishing else ()
        acts: list[Act] = [*self._agenda.complete(said.items)]
        return [*acts, *self._leave_now()] if said.action is Action.STOP else acts

    def on_quiet(self, quiet_ms: int) -> Sequence[Act]:
        if self._finished or self._outstanding:
            return ()
        if not self._opened:
            return self._open() if quiet_ms >= OPEN_QUIET_MS else ()
        if quiet_ms < CALLER_QUIET_MS:
            return ()
        self._silences += 1
        if self._silences > PATIENCE:
            return self._decide({"say": "", "finish": "refused"})
        self._mind.note(f"[Nobody has spoken for {quiet_ms // 1000} seconds.]")
        return self._mind.think(self._decide)

    def on_speech(self, speech_ms: int) -> Sequence[Act]:
        if not self._opened or self._finishing or self._outstanding:
            return ()
        say = self._interjections.speak(speech_ms, self._agenda.unsaid(), looking=False)
        if say is None:
            return ()
        self._outstanding += 1
        self._agenda.say(say.items)
        self._mind.note(say.text, "assistant")
        return (say,)

    def _open(self) -> Sequence[Act]:
        self._opened = True
        return self._say(self._brief.opening, action=Action.OPENING)

    def _decide(self, reply: dict[str, Json]) -> Sequence[Act]:
        finish = reply.get("finish")
        done = reply.get("done")
        known = {item.id for item in self._brief.agenda}
        items = [str(one) for one in done if one in known] if isinstance(done, list) else []
        text = _words(reply)
        if finish in ("completed", "refused"):
            self._finishing = str(finish)
            return self._say(text or "Thank you. Goodbye.", items, Action.STOP)
        return self._say(text, items) if text else self._agenda.complete(items)

    def _say(
        self, text: str, items: Sequence[str] = (), action: Action = Action.SPEAK
    ) -> Sequence[Act]:
        self._outstanding += 1
        self._agenda.say(items)
        self._mind.note(text, "assistant")
        pause_ms = self._chance.pause_ms()
        return (Say(text=text, action=action, items=tuple(items), pause_ms=pause_ms),)

    def _leave_now(self) -> Sequence[Act]:
        self._finished = True
        return (*self._agenda.leave(), Finish(outcome=self._finishing or "completed"))


class ModelHost:
    """An assistant that a model thinks for (see ``seams.Brain``)."""

    def __init__(self, instructions: str, model: Model, seed: int) -> None:
        self._chance = Chance(seed, "host")
        self._mind = _Mind(model, f"{instructions}\n{_HOST}", _host_function())
        self._outstanding = 0
        self._silences = 0
        self._waiting = False

    def opening(self) -> Sequence[Act]:
        return ()

    def on_heard(self, heard: Heard) -> Sequence[Act]:
        self._silences = 0
        self._mind.note(heard.text or "[They said something you could not make out.]")
        return self._mind.think(self._decide)

    def on_said(self, said: Said) -> Sequence[Act]:
        self._outstanding = max(0, self._outstanding - 1)
        if not said.complete:
            self._mind.note(f'[You were cut off while saying: "{said.text}"]')
        return ()

    def on_commentary(self, text: str, delegation_id: str | None) -> Sequence[Act]:
        if delegation_id is None:
            self._mind.note(f"[{text}]")
        else:
            self._waiting = False
            self._mind.note(f"[What came of the work you handed over: {text}]")
        return self._mind.think(self._decide)

    def on_quiet(self, quiet_ms: int) -> Sequence[Act]:
        if self._outstanding or quiet_ms < HOST_QUIET_MS or self._silences > PATIENCE:
            return ()
        self._silences += 1
        waiting = " You are still waiting for the work you handed over." if self._waiting else ""
        self._mind.note(f"[Nobody has spoken for {quiet_ms // 1000} seconds.{waiting}]")
        return self._mind.think(self._decide)

    def on_speech(self, speech_ms: int) -> Sequence[Act]:
        return ()

    def _decide(self, reply: dict[str, Json]) -> Sequence[Act]:
        hands_over = reply.get("hand_over") is True
        text = _words(reply) or ("One moment, please." if hands_over else "")
        acts: list[Act] = []
        if text:
            self._outstanding += 1
            self._mind.note(text, "assistant")
            acts.append(Say(text=text, pause_ms=self._chance.pause_ms()))
        if hands_over:
            self._waiting = True
            self._mind.note("[You handed the work over.]")
            acts.append(Delegate())
        return acts


_HOST = (
    "Hand the work over once you have every detail, and again when a detail changed; what comes of "
    "it reaches you in square brackets, and is then said to the caller in your own words."
)


def _with_agenda(instructions: str, brief: Brief) -> str:
    if not brief.agenda:
        return instructions
    lines = "\n".join(f"- {item.id}: {item.commitment}" for item in brief.agenda)
    return f"{instructions}\nWhat you mean to get done, by id:\n{lines}"


def _caller_function(brief: Brief) -> Function:
    ids: list[Json] = [item.id for item in brief.agenda]
    item: dict[str, Json] = {"type": "string"} | ({"enum": ids} if ids else {})
    return Function(
        name=SAY,
        description="Say something to the other side, or stay silent.",
        parameters={
            "type": "object",
            "properties": {
                "say": {"type": "string", "description": "Your words; empty for silence."},
                "done": {
                    "type": "array",
                    "items": item,
                    "description": "Ids of what these words get done.",
                },
                "finish": {
                    "type": "string",
                    "enum": ["no", "completed", "refused"],
                    "description": "Whether these words end the call: your aim was reached, or "
                    "clearly cannot be.",
                },
            },
            "required": ["say", "done", "finish"],
        },
    )


def _host_function() -> Function:
    return Function(
        name=SAY,
        description="Say something to the caller, and hand work over when it is time.",
        parameters={
            "type": "object",
            "properties": {
                "say": {"type": "string", "description": "Your words; empty for silence."},
                "hand_over": {
                    "type": "boolean",
                    "description": "Whether the details are complete and the work is to be done.",
                },
            },
            "required": ["say", "hand_over"],
        },
    )


def _reply(answer: Answer) -> dict[str, Json]:
    """The function's arguments, or plain words of a model that called none."""
    call = next((call for call in answer.calls if call.name == SAY), None)
    found = read_arguments(call.arguments) if call is not None else None
    return found if found is not None else {"say": answer.text}


def _words(reply: dict[str, Json]) -> str:
    text = reply.get("say")
    return " ".join(text.split())[:1_000] if isinstance(text, str) else ""


def _fault(code: str, message: str) -> Note:
    return Note(kind="fault", fields={"code": code[:60], "message": message[:500]})
