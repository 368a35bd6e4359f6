"""Faults of sessions that people reported in public, as whole calls of their kind.

Comments name the report. What a single participant makes of them is tested beside it;
here is what a call, its recording and its results make of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

from booking_call import SLOT, Log, booking, booking_call
from duplex.application.loading import load_application
from duplex.application.workbench import Workbench, read_arguments
from duplex.call import Call, CallEnd, CallPlan
from duplex.clock import Clock, VirtualClock, WallClock, wall_seconds
from duplex.grading import Evidence
from duplex.grading.judging import case_of
from duplex.hangup import Policy
from duplex.local.faults import parse_fault
from duplex.local.pipe import pipe
from duplex.local.server import LocalServer
from duplex.metrics.of_call import interrupted_of, timing_of_call
from duplex.metrics.transcript import transcript_text, transcripts
from duplex.participants.base import Participant, Pcm
from duplex.participants.live import Limits, LiveSession
from duplex.participants.realtime import RealtimeSession
from duplex.participants.scripted import Scripted
from duplex.participants.transport import Connect, Transport, TransportClosed, websocket
from duplex.protocols.model_values import Call as FunctionCall
from duplex.protocols.realtime_server import Reply
from duplex.protocols.responses import StreamReader
from duplex.recording import CallRecorder, Recording
from duplex.results import Basis, CallFigures, build_result, to_json
from duplex.results.run import exit_code
from duplex.run_folder import RunFolder
from duplex.values import Happening, Json, Side
from gpt_live_voices import ToneVoice
from realtime_peer import Peer, tone
from results_support import result_of, run_of
from stimuli import pcm, speechlike

RATE = 24_000
MS = RATE // 1000
TICK = RATE // 50
NEVER: Pcm = np.zeros(1, np.int16)


async def held(
    folder: Path,
    assistant: Participant,
    *,
    caller: tuple[tuple[int, Pcm], ...] = (),
    seconds: float = 6.0,
    clock: Clock | None = None,
    opening_ms: int = 60_000,
) -> tuple[CallEnd, Recording]:
    """Hold one call to its limit, with a caller that says ``caller`` (ms, audio)."""
    pieces = [(at * MS, sound) for at, sound in caller]
    call = Call(
        CallPlan(
            call_id="c",
            scenario_id="c",
            policy=Policy(max_duration_ms=round(seconds * 1000), opening_ms=opening_ms),
        ),
        caller=Scripted(Side.CALLER, [*pieces, (10**9, NEVER)]),
        assistant=assistant,
        clock=clock or VirtualClock(RATE),
        recorder=CallRecorder(folder, "c", rate_hz=RATE),
    )
    end = await call.hold()
    return end, Recording.load(folder, "c")


class Played(Peer):
    """A peer that plays a part: steps at positions of the call's clock, in ms."""

    def __init__(self, *steps: tuple[int, Callable[[Played], Awaitable[object]]]) -> None:
        super().__init__()
        self.steps = steps
        self.items: list[str] = []

    def connect(self) -> Connect:
        inner = super().connect()

        async def open_it(clock: Clock) -> Transport:
            transport = await inner(clock)
            self.tasks += [clock.spawn(self._step(clock, at, do)) for at, do in self.steps]
            return transport

        return open_it

    async def _step(self, clock: Clock, at: int, do: Callable[[Played], Awaitable[object]]) -> None:
        await clock.until(at * MS)
        await do(self)


def session(peer: Peer) -> RealtimeSession:
    return RealtimeSession(side=Side.ASSISTANT, connect=peer.connect(), lock_step=True)


def loud_ms(track: Pcm) -> tuple[int, int]:
    found = np.flatnonzero(track)
    return int(found[0]) // MS, int(found[-1]) // MS


# -- sgl-project/sglang-omni#1344: deltas of a cancelled response keep coming ------


