"""The verdict on a recording: what is refused, what is usable, and in which words."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from duplex.intake import Health, Verdict, health_of, listen, open_sides
from duplex.intake.levels import Meter
from duplex.intake.listen import Listening
from duplex.intake.roles import ASSUMED
from duplex.intake.sound import Repairs
from duplex.values import Segment, Side, Span
from stimuli import (
    CALLER,
    LENGTH,
    RATE,
    Floats,
    conversation,
    noise,
    pcm,
    save,
    side,
    speechlike,
    talk,
    voiced,
)

LEFT, RIGHT = conversation()
ZERO = np.zeros_like(LEFT)


def judged(path: Path, *channels: Floats, subtype: str | None = None, detector: str = "") -> Health:
    name = path / "a.wav"
    save(name, *channels, subtype=subtype)
    with ExitStack() as stack:
        sides = open_sides((name,), None, stack)
        heard = listen(sides, detector) if detector else listen(sides)
    return health_of(heard)


def codes(health: Health) -> set[str]:
    return {reason.code for reason in health.reasons}


def test_a_clean_conversation_is_good(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT, RIGHT)
    assert (health.verdict, health.reasons, health.refusal) == (Verdict.GOOD, (), None)
    assert health.sides[0].speech_dbfs == pytest.approx(-26.4, abs=0.5)
    assert health.sides[0].noise_dbfs is None
    assert health.sides[0].noise_known
    assert health.sides[0].clipped_share == 0
    assert health.balance_db == pytest.approx(0, abs=0.5)


@pytest.mark.parametrize("line_noise", [-75.0, -60.0])
def test_line_noise_leaves_it_good_and_is_measured(tmp_path: Path, line_noise: float) -> None:
    health = judged(
        tmp_path, LEFT + noise(LENGTH, line_noise), RIGHT + noise(LENGTH, line_noise, seed=3)
    )
    assert health.verdict is Verdict.GOOD
    for own in health.sides:
        assert own.noise_dbfs == pytest.approx(line_noise, abs=1)
        assert own.snr_db == pytest.approx(-26.4 - line_noise, abs=1.5)


def test_noise_makes_it_usable_and_says_how_much(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT + noise(LENGTH, -45), RIGHT)
    assert health.verdict is Verdict.USABLE
    (reason,) = health.reasons
    assert (reason.code, reason.side) == ("noise", Side.CALLER)
    assert "only 18 dB above the noise" in reason.text or "only 19 dB" in reason.text


@pytest.mark.parametrize("gain", [1.0, 0.5, -0.7])
def test_a_mono_mix_is_refused_with_the_remedy(tmp_path: Path, gain: float) -> None:
    mix = (LEFT + RIGHT) / 2
    health = judged(tmp_path, mix, gain * mix)
    assert health.verdict is Verdict.REFUSED
    assert health.reasons[0].code == "mono_mix"
    assert (health.refusal or "").endswith("; export the two sides as separate channels")


def test_a_mono_mix_with_noise_of_its_own_on_each_channel_is_one(tmp_path: Path) -> None:
    mix = (LEFT + RIGHT) / 2
    health = judged(tmp_path, mix + noise(LENGTH, -60), mix + noise(LENGTH, -60, seed=4))
    assert "mono_mix" in codes(health)


def test_a_mono_mix_that_is_late_on_one_channel_is_one(tmp_path: Path) -> None:
    mix = LEFT + RIGHT
    late = np.concatenate([np.zeros(240), mix])[: len(mix)]
    health = judged(tmp_path, mix, 0.9 * late)
    assert health.refusal == (
        "the assistant's channel is the other one, 10 ms later; "
        "export the two sides as separate channels"
    )


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT[:0], RIGHT[:0])
    assert health.refusal == "it holds no audio; record the call again"


@pytest.mark.parametrize("level", [None, -90.0])
def test_a_silent_file_is_refused(tmp_path: Path, level: float | None) -> None:
    bed = ZERO if level is None else noise(LENGTH, level)
    health = judged(tmp_path, bed, bed if level is None else noise(LENGTH, level, seed=4))
    assert (health.verdict, health.reasons[0].code) == (Verdict.REFUSED, "silent")


@pytest.mark.parametrize("detector", ["rms", "webrtc"])
@pytest.mark.parametrize("level", [-50.0, -30.0, -15.0])
def test_noise_alone_is_refused_whatever_the_detector_makes_of_it(
    tmp_path: Path, detector: str, level: float
) -> None:
    beds = noise(LENGTH, level), noise(LENGTH, level, seed=4)
    health = judged(tmp_path, *beds, detector=detector)
    assert health.verdict is Verdict.REFUSED
    assert codes(health) & {"no_speech", "endless_segment", "only_noise", "noise"}


def test_one_endless_segment_is_refused(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT + noise(LENGTH, -30), RIGHT, detector="rms")
    assert (health.verdict, health.reasons[0].code) == (Verdict.REFUSED, "endless_segment")
    assert health.reasons[0].side is Side.CALLER
    assert "the caller's channel is one sound of 20.0 s" in (health.refusal or "")


def test_a_long_turn_with_pauses_is_not_endless(tmp_path: Path) -> None:
    spans = [(0.5 + 1.6 * i, 1.8 + 1.6 * i) for i in range(11)]
    health = judged(tmp_path, talk(spans, LENGTH, seed=5), talk([(18.5, 19.5)], LENGTH, seed=6))
    assert health.verdict is Verdict.GOOD


def test_a_side_of_nothing_but_loud_noise_is_refused() -> None:
    meter = Meter(RATE)
    meter.push(pcm(LEFT), pcm(noise(LENGTH, -35)))
    segments = tuple(
        Segment(side=Side.CALLER, span=Span(start=round(a * RATE), end=round(b * RATE)))
        for a, b in CALLER
    )
    heard = Listening(
        files=("a.wav",),
        formats=("WAV",),
        file_rate_hz=RATE,
        rate_hz=RATE,
        duration=round(LENGTH * RATE),
        roles=ASSUMED,
        detector="sure",
        segments={"sure": segments},
        levels=meter.levels(),
        echoes=(),
        repairs=Repairs(),
        warnings=(),
    )
    health = health_of(heard)
    assert (health.verdict, health.reasons[0].code) == (Verdict.REFUSED, "only_noise")
    assert "nothing but noise at -35 dBFS" in (health.refusal or "")
    assert health_of(heard, stems=True).verdict is Verdict.USABLE


def test_a_one_sided_call_is_usable_and_says_that_a_channel_may_be_missing(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT, ZERO)
    assert (health.verdict, codes(health)) == (Verdict.USABLE, {"one_sided"})
    assert "silent or not recorded cannot be told" in health.reasons[0].text


def test_clipping_is_measured_at_any_level(tmp_path: Path) -> None:
    clean = judged(tmp_path, LEFT, RIGHT)
    assert not codes(clean)
    for level in (1.0, 0.4):
        health = judged(tmp_path, np.clip(LEFT * 8, -1, 1) * level * 0.99, RIGHT)
        assert "clipping" in codes(health)
        assert 0.01 < health.sides[0].clipped_share < 0.5


def test_channels_of_very_different_levels_are_told(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT * 2.5, RIGHT * 0.2)
    assert {"balance"} <= codes(health) <= {"balance", "quiet"}
    assert health.balance_db == pytest.approx(-22, abs=2)


def test_crosstalk_is_measured_in_decibels(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT + 0.1 * RIGHT, RIGHT)
    assert health.verdict is Verdict.USABLE
    assert health.sides[0].leak_db == pytest.approx(-20, abs=1.5)
    assert health.sides[1].leak_db is None


def test_crosstalk_both_ways_is_told_where_it_cannot_be_left_out(tmp_path: Path) -> None:
    """Copies that make less than half of a side's speech count, and the verdict says so."""
    health = judged(tmp_path, LEFT + 0.2 * RIGHT, RIGHT + 0.2 * LEFT)
    assert health.verdict is Verdict.USABLE
    assert "crosstalk" in codes(health)


