"""A whole call with an agent that answers in bursts and is cut: heard is not received."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np

from duplex.call import Call, CallPlan
from duplex.clock import VirtualClock
from duplex.hangup import Policy
from duplex.metrics.of_call import interrupted_of, timing_of_call
from duplex.participants.base import Pcm
from duplex.participants.scripted import Scripted
from duplex.participants.stream_agent import StreamAgent
from duplex.protocols import g711
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.recording import CallRecorder, Recording
from duplex.values import Json, Side, Span, Utterance
from stream_peer import TwilioPeer

RATE = 24_000
MS = RATE // 1000


def syllables(ms: int, rate: int, hz: float = 140.0) -> Pcm:
    """Buzzing syllables, four a second: speech to any detector."""
    t = np.arange(ms * rate // 1000) / rate
    buzz = sum(np.sin(2 * np.pi * hz * k * t) / k for k in range(1, 20))
    gate = np.clip(np.sin(2 * np.pi * 4 * t) + 0.7, 0, 1)
    pcm: Pcm = np.rint(5_000 * gate * buzz).astype(np.int16)
    return pcm


class Bursts(TwilioPeer):
    """Answers a question with five seconds at once, and clears when it hears the caller again."""

    loud = quiet = 0
    heard_any = answered = cut = False

    async def answer(self, message: str | bytes) -> None:
        event = json.loads(message)
        if event["event"] != "media":
            return
        pcm = g711.decode(base64.b64decode(event["media"]["payload"]), "mu")
        sounds = bool(np.abs(pcm.astype(int)).max() > 300)
        self.loud, self.quiet = (self.loud + 1, 0) if sounds else (0, self.quiet + 1)
        self.heard_any = self.heard_any or sounds
        if self.heard_any and not self.answered and self.quiet == 25:
            self.answered = True
            data = base64.b64encode(g711.encode(syllables(5_000, 8_000, 110.0), "mu"))
            await self.put("media", media={"payload": data.decode()})
            await self.put("mark", mark={"name": "answer"})
        elif self.answered and not self.cut and self.loud == 10:
            self.cut = True
            await self.put("clear")

    async def put(self, event: str, **fields: Json) -> None:
        sid = self.all("start")[0]["streamSid"]
        await self._end.send(json.dumps({"event": event, "streamSid": sid, **fields}))


async def test_what_was_heard_of_a_cut_reply_is_what_the_recording_holds(tmp_path: Path) -> None:
    question, barge = syllables(1_000, RATE), syllables(1_500, RATE)
    spans = [(1_000, 2_000), (4_000, 5_500)]
    caller = Scripted(
        Side.CALLER,
        [(1_000 * MS, question), (4_000 * MS, barge)],
        [
            Utterance(side=Side.CALLER, text="words", span=Span(start=a * MS, end=b * MS))
            for a, b in spans
        ],
    )
    peer = Bursts()
    agent = StreamAgent(
        connect=peer.connector(), dialect=MediaStream(StreamIds.drawn(7)), provider="twilio"
    )
    plan = CallPlan(
        call_id="c",
        scenario_id="c",
        first_speaker="caller",
        policy=Policy(max_duration_ms=8_000, drain_ms=60_000),
    )
    recorder = CallRecorder(tmp_path, "c", rate_hz=RATE)
    call = Call(plan, caller=caller, assistant=agent, clock=VirtualClock(RATE), recorder=recorder)
    await call.hold()
    recording = Recording.load(tmp_path, "c")
    (cut,) = interrupted_of(recording) or ()
    assert cut.received_ms == 5_000
    timing: dict[str, Json] = dict(timing_of_call(recording).as_json())
    assistant = recording.source(Side.ASSISTANT)
    sounding = np.flatnonzero(np.abs(assistant.astype(int)) > 0)
    heard_ms = (int(sounding[-1]) + 1 - int(sounding[0])) / MS
    assert heard_ms <= cut.heard_ms <= heard_ms + 60
    assert 1_000 < cut.heard_ms < 2_500
    clock = timing["clock"]
    assert isinstance(clock, dict)
    assert clock["discarded_samples"] == round((5_000 - cut.heard_ms) * MS)
    turns = timing["turns"]
    assert isinstance(turns, list)
    yielded = [turn for turn in turns if isinstance(turn, dict) and turn.get("yielded")]
    assert [turn["side"] for turn in yielded] == ["caller"]
    relay = timing["relay"]
    assert isinstance(relay, dict)
    hold = relay["hold_ms"]
    assert isinstance(hold, dict)
    assert hold["n"] == 1
    # A burst is played at once: nothing of ours is in it but the tick.
    assert hold["mean"] == 0.0
    assert len(peer.all("mark")) == 1