@pytest.mark.parametrize("late", [1, 10, 40])
@pytest.mark.parametrize("gap_ms", [40, 900])
async def test_nothing_of_a_cancelled_response_is_heard_after_the_cut(
    tmp_path: Path, late: int, gap_ms: int
) -> None:
    async def begin(peer: Played) -> None:
        _, item_id = await peer.begin()
        peer.items.append(item_id)
        await peer.say(item_id, tone(1_300))

    async def cut(peer: Played) -> None:
        await peer.hears(1_000)

    async def more(peer: Played) -> None:
        for _ in range(late):
            await peer.say(peer.items[0], tone(40, hz=900.0))
        why: Json = {"type": "cancelled", "reason": "turn_detected"}
        await peer.end(peer.items[0], "cancelled", why)

    async def again(peer: Played) -> None:
        await peer.reply(1_000)

    starts, cut_at = 500, 1_500
    again_at = cut_at + 100 + gap_ms
    peer = Played((starts, begin), (cut_at, cut), (cut_at + 60, more), (again_at, again))
    _, recording = await held(
        tmp_path, session(peer), caller=((cut_at - 100, pcm(speechlike(0.5, 1))),)
    )
    track = recording.source(Side.ASSISTANT)
    first, last = loud_ms(track[: again_at * MS - TICK])
    assert first == pytest.approx(starts, abs=40)
    assert last - first == pytest.approx(1_000, abs=40), "1.0 s of the first was heard"
    assert not track[(cut_at + 40) * MS : (again_at - 20) * MS].any()
    second, over = loud_ms(track[(again_at - 20) * MS :])
    assert second == pytest.approx(20, abs=40), "the next begins when it comes"
    assert over - second == pytest.approx(1_000, abs=40)
    counts = (recording.counts or {})["assistant"]
    assert isinstance(counts, dict)
    assert counts["discarded"] == pytest.approx((300 + 40 * late) * MS, abs=40 * MS)
    (cut_reply,) = interrupted_of(recording) or ()
    assert cut_reply.heard_ms == pytest.approx(1_000, abs=40)
    assert [fault.code for fault in recording.faults] == []


# -- livekit/agents#6157: interrupted before any of it was played ------------------


@pytest.mark.parametrize("first_delta_ms", [3_300, 3_060])
async def test_a_reply_that_was_only_declared_is_not_truncated(
    tmp_path: Path, first_delta_ms: int
) -> None:
    async def declare(peer: Played) -> None:
        peer.items.append((await peer.begin())[1])

    async def speaks(peer: Played) -> None:
        await peer.hears(3_050)

    async def delta(peer: Played) -> None:
        await peer.say(peer.items[0], tone(400))

    peer = Played((3_000, declare), (3_050, speaks), (first_delta_ms, delta))
    caller = ((1_000, pcm(speechlike(1.5, 1))), (3_050, pcm(speechlike(1.0, 2))))
    _, recording = await held(tmp_path, session(peer), caller=caller, seconds=7.0)
    assert peer.kinds("conversation.item.truncate") == []
    assert peer.refused == []
    assert [fault.code for fault in recording.faults] == []
    assert not recording.source(Side.ASSISTANT).any()
    (cut,) = interrupted_of(recording) or ()
    assert cut.heard_ms == 0
    timing = timing_of_call(recording).as_json()
    latency = timing["response_latency"]
    assert isinstance(latency, dict)
    assert (latency["n"], latency["mean"]) == (0, None), "a turn that was cut into has no latency"


# -- livekit/agents#2967: a response that failed looks like a quiet agent ----------


async def test_a_reply_the_provider_refused_is_told_and_nobodys_silence(tmp_path: Path) -> None:
    async def refused(peer: Played) -> None:
        _, item_id = await peer.begin()
        why: Json = {
            "type": "failed",
            "error": {"type": "rate_limit", "code": "rate_limit_exceeded", "message": "slow down"},
        }
        await peer.end(item_id, "failed", why)

    async def reply(peer: Played) -> None:
        _, item_id = await peer.begin()
        await peer.say(item_id, pcm(speechlike(0.8, 9)), "yes")
        await peer.end(item_id)

    peer = Played((2_000, reply), (5_200, refused), (9_000, reply))
    asked = tuple((at, pcm(speechlike(1.0, n))) for n, at in enumerate((800, 4_000, 7_600)))
    _, recording = await held(tmp_path, session(peer), caller=asked, seconds=14.0)
    (fault,) = recording.faults
    assert (fault.stage, fault.code, fault.fatal) == ("provider", "rate_limit_exceeded", False)
    evidence = Evidence.from_recording(recording)
    result = build_result(booking(), evidence, CallFigures(), basis=Basis())
    assert result.error is not None
    assert result.error.stage == "provider"
    assert "slow down" in result.error.message
    assert result.duplex["whose_fault"] == "platform"
    assert exit_code(run_of(result)) == 2


# -- livekit/agents#6579: the caller's transcript comes after the reply ------------


