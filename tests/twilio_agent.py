"""A fake agent for Twilio's Media Streams, made of the local voice: what a team would bring.

It speaks only the public protocol: mu-law of 8 kHz in base64, a mark after each
utterance, a clear when the caller cuts in. Its application is its own; what its
tools did it reports over the side channel, when ``start`` invites reports.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from duplex.application.backend import LocalBackend
from duplex.application.loading import load_application
from duplex.application.prompts import OPENING_COMMENTARY, assistant_instructions
from duplex.clock import Clock
from duplex.local.engines import SpeechEngines
from duplex.local.parties import voice_maker
from duplex.local.pipe import pipe
from duplex.local.rate_bridge import RateBridge
from duplex.local.seams import Pcm, Voice, VoiceFrame
from duplex.participants.live_words import Piece, conversation
from duplex.participants.transport import Connect, Transport, TransportClosed
from duplex.protocols import g711
from duplex.protocols.gpt_live import AudioFormat
from duplex.protocols.gpt_live_server import SessionConfig
from duplex.values import Happening, Json

QUIET = 33


@dataclass
class TwilioAgent:
    """One call of the agent; everything that came and went is kept."""

    engines: SpeechEngines
    state: Mapping[str, Json]
    seed: int = 7
    reports: bool = True
    received: list[dict[str, Json]] = field(default_factory=list)
    sent: list[dict[str, Json]] = field(default_factory=list)
    closed: TransportClosed | None = None

    def connector(self) -> Connect:
        """Return what joins a participant to this agent over a pipe in memory."""

        async def open_it(clock: Clock) -> Transport:
            ours, theirs = pipe(clock)
            self._task = asyncio.create_task(self.serve(theirs, clock))
            return ours

        return open_it

    async def serve(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock = transport, clock
        self._pieces: list[Piece] = []
        self._speaking, self._utterances, self._quiet_ms = False, 0, 0
        self._up, self._down = RateBridge(8_000, 24_000), RateBridge(24_000, 8_000)
        self._work: set[asyncio.Task[None]] = set()
        voice: Voice | None = None
        try:
            while True:
                message = json.loads(await transport.receive())
                self.received.append(message)
                match message["event"]:
                    case "start":
                        voice = await self._begin(message["start"])
                    case "media":
                        assert voice is not None
                        data = base64.b64decode(message["media"]["payload"])
                        pcm = self._up.convert(g711.decode(data, "mu"))
                        await self._answer(await voice.frame(pcm), voice)
        except TransportClosed as closed:
            self.closed = closed
        finally:
            for task in self._work:
                task.cancel()
            await asyncio.gather(*self._work, return_exceptions=True)
            if voice is not None:
                await voice.close()
            transport.abort()

    def of(self, event: str) -> list[dict[str, Json]]:
        return [message for message in self.received if message["event"] == event]

    # -- the agent ----------------------------------------------------------

    async def _begin(self, start: Mapping[str, Json]) -> Voice:
        self._sid = str(start["streamSid"])
        parameters = start["customParameters"]
        assert isinstance(parameters, dict)
        self.reports = self.reports and "duplex" in parameters
        application = load_application()
        self._backend = LocalBackend(application, self.state, seed=self.seed)
        self._told: list[Happening] = []
        self._backend.begin(self._told.append)
        await self._report_work()
        instructions = assistant_instructions(application, self.state, [])
        config = SessionConfig(
            model="gpt-live-1",
            voice="cedar",
            instructions=instructions,
            audio=AudioFormat(),
        )
        voice = voice_maker(self.engines, seed=self.seed)(config, "assistant")
        await voice.begin(self._clock)
        voice.commentary(OPENING_COMMENTARY, None)
        return voice

    async def _answer(self, frame: VoiceFrame, voice: Voice) -> None:
        pieces = [(True, words) for words in frame.said] + [(False, words) for words in frame.heard]
        self._pieces += [
            Piece(said=said, text=one.text, start_ms=one.start_ms, end_ms=one.end_ms)
            for said, one in pieces
        ]
        if frame.heard:
            await self._report({"type": "asr_final", "text": frame.heard[-1].text})
        for number in range(len(frame.delegations)):
            work = self._delegated(f"d{len(self._pieces)}_{number}", voice)
            self._work.add(self._clock.spawn(work))
        if any(note.kind == "utterance" and not note.fields["complete"] for note in frame.notes):
            await self._send("clear")
        await self._say(self._down.convert(frame.pcm))
        await self._report_work()

    async def _say(self, pcm: Pcm) -> None:
        """Send what sounds, and a mark once it has been quiet for 200 ms."""
        loud = bool(np.abs(pcm.astype(int)).max(initial=0) >= QUIET)
        self._quiet_ms = 0 if loud else self._quiet_ms + 20
        if loud and not self._speaking:
            self._speaking = True
            await self._report({"type": "first_byte"})
        if self._speaking:
            payload = base64.b64encode(g711.encode(pcm, "mu")).decode()
            await self._send("media", media={"payload": payload})
            if self._quiet_ms >= 200:
                self._speaking = False
                self._utterances += 1
                await self._send("mark", mark={"name": f"utterance {self._utterances}"})

    async def _delegated(self, name: str, voice: Voice) -> None:
        lines = conversation(self._pieces)
        for text in await self._backend.handle(name, lines, self._clock, self._told.append):
            voice.commentary(text, name)

    async def _report_work(self) -> None:
        told = list(self._told)
        self._told.clear()
        for one in told:
            fields = dict(one.fields)
            if one.type == "state":
                await self._report({"type": "state", **fields})
            elif one.type == "tool.started":
                fields.pop("delegation_id")
                await self._report({"type": "tool", "status": "started", **fields})
            elif one.type == "tool.ended":
                await self._report({"type": "tool", **fields})

    async def _report(self, report: dict[str, Json]) -> None:
        if self.reports:
            await self._send("duplex", duplex=report)

    async def _send(self, event: str, **fields: Json) -> None:
        message: dict[str, Json] = {"event": event, "streamSid": self._sid, **fields}
        self.sent.append(message)
        await self._transport.send(json.dumps(message))
