"""SNR, loss and bursts are worked out again from stems and mask, and compared with the asked."""

from __future__ import annotations

import math

import numpy as np
import pytest

from duplex import beds
from duplex.active_level import speech_level
from duplex.audio_truth import LossMask, Pcm, leg_truth
from duplex.conditions import parse
from duplex.errors import InputError
from duplex.values import Span

RATE = 8_000


def speech(level_dbov: float) -> Pcm:
    """Eight seconds of the background voices with pauses, at an active level."""
    pcm = beds.background_speech(1, RATE).samples[: 8 * RATE].astype(np.float64)
    pcm[2 * RATE : 4 * RATE] = 0
    active = speech_level(pcm.astype(np.int16), RATE).active_dbov
    assert active is not None
    levelled: Pcm = np.rint(pcm * 10 ** ((level_dbov - active) / 20)).astype(np.int16)
    return levelled


def bed(level_dbov: float) -> Pcm:
    gain = 10 ** ((level_dbov - beds.LEVEL_DBOV) / 20)
    levelled: Pcm = np.rint(beds.bed("pink", RATE).samples[: 8 * RATE] * gain).astype(np.int16)
    return levelled


@pytest.mark.parametrize("level_dbov", [-38.0, -26.0, -18.0])
@pytest.mark.parametrize("snr", [30.0, 5.0, -5.0])
def test_the_snr_of_stems_is_what_was_mixed_for_quiet_and_loud_speakers(
    level_dbov: float, snr: float
) -> None:
    effects = parse(f"noise,kind=pink,snr={snr}").uplink
    truth = leg_truth(effects, speech(level_dbov), bed(level_dbov - snr), RATE)
    assert truth.snr_db is not None
    assert truth.snr_db.asked == pytest.approx(snr)
    assert truth.snr_db.achieved == pytest.approx(snr, abs=0.3)
    assert truth.ineffective == ()


def test_a_level_that_is_off_is_told_with_its_error() -> None:
    truth = leg_truth(parse("noise,snr=10").uplink, speech(-26), bed(-40), RATE)
    assert truth.snr_db is not None
    assert truth.snr_db.error == pytest.approx(4.0, abs=0.3)
    assert truth.as_json()["snr_db"] == truth.snr_db.as_json()


@pytest.mark.parametrize(
    "text, asked",
    [
        ("noise,gain=0.1", 20.0),
        ("background_speech,gain=0.5", 6.02),
        ("noise,snr=10 + background_speech,snr=10", 6.99),
        ("noise,rms=1642", 0.0),
    ],
)
def test_gains_levels_and_sums_are_asked_for_as_one_snr(text: str, asked: float) -> None:
    truth = leg_truth(parse(text).uplink, speech(-26), bed(-36), RATE)
    assert truth.snr_db is not None
    assert truth.snr_db.asked == pytest.approx(asked, abs=0.05)


def test_single_sounds_are_left_out_of_the_noise() -> None:
    noise = bed(-46)
    noise[RATE : 2 * RATE] = 20_000
    span = Span(start=RATE, end=2 * RATE)
    truth = leg_truth(parse("noise,snr=20").uplink, speech(-26), noise, RATE, sounds=[span])
    assert truth.noise_dbov == pytest.approx(-46, abs=0.3)


def test_silent_speech_and_silent_noise_are_ineffective_and_divide_nothing() -> None:
    nothing = np.zeros(RATE, np.int16)
    effects = parse("noise,snr=10").uplink
    no_speech = leg_truth(effects, nothing, bed(-36), RATE)
    assert no_speech.ineffective == ("noise: the speech is silent",)
    assert no_speech.snr_db is not None
    assert no_speech.snr_db.achieved is None
    no_noise = leg_truth(effects, speech(-26), nothing, RATE)
    assert no_noise.ineffective == ("noise: the bed is silent",)
    assert no_noise.snr_db is not None
    assert no_noise.snr_db.achieved is None
    none = leg_truth(effects, np.zeros(0, np.int16), None, RATE)
    assert len(none.ineffective) == 2


def test_a_clean_leg_has_levels_and_nothing_else() -> None:
    truth = leg_truth((), speech(-26), None, RATE)
    assert (truth.snr_db, truth.loss, truth.burst_ms) == (None, None, None)
    assert truth.speech.active_dbov == pytest.approx(-26, abs=0.05)


def test_loss_and_bursts_are_counted_on_the_mask() -> None:
    lost = np.zeros(1_000, np.bool_)
    for start in range(10, 910, 90):
        lost[start : start + 4] = True
    mask = LossMask.of(lost, 20)
    assert LossMask.from_json(mask.as_json()) == mask
    truth = leg_truth(parse("tau_control").uplink, speech(-26), None, RATE, mask=mask)
    assert truth.loss is not None
    assert truth.burst_ms is not None
    assert truth.loss.achieved == pytest.approx(0.04)
    assert truth.loss.error == pytest.approx(0.035)
    assert (truth.burst_ms.achieved, truth.burst_ms.asked) == (80, 100)
    assert (truth.packets, truth.bursts) == (1_000, 10)


def test_bursts_of_single_losses_are_a_little_longer_than_a_packet() -> None:
    mask = LossMask.of(np.array([False, True, False, False]), 20)
    effects = parse("packet_loss,model=iid,loss=0.2").uplink
    truth = leg_truth(effects, speech(-26), None, RATE, mask=mask)
    assert truth.burst_ms is not None
    assert truth.burst_ms.asked == 25


def test_a_mask_of_nothing_has_no_share_and_no_bursts() -> None:
    mask = LossMask.of(np.zeros(0, np.bool_), 20)
    truth = leg_truth(parse("lossy").uplink, speech(-26), None, RATE, mask=mask)
    assert truth.loss is not None
    assert truth.burst_ms is not None
    assert (truth.loss.achieved, truth.burst_ms.achieved) == (None, None)


@pytest.mark.parametrize(
    "told",
    [
        [],
        {"packet_ms": 20, "packets": 5},
        {"packet_ms": 0, "packets": 5, "runs": []},
        {"packet_ms": 20, "packets": 5, "runs": [[4, 2]]},
        {"packet_ms": 20, "packets": 5, "runs": [[2, 1], [1, 1]]},
        {"packet_ms": 20, "packets": 5, "runs": [[True, 1]]},
    ],
)
def test_a_mask_that_cannot_be_is_refused(told: object) -> None:
    with pytest.raises(InputError, match="loss mask"):
        LossMask.from_json(told)


def test_every_figure_is_finite_json() -> None:
    truth = leg_truth(parse("noise,gain=0").uplink, speech(-26), bed(-60), RATE)
    assert truth.snr_db is not None
    assert truth.snr_db.asked is None
    for value in truth.snr_db.as_json().values():
        assert value is None or (isinstance(value, float) and math.isfinite(value))
