"""Whole calls between the embedded voices: only audio joins the parties."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest

from duplex import scenario as scenarios
from duplex.call import Call, CallEnd, CallPlan
from duplex.clock import Clock, VirtualClock
from duplex.ends import Ends, Shared
from duplex.hangup import Policy
from duplex.local.engines import SpeechEngines
from duplex.local.seams import Style
from duplex.options import RunOptions, make
from duplex.participants.base import Participant, Pcm
from duplex.participants.wav import Cue, WavParticipant
from duplex.recording import CallRecorder, Recording
from duplex.results import schema
from duplex.runner import Runner
from duplex.values import Side
from duplex.wavfile import write_wav

TREE = Path(__file__).parents[1]
RATE = 24_000
BOOKING = "restaurant_booking_complete"
_ABSENT = [name for name in ("ctranslate2", "piper") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.speech,
    pytest.mark.skipif(bool(_ABSENT), reason=f"the local extra is not installed: {_ABSENT}"),
]


def options(out: Path, **values: object) -> RunOptions:
    given: dict[str, object] = {
        "data": TREE / "scenarios",
        "scenario": (BOOKING,),
        "clock": "virtual",
        "out": out,
    }
    return make(given | values)


@pytest.fixture
async def ends(tmp_path: Path) -> AsyncIterator[Ends]:
    shared = Shared(7)
    opened = Ends(options(tmp_path), shared)
    await opened.open()
    yield opened
    await opened.close()
    await shared.close()


class Deaf:
    """A participant whose line towards it carries nothing."""

    def __init__(self, inner: Participant) -> None:
        self._inner = inner
        self.side = inner.side
        self.lock_step = inner.lock_step
        self.start = inner.start
        self.collect = inner.collect
        self.finish = inner.finish
        self.abort = inner.abort

    def hear(self, position: int, pcm: Pcm) -> None:
        self._inner.hear(position, np.zeros_like(pcm))


async def held(
    folder: Path, caller: Participant, assistant: Participant, seconds: int = 40
) -> tuple[CallEnd, Recording]:
    clock: Clock = VirtualClock(RATE)
    plan = CallPlan(
        call_id="c",
        scenario_id=BOOKING,
        hold_ms=(120, 120),
        adaptive=(True, True),
        policy=Policy(max_duration_ms=seconds * 1000),
    )
    recorder = CallRecorder(folder, "c", rate_hz=RATE)
    call = Call(plan, caller=caller, assistant=assistant, clock=clock, recorder=recorder)
    return await call.hold(), Recording.load(folder, "c")


async def test_the_demo_books_its_table_in_virtual_time(tmp_path: Path) -> None:
    finished = await Runner(options(tmp_path)).run()
    (result,) = finished.run.results
    assert result.status == "passed", result.model_dump_json(indent=1)
    assert result.metrics.task.tool_accuracy == 1.0
    assert not result.observability.agenda.pending_required
    assert result.observability.interaction.attribution == "caller_intent"
    folder = finished.folder
    for name in ("conversation.wav", "caller_source.wav", "assistant_source.wav"):
        assert (folder / "audio" / BOOKING / name).stat().st_size > 10 * RATE
    written = schema.read_run((folder / "results.json").read_text(encoding="utf-8"))
    assert written == finished.run
    assert (folder.stat().st_mode & 0o777) == 0o700
    assert ((folder / "results.json").stat().st_mode & 0o777) == 0o600


@pytest.mark.parametrize("deaf", list(Side))
async def test_without_sound_in_one_direction_nothing_is_booked(
    ends: Ends, tmp_path: Path, deaf: Side
) -> None:
    (scenario,) = scenarios.load(TREE / "scenarios").select([BOOKING])
    async with AsyncExitStack() as stack:
        pair = await ends.pair(scenario, None, 7, stack)
        caller = Deaf(pair.caller) if deaf is Side.CALLER else pair.caller
        assistant = Deaf(pair.assistant) if deaf is Side.ASSISTANT else pair.assistant
        _, recording = await held(tmp_path, caller, assistant, seconds=30)
    assert not any(call.name == "create_reservation" for call in recording.tool_calls)


async def test_other_words_in_the_callers_audio_change_the_tools_arguments(
    ends: Ends, tmp_path: Path
) -> None:
    (scenario,) = scenarios.load(TREE / "scenarios").select([BOOKING])
    spoken = "A table for five people on August ninth at six p.m., under the name Peter, please."
    engines = await SpeechEngines.open()
    chunks = [chunk async for chunk in engines.mouth.speak(spoken, Style(voice="coral"))]
    await engines.close()
    write_wav(tmp_path / "other.wav", np.concatenate(chunks), RATE)
    async with AsyncExitStack() as stack:
        pair = await ends.pair(scenario, None, 7, stack)
        cue = Cue(answer_ms=12_000)
        caller = WavParticipant(Side.CALLER, tmp_path / "other.wav", cue=cue)
        _, recording = await held(tmp_path, caller, pair.assistant)
    booked = [call for call in recording.tool_calls if call.name == "create_reservation"]
    wanted = {"guest_name": "Peter", "date": "2026-08-09", "time": "18:00", "party_size": 5}
    assert [dict(call.arguments) for call in booked] == [wanted]


@pytest.mark.parametrize("name", ["restaurant_change_time", "restaurant_second_thoughts"])
async def test_changes_and_second_thoughts_are_followed_by_ear(tmp_path: Path, name: str) -> None:
    (result,) = (await Runner(options(tmp_path, scenario=(name,))).run()).run.results
    assert result.status == "passed", result.model_dump_json(indent=1)
    assert result.metrics.task.tool_accuracy == 1.0


async def test_the_two_ends_share_no_state_but_the_engines(ends: Ends) -> None:
    (scenario,) = scenarios.load(TREE / "scenarios").select([BOOKING])
    async with AsyncExitStack() as stack:
        pair = await ends.pair(scenario, None, 7, stack)
        mutable = [_reachable(part) for part in (pair.caller, pair.assistant)]
    shared = {type(mutable[0][key]).__name__ for key in mutable[0].keys() & mutable[1].keys()}
    # The models are shared on purpose: they hold weights and no conversation.
    assert shared <= {"SpeechEngines", "WhisperEars", "PiperMouth", "_Child"}, shared


def _reachable(root: object) -> dict[int, object]:
    """Objects of ours with a ``__dict__`` that can be reached from ``root``."""
    found: dict[int, object] = {}
    todo: list[object] = [root]
    while todo:
        item = todo.pop()
        cells = [cell.cell_contents for cell in getattr(item, "__closure__", None) or ()]
        members = list(getattr(item, "__dict__", {}).values())
        ours = type(item).__module__.startswith("duplex")
        if id(item) in found or not (ours or cells):
            continue
        found[id(item)] = item
        todo += [*members, *cells]
    return {key: item for key, item in found.items() if type(item).__module__[:6] == "duplex"}


@pytest.mark.wall
def test_kill_9_leaves_everything_that_was_flushed_and_it_loads(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "duplex", "run", "--scenario", BOOKING]
    process = subprocess.Popen(
        [*command, "--data", str(TREE / "scenarios"), "--out", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    try:
        on_disk = _awaited(tmp_path, seconds=3.0).stat().st_size
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    (run,) = tmp_path.iterdir()
    recording = Recording.load(run, BOOKING)
    assert recording.duration * 4 + 44 >= on_disk
    assert len(recording.conversation()) == recording.duration
    assert len(recording.source(Side.ASSISTANT)) == recording.duration
    assert not recording.ended
    lines = (run / "events" / f"{BOOKING}.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line) for line in lines)


def _awaited(folder: Path, seconds: float) -> Path:
    """Wait until a recording below ``folder`` holds this much."""
    for _ in range(1200):
        for wav in folder.glob("*/audio/*/conversation.wav"):
            if wav.stat().st_size >= seconds * RATE * 4:
                return wav
        time.sleep(0.05)
    raise AssertionError("the call never got going")
