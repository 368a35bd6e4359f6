"""A call without audio: two brains and a backend joined by nothing but words.

Each side hears the other's words through ``ears``, a function that may corrupt
them. Speech lasts 65 ms a character, so that murmurs and interruptions have
something to fall into.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from duplex.application.backend import Job, LocalBackend
from duplex.application.base import Line
from duplex.application.model import Application
from duplex.application.prompts import (
    OPENING_COMMENTARY,
    AgendaItem,
    Brief,
    Persona,
    assistant_instructions,
    caller_instructions,
)
from duplex.application.tools import Outcome
from duplex.clock import VirtualClock
from duplex.local.caller_brain import CallerBrain
from duplex.local.host_brain import HostBrain
from duplex.local.seams import Act, Brain, Delegate, Finish, Heard, Progress, Said, Say
from duplex.values import Action, Happening, Json

Ears = Callable[[str, str], str]
"""``(who speaks, words) -> words heard``."""

Slip = Callable[[str, dict[str, Json]], tuple[str, dict[str, Json]]]
"""``(tool, arguments) -> what a wrong agent calls in its place``."""

MS_PER_CHARACTER = 65


class _Slipping(LocalBackend):
    """A backend that does something else than it was asked for, and does not notice."""

    slip: Slip | None = None

    async def _call(self, job: Job, name: str, arguments: dict[str, Json]) -> Outcome:
        if self.slip is not None:
            name, arguments = self.slip(name, arguments)
        return await super()._call(job, name, arguments)


@dataclass
class TextCall:
    """What happened in one call."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    progress: dict[str, str] = field(default_factory=dict)
    outcome: str | None = None
    tools: list[tuple[str, dict[str, Json], str]] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    state: dict[str, Json] = field(default_factory=dict)
    delegations: int = 0
    spoken: list[tuple[int, int, str, str, Action | None]] = field(default_factory=list)
    """``(start, end, who, words, the caller's action)``, in ms."""
    happened: list[tuple[int, Happening]] = field(default_factory=list)
    delegated: list[tuple[int, int]] = field(default_factory=list)
    timings: list[int] = field(default_factory=list)

    def completed(self, name: str) -> list[dict[str, Json]]:
        return [
            arguments
            for tool, arguments, status in self.tools
            if (tool, status) == (name, "completed")
        ]

    def words(self, who: str) -> list[str]:
        return [text for side, text in self.lines if side == who]

    def __str__(self) -> str:
        return "\n".join(f"{side:9}: {text}" for side, text in self.lines)


def brief_of(scenario: Mapping[str, Json], first_speaker: str = "assistant") -> Brief:
    """Build the caller's brief from a scenario as read from its file."""
    given = scenario["simulation_parameters"]
    start = scenario["input"]
    assert isinstance(given, dict)
    assert isinstance(start, dict)
    agenda = given.get("agenda", [])
    persona = given.get("persona", {})
    facts = given.get("known_facts", {})
    assert isinstance(agenda, list)
    assert isinstance(persona, dict)
    assert isinstance(facts, dict)
    return Brief(
        goal=str(given["goal"]),
        opening=str(start["text"]),
        known_facts={k: v for k, v in facts.items() if not isinstance(v, list | dict)},
        agenda=tuple(_item(item) for item in agenda),
        persona=_persona(persona),
        first_speaker=first_speaker,
    )


def _item(item: Json) -> AgendaItem:
    assert isinstance(item, dict)
    facts, after = item.get("facts", []), item.get("after", [])
    assert isinstance(facts, list)
    assert isinstance(after, list)
    return AgendaItem(
        id=str(item["id"]),
        action=str(item.get("action", "answer")),
        commitment=str(item.get("commitment", "")),
        trigger_condition=str(item.get("trigger_condition", "")),
        completion_condition=str(item.get("completion_condition", "")),
        facts=tuple(str(f) for f in facts),
        response_hint=str(item.get("response_hint") or ""),
        after=tuple(str(a) for a in after),
        required=bool(item.get("required", True)),
    )


def _persona(persona: Mapping[str, Json]) -> Persona:
    murmurs = persona.get("backchannels", [])
    assert isinstance(murmurs, list)
    return Persona(
        description=str(persona.get("description", "")),
        verbosity=str(persona.get("verbosity", "")),
        interrupt_tendency=float(str(persona.get("interrupt_tendency", 0.15))),
        backchannel_tendency=float(str(persona.get("backchannel_tendency", 0.25))),
        backchannels=tuple(str(m) for m in murmurs),
    )


def hold_call(
    application: Application,
    brief: Brief,
    initial_state: Mapping[str, Json] | None = None,
    *,
    seed: int = 7,
    ears: Ears = lambda who, text: text,
    slip: Slip | None = None,
) -> TextCall:
    """Hold one call to its end and return what happened."""
    return asyncio.run(_hold(application, brief, initial_state or {}, seed, ears, slip))


async def _hold(
    application: Application,
    brief: Brief,
    initial_state: Mapping[str, Json],
    seed: int,
    ears: Ears,
    slip: Slip | None,
) -> TextCall:
    line = _Line(application, brief, initial_state, seed, ears)
    line.backend.slip = slip
    await line.run()
    line.call.state = line.backend.state
    return line.call


