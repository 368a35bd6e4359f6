"""The ways sound takes: filters against scipy, telephone, codec tables, rooms, network."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
import scipy.signal

import line_oracle
from duplex import _core
from duplex._line import KERNELS, Line, kernels_wanted, round_trip, stream_key
from duplex.conditions import AcousticEcho, Echo, Microphone, Network, Reverb, Telephony
from duplex.line import LAWS, RATES_HZ, STREAMS
from duplex.line_filters import butterworth, decimator, looked_ahead
from duplex.protocols import g711
from line_scenes import Pcm, build, speech

Floats = npt.NDArray[np.float64]
OPEN = Microphone(low_hz=0, high_hz=0)


def impulse(count: int, height: int = 20_000) -> Pcm:
    pcm = np.zeros(count, np.int16)
    pcm[0] = height
    return pcm


def noise(count: int, level: float = 5_000) -> Pcm:
    drawn = np.random.default_rng(5).normal(0, level, count)
    return np.asarray(np.clip(drawn, -32768, 32767), np.int16)


# ---- filters ----


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize(("low_hz", "high_hz"), [(200, 3_600), (20, 0), (0, 2_000), (300, 3_400)])
def test_a_band_is_scipys_to_minus_80_db(low_hz: float, high_hz: float, rate_hz: int) -> None:
    pcm = noise(rate_hz * 2)
    out = build([Microphone(low_hz=low_hz, high_hz=high_hz)], rate_hz).process(pcm)
    wanted: Floats = pcm.astype(np.float64)
    for edge, kind in ((low_hz, "high"), (high_hz, "low")):
        if edge:
            sections = scipy.signal.butter(2, edge, kind, fs=rate_hz, output="sos")
            wanted = scipy.signal.sosfilt(sections, wanted)
    error = out - np.clip(wanted, -32768, 32767)
    assert 20 * np.log10(np.sqrt(np.mean(error**2)) / 32768) < -80
    # Half a step is the rounding to int16; poles near 1 feel that of the coefficients.
    assert np.abs(error).max() < (8 if low_hz == 20 else 1)


@pytest.mark.parametrize("kind", ["low", "high"])
def test_sections_are_scipys(kind: str) -> None:
    assert kind in ("low", "high")
    own = butterworth(4, 1_500, 24_000, "low" if kind == "low" else "high")
    _, mine = scipy.signal.sosfreqz([[b0, b1, b2, 1, a1, a2] for b0, b1, b2, a1, a2 in own], 512)
    theirs = scipy.signal.sosfreqz(
        scipy.signal.butter(4, 1_500, kind, fs=24_000, output="sos"), 512
    )[1]
    assert np.abs(mine - theirs).max() < 1e-5


def test_looking_ahead_changes_no_response() -> None:
    (section,) = butterworth(2, 120, 48_000, "high")
    taps, two, four = looked_ahead(section)
    points = np.linspace(0.0005, 3.1, 400)
    b0, b1, b2, a1, a2 = section
    _, plain = scipy.signal.freqz([b0, b1, b2], [1, a1, a2], points)
    _, ahead = scipy.signal.freqz(taps, [1, 0, -two, 0, -four], points)
    assert np.abs(plain - ahead).max() < 1e-6


# ---- telephone ----


def level_at(pcm: Pcm, hz: float, rate_hz: int) -> float:
    """Amplitude at one frequency in the second half, in dB of full scale."""
    half = pcm[len(pcm) // 2 :].astype(np.float64)
    window = np.hanning(len(half))
    turn = np.exp(-2j * np.pi * hz * np.arange(len(half)) / rate_hz)
    amplitude = np.abs((half * window * turn).sum()) * 2 / window.sum()
    return float(20 * np.log10(amplitude / 32768 + 1e-12))


def tone(hz: float, rate_hz: int, amplitude: float = 8_000) -> Pcm:
    t = np.arange(rate_hz * 2) / rate_hz
    return np.asarray(np.rint(amplitude * np.sin(2 * np.pi * hz * t)), np.int16)


@pytest.mark.parametrize("rate_hz", [16_000, 24_000, 48_000])
@pytest.mark.parametrize("law", ["mu", "a"])
def test_what_lies_above_4_khz_does_not_fold_into_the_band(law: str, rate_hz: int) -> None:
    effect = Telephony.model_validate({"law": law, "gain": 1.8})
    for hz, folded in ((5_000, 3_000), (6_500, 1_500), (7_300, 700)):
        pcm = tone(hz, rate_hz)
        out = build([effect], rate_hz).process(pcm)
        assert level_at(out, folded, rate_hz) <= level_at(pcm, hz, rate_hz) - 50


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_a_telephone_passes_300_to_3400_hz_with_its_gain(rate_hz: int) -> None:
    def through(hz: float) -> float:
        pcm = tone(hz, rate_hz, 4_000)
        out = build([Telephony()], rate_hz).process(pcm)
        return level_at(out, hz, rate_hz) - level_at(pcm, hz, rate_hz)

    gain = 20 * math.log10(1.8)
    for hz in (600, 1_000, 2_000, 3_000):
        assert through(hz) == pytest.approx(gain, abs=0.5)
    for hz in (300, 3_400):
        assert through(hz) == pytest.approx(gain - 3, abs=0.6)
    assert through(60) < gain - 50


@pytest.mark.parametrize("rate_hz", [16_000, 24_000, 48_000])
def test_the_filters_of_a_telephone_delay_by_what_the_line_says(rate_hz: int) -> None:
    """A short sound in the middle of the band comes out so much later."""
    line = build([Telephony(gain=1)], rate_hz)
    assert line.delay == 24 * rate_hz // 8_000
    down = decimator(rate_hz)
    assert len(down.taps) - 1 == line.delay
    assert down.taps == down.taps[::-1]
    # In the middle of the band the recursive filters hardly delay.
    t = np.arange(rate_hz) / rate_hz
    envelope = np.exp(-(((t - 0.5) / 0.01) ** 2))
    pcm = np.asarray(np.rint(12_000 * envelope * np.sin(2 * np.pi * 1_200 * t)), np.int16)
    out = line.process(pcm).astype(np.float64)
    late = float((out**2 * t).sum() / (out**2).sum()) - 0.5
    assert late * rate_hz == pytest.approx(line.delay, abs=0.4 * rate_hz / 1_000)


@pytest.mark.parametrize(
    ("law", "digest"),
    [
        ("mu", "90c29de505fb68e766118303bd552a16005dcf810873698bee1d8f3b247ce28c"),
        ("a", "38488f6fd710f4686360edc4d38639f96c491595ef93f8eb8d62d5e07ca6ce7b"),
    ],
)
@pytest.mark.parametrize("kernels", KERNELS)
def test_the_codec_is_the_itus_for_every_value(law: str, digest: str, kernels: str) -> None:
    every = np.arange(-32_768, 32_768, dtype=np.int32).astype(np.int16)
    codes = g711.encode(every, law)
    assert hashlib.sha256(codes).hexdigest() == digest
    made = round_trip(LAWS.index(law), every, kernels)
    assert np.array_equal(made, g711.decode(codes, law))


# ---- microphone ----


def test_level_offset_clipping_and_bits() -> None:
    pcm = noise(4_000, 3_000)
    louder = build([OPEN.model_copy(update={"level_db": 6.0})]).process(pcm)
    assert np.abs(louder - pcm * 10 ** (6 / 20)).max() <= 0.51
    offset = build([OPEN.model_copy(update={"dc": 0.25})]).process(pcm)
    assert np.array_equal(offset, np.clip(pcm.astype(int) + 8_192, -32768, 32767))
    clipped = build([OPEN.model_copy(update={"clip": -20.0})]).process(pcm)
    assert np.array_equal(clipped, np.clip(pcm, -3_277, 3_277))
    coarse = build([OPEN.model_copy(update={"bits": 8})]).process(pcm)
    assert not (coarse % 256).any()
    assert np.abs(coarse - pcm.astype(int)).max() <= 128


def test_gain_control_brings_quiet_and_loud_together_without_steps() -> None:
    ends = []
    for level in (300, 1_000, 8_000):
        out = build([OPEN.model_copy(update={"agc": True})]).process(noise(320_000, level))
        ends.append(float(np.sqrt(np.mean(out[-8_000:].astype(np.float64) ** 2))))
    assert max(ends) < 1.2 * min(ends)
    assert min(ends) > 2_800
    steady = np.full(80_000, 1_000, np.int16)
    out = build([OPEN.model_copy(update={"agc": True})]).process(steady)
    assert np.abs(np.diff(out.astype(int))).max() <= 2


def test_turning_away_dulls_some_utterances_for_half_a_second() -> None:
    """White bursts as utterances, so that what is above 3 kHz shows when it is missing."""
    rate_hz, count = 16_000, 40
    talk = np.zeros(rate_hz * 3 * count, np.int16)
    for k in range(count):
        talk[k * 48_000 + 16_000 : (k + 1) * 48_000] = noise(32_000, 3_000)
    shares = {}
    for chance in (0.0, 0.4, 1.0):
        out = build([OPEN.model_copy(update={"muffle_prob": chance})], rate_hz).process(talk)
        high = scipy.signal.sosfilt(
            scipy.signal.butter(6, 3_000, "high", fs=rate_hz, output="sos"), out.astype(np.float64)
        )
        blocks = np.sqrt((high.reshape(-1, 320) ** 2).mean(1)).reshape(count, -1)
        dull = (blocks[:, 55:] < 500).sum(1)
        shares[chance] = (dull > 10).mean()
        if chance == 1:
            assert dull.min() >= 14
            assert dull.max() <= 25
    assert shares[0.0] == 0
    assert shares[1.0] == 1
    assert 0.2 < shares[0.4] < 0.65


# ---- rooms ----


def test_an_echo_is_copies_at_their_delays() -> None:
    out = build([Echo(delay_ms=10, gain=0.5, decay=0.25)]).process(impulse(400))
    assert np.flatnonzero(out).tolist() == [0, 80, 160, 240, 320]
    assert out[[0, 80, 160, 240, 320]].tolist() == [20_000, 10_000, 2_500, 625, 156]


def test_an_acoustic_echo_copies_what_the_caller_was_played() -> None:
    line = build([AcousticEcho(delay_ms=20, gain=0.5, decay=0.5)])
    out = line.process(np.zeros(600, np.int16), impulse(600))
    assert out[[160, 320, 480]].tolist() == [10_000, 5_000, 2_500]
    assert np.count_nonzero(out) == 3


def test_an_acoustic_echo_below_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="after 159 samples, not 160 or more"):
        Line(8_000, 1_600.0).set_acoustic(159, 0.5, 0.0)


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize(("rt60_ms", "drr"), [(200, 6.0), (600, 0.0)])
def test_a_room_decays_in_its_time_and_has_its_share(
    rt60_ms: int, drr: float, rate_hz: int
) -> None:
    effect = Reverb(rt60_ms=rt60_ms, drr=drr)
    out = build([effect], rate_hz).process(impulse(rate_hz, 32_767)).astype(np.float64)
    assert out[0] == 32_767
    late = out[1:]
    assert 10 * math.log10(32_767**2 / (late**2).sum()) == pytest.approx(drr, abs=0.3)
    left = 10 * np.log10(np.cumsum(late[::-1] ** 2)[::-1] / (late**2).sum() + 1e-12)
    five, twenty_five = np.argmax(left < -5), np.argmax(left < -25)
    assert 3_000 * (twenty_five - five) / rate_hz == pytest.approx(rt60_ms, rel=0.12)


# ---- network ----


def due_at(effect: Network, packets: int, jitters: Sequence[int]) -> list[int]:
    """When each packet is there, at 8 kHz: drawn apart, taken in order."""
    stream = stream_key(7, 0, STREAMS["network"])
    due, there, stalled = [], 0, 0
    for k in range(packets):
        sent = (k + 1) * 160
        own = sent + round(effect.base_ms * 8) + jitters[line_oracle.draw(stream, 4 * k) >> 54]
        if line_oracle.draw(stream, 4 * k + 1) / 2**64 < effect.reorder:
            own += 320
        chance = 1 - math.exp(-effect.stalls_per_min / 60 * 0.02)
        if line_oracle.draw(stream, 4 * k + 2) / 2**64 < chance:
            stalled = max(stalled, sent + round(effect.stall_ms * 8))
        there = max(there, own, stalled)
        due.append(there)
    return due


@pytest.mark.parametrize(
    "effect",
    [
        Network(base_ms=40, jitter_ms=0),
        Network(base_ms=25, jitter_ms=30, reorder=0.1),
        Network(base_ms=60, jitter_ms=10, stall_ms=300, stalls_per_min=20),
    ],
    ids=["steady", "jitter", "stalls"],
)
def test_a_network_plays_as_a_live_leg_fed_at_the_same_times(effect: Network) -> None:
    pcm = speech(8_000, 20)
    line = build([effect])
    out = line.process(pcm)
    jitters = [round(-math.log(1 - (k + 0.5) / 1024) * effect.jitter_ms * 8) for k in range(1024)]
    live = _core.Engine(
        8_000, 1, "rms", (960, 0), 100_000, adaptive=(True, False), bounds=(160, 3_200)
    )
    heard = []
    arrivals = due_at(effect, len(pcm) // 160, jitters)
    k = 0
    while live.position < len(pcm):
        while k < len(arrivals) and arrivals[k] <= live.position:
            live.feed(0, pcm[k * 160 : (k + 1) * 160])
            k += 1
        until = min(arrivals[k] if k < len(arrivals) else len(pcm), len(pcm))
        live.advance(until - live.position)
        heard.append(live.spoken(0))
    assert np.array_equal(out, np.concatenate(heard))
    assert line.network_totals() == live.totals(0)
    assert line.network_waits() == live.waits(0)


# ---- kernels ----


def test_kernels_can_be_chosen_by_name_or_by_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUPLEX_KERNELS", "baseline")
    assert kernels_wanted() == build([Echo()]).kernels == "baseline"
    assert kernels_wanted(KERNELS[-1]) == KERNELS[-1]
    monkeypatch.setenv("DUPLEX_KERNELS", "sse9")
    with pytest.raises(ValueError, match='kernels "sse9" are not among those of this machine'):
        kernels_wanted()
