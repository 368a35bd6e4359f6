"""What only the call knows: when replies came in, when ours was sent, whose clock runs how."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex.arrivals import Arrivals
from duplex.call import Call, CallPlan
from duplex.clock import Clock, VirtualClock, WallClock
from duplex.engine import Engine, Playout, PlayoutEvent
from duplex.hangup import Policy
from duplex.local.seams import VoiceFrame
from duplex.local.server import LocalServer
from duplex.measuring import measure
from duplex.metrics.drift import drift_of
from duplex.metrics.of_call import facts_of, timing_of_call
from duplex.participants.base import Incoming, Participant, Pcm, Spoken
from duplex.participants.deliveries import Deliveries, Parcel
from duplex.participants.live import LiveSession
from duplex.participants.scripted import Scripted
from duplex.participants.transport import Connect, websocket
from duplex.placement import Placement
from duplex.protocols.gpt_live_server import SessionConfig
from duplex.recording import CallRecorder, Recording
from duplex.recording.instrument import Pace
from duplex.run_folder import RunFolder
from duplex.values import Happening, Json, Side, Span, Utterance
from gpt_live_voices import ToneVoice, Voices
from stimuli import pcm as as_pcm
from stimuli import voiced

RATE = 24_000
MS = RATE // 1000
CALLER_AT = 1_000 * MS
ASKED = 1_500 * MS
ENDS = CALLER_AT + ASKED


def tone(length: int) -> Pcm:
    """A voice-like sound of exactly ``length`` samples, loud at once, ending softly."""
    # Past the 10 ms onset ramp, so that the first sample is audible to everybody; the
    # soft end rounds to zero in its last sample, which would be none of the sound.
    sound = as_pcm(voiced((length + 240) / RATE))[240:]
    sound[-1] = 1
    return sound


class Delayed:
    """Answers every sound it hears ``delay`` after its end; says nothing in between.

    ``lead_in`` of silence comes before each reply. With ``steady`` it sends
    100 ms of silence all the time it does not speak, as GPT-Live does.
    """

    lock_step = True

    def __init__(self, *, delay: int, lead_in: int = 0, steady: bool = False) -> None:
        self.side = Side.ASSISTANT
        self._delay = delay
        self._answer = np.concatenate((np.zeros(lead_in, np.int16), tone(800 * MS)))
        self._steady = steady
        self._said: Pcm = np.zeros(0, np.int16)
        self._items: list[Incoming] = []
        self._last_heard: int | None = None

    async def start(self, clock: Clock) -> None:
        self._clock = clock

    def hear(self, position: int, pcm: Pcm) -> None:
        loud = np.flatnonzero(np.abs(pcm) > 100)
        now = position + len(pcm)
        if len(loud):
            self._last_heard = position + int(loud[-1]) + 1
        elif self._last_heard is not None and now >= self._last_heard + self._delay:
            self._last_heard = None
            self._said = self._answer
        self._send(now)

    def _send(self, now: int) -> None:
        delta = 100 * MS
        if now % delta == 0 and (len(self._said) or self._steady):
            pcm = np.zeros(delta, np.int16)
            part = self._said[:delta]
            pcm[: len(part)] = part
            self._said = self._said[delta:]
            self._items.append(Spoken(pcm=pcm, arrived_at=now))

    def collect(self) -> Sequence[Incoming]:
        items, self._items = self._items, []
        return items

    async def finish(self) -> None:
        return

    async def abort(self) -> None:
        return


def caller(*, end: int = ENDS) -> Scripted:
    label = Utterance(side=Side.CALLER, text="a table", span=Span(start=CALLER_AT, end=end))
    return Scripted(Side.CALLER, [(CALLER_AT, tone(end - CALLER_AT))], [label])


async def hold(
    folder: Path,
    assistant: Participant,
    *,
    speaker: Participant | None = None,
    transport_ms: int = 20,
    hold_ms: int = 120,
    clock: Clock | None = None,
) -> Recording:
    plan = CallPlan(
        call_id="c",
        scenario_id="c",
        transport_ms=transport_ms,
        hold_ms=(0, hold_ms),
        first_speaker="caller",
        policy=Policy(quiet_ms=600, drain_ms=600),
    )
    call = Call(
        plan,
        caller=speaker or caller(),
        assistant=assistant,
        clock=clock or VirtualClock(RATE),
        recorder=CallRecorder(folder, "c", rate_hz=RATE),
    )
    await call.hold()
    return Recording.load(folder, "c")


def lines(folder: Path, kind: str) -> list[dict[str, Json]]:
    text = RunFolder(folder).events("c").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    return [record for record in records if record["type"] == kind]


def of_assistant(folder: Path, kind: str) -> list[dict[str, Json]]:
    return [line for line in lines(folder, kind) if line["side"] == "assistant"]


# -- what a call writes down, and what becomes of it ---------------------------


async def test_a_known_delay_and_a_known_hold_come_back_exactly(tmp_path: Path) -> None:
    recording = await hold(tmp_path, Delayed(delay=500 * MS))
    block = timing_of_call(recording)
    (reply,) = block.relay.replies
    assert block.latencies[0].value == pytest.approx(620, abs=2.5)
    assert (reply.hold_ms, reply.tick_wait_ms) == (120, 0)
    assert reply.relay_ms == 120
    assert (reply.first_byte_ms, reply.first_audio_ms) == (500, 500)
    assert reply.own_ms == pytest.approx(500, abs=2.5)


@pytest.mark.parametrize(("transport_ms", "hold_ms"), [(10, 0), (20, 60), (100, 120), (200, 240)])
async def test_neither_tick_nor_hold_moves_the_assistants_own(
    tmp_path: Path, transport_ms: int, hold_ms: int
) -> None:
    assistant = Delayed(delay=600 * MS)
    recording = await hold(tmp_path, assistant, transport_ms=transport_ms, hold_ms=hold_ms)
    (reply,) = timing_of_call(recording).relay.replies
    heard = timing_of_call(recording).latencies[0].value
    # what comes at a tick's end is taken in at the next one's
    due = ENDS + 600 * MS if transport_ms < 200 else 3_200 * MS
    delivered = -(-ENDS // (transport_ms * MS)) * transport_ms * MS
    assert reply.hold_ms == hold_ms
    assert reply.first_audio_ms == pytest.approx((due - delivered) / MS)
    assert reply.relay_ms is not None
    assert reply.own_ms == pytest.approx(heard - reply.relay_ms, abs=0.001)
    assert reply.own_ms == pytest.approx(reply.first_audio_ms, abs=2.5)


async def test_a_caller_end_off_the_grid_waits_for_its_tick(tmp_path: Path) -> None:
    end = ENDS + 7 * MS
    recording = await hold(tmp_path, Delayed(delay=483 * MS), speaker=caller(end=end))
    block = timing_of_call(recording)
    (reply,) = block.relay.replies
    anchor = block.responses.replies[0].anchor
    assert anchor is not None
    # delivered at 2 520, due at 2 990, sent on the 100 ms grid, taken in where it was sent
    assert reply.tick_wait_ms == pytest.approx(2_520 - anchor / MS, abs=0.001)
    assert reply.first_audio_ms == 480


async def test_silence_that_leads_in_is_the_assistants_own(tmp_path: Path) -> None:
    recording = await hold(tmp_path, Delayed(delay=500 * MS, lead_in=340 * MS))
    block = timing_of_call(recording)
    (reply,) = block.relay.replies
    assert reply.first_byte_ms == 500
    assert reply.first_audio_ms == 800
    assert reply.relay_ms == 120
    assert reply.own_ms == pytest.approx(840, abs=2.5)
    assert block.latencies[0].value == pytest.approx(960, abs=2.5)


async def test_a_stream_that_never_stops_has_no_first_byte(tmp_path: Path) -> None:
    recording = await hold(tmp_path, Delayed(delay=500 * MS, lead_in=40 * MS, steady=True))
    document = timing_of_call(recording).as_json()
    unknown = document["unknown"]
    assert isinstance(unknown, dict)
    assert "never stopped" in str(unknown["/first_byte_latency"])
    (reply,) = timing_of_call(recording).relay.replies
    assert (reply.first_audio_ms, reply.hold_ms) == (500, 120)
    assert reply.own_ms == pytest.approx(540, abs=2.5)


async def test_a_call_measured_again_says_the_same(tmp_path: Path) -> None:
    recording = await hold(tmp_path, Delayed(delay=500 * MS))
    own = timing_of_call(recording).as_json()
    again = measure(recording.audio_folder).as_json()["timing"]
    assert isinstance(again, dict)
    for name in ("first_byte_latency", "first_audio_latency", "relay", "clock", "sounds"):
        assert again[name] == own[name], name


async def test_two_virtual_calls_tell_the_same_of_arrivals(tmp_path: Path) -> None:
    for name in ("a", "b"):
        await hold(tmp_path / name, Delayed(delay=300 * MS, steady=True))
    first, second = (RunFolder(tmp_path / name).events("c").read_bytes() for name in ("a", "b"))
    assert first == second
    assert of_assistant(tmp_path / "a", "arrival")


async def test_in_virtual_time_there_is_no_drift_and_the_block_says_why(tmp_path: Path) -> None:
    recording = await hold(tmp_path, Delayed(delay=500 * MS))
    document = timing_of_call(recording).as_json()
    assert isinstance(unknown := document["unknown"], dict)
    for side in ("caller", "assistant"):
        assert "virtual time" in str(unknown[f"/clock/drift_ppm/{side}"])
    assert "told to be cut" in str(unknown["/clock/interrupted_replies"])
    assert not lines(tmp_path, "pace")


@pytest.mark.wall
async def test_on_the_wall_clock_the_split_is_the_same_within_the_machines_pace(
    tmp_path: Path,
) -> None:
    recording = await hold(tmp_path, Delayed(delay=500 * MS), clock=WallClock(RATE))
    block = timing_of_call(recording)
    (reply,) = block.relay.replies
    assert reply.hold_ms == 120
    assert reply.first_audio_ms == pytest.approx(500, abs=40)
    assert reply.own_ms == pytest.approx(500, abs=40)


# -- over a live session ----------------------------------------------------------


class Replying(ToneVoice):
    """Says its tone once it has heard 520 ms of silence after a sound."""

    def __init__(self, config: SessionConfig) -> None:
        super().__init__(config)
        self._quiet: int | None = None

    async def frame(self, pcm: Pcm) -> VoiceFrame:
        if pcm.any():
            self._quiet = 0
        elif self._quiet is not None:
            self._quiet += len(pcm)
            if self._quiet >= 520 * MS:
                self._quiet = None
                self._texts.append("yes")
        return await super().frame(pcm)

    def _tone(self, samples: int) -> Pcm:
        whole = tone(self.tone_ms * MS)
        start = len(whole) - self._left
        piece = whole[start : start + samples]
        self._left -= len(piece)
        return np.concatenate((piece, np.zeros(samples - len(piece), np.int16)))


def live(connect: Connect) -> LiveSession:
    return LiveSession(side=Side.ASSISTANT, connect=connect, provider="local", lock_step=True)


@pytest.mark.parametrize("transport_ms", [10, 20, 100])
async def test_a_live_session_in_virtual_time_has_its_own_latency_exactly(
    tmp_path: Path, transport_ms: int
) -> None:
    server = LocalServer(Voices(Replying))
    recording = await hold(tmp_path, live(server.connector()), transport_ms=transport_ms)
    await server.close()
    (reply,) = timing_of_call(recording).relay.replies
    # the tone begins a 100 ms delta that is sent at 3 100; a tone's first samples are quiet
    assert reply.first_audio_ms == pytest.approx(600)
    assert reply.own_ms == pytest.approx(600, abs=2.5)
    assert (reply.first_byte_ms, reply.transport_ms) == (None, 0)
    (sent,) = of_assistant(tmp_path, "sent")
    assert sent["end"] == sent["sent_at"] == ENDS


@pytest.mark.wall
async def test_a_live_session_over_a_socket_accounts_for_every_millisecond(tmp_path: Path) -> None:
    async with LocalServer(Voices(Replying), api_key="k") as server:
        assistant = live(websocket(server.url, "k"))
        recording = await hold(tmp_path, assistant, clock=WallClock(RATE))
    block = timing_of_call(recording)
    (reply,) = block.relay.replies
    assert reply.transport_ms is not None
    assert reply.relay_ms is not None
    assert 0 <= reply.transport_ms < 60
    assert reply.own_ms == pytest.approx(block.latencies[0].value - reply.relay_ms, abs=0.01)
    assert reply.own_ms == pytest.approx(600, abs=80)


# -- caller sounds, and replies that were cut -----------------------------------


def coughing(sounds: Sequence[tuple[str, int, int]]) -> Scripted:
    """A scripted caller that says which of its audio is a tic and which is side talk."""
    pieces = [(start, tone(end - start)) for _, start, end in sounds]
    label = Utterance(side=Side.CALLER, text="a table", span=Span(start=CALLER_AT, end=ENDS))
    said = [(CALLER_AT, tone(ASKED)), *pieces]
    spans = [(kind, Span(start=start, end=end)) for kind, start, end in sounds]
    return Scripted(Side.CALLER, said, [label], spans)


async def test_sounds_a_caller_tells_of_are_scored_as_opportunities(tmp_path: Path) -> None:
    sounds = [
        ("tic", 3_200 * MS, 3_400 * MS),
        ("side_speech", 6_000 * MS, 6_900 * MS),
    ]
    greeting = (3_000 * MS, tone(2_000 * MS))
    answer = (7_500 * MS, tone(1_000 * MS))
    assistant = Scripted(Side.ASSISTANT, [greeting, answer])
    recording = await hold(tmp_path, assistant, speaker=coughing(sounds))
    assert [(item.kind, item.span.start, item.span.end) for item in recording.sounds] == sounds
    block = timing_of_call(recording)
    document = block.as_json()
    assert [event.error for event in block.yielding.events] == [False, True]
    for name, right in (("vocal_tic", 1), ("non_directed", 0)):
        assert (block.selectivity(name).value, block.selectivity(name).denominator) == (right, 1)
    sounds_told = document["sounds"]
    assert isinstance(sounds_told, list)
    assert len(sounds_told) == 2
    # neither is a turn: the caller asked once
    assert len(block.talk.turns[Side.CALLER]) == 1


def told(kind: str, side: Side, fields: dict[str, Json], folder: Path) -> Recording:
    """A recording whose events are one header and one line of ``kind``."""
    run = RunFolder(folder)
    run.events("c").parent.mkdir(parents=True)
    records: list[dict[str, Json]] = [
        {"type": "call.started", "rate_hz": RATE, "transport_ms": 20, "clock": "wall"},
        {"type": kind, "side": side.label, **fields},
        {"type": "call.ended", "counts": {}, "termination_reason": "error"},
    ]
    text = "".join(json.dumps({"seq": n, "at": 0, **r}) + "\n" for n, r in enumerate(records))
    run.events("c").write_text(text, encoding="utf-8")
    return Recording.load(folder, "c")


def test_a_reply_that_was_cut_is_told_with_what_was_heard(tmp_path: Path) -> None:
    fields: dict[str, Json] = {"heard_ms": 880, "received_ms": 2_400.5}
    facts = facts_of(told("reply.interrupted", Side.ASSISTANT, fields, tmp_path), RATE)
    assert facts is not None
    assert facts.clock is not None
    assert facts.clock.interrupted is not None
    (cut,) = facts.clock.interrupted
    assert (cut.heard_ms, cut.received_ms) == (880, 2_400.5)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("arrival", {"sample": 0, "head": 0, "taken_at": 0}),
        ("sound", {"kind": "sneeze", "start": 0, "end": 9}),
        ("sound", {"kind": "tic", "start": 9, "end": 0}),
        ("sent", {"start": 0, "end": 480, "sent_at": "later"}),
        ("pace", {"arrived_at": 3, "samples": None, "stretch": 0}),
        ("reply.interrupted", {"heard_ms": True}),
    ],
)
def test_a_line_that_makes_no_sense_is_left_out(
    tmp_path: Path, kind: str, fields: dict[str, Json]
) -> None:
    found = told(kind, Side.CALLER if kind == "sound" else Side.ASSISTANT, fields, tmp_path)
    kept = (found.arrivals, found.sounds, found.sendings, found.paces, found.interrupted)
    assert kept == ((), (), (), (), ())


@pytest.mark.parametrize("jump", [-10 * RATE, 10 * RATE])
def test_an_arrival_beyond_a_clock_jump_is_not_believed(tmp_path: Path, jump: int) -> None:
    fields: dict[str, Json] = {
        "sample": 0,
        "head": 0,
        "taken_at": 40 * RATE,
        "head_at": 40 * RATE + jump,
        "first_byte": False,
        "arrived_at": 40 * RATE + jump,
        "played_at": 41 * RATE,
    }
    facts = facts_of(told("arrival", Side.ASSISTANT, fields, tmp_path), RATE)
    assert facts is not None
    assert facts.replies == ()


# -- the pieces ------------------------------------------------------------------


def watched(pieces: Sequence[tuple[int, Pcm]]) -> list[dict[str, Json]]:
    """What is told of pieces that are played the moment they can be, as ``(position, pcm)``."""
    place = Placement(RATE)
    arrivals = Arrivals(RATE, place)
    reached = 0
    for position, pcm in pieces:
        if position > reached:
            place.moved(reached, position - reached)
            reached = position
        arrivals.fed(Spoken(pcm=pcm), position, position)
        place.fed(len(pcm), len(pcm))
        reached += len(pcm)
    place.note(reached, place.given)
    return [dict(happening.fields) for happening in arrivals.ready()]


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(1, 30_000), max_size=12), seed=st.integers(0, 9))
def test_how_a_stream_is_cut_moves_no_sound(cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(4):
        parts += [
            np.zeros(rng.integers(3_000, 12_000), np.int16),
            tone(int(rng.integers(1, 3_000))),
        ]
    stream = np.concatenate(parts)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [(start, stream[start:end]) for start, end in pairwise(edges)]
    whole, cut = watched([(0, stream)]), watched(pieces)
    assert [line["sample"] for line in whole] == [line["sample"] for line in cut]
    assert [line["played_at"] for line in cut] == [line["sample"] for line in cut]
    loud = np.flatnonzero(stream)
    first = [loud[0], *loud[1:][np.diff(loud) > 200 * MS]]
    assert [line["sample"] for line in whole] == first


def test_noise_below_the_audible_level_is_silence() -> None:
    quiet = np.full(600 * MS, 32, np.int16)
    (line,) = watched([(0, np.concatenate((quiet, -quiet, tone(480))))])
    assert line["sample"] == 1_200 * MS


def test_a_stall_in_mid_stream_opens_no_reply_and_a_stop_does() -> None:
    speech, silence = tone(100 * MS), np.zeros(100 * MS, np.int16)
    stalled = watched([(0, silence), (2_400, silence), (4_800 + 400 * MS, speech)])
    assert [line["first_byte"] for line in stalled] == [True]
    later = [(2_400 * n, silence) for n in range(20)]
    (line,) = watched([*later, (48_000 + 400 * MS, speech)])
    assert (line["first_byte"], line["head"]) == (False, 48_000)
    (line,) = watched([*later, (48_000 + 500 * MS, silence), (50_400 + 500 * MS, speech)])
    assert (line["first_byte"], line["head"], line["sample"]) == (True, 48_000, 50_400)


def test_what_was_thrown_away_never_arrived() -> None:
    place = Placement(RATE)
    arrivals = Arrivals(RATE, place)
    for _ in range(2):
        arrivals.fed(Spoken(pcm=tone(4_800)), 0, 0)
        place.fed(4_800, 4_800)
        place.discarded(4_800)
        place.note(0, place.given)
        assert arrivals.ready() == []


def test_audio_that_came_before_the_call_began_came_at_its_first_tick() -> None:
    place = Placement(RATE)
    arrivals = Arrivals(RATE, place)
    arrivals.fed(Spoken(pcm=tone(480), received_at=7.5), 0, 481)
    place.fed(480, 480)
    place.note(480, 480)
    (happening,) = arrivals.ready()
    assert happening.fields["arrived_at"] == 481
    assert happening.received_at == 7.5


@settings(max_examples=60, deadline=None)
@given(
    hold_ms=st.sampled_from([0, 60, 120]),
    tick_ms=st.sampled_from([10, 20, 137]),
    feeds=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6_000)), min_size=1, max_size=30),
    flush_at=st.sampled_from([None, 5, 11]),
)
def test_a_sample_is_placed_where_the_engine_played_it(
    hold_ms: int, tick_ms: int, feeds: list[tuple[int, int]], flush_at: int | None
) -> None:
    engine = Engine(rate_hz=RATE, tick_ms=tick_ms, hold_ms=(0, hold_ms))
    place, played, given, stream = Placement(RATE), [], 0, []
    for n, (ticks, length) in enumerate([*feeds, (20, 1), (40, 1)]):
        # every sample its own number, quiet stretches in between so that the hold may move
        pcm = np.arange(given + 1, given + length + 1, dtype=np.int64) % 30_000 + 1
        pcm = np.where(np.arange(given, given + length) // 6_000 % 2, pcm, 0)
        place.fed(length, engine.feed(Side.ASSISTANT, pcm.astype(np.int16)))
        stream.append(pcm)
        given += length
        if n == flush_at:
            engine.flush(Side.ASSISTANT)
        for _ in range(ticks):
            engine.advance(1)
            for event in engine.drain():
                if isinstance(event, PlayoutEvent) and event.side is Side.ASSISTANT:
                    if event.kind is Playout.DISCARD:
                        place.discarded(event.samples)
                    else:
                        place.moved(event.start, event.samples)
            played.append(engine.spoken(Side.ASSISTANT))
            totals = engine.counts().assistant
            place.note(engine.position, totals.played + totals.discarded)
    said, heard = np.concatenate(stream), np.concatenate(played)
    for sample in range(0, len(said), 97):
        if said[sample] and place.is_gone(sample) and not place.was_discarded(sample):
            assert heard[place.position_of(sample)] == said[sample]


# -- sending -----------------------------------------------------------------------


def parcels(pattern: str, length: int = 480) -> list[Happening]:
    """Send ``#`` audible and ``.`` silent messages, each 3 samples late; what is told."""
    deliveries = Deliveries(RATE)
    found = []
    for n, mark in enumerate(pattern):
        parcel = Parcel(start=n * length, end=(n + 1) * length, audible=mark == "#")
        if (happening := deliveries.sent(parcel, parcel.end + 3)) is not None:
            found.append(happening)
    return found


