"""The card's own parts: clicks, clocks, queues, echo, and what is kept of a calibration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from card_fakes import SESSION_HZ, FakeCard, seat_of
from duplex import beds
from duplex.card import clicks, echo_return
from duplex.card.calibration import Bench, calibrate
from duplex.card.capture import Capture
from duplex.card.clicks import Echoed, Settled, settle
from duplex.card.device import Pcm, choose, wanted
from duplex.card.kept import Delay, Opened, keep, look_up
from duplex.card.playback import Playback
from duplex.card.stream_clock import StreamClock
from duplex.errors import InputError

LOUD = np.full(480, 2_000, np.int16)
QUIET = np.zeros(480, np.int16)


def calibrated(card: FakeCard) -> Settled:
    device = card.devices()[0]
    how = wanted(device, SESSION_HZ, card.rate_hz, 60)
    bench = Bench(driver=card, input=how, output=how, now=card.now, sleep=card.advance)
    return calibrate(bench)


@pytest.mark.parametrize(
    ("rate_hz", "loop_ms"), [(16_000, 0.5), (24_000, 137.0), (44_100, 23.4), (48_000, 512.0)]
)
def test_a_loop_is_measured_through_loss_and_noise(rate_hz: int, loop_ms: float) -> None:
    card = FakeCard(rate_hz=rate_hz, loop_ms=loop_ms, loop_db=-30, noise=25, jitter_ms=6)
    found = calibrated(card)
    assert abs(found.delay_ms - loop_ms) <= max(found.plus_minus_ms, 0.6)
    assert found.plus_minus_ms < 2
    assert abs(found.level_db + 30) < 1
    assert found.found == found.played


def test_a_loudspeaker_that_is_not_heard_is_not_calibrated() -> None:
    with pytest.raises(InputError, match="0 of 18 clicks came back"):
        calibrated(FakeCard(loop_db=-80, noise=40))


def test_noise_alone_is_no_click() -> None:
    noise = np.random.default_rng(1).normal(0, 3_000, 24_000).astype(np.int16)
    assert clicks.find(noise, clicks.click(0, SESSION_HZ), SESSION_HZ) is None


def test_one_click_is_never_taken_for_another() -> None:
    sent = clicks.click(1, SESSION_HZ)
    other = np.concatenate([QUIET, clicks.click(2, SESSION_HZ), np.tile(QUIET, 9)])
    assert clicks.find(other, sent, SESSION_HZ) is None


def test_clicks_that_went_astray_do_not_move_the_median() -> None:
    found = settle([Echoed(delay_ms=ms, level_db=-9) for ms in (50, 50.2, 49.9, 350, 50.1)], 6)
    assert (found.delay_ms, found.plus_minus_ms, found.found) == (50.05, 0.15, 4)


def test_clicks_that_agree_on_nothing_are_no_calibration() -> None:
    with pytest.raises(InputError, match="agree too little"):
        settle([Echoed(delay_ms=ms, level_db=-9) for ms in (10, 80, 150, 220)], 4)


@pytest.mark.parametrize("ppm", [-400.0, 0.0, 150.0])
def test_the_drift_of_a_stream_is_found_under_late_blocks(ppm: float) -> None:
    clock, random = StreamClock(48_000), np.random.default_rng(5)
    for count in range(1, 6_000):
        late = 0.02 * random.random() ** 3
        clock.add(count * 480, count * 0.01 / (1 + ppm * 1e-6) + late)
    drift = clock.drift()
    assert drift is not None
    assert abs(drift.ppm - ppm) <= max(3 * drift.plus_minus_ppm, 3)
    at = clock.time_of(48_000 * 30)
    assert at == pytest.approx(30 / (1 + ppm * 1e-6), abs=2e-3)


def test_a_short_stream_has_no_drift() -> None:
    clock = StreamClock(48_000)
    for count in range(1, 900):
        clock.add(count * 480, count * 0.01)
    assert clock.drift() is None


def test_a_microphone_that_nobody_empties_loses_audio_and_says_how_much() -> None:
    capture = Capture(24_000, lambda: 0.0)
    for _ in range(120):
        capture.take(LOUD[:, None], lost=False)
    kept = sum(len(block.pcm) for block in capture.drain())
    assert (kept, capture.dropped) == (48_000, 120 * 480 - 48_000)


def test_two_channels_become_their_mean() -> None:
    capture = Capture(24_000, lambda: 0.0)
    capture.take(np.array([[100, 300], [-7, -9]], np.int16), lost=True)
    (block,) = capture.drain()
    assert block.pcm.tolist() == [200, -8]
    assert capture.overruns == 1


def test_playback_begins_when_a_little_waits_and_counts_a_gap() -> None:
    playback = Playback(24_000, lambda: 0.0)
    playback.put(LOUD)
    assert not playback.fill(240, dry=False).any(), "20 of 40 ms wait"
    playback.put(LOUD)
    played = np.concatenate([playback.fill(240, dry=False) for _ in range(5)])
    assert (played[:960] == 2_000).all()
    assert not played[960:].any()
    assert (playback.gaps, playback.gap_frames) == (1, 240)


def run(playback: Playback, ticks: list[Pcm], frames: int) -> list[Pcm]:
    """A tick in, ``frames`` out, again and again."""
    out = []
    for tick in ticks:
        playback.put(tick)
        out.append(playback.fill(frames, dry=False))
    return out


def test_a_slow_card_never_falls_behind_for_long_and_loses_silence_only() -> None:
    playback = Playback(24_000, lambda: 0.0)
    # 1 % slow: 5 samples of each tick stay behind.
    out = run(playback, [*([LOUD] * 300), *([QUIET] * 100)] * 4, 475)
    assert playback.dropped == 0
    assert playback.left_out > 0
    heard = np.concatenate(out)
    tail = playback.depth
    assert int((heard != 0).sum()) >= 4 * 300 * 480 - tail, "no sound is left out"
    assert tail < 24_000 * 0.25


def test_a_fast_card_gets_silence_in_pauses() -> None:
    playback = Playback(24_000, lambda: 0.0)
    run(playback, [*([LOUD] * 60), *([QUIET] * 60)] * 8, 484)
    assert playback.added > 0
    assert playback.gaps == 0


def test_a_card_that_stands_still_makes_nothing_wait_without_end() -> None:
    playback = Playback(24_000, lambda: 0.0)
    for _ in range(500):
        playback.put(LOUD)
    assert playback.depth <= 24_000 + 480
    assert playback.dropped == 500 * 480 - playback.depth


def speech(second: int, seconds: int = 6) -> np.ndarray:
    whole = beds.background_speech(1, SESSION_HZ).samples
    return whole[second * SESSION_HZ : (second + seconds) * SESSION_HZ].astype(np.float64)


def back(played: np.ndarray, level_db: float, delay_ms: int) -> np.ndarray:
    out, lag = np.zeros(len(played)), delay_ms * SESSION_HZ // 1000
    out[lag:] = played[: len(played) - lag] * 10 ** (level_db / 20)
    return out


def as_pcm(sound: np.ndarray) -> Pcm:
    whole: Pcm = np.clip(np.rint(sound), -32768, 32767).astype(np.int16)
    return whole


@pytest.mark.parametrize("level_db", [-8.0, -20.0, -35.0])
def test_an_echo_is_measured_in_level_and_delay(level_db: float) -> None:
    played = speech(0)
    noise = np.random.default_rng(2).normal(0, 8, len(played))
    found = echo_return.measure(
        as_pcm(played), as_pcm(back(played, level_db, 183) + noise), SESSION_HZ
    )
    assert found is not None
    assert found.delay_ms == pytest.approx(183, abs=0.2)
    assert found.level_db == pytest.approx(level_db, abs=1)
    assert found.heard_as_speech


def test_who_speaks_over_an_echo_does_not_change_it() -> None:
    played = speech(0)
    mic = back(played, -15, 90) + speech(8)
    found = echo_return.measure(as_pcm(played), as_pcm(mic), SESSION_HZ)
    assert found is not None
    assert found.level_db == pytest.approx(-15, abs=1.5)
    assert found.delay_ms == pytest.approx(90, abs=0.2)


def test_another_voice_and_noise_are_no_echo() -> None:
    played, noise = speech(0), np.random.default_rng(2).normal(0, 50, 6 * SESSION_HZ)
    assert echo_return.measure(as_pcm(played), as_pcm(speech(8)), SESSION_HZ) is None
    assert echo_return.measure(as_pcm(played), as_pcm(noise), SESSION_HZ) is None


def test_an_echo_below_the_rooms_noise_is_not_heard_as_speech() -> None:
    played = speech(0)
    noise = np.random.default_rng(2).normal(0, 60, len(played))
    found = echo_return.measure(as_pcm(played), as_pcm(back(played, -60, 183) + noise), SESSION_HZ)
    assert found is None or not found.heard_as_speech


OPENED = Opened(input="mic", output="ear", input_hz=48_000, output_hz=48_000, latency_ms=60)


def test_a_calibration_is_kept_for_these_devices_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "state" / "cards.json"
    delay = Delay(delay_ms=61.5, plus_minus_ms=0.4, source="loopback", at="2026-08-01T10:00:00Z")
    keep(OPENED, delay, path)
    assert look_up(OPENED, path) == delay
    other = Opened(input="mic", output="ear", input_hz=24_000, output_hz=48_000, latency_ms=60)
    assert look_up(other, path) is None
    path.write_text("{", encoding="utf-8")
    assert look_up(OPENED, path) is None, "what cannot be read was never calibrated"


def test_devices_are_chosen_by_number_name_or_part_of_it() -> None:
    devices = FakeCard().devices()
    assert choose(devices, None, "input").index == 0
    assert choose(devices, "1", "output").name == "USB headset"
    assert choose(devices, "usb", "input").index == 1
    with pytest.raises(InputError, match='input-device "nothing" does not exist, want one of: 0'):
        choose(devices, "nothing", "input")
    with pytest.raises(InputError, match="fits several"):
        choose(devices, "b", "input")
    with pytest.raises(InputError, match="no sound card"):
        choose([], None, "output")


def test_a_delay_nobody_measured_is_as_wide_as_it_is_long() -> None:
    seat = seat_of(FakeCard())
    assert (seat.reported.delay_ms, seat.reported.plus_minus_ms) == (60, 60)
    assert seat.reported.source == "reported"
