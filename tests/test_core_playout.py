"""Playout of the compiled engine: the hold, stalls and bursts, back-pressure, barge-in."""

from __future__ import annotations

import numpy as np
import pytest

from duplex.engine import Counts, Engine, EngineEvent, Pcm, Playout, PlayoutEvent, SegmentEvent
from duplex.errors import InputError
from duplex.values import Side

MS = 24
"""Samples in a millisecond."""


def tone(duration_ms: int, hz: int = 440) -> Pcm:
    t = np.arange(duration_ms * MS) / 24_000
    return np.array(np.rint(9000 * np.sin(2 * np.pi * hz * t + 0.5)), np.int16)


def quiet(duration_ms: int) -> Pcm:
    return np.zeros(duration_ms * MS, np.int16)


def talk(words: int) -> Pcm:
    """Words of 300 ms, each followed by a pause of 200 ms; no two samples of words alike."""
    parts = []
    for k in range(words):
        parts += [tone(300, 300 + 37 * k), quiet(200)]
    return np.concatenate(parts)


class Run:
    """What the assistant was heard to say, the events, the counts."""

    def __init__(self, said: Pcm, events: list[EngineEvent], counts: Counts) -> None:
        self.said, self.events, self.counts = said, events, counts

    def playouts(self, kind: Playout) -> list[tuple[int, int]]:
        return [
            (event.start, event.samples)
            for event in self.events
            if isinstance(event, PlayoutEvent)
            and event.kind is kind
            and event.side is Side.ASSISTANT
        ]


def run(arrivals: dict[int, Pcm], total_ms: int, hold_ms: int, tick_ms: int = 20) -> Run:
    """Feed the assistant's audio at the first tick at or after each arrival (ms)."""
    engine = Engine(tick_ms=tick_ms, hold_ms=(0, hold_ms))
    waiting = sorted(arrivals.items())
    said: list[Pcm] = []
    events: list[EngineEvent] = []
    for now in range(0, total_ms, tick_ms):
        while waiting and waiting[0][0] <= now:
            pcm = waiting.pop(0)[1]
            assert engine.feed(Side.ASSISTANT, pcm) == len(pcm)
        engine.advance()
        said.append(engine.heard(Side.CALLER))
        events += engine.drain()
    engine.finish()
    return Run(np.concatenate(said), events + engine.drain(), engine.counts())


def deltas(pcm: Pcm, start_ms: int = 0, late_ms: tuple[int, ...] = (0,)) -> dict[int, Pcm]:
    """Cut audio into 100 ms deltas on a 100 ms grid, each late by the next of ``late_ms``."""
    arrivals: dict[int, Pcm] = {}
    for k, at in enumerate(range(0, len(pcm), 100 * MS)):
        when = start_ms + 100 * k + late_ms[k % len(late_ms)]
        arrive(arrivals, when, pcm[at : at + 100 * MS])
    return arrivals


def arrive(arrivals: dict[int, Pcm], when_ms: int, pcm: Pcm) -> None:
    """Add audio that comes at ``when_ms``, behind what comes then already."""
    arrivals[when_ms] = np.concatenate([arrivals.get(when_ms, quiet(0)), pcm])


def test_without_a_hold_a_sample_plays_exactly_where_it_was_fed() -> None:
    word = tone(130)
    heard = run({400: word}, 1000, hold_ms=0)
    assert not heard.said[: 400 * MS].any()
    assert np.array_equal(heard.said[400 * MS : 530 * MS], word)
    assert heard.counts.assistant.hold_added == 0


def test_the_first_audio_waits_for_the_whole_hold_in_silence() -> None:
    heard = run({400: tone(130)}, 1000, hold_ms=120)
    assert np.array_equal(heard.said[520 * MS : 650 * MS], tone(130))
    assert heard.playouts(Playout.HOLD_ADJUST) == [(400 * MS, 120 * MS)]
    assert heard.counts.assistant.hold_added == 120 * MS


