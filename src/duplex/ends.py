"""The two ends of a call, built from options: who speaks, over what, told what.

A local end is a server of its own with a voice behind it, reached over a real
socket on the wall clock and over an in-memory pipe in virtual time; a remote end
is the same session code over its endpoint. Nothing of one end is ever handed to
the other: the instructions of its session are all a party is told.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from duplex.application.base import Backend
from duplex.application.briefed import BriefBackend
from duplex.application.endpoint import endpoint, tokens
from duplex.application.loading import load_application, load_factory
from duplex.application.model import Application
from duplex.application.prompts import OPENING_COMMENTARY
from duplex.application.remote import remote_backend
from duplex.application.workbench import Workbench
from duplex.briefing import (
    assistant_config,
    caller_brief,
    caller_config,
    first_speaker,
    observed_task,
)
from duplex.card.seat import Seat
from duplex.completion.observer import Hide, SemanticObserver
from duplex.errors import InputError
from duplex.local.engines import Models, SpeechEngines
from duplex.local.manner import pace_of
from duplex.local.parties import party_maker, voice_maker
from duplex.local.scripting import speak_line
from duplex.local.seams import VOICE_RATE_HZ
from duplex.local.server import LocalServer
from duplex.local.timbre import seeded_style
from duplex.modelling import Modelling
from duplex.models.limiter import Limiter
from duplex.options import LOCAL_ENDPOINT, PERSON, RunOptions
from duplex.participants.base import Participant
from duplex.participants.door import Door
from duplex.participants.live import LiveSession
from duplex.participants.person import Person
from duplex.participants.python_agent import PythonAgent
from duplex.participants.realtime_door import realtime_url, realtime_websocket
from duplex.participants.script_voice import ScriptedLine, ScriptVoice
from duplex.participants.stream_agent import StreamAgent
from duplex.participants.transport import Connect, bare_websocket, keyed_url, websocket
from duplex.participants.wav import Cue, WavParticipant
from duplex.protocols.agent_stream import Dialect
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.protocols.pcm import PcmStream, format_of
from duplex.realtime_ends import realtime_assistant, realtime_caller
from duplex.scenario import Scenario
from duplex.secret_values import environment_secrets, url_secrets
from duplex.values import Side

PLAYOUT_HOLD_MS = 120
"""Playout hold with which a session that sends at real-time pace begins; arrival sets the rest."""
PERSON_HOLD_MS = 60
"""The same of a microphone, whose blocks come more evenly."""
LOCAL_KEY = "local"
"""Bearer token between a run and the servers it starts itself; any other is refused."""
REMOTE = ("gpt-live", "client", "realtime")
DEFAULT_ENDPOINT = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both ends of one call with the playout hold each begins with, in ms; 0 is none at all."""

    caller: Participant
    assistant: Participant
    hold_ms: tuple[int, int]

    @property
    def adaptive(self) -> tuple[bool, bool]:
        """Whose hold follows arrival: that of every side that has one."""
        caller, assistant = self.hold_ms
        return caller > 0, assistant > 0


class Shared:
    """What the ends of one run have in common: engines, manners, the card of who calls."""

    def __init__(self, seed: int, seat: Seat | None = None) -> None:
        self.seat = seat
        self.limiter = Limiter(seed=seed)
        self._engines: dict[Models, SpeechEngines] = {}
        self._opening = asyncio.Lock()

    async def engines(self, models: Models) -> SpeechEngines:
        """The engines for these models, loaded once."""
        async with self._opening:
            if models not in self._engines:
                self._engines[models] = await SpeechEngines.open(models)
            return self._engines[models]

    async def close(self) -> None:
        while self._engines:
            _, engines = self._engines.popitem()
            await engines.close()


