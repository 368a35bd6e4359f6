"""Planted conversations on the wall clock: real WebSocket sessions to a server that answers.

The server's voice says what was planted for it, each reply a set delay after the caller's
last sample came in over the socket, and notes when it heard and spoke. Several calls are
held at once and measured only when all are over, so that measuring makes no tick late. A
call that this machine held badly is counted and left out, as in any run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from duplex.calibration.clips import RATE_HZ
from duplex.calibration.matching import AllFigures, Figures, Metric, compared
from duplex.calibration.plan import Conversation, Pcm, Truth
from duplex.calibration.rows import Row
from duplex.calibration.virtual_path import DELTA, HOLD_MS, TICK_MS, Held, call_plan, found, sent
from duplex.call import Call
from duplex.clock import Clock, WallClock, wall_seconds
from duplex.local.seams import VoiceFrame
from duplex.local.server import LocalServer
from duplex.metrics.of_call import timing_of_call
from duplex.metrics.timing import TimingBlock
from duplex.participants.audible import AUDIBLE
from duplex.participants.live import LiveSession
from duplex.participants.scripted import Scripted
from duplex.participants.transport import websocket
from duplex.protocols.gpt_live_client import LiveConfig
from duplex.protocols.gpt_live_server import SessionConfig
from duplex.recording import CallRecorder, Recording
from duplex.values import Side

BLOCK = RATE_HZ // 50
KEY = "calibration"
SPREAD_S = 0.037
"""Calls start this far apart, so that their ticks do not fall together."""


@dataclass(slots=True)
class PlantedVoice:
    """A server's voice that says one stream and keeps when each block came and went.

    Its session time is the caller's audio: what it says at sample n was said when sample n
    of the caller had been heard.
    """

    stream: Pcm
    heard: list[Pcm] = field(default_factory=list)
    came: list[float] = field(default_factory=list)
    went: list[float] = field(default_factory=list)
    _position: int = 0

    async def begin(self, clock: Clock) -> None:
        return

    async def frame(self, pcm: Pcm) -> VoiceFrame:
        self.came.append(wall_seconds())
        self.heard.append(pcm.copy())
        said = np.zeros(len(pcm), np.int16)
        mine = self.stream[self._position : self._position + len(pcm)]
        said[: len(mine)] = mine
        self._position += len(pcm)
        self.went.append(wall_seconds())
        return VoiceFrame(pcm=said)

    def commentary(self, text: str, delegation_id: str | None) -> None:
        return

    def thinking(self, text: str, delegation_id: str | None) -> None:
        return

    def instruct(self, text: str) -> None:
        return

    async def close(self) -> None:
        return

    def answered_ms(self, end: int, start: int) -> tuple[float, float] | None:
        """How long after the caller's sample ``end`` the sound at ``start`` went out, in ms.

        First as the moment its delta left, then as a listener without any delay would have
        had it. None when the session ended before.
        """
        first = start + int(np.flatnonzero(np.abs(self.stream[start:]) >= AUDIBLE)[0])
        delta = first // DELTA
        last_block = (delta + 1) * DELTA // BLOCK - 1
        heard_in = (end - 1) // BLOCK
        if last_block >= len(self.went) or heard_in >= len(self.came):
            return None
        audio = (self.went[last_block] - self.came[heard_in]) * 1000
        return audio, audio + (first - delta * DELTA) * 1000 / RATE_HZ


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live:
    """One call that is over, with both ends' streams."""

    call_id: str
    conversation: Conversation
    streams: dict[Side, Pcm]
    voice: PlantedVoice


async def hold_all(
    row: Row,
    conversations: Sequence[Conversation],
    rng: np.random.Generator,
    folder: Path,
    at_once: int,
) -> tuple[list[Held], int]:
    """Hold all conversations, ``at_once`` together; return what came of them, and the failed."""
    streams = [sent(row, conversation, rng) for conversation in conversations]
    calls = [
        _Live(
            call_id=f"live{index:03d}",
            conversation=conversation,
            streams=pair,
            voice=PlantedVoice(pair[Side.ASSISTANT]),
        )
        for index, (conversation, pair) in enumerate(zip(conversations, streams, strict=True))
    ]
    voices = {call.call_id: call.voice for call in calls}

    def voice_of(config: SessionConfig, role: str) -> PlantedVoice:
        return voices[config.instructions]

    gate = asyncio.Semaphore(at_once)
    async with LocalServer(voice_of, api_key=KEY) as server:
        held = [
            _hold(call, server.url, folder, gate, index % at_once * SPREAD_S)
            for index, call in enumerate(calls)
        ]
        await asyncio.gather(*held)
    results = [_compared(call, folder) for call in calls]
    good = [result for result in results if result is not None]
    return good, len(results) - len(good)


async def _hold(
    live: _Live, url: str, folder: Path, gate: asyncio.Semaphore, wait_s: float
) -> None:
    async with gate:
        await asyncio.sleep(wait_s)
        call = Call(
            call_plan(live.call_id, live.conversation, (0, HOLD_MS), TICK_MS),
            caller=Scripted(
                Side.CALLER,
                [(0, live.streams[Side.CALLER])],
                live.conversation.utterances,
                live.conversation.sounds,
            ),
            assistant=LiveSession(
                side=Side.ASSISTANT,
                connect=websocket(url, KEY),
                config=LiveConfig(instructions=live.call_id),
            ),
            clock=WallClock(RATE_HZ),
            recorder=CallRecorder(folder, live.call_id, rate_hz=RATE_HZ),
        )
        await call.hold()


def _compared(live: _Live, folder: Path) -> Held | None:
    """Measure one call; None when it was not held as it should have been."""
    recording = Recording.load(folder, live.call_id)
    if recording.fatal_fault is not None:
        return None
    block = timing_of_call(recording)
    planted = live.conversation.truth
    truth, placement = found(recording, live.streams, planted)
    heard = np.concatenate(live.voice.heard)[: recording.duration]
    placement.samples += len(heard)
    placement.moved += int((heard != live.streams[Side.CALLER][: len(heard)]).sum())
    return Held(
        figures=compared(block, truth, TICK_MS) | _arrivals(block, truth, planted, live.voice),
        placement=placement,
    )


def _arrivals(block: TimingBlock, truth: Truth, planted: Truth, voice: PlantedVoice) -> AllFigures:
    """First audio and the assistant's own share, as the server saw them."""
    first, own = (Figures(n=len(planted.pairs)) for _ in range(2))
    starts = [turn.start for turn in block.talk.turns[Side.ASSISTANT]]
    for caller, assistant in planted.pairs:
        end = planted.turns[Side.CALLER][caller][1]
        start = planted.turns[Side.ASSISTANT][assistant][0]
        true = voice.answered_ms(end, start)
        played = truth.turns[Side.ASSISTANT][assistant][0]
        near = min(range(len(starts)), key=lambda i: abs(starts[i] - played), default=None)
        timing = None if near is None else block.relay.replies[near]
        if true is None or timing is None or timing.first_audio_ms is None or timing.own_ms is None:
            first.missed += 1
            own.missed += 1
            continue
        first.add(timing.first_audio_ms - true[0])
        own.add(timing.own_ms - true[1])
    return {Metric.FIRST_AUDIO: first, Metric.OWN: own}