def test_words_stand_by_when_they_were_spoken_whenever_they_came(tmp_path: Path) -> None:
    log = Log()
    log.add(6_000, Side.ASSISTANT, "segment", detector="rms", start=4_000 * 24, end=6_000 * 24)
    log.add(3_000, Side.CALLER, "segment", detector="rms", start=1_000 * 24, end=3_000 * 24)
    spoken = ((Side.ASSISTANT, 5_000, 4_000, 6_000), (Side.CALLER, 7_000, 1_000, 3_000))
    for side, came, start, end in spoken:
        log.add(
            came, side, "utterance", text=f"{side.label} words", start=start * 24, end=end * 24,
            action=None, source="transcript",
        )  # fmt: skip
    recorder = CallRecorder(tmp_path, "c", rate_hz=RATE)
    for event in log.end(8_000).events():
        recorder.event(event)
    recorder.close()
    recording = Recording.load(tmp_path, "c")
    assert [line.split(" ")[0] for line in transcript_text(recording).splitlines()] == [
        "USER",
        "ASSISTANT",
    ]
    assert [one["role"] for one in transcripts(recording)] == ["user", "assistant"]
    evidence = Evidence.from_recording(recording)
    assert [line.side for line in evidence.spoken] == [Side.CALLER, Side.ASSISTANT]
    assert [turn.who for turn in case_of(booking(), evidence).turns] == ["caller", "assistant"]
    came_at = [event.at // 24 for event in recording.events if event.type == "utterance"]
    assert came_at == [5_000, 7_000], "when they came is kept beside"


# -- python-websockets/websockets#704: a peer that never closes --------------------


@pytest.mark.wall
async def test_five_calls_whose_peers_never_close_end_together(tmp_path: Path) -> None:
    finish_ms = 400

    async def one(folder: Path) -> tuple[CallEnd, Recording, float]:
        server = LocalServer(
            lambda config, role: ToneVoice(config, tone_ms=1_200),
            faults=[parse_fault("never_close")],
        )
        async with server:
            live = LiveSession(
                side=Side.ASSISTANT,
                connect=websocket(server.url, "k"),
                opening="hello",
                limits=Limits(finish_ms=finish_ms),
            )
            began = wall_seconds()
            end, recording = await held(folder, live, seconds=2.5, clock=WallClock(RATE))
            return end, recording, wall_seconds() - began

    for attempt in range(3):
        folders = [tmp_path / f"{attempt}.{number}" for number in range(5)]
        found = await asyncio.gather(*map(one, folders))
        # This machine being too busy is no peer's fault: once more.
        if not any(end.fault and end.fault.stage == "platform_late" for end, *_ in found):
            break
    for end, recording, took in found:
        assert end.reason == "duration_limit"
        assert took <= 2.5 + finish_ms / 1000 + 1.5
        assert "close_timeout" in [fault.code for fault in recording.faults]
        assert recording.ended
        assert recording.duration == end.position


# -- ahyatt/llm#272: arguments of tools that are no JSON object --------------------

ARGUMENTS: dict[str, dict[str, Json] | None] = {
    "": {},
    "{}": {},
    '{"city":"Z\\u00fcrich \\ud83d\\ude00"}': {"city": "Zürich 😀"},
    '{"a":1': None,
    "[1]": None,
    '"{\\"a\\":1}"': None,
    "null": None,
    "{" * 3_000: None,
}
SURROGATE = '{"city":"\\ud83d"}'


@pytest.mark.parametrize("text", ARGUMENTS)
def test_arguments_are_an_object_or_an_error(text: str) -> None:
    assert read_arguments(text) == ARGUMENTS[text]


@pytest.mark.parametrize("text", [*ARGUMENTS, SURROGATE])
async def test_the_model_is_told_and_the_raw_text_kept(text: str) -> None:
    application = load_application("duplex.application.restaurant:application")
    bench = Workbench(application.tools, application.state({}), seed=7)
    told: list[Happening] = []
    bench.begin(told.append)
    clock = VirtualClock(RATE)
    call = FunctionCall(call_id="c1", name="check_availability", arguments=text)
    task = clock.spawn(bench.run([call], None, clock, told.append))
    await clock.advance(10 * RATE)
    (output,) = await task
    (started,) = [one for one in told if one.type == "tool.started"]
    (ended,) = [one for one in told if one.type == "tool.ended"]
    assert ended.fields["status"] == "failed"
    wrong = text in ARGUMENTS and ARGUMENTS[text] is None
    assert ("tool_args_error" in output.text) == wrong
    if wrong:
        assert started.fields["arguments"] == {"unreadable": text[:500]}


def test_a_lone_surrogate_never_makes_results_unwritable(tmp_path: Path) -> None:
    log = booking_call()
    found = read_arguments(SURROGATE)
    assert found is not None
    log.tool(19_000, "c9", "create_reservation", {**SLOT, **found})
    log.say(Side.ASSISTANT, 20_500, 21_000, json.loads('"so \\ud83d so"'))
    folder = RunFolder(tmp_path)
    run = run_of(result_of(log, figures=CallFigures()))
    folder.write_json(folder.results, run.model_dump(mode="json"))
    assert "\ufffd" in folder.results.read_text(encoding="utf-8")
    recorder = CallRecorder(tmp_path, "c", rate_hz=RATE)
    for event in log.events():
        recorder.event(event)
    recorder.close()
    recording = Recording.load(tmp_path, "c")
    transcript_text(recording).encode("utf-8")
    page = to_json(
        run_of(
            build_result(
                booking(), Evidence.from_recording(recording), CallFigures(), basis=Basis()
            )
        )
    )
    page.encode("utf-8")


@pytest.mark.parametrize("cuts", [(13, 17), (15, 20), (14, 25), (1, 2)])
def test_arguments_in_pieces_cut_inside_an_escape_are_whole_again(cuts: tuple[int, int]) -> None:
    text = '{"city":"Z\\u00fcrich \\ud83d\\ude00"}'
    reader = StreamReader()
    call: dict[str, Json] = {"type": "function_call", "id": "f", "call_id": "c", "name": "t"}
    response: dict[str, Json] = {"id": "r", "object": "response", "status": "in_progress"}
    events: list[dict[str, Json]] = [
        {"type": "response.created", "response": response},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**call, "arguments": ""},
        },
    ]
    for piece in (text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]):
        events.append(
            {
                "type": "response.function_call_arguments.delta",
                "item_id": "f",
                "output_index": 0,
                "delta": piece,
            }
        )
    whole: dict[str, Json] = {**call, "arguments": text, "status": "completed"}
    events.append({"type": "response.output_item.done", "output_index": 0, "item": whole})
    done: dict[str, Json] = {**response, "status": "completed", "output": [whole]}
    events.append({"type": "response.completed", "response": done})
    (answer,) = [found for found in map(reader.take, events) if found is not None]
    (made,) = answer.calls  # type: ignore[union-attr]
    assert read_arguments(made.arguments) == {"city": "Zürich 😀"}