class Ends:
    """Opens what the calls of one setting share, and builds each call's two ends."""

    def __init__(self, options: RunOptions, shared: Shared) -> None:
        if options.caller == PERSON and shared.seat is None:
            raise InputError("caller person needs a sound card and somebody at it: duplex talk")
        self._options = options
        self._shared = shared
        self._stack = AsyncExitStack()
        self._engines: SpeechEngines | None = None
        self._door = Door()
        self.application: Application = load_application(options.application)
        own = options.assistant_endpoint
        self._endpoint = None if own is None else endpoint(own)
        python = options.agent.kind == "python"
        self._models = Modelling(options, shared.limiter)
        self._stack.push_async_callback(self._models.close)
        self._factory = load_factory(options.agent.target) if python else None

    async def open(self) -> None:
        """Find every key, then load the speech engines when a local end needs them."""
        await self._models.open()
        options = self._options
        for kind, role in ((options.assistant, "assistant"), (options.caller, "caller")):
            if kind in REMOTE and (kind != "realtime" or options.endpoint != LOCAL_ENDPOINT):
                _api_key(kind, role)
                if kind == "realtime":
                    realtime_url(_endpoint(options), options.assistant_model)
                else:
                    keyed_url(_endpoint(options))
        if {"local", "scripted"} & {options.caller, options.assistant, options.endpoint}:
            models = Models(ears=options.ears_model, mouth=options.mouth_model)
            self._engines = await self._shared.engines(models)

    async def close(self) -> None:
        await self._stack.aclose()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be written anywhere."""
        options = self._options
        addresses = (options.endpoint, options.assistant_endpoint, options.agent.target)
        keys = (*self._models.secrets, *tokens(), *environment_secrets())
        return (*keys, *url_secrets(*addresses))

    async def pair(
        self, scenario: Scenario, wav: Path | None, seed: int, stack: AsyncExitStack
    ) -> Pair:
        """Build both ends of one call; ``stack`` closes what they opened."""
        first = self.first_speaker(scenario)
        caller, caller_hold = await self._caller(scenario, wav, first, seed, stack)
        assistant = await self._assistant(scenario, first, seed, stack)
        # What an agent's own queue paces needs no hold of the engine's.
        hold_ms = 0 if self._options.agent.paced else PLAYOUT_HOLD_MS
        return Pair(caller=caller, assistant=assistant, hold_ms=(caller_hold, hold_ms))

    def observer(self, scenario: Scenario, rate_hz: int, hide: Hide) -> SemanticObserver | None:
        """Who says when a call of ``scenario`` is over, if a model was named for that.

        ``hide`` takes out of what it is shown whatever is to stay private.
        """
        return self._models.observer(observed_task(scenario), rate_hz, hide)

    def first_speaker(self, scenario: Scenario) -> str:
        return first_speaker(self._options, scenario)

    # -- the two ends -------------------------------------------------------

    async def _caller(
        self, scenario: Scenario, wav: Path | None, first: str, seed: int, stack: AsyncExitStack
    ) -> tuple[Participant, int]:
        options = self._options
        if wav is not None:
            cue = Cue(at_ms=0) if first == "caller" else Cue()
            degraded = options.condition_over(scenario.duplex.conditions).uplink
            # A recording of the scenario's says its text; what another one says nobody told.
            told = None if options.caller_is_wav else scenario.input.text
            participant = WavParticipant(
                Side.CALLER, wav, cue=cue, text=told, levelled=bool(degraded)
            )
            return participant, 0
        if options.caller == PERSON:
            assert self._shared.seat is not None, "a person has a seat"
            return Person(self._shared.seat, detector=options.detector), PERSON_HOLD_MS
        if options.caller == "scripted":
            return await self._scripted(scenario, first, seed), 0
        if options.caller == "realtime":
            connect = await self._connect_realtime("caller", seed, stack)
            caller = realtime_caller(options, scenario, connect, first=first, door=self._door)
            return caller, 0
        brief = caller_brief(scenario, first)
        remote = options.caller == "gpt-live"
        opening = f"Begin the call now. Say: {brief.opening}" if first == "caller" else None
        session = LiveSession(
            side=Side.CALLER,
            connect=await self._connect(options.caller, "caller", seed, stack),
            config=caller_config(options, scenario, first),
            provider=options.caller,
            lock_step=not remote,
            opening=opening if remote else None,
            backend=BriefBackend(brief) if remote else None,
            bench=Workbench() if remote and options.simulator_backend_model else None,
            door=self._door if remote else None,
        )
        return session, PLAYOUT_HOLD_MS

    async def _scripted(self, scenario: Scenario, first: str, seed: int) -> Participant:
        assert self._engines is not None, "a script needs a mouth"
        voice = self._options.simulator_voice or scenario.persona.voice
        pace = pace_of(caller_brief(scenario, first).persona)
        style = seeded_style(voice, seed, "caller", pace=pace)
        lines = [
            ScriptedLine(
                text=line.text,
                pcm=await speak_line(line.text, self._engines.mouth, style),
                rate_hz=VOICE_RATE_HZ,
                action=line.action,
                at_ms=line.at_ms,
                into_ms=line.begins_into_ms,
                pause_ms=line.pause_ms or 0,
            )
            for line in scenario.duplex.script or ()
        ]
        return ScriptVoice(Side.CALLER, lines, first=first == "caller")

    async def _assistant(
        self, scenario: Scenario, first: str, seed: int, stack: AsyncExitStack
    ) -> Participant:
        options = self._options
        if not options.agent.hosted:
            return self._streamed(scenario, seed)
        if options.agent.kind == "realtime":
            connect = await self._connect_realtime("assistant", seed, stack)
            return realtime_assistant(
                options,
                self.application,
                scenario,
                connect,
                first=first,
                seed=seed,
                door=self._door,
            )
        state = scenario.application.initial_state
        bench = self._models.bench(self.application, state, seed)
        backend = None if bench else self._backend(scenario, seed, stack)
        opening = None
        if first == "assistant":
            opening = options.assistant_opening_prompt or OPENING_COMMENTARY
        return LiveSession(
            side=Side.ASSISTANT,
            connect=await self._connect(options.assistant, "assistant", seed, stack),
            config=assistant_config(options, self.application, scenario),
            provider=options.assistant,
            lock_step=options.assistant == "local",
            opening=opening,
            backend=backend,
            bench=bench,
            door=self._door if options.assistant != "local" else None,
        )

    def _backend(self, scenario: Scenario, seed: int, stack: AsyncExitStack) -> Backend:
        """Who does the work of a session that delegates to us: a service elsewhere, or we."""
        state = scenario.application.initial_state
        if self._endpoint is None:
            return self._models.backend(self.application, state, seed)
        remote = remote_backend(self._endpoint, state, f"{scenario.id}.{seed}")
        stack.push_async_callback(remote.close)
        return remote

    def _streamed(self, scenario: Scenario, seed: int) -> Participant:
        """An agent whose protocol is its audio; it owns its application."""
        agent = self._options.agent
        if agent.kind == "python":
            assert self._factory is not None, "a python agent's factory is loaded first"
            config = assistant_config(self._options, self.application, scenario)
            return PythonAgent(self._factory, instructions=config.instructions, seed=seed)
        dialect: Dialect = MediaStream(StreamIds.drawn(seed))
        if agent.kind == "pcm":
            dialect = PcmStream(format_of(agent.target))
        connect = bare_websocket(agent.target)
        return StreamAgent(connect=connect, dialect=dialect, provider=agent.kind)

    async def _connect(self, kind: str, role: str, seed: int, stack: AsyncExitStack) -> Connect:
        if kind != "local":
            return websocket(_endpoint(self._options), _api_key(kind, role))
        assert self._engines is not None, "a local end needs its speech engines"
        server = LocalServer(
            voice_maker(self._engines, seed=seed, model=self._models.brain(role)),
            role=role,
            api_key=LOCAL_KEY,
            respond=self._models.responder,
        )
        if self._options.clock == "virtual":
            stack.push_async_callback(server.close)
            return server.connector()
        await stack.enter_async_context(server)
        return websocket(server.url, LOCAL_KEY)

    async def _connect_realtime(self, role: str, seed: int, stack: AsyncExitStack) -> Connect:
        options = self._options
        model = options.assistant_model if role == "assistant" else options.caller_model
        if options.endpoint != LOCAL_ENDPOINT:
            key = _api_key("realtime", role)
            return realtime_websocket(_endpoint(options), model, key)
        assert self._engines is not None, "a local end needs its speech engines"
        server = LocalServer(
            voice_maker(self._engines, seed=seed),
            role=role,
            api_key=LOCAL_KEY,
            make_party=party_maker(self._engines, seed=seed, application=self.application),
        )
        if options.clock == "virtual":
            stack.push_async_callback(server.close)
            return server.connector(realtime=True)
        await stack.enter_async_context(server)
        return realtime_websocket(server.url, model, LOCAL_KEY)


def _endpoint(options: RunOptions) -> str:
    return options.endpoint or os.environ.get("OPENAI_BASE_URL") or DEFAULT_ENDPOINT


def _api_key(kind: str, role: str) -> str:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key:
        raise InputError(f"{role} {kind} needs a key in OPENAI_API_KEY, found none")
    return key
