"""What a line does is what was asked: noise, losses, sounds, by figures and against an oracle."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

import line_oracle
from duplex.active_level import levelled, speech_level
from duplex.conditions import BackgroundSpeech, Bursts, Echo, Noise, PacketLoss, SideSpeech, Tics
from duplex.errors import InputError
from duplex.line import STREAMS, build_line, labels, sounds
from line_scenes import Pcm, build, passed, speech

RATE_HZ = 8_000
SILENCE = np.zeros(RATE_HZ * 60, np.int16)


def dbov(pcm: Pcm) -> float:
    return float(10 * np.log10(np.mean(pcm.astype(np.float64) ** 2) / 32768**2))


# ---- noise ----


def test_white_noise_is_the_oracles_to_the_sample() -> None:
    line = build([Noise(kind="white", rms=1_200)], seed=11)
    out = line.process(SILENCE[:700])
    assert out.tolist() == line_oracle.noise(line_oracle.key(11, 0, "noise"), 1_200, 700)


def test_white_noise_is_white_level_and_unlike_itself() -> None:
    line = build([Noise(kind="white", rms=1_000)])
    noise = np.asarray(line.process(SILENCE), np.float64)
    assert np.sqrt(np.mean(noise**2)) == pytest.approx(1_000, rel=0.005)
    assert abs(noise.mean()) < 6
    count = len(noise)
    likeness = [float(np.mean(noise[lag:] * noise[: count - lag])) / 1e6 for lag in range(1, 300)]
    assert max(map(abs, likeness)) < 5 / np.sqrt(count)
    spectrum = np.abs(np.fft.rfft(noise)) ** 2
    bands = spectrum[1 : 1 + len(spectrum) // 64 * 64].reshape(64, -1).mean(1)
    assert np.abs(10 * np.log10(bands / bands.mean())).max() < 0.35


@pytest.mark.parametrize("kind", ["white", "pink", "babble", "crying_baby"])
@pytest.mark.parametrize("snr", [30, 15, 0, -5])
def test_achieved_snr_is_the_one_asked_for(kind: str, snr: float) -> None:
    caller = levelled(speech(RATE_HZ, 30), RATE_HZ)
    line = build([Noise(kind=kind, snr=snr)])
    line.process(caller)
    level = speech_level(caller, RATE_HZ).active_dbov
    assert level is not None
    assert level - dbov(line.noise()) == pytest.approx(snr, abs=0.5)


@pytest.mark.parametrize("target_dbov", [-45, -35, -15])
def test_noise_follows_a_live_speaker_who_is_quiet_or_loud(target_dbov: float) -> None:
    caller = levelled(speech(RATE_HZ, 60), RATE_HZ, target_dbov)
    line = build([Noise(kind="white", snr=10)], live=True)
    line.process(caller)
    noise = line.noise()
    assert target_dbov - dbov(noise[-10 * RATE_HZ :]) == pytest.approx(10, abs=0.5)
    start = dbov(noise[: RATE_HZ // 2])
    assert start == pytest.approx(-36, abs=0.7)


def test_the_gain_of_noise_has_no_steps() -> None:
    """The envelope of a drifting, following bed moves by less than 0.1 dB in 1 ms."""
    caller = levelled(speech(RATE_HZ, 20), RATE_HZ, -40)
    drifting = build([Noise(kind="white", snr=0, drift_db=6)], live=True)
    drifting.process(caller)
    steady = build([Noise(kind="white", rms=1_000)])
    steady.process(caller)
    moved, still = (line.noise().astype(np.float64) for line in (drifting, steady))
    loud = np.abs(still) > 900
    at = np.flatnonzero(loud)
    gain = 20 * np.log10(np.abs(moved[loud] / still[loud]))
    slope = np.abs(np.diff(gain)) / np.diff(at)
    assert np.ptp(gain) > 6
    assert np.quantile(slope, 0.99) * RATE_HZ / 1_000 < 0.1 + 2 * 8.7 / 200


def test_noise_out_is_source_plus_the_noise_saved() -> None:
    caller = speech(RATE_HZ, 10)
    line = build([Noise(kind="cafe", gain=0.3), BackgroundSpeech(gain=0.2), Bursts()])
    out = line.process(caller)
    total = caller.astype(np.int32) + line.noise()
    assert np.array_equal(out, np.clip(total, -32768, 32767))
    held = np.count_nonzero((total > 32767) | (total < -32768))
    assert line.clipped >= held


def test_a_silent_bed_changes_nothing() -> None:
    line = build([Noise(kind="white", gain=0)])
    caller = speech(RATE_HZ, 1)
    assert np.array_equal(line.process(caller), caller)
    assert not line.noise().any()


# ---- losses ----

MODELS = [
    PacketLoss(model="iid", loss=0.05, packet_ms=5),
    PacketLoss(model="fixed_burst", loss=0.08, burst_ms=10, packet_ms=5),
    PacketLoss(model="gilbert_elliott", loss=0.05, burst_ms=15, packet_ms=5),
]


def masks(effect: PacketLoss, seconds: int) -> npt.NDArray[np.uint8]:
    line = build([effect])
    pcm = SILENCE[: RATE_HZ * 10]
    found = []
    for _ in range(seconds // 10):
        line.process(pcm)
        found.append(line.mask())
    return np.concatenate(found)


def bursts_in(mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    turns = np.flatnonzero(np.diff(np.concatenate(([0], mask, [0])).astype(np.int8)))
    return np.asarray(turns[1::2] - turns[::2], np.int64)


@pytest.mark.parametrize("effect", MODELS, ids=lambda effect: effect.model)
def test_losses_are_the_oracles_to_the_packet(effect: PacketLoss) -> None:
    packets = Fraction(effect.burst_ms) / effect.packet_ms
    oracle = line_oracle.Losses(
        model=effect.model, loss=Fraction(str(effect.loss)), packets=packets
    )
    found = masks(effect, 10).tolist()
    assert found == oracle.mask(line_oracle.key(7, 0, "packet_loss"), len(found))


@pytest.mark.parametrize("effect", MODELS, ids=lambda effect: effect.model)
def test_loss_and_burst_length_hold_over_a_hundred_thousand_bursts(effect: PacketLoss) -> None:
    mask = masks(effect, 30_000 if effect.model == "gilbert_elliott" else 15_000)
    lengths = bursts_in(mask)
    assert len(lengths) >= 99_000
    assert mask.mean() == pytest.approx(effect.loss, rel=0.03)
    wanted = 1 / (1 - effect.loss) if effect.model == "iid" else effect.burst_ms / 5
    assert lengths.mean() == pytest.approx(wanted, rel=0.05)
    if effect.model == "fixed_burst":
        assert set(lengths[1:-1].tolist()) == {2}


def test_a_lost_packet_is_silence_and_no_other_is_touched() -> None:
    caller = speech(RATE_HZ, 10) | 1
    line = build([PacketLoss(loss=0.3, burst_ms=60, model="gilbert_elliott")])
    out = line.process(caller)
    lost = np.repeat(line.mask(), 160)[: len(out)].astype(bool)
    assert not out[lost].any()
    assert np.array_equal(out[~lost], caller[~lost])


def test_concealment_goes_on_with_the_voice_and_comes_back_to_it() -> None:
    """Over a steady voice the repeated periods stay close to what was lost."""
    t = np.arange(RATE_HZ * 8) / RATE_HZ
    tone = sum(np.sin(2 * np.pi * 160 * k * t + k * k) / k for k in range(1, 15))
    voice = np.asarray(np.rint(2_500 * tone), np.int16)
    error = {}
    for concealment in ("none", "repeat"):
        effect = PacketLoss.model_validate(
            {"loss": 0.1, "burst_ms": 20, "concealment": concealment}
        )
        heard = build([effect]).process(voice)
        error[concealment] = float(np.mean((heard.astype(np.float64) - voice) ** 2))
    assert error["repeat"] < 0.05 * error["none"]
    out = build([PacketLoss(loss=0.1, burst_ms=20, concealment="repeat")]).process(voice)
    assert np.abs(np.diff(out.astype(int))).max() < 1.3 * np.abs(np.diff(voice.astype(int))).max()


# ---- sounds ----


def test_bursts_come_when_the_oracle_says() -> None:
    effect = Bursts(rate_per_min=20, kind="door")
    line = build([effect])
    line.process(SILENCE)
    found = [label.start for label in labels(line, [effect])]
    due = line_oracle.arrivals(line_oracle.key(7, 0, "bursts"), 20, RATE_HZ // 50, 60 * 50)
    assert found == [at for at in due if at + RATE_HZ < len(SILENCE)][: len(found)]
    assert len(found) >= 12


def test_bursts_are_poisson_at_the_rate_asked_for() -> None:
    due = line_oracle.arrivals(3, 60, 160, 50 * 3_600)
    gaps = np.diff(due) / RATE_HZ
    assert gaps.mean() == pytest.approx(1, rel=0.05)
    assert gaps.std() == pytest.approx(1, rel=0.06)


def test_coughs_only_come_while_the_caller_is_silent_and_carry_labels() -> None:
    effects = (Tics(rate_per_min=60), SideSpeech(rate_per_min=30))
    caller = speech(RATE_HZ, 120)
    line = build(effects)
    out = line.process(caller)
    found = labels(line, effects)
    assert len(found) >= 10
    assert {label.effect for label in found} == {"tics", "side_speech"}
    quiet = np.abs(caller.astype(int)) < 100
    for label in found:
        assert quiet[label.start - RATE_HZ // 5 : label.start].all()
        # At most the block in which the caller began, and 10 ms of fading.
        spoken = np.flatnonzero(~quiet[label.start : label.end])
        assert len(spoken) == 0 or label.end - label.start - spoken[0] <= 0.031 * RATE_HZ
    marked = np.zeros(len(out), np.bool_)
    for label in found:
        marked[label.start : label.end] = True
    assert not line.noise().any()
    changed = np.flatnonzero(out != caller)
    assert marked[changed].all() or changed[~marked[changed]].min() > found[-1].end


def test_evenly_spaced_sounds_keep_their_grid_and_length() -> None:
    effect = Tics(kind="cough", every_ms=3_200, length_ms=80)
    line = build([effect])
    line.process(SILENCE)
    found = labels(line, [effect])
    assert [label.start for label in found] == [25_600 * k for k in range(1, 19)]
    assert {label.end - label.start for label in found} == {640}


def test_a_sound_cut_to_a_length_is_its_loudest_part() -> None:
    whole = sounds(Tics(kind="cough"), RATE_HZ)
    for take, part in zip(whole, sounds(Tics(kind="cough", length_ms=80), RATE_HZ), strict=True):
        assert len(part) == 640
        assert dbov(part) > dbov(take)


# ---- refusals ----


def test_a_rate_that_telephony_cannot_have_is_refused() -> None:
    with pytest.raises(InputError, match="rate of 22050 Hz, wanted one of 8000, 16000"):
        build_line([Echo()], rate_hz=22_050, seed=1)


def test_streams_are_numbered_apart() -> None:
    assert sorted(STREAMS.values()) == list(range(12))
    for title, number in line_oracle.LEG_STREAMS.items():
        assert STREAMS[title] == number


def test_nothing_can_be_set_once_audio_has_passed() -> None:
    line = build([Echo()])
    passed(line, SILENCE[:100], [100])
    with pytest.raises(ValueError, match="nothing can be set any more"):
        line.set_echo(10, 0.5, 0.0)