def test_a_faint_leak_that_is_heard_as_speech_is_told(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT + 0.01 * RIGHT, RIGHT)
    assert health.sides[0].segments > health.sides[1].segments
    assert codes(health) == {"crosstalk"}


def test_a_faint_leak_far_below_speech_is_no_reason(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT + 0.001 * RIGHT, RIGHT)
    assert health.verdict is Verdict.GOOD


def test_an_acoustic_echo_is_dropped_listed_and_told(tmp_path: Path) -> None:
    late = np.concatenate([np.zeros(2_880), RIGHT])[: len(RIGHT)]
    health = judged(tmp_path, LEFT * 0.3 + 0.4 * late, RIGHT)
    reason = next(r for r in health.reasons if r.code == "echo")
    assert reason.side is Side.CALLER
    assert "the assistant heard 120 ms later" in reason.text
    own = health.sides[0]
    assert own.own_segments < own.segments


def test_an_offset_is_no_noise(tmp_path: Path) -> None:
    low = noise(LENGTH, -70), noise(LENGTH, -70, seed=5)
    health = judged(tmp_path, LEFT + low[0] + 0.004, RIGHT + low[1] + 0.004)
    assert health.verdict is Verdict.GOOD
    assert health.sides[0].noise_dbfs == pytest.approx(-70, abs=1)


def test_a_few_broken_samples_are_told_and_many_refused(tmp_path: Path) -> None:
    broken = LEFT.copy()
    broken[100:110] = np.nan
    few = judged(tmp_path, broken, RIGHT, subtype="FLOAT")
    assert (few.verdict, codes(few)) == (Verdict.USABLE, {"invalid_samples"})
    assert "10 samples are NaN or infinite, counted as silence" in few.reasons[0].text
    broken[: len(broken) // 2] = np.inf
    many = judged(tmp_path, broken, RIGHT, subtype="FLOAT")
    assert many.verdict is Verdict.REFUSED
    assert "save it again from its source" in (many.refusal or "")


def test_float_audio_in_steps_of_16_bits_is_refused(tmp_path: Path) -> None:
    health = judged(tmp_path, LEFT * 32_768, RIGHT * 32_768, subtype="FLOAT")
    assert health.reasons[0].code == "unscaled"
    assert (health.refusal or "").endswith("scale them to ±1 and save it again")


def test_equal_stimuli_at_once_are_neither_mix_nor_crosstalk(tmp_path: Path) -> None:
    one = side([(1, voiced(3)), (6, voiced(2.5)), (10, voiced(3))], 15)
    two = side([(2, voiced(1)), (7, voiced(1)), (11, voiced(1))], 15)
    assert judged(tmp_path, two, one).verdict is Verdict.GOOD


def test_a_file_of_a_tenth_of_a_second_gets_an_answer(tmp_path: Path) -> None:
    health = judged(tmp_path, speechlike(0.1, 3), speechlike(0.1, 4))
    assert health.verdict in Verdict
