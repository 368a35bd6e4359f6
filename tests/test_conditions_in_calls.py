"""A condition in a whole call: what was asked for is on the line, and in the folder afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from duplex import conditions
from duplex.active_level import speech_level
from duplex.audio_truth import LossMask
from duplex.call import Call, CallPlan
from duplex.clock import VirtualClock
from duplex.hangup import Policy
from duplex.legs import LinePlan, kind_of, stems_of
from duplex.line import Label, build_line
from duplex.metrics.line import line_of
from duplex.metrics.of_call import timing_of_call
from duplex.participants.scripted import Scripted
from duplex.participants.wav import Cue, WavParticipant
from duplex.recording import CallRecorder, LegTick, Recording
from duplex.recording.line_stems import read_mask, read_noise
from duplex.values import Side
from duplex.wavfile import read_wav, write_wav
from stimuli import Pcm, pcm, voiced

RATE = 24_000
CALL_ID = "conditioned"
ASKED = ((16_811, 1.4), (103_230, 0.9), (192_084, 1.1))
ANSWERED = ((69_600, 0.8), (146_401, 0.7))


def planted(places: tuple[tuple[int, float], ...]) -> list[tuple[int, Pcm]]:
    return [(at, pcm(0.4 * voiced(seconds))) for at, seconds in places]


async def held(
    folder: Path,
    spelled: str,
    *,
    transport_ms: int = 20,
    seed: int = 7,
    wav: Path | None = None,
) -> Recording:
    plan = LinePlan(condition=conditions.parse(spelled), seed=seed)
    caller: Scripted | WavParticipant = (
        Scripted(Side.CALLER, planted(ASKED))
        if wav is None
        else WavParticipant(Side.CALLER, wav, cue=Cue(at_ms=500), text="words", levelled=True)
    )
    assistant = Scripted(Side.ASSISTANT, planted(ANSWERED))
    with CallRecorder(folder, CALL_ID, rate_hz=RATE, legs=stems_of(plan.condition)) as recorder:
        call = Call(
            CallPlan(
                call_id=CALL_ID,
                scenario_id=CALL_ID,
                rate_hz=RATE,
                transport_ms=transport_ms,
                seed=seed,
                line=plan,
                policy=Policy(drain_ms=60_000, max_duration_ms=12_000),
            ),
            caller=caller,
            assistant=assistant,
            clock=VirtualClock(RATE),
            recorder=recorder,
        )
        await call.hold()
    return Recording.load(folder, CALL_ID)


EVERYTHING = (
    "noise,kind=pink,snr=12 + bursts,rate_per_min=30 + background_speech,snr=18 + echo + reverb"
    " + acoustic_echo + microphone + telephony + packet_loss,model=gilbert_elliott,loss=0.1"
    " + tics,rate_per_min=30 + side_speech,rate_per_min=20 + downlink:noise,kind=car,snr=20"
    " + downlink:packet_loss,loss=0.05"
)


async def test_the_transport_tick_moves_no_byte_of_a_degraded_call(tmp_path: Path) -> None:
    calls = [
        await held(tmp_path / str(ms), EVERYTHING, transport_ms=ms) for ms in (10, 20, 137, 200)
    ]
    length = min(call.duration for call in calls)
    assert length > 8 * RATE
    heard = [call.conversation()[:length].tobytes() for call in calls]
    noise = [read_noise(call.audio_folder, 1, length) for call in calls]
    assert len(set(heard)) == 1
    assert len({one.tobytes() for one in noise if one is not None}) == 1
    spans = [{(s.kind, s.span) for s in call.line_sounds if s.span.end < length} for call in calls]
    assert spans[0]
    assert all(found == spans[0] for found in spans)


async def test_a_call_hears_what_the_line_makes_of_the_stem(tmp_path: Path) -> None:
    call = await held(tmp_path, "noise,snr=10 + telephony + packet_loss,loss=0.1")
    condition = conditions.parse("noise,snr=10 + telephony + packet_loss,loss=0.1")
    line = build_line(condition.uplink, rate_hz=RATE, seed=7, leg=0)
    assert line is not None
    stem = call.source(Side.CALLER)
    assert np.array_equal(line.process(stem), call.conversation()[:, 0])
    kept = read_noise(call.audio_folder, 0, call.duration)
    assert kept is not None
    assert np.array_equal(line.noise(), kept)
    assert LossMask.of(line.mask().astype(np.bool_), 20) == read_mask(call.audio_folder, 0)
    assert np.array_equal(call.source(Side.ASSISTANT), call.conversation()[:, 1])


async def test_switching_one_effect_off_leaves_the_bytes_of_the_others(tmp_path: Path) -> None:
    both = await held(tmp_path / "a", "noise,snr=10 + packet_loss,loss=0.1 + tics,rate_per_min=20")
    one = await held(tmp_path / "b", "noise,snr=10")
    loss = await held(tmp_path / "c", "packet_loss,loss=0.1")
    assert read_mask(both.audio_folder, 0) == read_mask(loss.audio_folder, 0)
    noise, alone = (read_noise(call.audio_folder, 0, call.duration) for call in (both, one))
    assert noise is not None
    assert alone is not None
    quiet = np.ones(len(noise), np.bool_)
    for sound in both.line_sounds:
        quiet[sound.span.start : sound.span.end] = False
    assert not quiet.all()
    assert np.array_equal(noise[quiet], alone[quiet])


@pytest.mark.parametrize("snr", [30, 15, 0, -5])
@pytest.mark.parametrize("gain", [0.02, 0.9], ids=["quiet speaker", "loud speaker"])
async def test_the_snr_that_was_asked_for_is_on_the_line(
    tmp_path: Path, snr: int, gain: float
) -> None:
    speech = np.concatenate([voiced(1.5), np.zeros(RATE // 2), 0.7 * voiced(2.0)])
    write_wav(tmp_path / "caller.wav", pcm(gain * speech)[:, None], RATE)
    call = await held(tmp_path / "run", f"noise,snr={snr}", wav=tmp_path / "caller.wav")
    noise = read_noise(call.audio_folder, 0, call.duration)
    assert noise is not None
    active = speech_level(call.source(Side.CALLER), RATE).active_dbov
    assert active is not None
    achieved = active - 10 * np.log10(np.mean(noise.astype(float) ** 2) / 32768**2)
    assert achieved == pytest.approx(snr, abs=0.5)
    told, _ = line_of(call)
    assert told is not None
    uplink = told["uplink"]
    assert isinstance(uplink, dict)
    assert isinstance(uplink["snr_db"], dict)
    assert uplink["snr_db"]["achieved"] == pytest.approx(achieved, abs=0.01)
    assert uplink["snr_db"]["asked"] == pytest.approx(snr, abs=0.001)


async def test_edges_and_turns_are_those_of_the_clean_call(tmp_path: Path) -> None:
    clean = timing_of_call(await held(tmp_path / "clean", "clean")).as_json()
    noisy = timing_of_call(
        await held(tmp_path / "noisy", "noise,snr=0 + downlink:noise,snr=0")
    ).as_json()
    assert clean["segments"] == noisy["segments"]
    assert clean["response_latency"] == noisy["response_latency"]


async def test_sounds_of_the_caller_are_labelled_and_scored(tmp_path: Path) -> None:
    call = await held(tmp_path, "tics,rate_per_min=40 + side_speech,rate_per_min=20")
    kinds = {sound.kind for sound in call.sounds}
    assert kinds == {"tic", "side_speech"}
    conversation, stem = call.conversation()[:, 0].astype(int), call.source(Side.CALLER)
    for sound in call.sounds:
        added = (conversation - stem)[sound.span.start : sound.span.end]
        assert np.abs(added).max() > 300
        assert not stem[sound.span.start : sound.span.start + RATE // 50].any()
    selectivity = timing_of_call(call).as_json()["selectivity"]
    assert isinstance(selectivity, dict)
    tics = selectivity["vocal_tic"]
    assert isinstance(tics, dict)
    assert tics["labelled"] == sum(sound.kind == "tic" for sound in call.sounds)


def test_what_is_left_of_a_sound_that_gave_way_is_no_opportunity() -> None:
    whole = Label(effect="tics", kind="cough", start=0, end=RATE * 60 // 1000)
    stub = Label(effect="tics", kind="cough", start=0, end=RATE * 59 // 1000)
    assert (kind_of(whole, RATE), kind_of(stub, RATE)) == ("tic", "cut")


async def test_the_delay_of_a_network_is_ours_and_not_the_assistants(tmp_path: Path) -> None:
    call = await held(tmp_path, "network,base_ms=150,jitter_ms=0")
    told, _ = line_of(call)
    assert told is not None
    uplink = told["uplink"]
    assert isinstance(uplink, dict)
    delay_ms = uplink["delay_ms"]
    assert isinstance(delay_ms, float)
    assert 150 <= delay_ms <= 150 + 400
    stem, heard = call.source(Side.CALLER), call.conversation()[:, 0]
    first, came = np.flatnonzero(stem)[0], np.flatnonzero(heard)[0]
    assert 150 <= (came - first) * 1000 / RATE <= delay_ms + 1


async def test_a_clean_call_keeps_no_stems_and_says_why(tmp_path: Path) -> None:
    call = await held(tmp_path, "clean")
    assert line_of(call) == (None, "the line was clean")
    kept = {path.name for path in call.audio_folder.iterdir()}
    assert kept == {"conversation.wav", "caller_source.wav", "assistant_source.wav"}


async def test_stems_are_on_disk_while_the_call_runs(tmp_path: Path) -> None:
    plan = LinePlan(condition=conditions.parse("noise,snr=10 + packet_loss,loss=0.2"))
    recorder = CallRecorder(tmp_path, CALL_ID, rate_hz=RATE, legs=stems_of(plan.condition))
    line = build_line(plan.condition.uplink, rate_hz=RATE, seed=7)
    assert line is not None
    tick: Pcm = np.zeros(RATE // 50, np.int16)
    for _ in range(60):
        heard = line.process(tick)
        recorder.append(heard, tick, tick, tick)
        recorder.append_legs((LegTick(noise=line.noise(), lost=line.mask()), None))
        recorder.tick_flush()
    folder = recorder.audio_folder
    assert read_wav(folder / "noise.wav").frames == RATE
    assert json.loads((folder / "loss.json").read_text())["uplink"]["packets"] == 50
    recorder.close()
    assert read_wav(folder / "noise.wav").frames == 60 * RATE // 50