@pytest.mark.parametrize("late_ms", [(0,), (0, 7, 0, 93, 3), (0, 0, 0, 119, 19), (15, 0, 80)])
def test_a_hold_keeps_deltas_that_come_late_from_running_dry(late_ms: tuple[int, ...]) -> None:
    speech = tone(6000)
    heard = run(deltas(speech, late_ms=late_ms), 6000, hold_ms=120)
    assert heard.counts.assistant.underrun == 0
    start = heard.playouts(Playout.HOLD_ADJUST)[0][0] + 120 * MS
    assert np.array_equal(heard.said[start:], speech[: len(heard.said) - start])


def test_a_gap_in_speech_is_an_underrun_and_play_goes_on_at_once() -> None:
    speech = tone(2000)
    arrivals = deltas(speech)
    late = {at + (200 if at >= 1000 else 0): pcm for at, pcm in arrivals.items()}
    heard = run(late, 3000, hold_ms=120)
    # The ring holds audio up to 1 120 ms; the next delta comes at 1 200.
    assert heard.playouts(Playout.UNDERRUN)[0] == (1120 * MS, 80 * MS)
    assert heard.counts.assistant.hold_added == 120 * MS
    assert np.array_equal(heard.said[1200 * MS : 2200 * MS], speech[1000 * MS :])


def test_a_pause_of_the_sender_is_idle_and_the_hold_is_built_again() -> None:
    first, second = np.concatenate([tone(300), quiet(100)]), tone(500)
    arrivals = deltas(first) | deltas(second, start_ms=2000)
    heard = run(arrivals, 3000, hold_ms=120)
    assert heard.playouts(Playout.IDLE)[0] == (520 * MS, 1480 * MS)
    assert np.array_equal(heard.said[2120 * MS : 2620 * MS], second)
    assert heard.counts.assistant.hold_added == 240 * MS


def stalled(hold_ms: int) -> tuple[Pcm, Run]:
    """A 100 ms stream that stalls from 5 s to 8 s, bursts, and keeps its grid after."""
    speech = talk(40)
    arrivals: dict[int, Pcm] = {}
    for at, pcm in deltas(speech).items():
        arrive(arrivals, 8000 if 5000 <= at < 8000 else at, pcm)
    return speech, run(arrivals, 24_000, hold_ms=hold_ms)


def test_a_stall_of_three_seconds_doubles_and_loses_no_word_and_its_delay_goes_away() -> None:
    speech, heard = stalled(hold_ms=120)
    words = [tone(300, 300 + 37 * k) for k in range(40)]
    at = 0
    for word in words:
        # Each word once, whole (but for the one the stall cut), in order.
        found = find(heard.said, word, at)
        assert found >= at
        at = found + len(word)
    assert count_loud(heard.said) == count_loud(speech)
    # The last word stands where a call without a stall would have it.
    undisturbed = run(deltas(speech), 24_000, hold_ms=120)
    assert find(heard.said, words[-1], 0) - find(undisturbed.said, words[-1], 0) <= 20 * MS
    n = heard.counts.assistant
    assert n.hold_dropped == n.discarded > 2500 * MS
    assert heard.counts.position == 24_000 * MS


def test_without_a_hold_nothing_is_ever_dropped_after_a_stall() -> None:
    speech, heard = stalled(hold_ms=0)
    assert heard.counts.assistant.discarded == 0
    assert count_loud(heard.said) == count_loud(speech)