# -- promptfoo/promptfoo#9156: many sessions at once, slow to open -----------------


class Slow(Peer):
    """Accepts late, says hello later still, then says a tone of its own for a second."""

    def __init__(self, number: int) -> None:
        super().__init__(greets=False)
        self.number = number
        self.ready = False
        self.early: list[str] = []

    @property
    def hz(self) -> float:
        return 300.0 + 50.0 * self.number

    def connect(self) -> Connect:
        async def open_it(clock: Clock) -> Transport:
            await asyncio.sleep(0.05 * (self.number % 5))
            ours, theirs = pipe(clock)
            self.tasks += [
                asyncio.create_task(self.serve(ours)),
                asyncio.create_task(self._hello()),
                clock.spawn(self._say(clock)),
            ]
            return theirs

        return open_it

    async def _hello(self) -> None:
        await asyncio.sleep(0.1)
        self.ready = True
        await self.send(self.machine.say_created())

    async def _say(self, clock: Clock) -> None:
        await clock.until(500 * MS)
        _, item_id = await self.begin()
        await self.say(item_id, tone(1_000, hz=self.hz))
        await self.end(item_id)

    async def serve(self, transport: Transport) -> None:
        self.transport = transport
        try:
            while True:
                message = await transport.receive()
                if not self.ready:
                    self.early.append(str(message))
                self.got.append(json.loads(message))
                for effect in self.machine.receive(message):
                    if isinstance(effect, Reply):
                        await transport.send(effect.text)
        except TransportClosed:
            return


async def test_eight_sessions_at_once_all_open_and_none_hears_another(tmp_path: Path) -> None:
    peers = [Slow(number) for number in range(8)]
    calls = [held(tmp_path / str(peer.number), session(peer), seconds=2.5) for peer in peers]
    found = await asyncio.gather(*calls)
    for peer, (end, recording) in zip(peers, found, strict=True):
        assert end.reason == "duration_limit", end
        assert peer.early == [], "nothing is sent before the session was created"
        assert peer.got[0]["type"] == "session.update"
        track = recording.source(Side.ASSISTANT).astype(float)
        spectrum = np.abs(np.fft.rfft(track))
        hz = np.fft.rfftfreq(len(track), 1 / RATE)
        assert abs(hz[int(np.argmax(spectrum))] - peer.hz) < 3
        others = np.abs(hz[:, None] - [other.hz for other in peers if other is not peer]) < 5
        own = np.abs(hz - peer.hz) < 5
        assert spectrum[others.any(axis=1)].max() < 0.05 * spectrum[own].max()