class _Line:
    def __init__(
        self,
        application: Application,
        brief: Brief,
        initial_state: Mapping[str, Json],
        seed: int,
        ears: Ears,
    ) -> None:
        self.call = TextCall()
        self.brains: dict[str, Brain] = {
            "caller": CallerBrain.from_instructions(caller_instructions(brief), seed),
            "assistant": HostBrain.from_instructions(
                assistant_instructions(application, initial_state), seed
            ),
        }
        self.backend = _Slipping(application, initial_state, seed=seed)
        self.ears = ears
        self.clock = VirtualClock(24_000)
        self.now_ms = 0
        self.conversation: list[Line] = []
        self.queue: deque[tuple[str, Say]] = deque()

    async def run(self) -> None:
        self.backend.begin(self.tell)
        await self.take("caller", self.brains["caller"].opening())
        if not self.queue:
            opening = self.brains["assistant"].on_commentary(OPENING_COMMENTARY, None)
            await self.take("assistant", opening)
        quiet_ms = 0
        while quiet_ms < 40_000 and len(self.call.lines) < 80:
            if self.queue:
                who, say = self.queue.popleft()
                await self.speak(who, say)
                quiet_ms = 0
                continue
            quiet_ms += 1_000
            self.now_ms += 1_000
            for who in ("caller", "assistant"):
                await self.take(who, self.brains[who].on_quiet(quiet_ms))
            if self.call.outcome is not None and not self.queue:
                break

    async def speak(self, who: str, say: Say) -> None:
        """Let one side say its words while the other listens, murmurs or cuts in."""
        other = "assistant" if who == "caller" else "caller"
        self.call.actions += [say.action] if who == "caller" else []
        self.call.timings.append(say.pause_ms)
        start, length = self.now_ms, len(say.text) * MS_PER_CHARACTER
        spoken_over: list[Say] = []
        words, complete = say.text, True
        for speech_ms in range(200, length, 200):
            acts = self.brains[other].on_speech(speech_ms)
            over = [act for act in acts if isinstance(act, Say) and act.over]
            spoken_over += over
            if any(act.action is Action.INTERRUPT for act in over):
                words = say.text[: (speech_ms + 700) // MS_PER_CHARACTER]
                complete = len(words) == len(say.text)
                break
        self.now_ms += len(words) * MS_PER_CHARACTER
        self.note(who, words, start, say.action)
        await self.take(who, self.brains[who].on_said(_said(say, complete)))
        heard = Heard(text=self.ears(who, words), start_ms=start, end_ms=self.now_ms)
        await self.take(other, self.brains[other].on_heard(heard))
        for reply in spoken_over:
            await self.over(other, who, reply, cut=not complete)

    async def over(self, who: str, other: str, say: Say, *, cut: bool) -> None:
        self.call.actions += [say.action] if who == "caller" else []
        self.note(who, say.text, self.now_ms, say.action)
        await self.take(who, self.brains[who].on_said(_said(say, True)))
        heard = Heard(
            text=self.ears(who, say.text),
            start_ms=self.now_ms,
            end_ms=self.now_ms,
            overlapped=True,
            cut=cut,
        )
        await self.take(other, self.brains[other].on_heard(heard))

    def note(self, who: str, words: str, start_ms: int, action: Action) -> None:
        self.call.lines.append((who, words))
        told = action if who == "caller" else None
        self.call.spoken.append((start_ms, max(self.now_ms, start_ms + 300), who, words, told))
        heard = words if who == "assistant" else self.ears(who, words)
        role = "user" if who == "caller" else "assistant"
        self.conversation.append(Line(role=role, text=heard, start_ms=start_ms))

    async def take(self, who: str, acts: Sequence[Act]) -> None:
        for act in acts:
            if isinstance(act, Say):
                self.queue.append((who, act))
            elif isinstance(act, Progress):
                self.call.progress[act.item_id] = act.status
            elif isinstance(act, Finish):
                self.call.outcome = act.outcome
            elif isinstance(act, Delegate):
                await self.delegate()

    async def delegate(self) -> None:
        self.call.delegations += 1
        name = f"d{self.call.delegations}"
        work = self.clock.spawn(
            self.backend.handle(name, list(self.conversation), self.clock, self.tell)
        )
        began = self.now_ms
        while not work.done():
            await self.clock.advance(self.clock.position + 480)
        self.now_ms += 1
        self.call.delegated.append((began, self.now_ms))
        for text in work.result():
            await self.take("assistant", self.brains["assistant"].on_commentary(text, name))

    def tell(self, happening: Happening) -> None:
        self.call.happenings.append(happening)
        self.now_ms += 10
        self.call.happened.append((self.now_ms, happening))
        if happening.type == "tool.ended":
            started = next(
                h
                for h in self.call.happenings
                if h.type == "tool.started" and h.fields["call_id"] == happening.fields["call_id"]
            )
            arguments = started.fields["arguments"]
            assert isinstance(arguments, dict)
            self.call.tools.append(
                (str(started.fields["name"]), arguments, str(happening.fields["status"]))
            )


def _said(say: Say, complete: bool) -> Said:
    return Said(text=say.text, action=say.action, items=say.items, complete=complete)
