"""A person's call at a card in virtual time: the card is in no latency, and all is counted."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from card_fakes import EARLY_S, SESSION_HZ, VOICE, FakeCard, hold, seat_of, told
from duplex.card.kept import Delay
from duplex.metrics.card import card_of
from duplex.metrics.of_call import timing_of_call
from duplex.recording import Recording
from duplex.report.card_report import card_lines
from duplex.values import Json, Side
from verdict_runs import call
from verdict_runs import run as made_run

SAID = ((EARLY_S + 1.0, VOICE), (EARLY_S + 4.0, VOICE))
ANSWER_MS = 400


def card_block(recording: Recording) -> dict[str, Json]:
    card = card_of(recording, timing_of_call(recording).as_json())
    assert card is not None
    return card


def block(value: Json) -> dict[str, Json]:
    assert isinstance(value, dict)
    return value


def number(value: Json) -> float:
    assert isinstance(value, int | float)
    return float(value)


def latency(recording: Recording) -> float:
    return number(block(timing_of_call(recording).as_json()["response_latency"])["p50"])


@pytest.mark.parametrize(
    ("rate_hz", "channels"), [(16_000, 1), (24_000, 1), (44_100, 2), (48_000, 2)]
)
async def test_a_card_of_any_rate_gives_the_same_call(
    tmp_path: Path, rate_hz: int, channels: int
) -> None:
    card = FakeCard(rate_hz=rate_hz, channels=channels, voice=SAID)
    seat = seat_of(card)
    end, recording = await hold(tmp_path, card, seat, seconds=7)
    assert end.fault is None
    assert latency(recording) == pytest.approx(ANSWER_MS, abs=30)
    said = recording.source(Side.CALLER)
    assert np.abs(said).max() == pytest.approx(np.abs(VOICE).max(), rel=0.15)
    loud = np.abs(card.heard) > 2_000
    assert int(loud.sum()) / rate_hz == pytest.approx(
        int((np.abs(recording.source(Side.ASSISTANT)) > 2_000).sum()) / SESSION_HZ, rel=0.02
    )
    closed = told(recording, "card.closed")[0]
    assert closed["gaps"] == closed["overruns"] == closed["input_dropped_ms"] == 0


async def test_a_longer_way_through_the_card_is_in_no_latency_but_in_what_was_waited(
    tmp_path: Path,
) -> None:
    """The person speaks 1 s after the assistant is over, as heard at the loudspeaker."""
    found = {}
    for loop_ms in (10, 310):
        at, again = SAID[1]
        card = FakeCard(loop_ms=loop_ms, voice=(SAID[0], (at + loop_ms / 1000, again)))
        seat = seat_of(card)
        seat.delay = Delay(delay_ms=loop_ms, plus_minus_ms=1.5, source="loopback", at="now")
        _, recording = await hold(tmp_path / str(loop_ms), card, seat, seconds=8)
        found[loop_ms] = (latency(recording), card_block(recording))
    (short, near), (long, far) = found[10], found[310]
    assert short == pytest.approx(long, abs=3)
    trips = [block(card["round_trip_ms"]) for card in (near, far)]
    assert number(trips[1]["ms"]) - number(trips[0]["ms"]) == pytest.approx(300, abs=12)
    for found_of, own in ((near, short), (far, long)):
        trip = block(found_of["round_trip_ms"])
        waited = block(found_of["heard_latency"])
        assert number(waited["p50"]) == pytest.approx(own + number(trip["ms"]), abs=1)
        assert number(waited["plus_minus_ms"]) >= number(trip["plus_minus_ms"]) >= 1.5
    # Who waits 300 ms longer to speak because the sound came later reacts as fast.
    reactions = [number(block(card["reaction"])["p50"]) for card in (near, far)]
    assert reactions[0] == pytest.approx(reactions[1], abs=25)


async def test_without_a_calibration_the_reported_delay_stands_and_is_wide(tmp_path: Path) -> None:
    card = FakeCard(voice=SAID)
    _, recording = await hold(tmp_path, card, seat_of(card), seconds=7)
    found = card_block(recording)
    assert block(found["delay"]) == {
        "ms": 60.0,
        "plus_minus_ms": 60.0,
        "source": "reported",
        "calibrated_at": None,
    }
    assert number(block(found["round_trip_ms"])["plus_minus_ms"]) >= 60
    assert "/delay/calibrated_at" in block(found["unknown"])


async def test_what_the_card_lost_is_counted(tmp_path: Path) -> None:
    card = FakeCard(voice=SAID, lost_at={150, 151, 300}, dry_at={220})
    card.recoveries = 4
    seat = seat_of(card)

    def falls_behind() -> None:
        card.recoveries += 2
        card.advance(0.3)

    _, recording = await hold(tmp_path, card, seat, seconds=7, acts={150: falls_behind})
    found = card_block(recording)
    assert (found["overruns"], found["underruns"], found["recoveries"]) == (3, 1, 2)
    assert found["gaps"] == 1
    assert 200 <= number(found["gap_ms"]) <= 400


@pytest.mark.parametrize("says_so", [True, False])
async def test_a_device_that_vanishes_ends_the_call_with_what_was_recorded(
    tmp_path: Path, says_so: bool
) -> None:
    card = FakeCard(voice=SAID)
    seat = seat_of(card)

    def vanish() -> None:
        card.gone = True
        if not says_so:
            # A driver that goes on to say that all is well: nothing comes, that is all.
            seat._streams.clear()

    end, recording = await hold(tmp_path, card, seat, seconds=20, acts={150: vanish})
    assert end.reason == "error"
    assert end.fault is not None
    assert (end.fault.stage, end.fault.code) == ("transport", "device_gone")
    assert "device is gone" in end.fault.message
    assert recording.duration / SESSION_HZ == pytest.approx(3.0 if says_so else 5.0, abs=0.2)
    assert latency(recording) == pytest.approx(ANSWER_MS, abs=30)
    assert told(recording, "card.closed")


async def test_a_microphone_that_gives_nothing_is_told_before_the_call(tmp_path: Path) -> None:
    card = FakeCard(gone=True)
    end, _ = await hold(tmp_path, card, seat_of(card), seconds=5)
    assert end.fault is not None
    assert (end.fault.stage, end.fault.code) == ("caller_connection", "no_audio")


async def test_a_muted_microphone_is_silence_and_is_told(tmp_path: Path) -> None:
    card = FakeCard(voice=SAID, noise=40)
    seat = seat_of(card)
    acts: dict[int, object] = {190: seat.keys.mute}
    _, recording = await hold(tmp_path, card, seat, seconds=7, acts=acts)
    said = recording.source(Side.CALLER)
    assert not said[4 * SESSION_HZ :].any()
    assert np.abs(said[: 3 * SESSION_HZ]).max() > 1_000
    assert told(recording, "card.muted") == [{"muted": True}]
    assert number(card_block(recording)["shut_ms"]) > 2_000


async def test_push_to_interrupt_keeps_the_echo_out_and_lets_the_person_in(tmp_path: Path) -> None:
    # The person speaks into the assistant's first answer, which begins 2.4 s into the call.
    voice = (SAID[0], (EARLY_S + 2.7, VOICE))
    heard = {}
    for name, key in (("shut", None), ("held", 128)):
        card = FakeCard(voice=voice, loop_db=-12, noise=3)
        seat = seat_of(card, push_to_interrupt=True)

        def hold_space(seat: object = seat) -> None:
            seat.keys.interrupt()  # type: ignore[attr-defined]

        acts: dict[int, object] = {} if key is None else dict.fromkeys(range(key, 160), hold_space)
        _, recording = await hold(tmp_path / name, card, seat, seconds=5, acts=acts)
        during = recording.source(Side.CALLER)[round(2.75 * SESSION_HZ) : 3 * SESSION_HZ]
        heard[name] = int(np.abs(during).max())
        assert card_block(recording)["interruptions"] == (0 if key is None else 1)
    assert heard["shut"] == 0
    assert heard["held"] > 1_000


async def test_an_echo_is_measured_while_the_call_runs_and_the_person_is_warned(
    tmp_path: Path,
) -> None:
    card = FakeCard(voice=SAID, loop_ms=80, loop_db=-18, noise=4)
    seat = seat_of(card)
    _, recording = await hold(tmp_path, card, seat, seconds=12, factory="speaks")
    (echo,) = told(recording, "card.echo")
    assert echo["heard_as_speech"] is True
    assert isinstance(echo["level_db"], float)
    assert echo["level_db"] == pytest.approx(-18, abs=1)
    (warning,) = seat.shown.warnings
    assert "use headphones, or --push-to-interrupt" in warning
    found = block(card_block(recording)["echo"])
    assert found["reached_call"] is True
    # Silence that the jitter buffer added in between leaves a little of it out.
    assert number(found["level_db"]) == pytest.approx(-18, abs=2)
    trip = block(card_block(recording)["round_trip_ms"])
    # What the assistant hears of itself is later by the whole round trip.
    seen = number(found["delay_ms"]) - (number(trip["ms"]) - 60 + 80)
    assert abs(seen) < 15


async def test_headphones_leave_no_echo_and_no_warning(tmp_path: Path) -> None:
    card = FakeCard(voice=SAID, noise=4)
    seat = seat_of(card)
    _, recording = await hold(tmp_path, card, seat, seconds=9, factory="speaks")
    assert told(recording, "card.echo") == []
    assert card_block(recording)["echo"] is None
    assert seat.shown.warnings == []


async def test_who_hangs_up_ends_the_call_when_both_are_silent(tmp_path: Path) -> None:
    card = FakeCard(voice=SAID)
    seat = seat_of(card)
    end, recording = await hold(tmp_path, card, seat, seconds=30, acts={130: seat.keys.hang_up})
    assert end.reason == "response_completed"
    assert recording.duration / SESSION_HZ < 5, "the second sentence is no longer heard"
    assert recording.caller_outcome == "completed"


@pytest.mark.parametrize("ppm", [-250.0, 250.0])
async def test_the_drift_of_the_card_is_told_with_its_width(tmp_path: Path, ppm: float) -> None:
    card = FakeCard(voice=SAID, ppm=ppm, jitter_ms=3)
    _, recording = await hold(tmp_path, card, seat_of(card), seconds=25)
    found = card_block(recording)
    for name in ("input", "output"):
        drift = number(block(found["drift_ppm"])[name])
        width = number(block(found["drift_plus_minus_ppm"])[name])
        assert abs(drift - ppm) <= max(3 * width, 10)
    assert found["gaps"] == 0


async def test_what_the_card_did_is_told_below_the_run(tmp_path: Path) -> None:
    card = FakeCard(voice=SAID, loop_ms=80)
    seat = seat_of(card)
    seat.delay = Delay(delay_ms=80, plus_minus_ms=0.4, source="loopback", at="now")
    _, recording = await hold(tmp_path, card, seat, seconds=7)
    run = made_run(call())
    run.results[0].duplex["card"] = card_block(recording)
    delays, lost = card_lines(run)
    assert re.fullmatch(
        r"card: 80 ± 0\.4 ms out to in, measured by clicks; \d+ ± [\d.]+ ms from the assistant to "
        r"you; you waited \d+ ± [\d.]+ ms \(median\), answered after \d+ ± [\d.]+ ms",
        delays,
    )
    assert lost == "card: nothing lost; no echo"
    assert card_lines(made_run(call())) == ()