def test_the_last_message_before_a_pause_is_told_once() -> None:
    (happening,) = parcels("." * 20 + "#" * 7 + "." * 30)
    assert happening.type == "sent"
    assert happening.fields == {"start": 26 * 480, "end": 27 * 480, "sent_at": 27 * 480 + 3}
    assert parcels("." * 400) == []
    assert len(parcels("#" * 10 + "." * 9 + "#" * 10 + "." * 9)) == 0


def test_without_a_pause_one_message_in_two_seconds_is_told() -> None:
    ends = [happening.fields["end"] for happening in parcels("#" * 450)]
    assert ends == [2_000 * MS, 4_000 * MS, 6_000 * MS, 8_000 * MS]


# -- the other end's clock -----------------------------------------------------------


def points(ppm: float, seconds: int, seed: int = 1, stretch: int = 0) -> list[Pace]:
    """A sender ``ppm`` fast whose pieces come up to 15 ms late, a tenth of them 200 ms."""
    rng = np.random.default_rng(seed)
    found = []
    for second in range(0, seconds, 2):
        late = rng.uniform(0, 0.015) + (0.2 if rng.random() < 0.1 else 0)
        found.append(
            Pace(
                side=Side.ASSISTANT,
                arrived_at=round((second + late) * RATE),
                samples=round(second * (1 + ppm / 1e6) * RATE),
                stretch=stretch,
            )
        )
    return found


@pytest.mark.parametrize("ppm", [-300, 0, 45, 300])
def test_an_hours_drift_is_found_to_a_few_parts_per_million(ppm: float) -> None:
    found, why = drift_of(points(ppm, 3_600), RATE, "wall")
    assert found == pytest.approx(ppm, abs=5)
    assert why is None


def test_a_short_call_an_unsteady_side_and_one_clock_have_no_drift() -> None:
    for found, said in (
        (drift_of(points(0, 9), RATE, "wall"), "without a pause"),
        (drift_of([], RATE, "wall"), "no clock of its own"),
        (drift_of(points(60_000, 60), RATE, "wall"), "pace of real time"),
        (drift_of(points(100, 60), RATE, "virtual"), "virtual time"),
    ):
        assert found[0] is None
        assert said in str(found[1])


def test_a_pause_in_the_stream_is_no_drift() -> None:
    later = [
        Pace(
            side=point.side,
            arrived_at=point.arrived_at + 45 * RATE,
            samples=point.samples + 40 * RATE,
            stretch=1,
        )
        for point in points(120, 40, seed=2)
    ]
    found, _ = drift_of([*points(120, 40), *later], RATE, "wall")
    assert found == pytest.approx(120, abs=400)
