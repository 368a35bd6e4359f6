"""An agent that never spoke is an outcome of its own, whatever protocol it is silent over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from booking_call import booking
from duplex.call import Call, CallPlan
from duplex.clock import VirtualClock
from duplex.grading import Evidence
from duplex.hangup import Policy
from duplex.local.server import LocalServer
from duplex.participants.base import Participant
from duplex.participants.live import LiveSession
from duplex.participants.python_agent import PythonAgent
from duplex.participants.realtime import RealtimeSession
from duplex.participants.scripted import Scripted
from duplex.participants.stream_agent import StreamAgent
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.protocols.pcm import PcmFormat, PcmStream
from duplex.recording import CallRecorder, Recording
from duplex.results import Basis, CallFigures, build_result
from duplex.results.run import exit_code
from duplex.results.schema import Result
from duplex.values import Side
from gpt_live_voices import ToneVoice, Voices
from realtime_peer import Peer
from results_support import run_of
from stimuli import pcm, speechlike
from stream_peer import StreamPeer, TwilioPeer

RATE = 24_000
ASSISTANT = Side.ASSISTANT


def gpt_live() -> Participant:
    server = LocalServer(Voices(ToneVoice))
    return LiveSession(side=ASSISTANT, connect=server.connector(), lock_step=True)


def gpt_live_tone() -> Participant:
    """A session that makes a tone and no speech when it is greeted."""
    server = LocalServer(Voices(ToneVoice))
    return LiveSession(side=ASSISTANT, connect=server.connector(), lock_step=True, opening="hi")


def realtime() -> Participant:
    return RealtimeSession(side=ASSISTANT, connect=Peer().connect(), lock_step=True)


def twilio() -> Participant:
    dialect = MediaStream(StreamIds.drawn(7))
    return StreamAgent(connect=TwilioPeer().connector(), dialect=dialect, provider="twilio")


def raw_pcm() -> Participant:
    dialect = PcmStream(PcmFormat())
    return StreamAgent(connect=StreamPeer().connector(), dialect=dialect, provider="pcm")


def factory() -> Participant:
    return PythonAgent(lambda call: lambda heard, rate_hz: None, seed=7)


def factory_that_breaks() -> Participant:
    def broken(heard: object, rate_hz: int) -> None:
        raise RuntimeError("never a word")

    return PythonAgent(lambda call: broken, seed=7)


AGENTS: dict[str, Callable[[], Participant]] = {
    "gpt-live": gpt_live,
    "gpt-live, a tone": gpt_live_tone,
    "realtime": realtime,
    "twilio": twilio,
    "pcm": raw_pcm,
    "python": factory,
    "python, raising": factory_that_breaks,
}


async def held(folder: Path, agent: Participant, first: str) -> Result:
    speech = pcm(speechlike(1.5, 3))
    caller = Scripted(Side.CALLER, [(RATE, speech), (10**9, np.zeros(1, np.int16))])
    call = Call(
        CallPlan(
            call_id="c",
            scenario_id="c",
            first_speaker=first,
            policy=Policy(opening_ms=5_000, max_duration_ms=12_000),
        ),
        caller=caller,
        assistant=agent,
        clock=VirtualClock(RATE),
        recorder=CallRecorder(folder, "c", rate_hz=RATE),
    )
    await call.hold()
    evidence = Evidence.from_recording(Recording.load(folder, "c"))
    return build_result(booking(), evidence, CallFigures(), basis=Basis())


@pytest.mark.parametrize("first", ["assistant", "caller"])
@pytest.mark.parametrize("name", AGENTS)
async def test_silence_is_the_agents_and_no_failure_of_the_task(
    tmp_path: Path, name: str, first: str
) -> None:
    result = await held(tmp_path, AGENTS[name](), first)
    assert result.status == "infrastructure_error"
    assert result.error is not None
    assert result.error.stage == "assistant_opening", result.error
    assert result.duplex["outcome"] == "never_spoke"
    assert result.duplex["whose_fault"] == "agent"
    assert result.validity.status == "valid"
    assert result.assessment.passed is None
    assert exit_code(run_of(result)) == 1, "it was reached"