def find(said: Pcm, word: Pcm, start: int) -> int:
    """Return where ``word`` is said at or after ``start``, bit for bit, or -1."""
    key = word[:480].tobytes()
    at = said.tobytes().find(key, 2 * start)
    while at >= 0 and at % 2:
        at = said.tobytes().find(key, at + 1)
    whole = at >= 0 and np.array_equal(said[at // 2 : at // 2 + len(word)], word)
    return at // 2 if whole else -1


def count_loud(pcm: Pcm) -> int:
    return int(np.count_nonzero(np.abs(pcm.astype(np.int32)) > 300))


def test_a_sender_faster_than_the_clock_is_trimmed_in_pauses_only() -> None:
    # 100.6 ms of audio every 100 ms: 6 000 ppm, to see in two minutes what 300 ppm do in forty.
    speech = np.concatenate([talk(40)] * 6)
    size = 2414
    arrivals = {100 * k: speech[k * size : (k + 1) * size] for k in range(1190)}
    heard = run(arrivals, 119_000, hold_ms=120)
    fed = np.concatenate(list(arrivals.values()))
    n = heard.counts.assistant
    assert n.underrun == 0
    assert n.hold_dropped > 500 * MS
    assert n.queued <= 360 * MS
    lost = count_loud(fed) - count_loud(heard.said)
    assert lost <= count_loud(fed[-n.queued :])


@pytest.mark.parametrize("delta_ms", [20, 100, 500, 2500])
def test_a_sender_on_time_is_never_trimmed_whatever_its_deltas(delta_ms: int) -> None:
    speech = talk(40)
    size = delta_ms * MS
    arrivals = {k // MS: speech[k : k + size] for k in range(0, len(speech), size)}
    heard = run(arrivals, 20_000, hold_ms=120)
    assert np.array_equal(heard.said[120 * MS :], speech[: len(heard.said) - 120 * MS])
    assert heard.counts.assistant.hold_dropped == 0


def test_audio_that_comes_in_bunches_is_played_without_a_gap() -> None:
    # Ten 20 ms frames every 200 ms, the first bunch before play starts.
    sine = tone(3000)
    heard = run({k: sine[k * MS : (k + 200) * MS] for k in range(0, 3000, 200)}, 3000, hold_ms=0)
    assert np.array_equal(heard.said, sine)
    assert heard.counts.assistant.idle == heard.counts.assistant.underrun == 0


def test_a_full_ring_takes_what_fits_and_says_so() -> None:
    engine = Engine(ring_ms=100)
    assert engine.feed(Side.CALLER, tone(60)) == 60 * MS
    assert engine.feed(Side.CALLER, tone(60)) == 40 * MS
    assert engine.feed(Side.CALLER, tone(60)) == 0
    engine.advance()
    assert engine.feed(Side.CALLER, tone(60)) == 20 * MS
    counts = engine.counts().caller
    assert (counts.accepted, counts.queued, counts.played) == (120 * MS, 100 * MS, 20 * MS)


def test_a_flush_discards_what_is_queued_and_ends_the_speech() -> None:
    engine = Engine()
    engine.feed(Side.ASSISTANT, tone(500))
    engine.advance(5)
    assert engine.flush(Side.ASSISTANT) == 400 * MS
    assert engine.flush(Side.ASSISTANT) == 0
    engine.advance(5)
    assert not engine.heard(Side.CALLER).any()
    engine.finish()
    counts = engine.counts().assistant
    assert (counts.discarded, counts.underrun, counts.idle) == (400 * MS, 0, 100 * MS)
    discard = PlayoutEvent(
        side=Side.ASSISTANT, kind=Playout.DISCARD, start=100 * MS, samples=400 * MS
    )
    assert discard in engine.drain()


def test_both_sides_at_full_scale_are_held_inside_int16_and_counted() -> None:
    engine = Engine()
    loud = np.full(480, 30_000, np.int16)
    engine.feed(Side.CALLER, loud)
    engine.feed(Side.ASSISTANT, np.concatenate([loud[:100], -loud[100:300], quiet(20)[:180]]))
    engine.advance()
    assert engine.mixed().tolist() == [32_767] * 100 + [0] * 200 + [30_000] * 180
    assert engine.counts().clipped == 100


def test_the_recording_has_the_caller_first() -> None:
    engine = Engine()
    engine.feed(Side.CALLER, tone(20))
    engine.feed(Side.ASSISTANT, tone(20, 700))
    engine.advance()
    assert engine.stereo().shape == (480, 2)
    assert np.array_equal(engine.stereo(), np.stack([tone(20), tone(20, 700)], axis=1))


@pytest.mark.parametrize(
    "pcm",
    [
        np.zeros(480, np.float32),
        np.zeros(480, ">i2"),
        np.zeros((480, 2), np.int16),
        np.zeros(960, np.int16)[::2],
    ],
)
def test_audio_that_is_not_plain_int16_is_refused(pcm: Pcm) -> None:
    with pytest.raises(TypeError, match="not contiguous 1-dimensional int16"):
        Engine().feed(Side.CALLER, pcm)


def test_an_hour_of_uneven_feeding_loses_no_sample() -> None:
    engine = Engine(tick_ms=200, ring_ms=4000, hold_ms=(0, 120))
    rng = np.random.default_rng(5)
    source = rng.integers(-9000, 9000, 48_000).astype(np.int16)
    offered = accepted = 0
    for _ in range(18_000):
        for side in Side:
            piece = source[: int(rng.integers(0, 9600))]
            offered += len(piece)
            accepted += engine.feed(side, piece)
        engine.advance()
        engine.drain()
    counts = engine.counts()
    assert counts.position == 3600 * 24_000
    assert counts.caller.accepted + counts.assistant.accepted == accepted < offered
    for side in Side:
        n = counts.of(side)
        assert n.accepted == n.played + n.discarded + n.queued
        assert n.played + n.idle + n.underrun + n.hold_added == counts.position
    total = counts.caller_only + counts.assistant_only + counts.overlap + counts.silence
    assert total == counts.position


def test_events_beyond_the_bound_of_one_drain_are_counted_not_kept() -> None:
    engine = Engine(tick_ms=200)
    beat = np.concatenate([tone(20), quiet(20)] * 5)
    for _ in range(1200):
        engine.feed(Side.CALLER, beat)
        engine.advance()
    lost = engine.counts().events_lost
    kept = engine.drain()
    # Each beat of 40 ms is one segment and two changes of the floor.
    assert len(kept) + lost == 1200 * 5 * 3
    assert lost > 0
    assert engine.drain() == []


def test_after_the_end_nothing_can_be_played_and_finishing_again_changes_nothing() -> None:
    engine = Engine()
    engine.feed(Side.CALLER, tone(20))
    engine.advance()
    engine.finish()
    events = engine.drain()
    engine.finish()
    assert engine.drain() == []
    assert [event.end for event in events if isinstance(event, SegmentEvent)] == [480]
    with pytest.raises(RuntimeError, match="finished"):
        engine.advance()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate_hz": 24_001}, "no whole number of samples"),
        ({"rate_hz": 22_050, "tick_ms": 20, "ring_ms": 2000, "detector": "webrtc"}, "webrtc"),
        ({"tick_ms": 0}, "tick of 0"),
        ({"tick_ms": 200, "ring_ms": 100}, "cannot hold a tick"),
        ({"hold_ms": (0, -1)}, "hold of -24"),
        ({"hold_ms": (30_000, 0)}, "hold of 720000"),
        ({"detector": "ears"}, 'detector "ears"'),
    ],
)
def test_settings_that_cannot_be_used_are_refused(
    options: dict[str, int | str | tuple[int, int]], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        Engine(**options)  # type: ignore[arg-type]


def test_more_ticks_than_the_ring_holds_cannot_be_played_at_once() -> None:
    engine = Engine(ring_ms=1000)
    engine.advance(50)
    with pytest.raises(ValueError, match="1 to 50 fit"):
        engine.advance(51)
    with pytest.raises(ValueError, match="1 to 50 fit"):
        engine.advance(2**61)
    with pytest.raises(ValueError, match="0 ticks"):
        engine.advance(0)
    assert engine.position == 24_000


def test_what_was_heard_stays_what_it_was_when_the_engine_goes_on() -> None:
    engine = Engine()
    engine.feed(Side.CALLER, tone(40))
    engine.advance()
    heard = engine.heard(Side.ASSISTANT)
    before = heard.copy()
    engine.advance()
    assert np.array_equal(heard, before)
    assert np.array_equal(engine.heard(Side.ASSISTANT), tone(40)[480:])
