"""Where utterances begin and end, through noise, codecs, lost packets and clicks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from duplex.local.endpoint import BLOCK, LONGEST, Edge, Endpointer, Kind
from duplex.local.seams import Pcm
from voice_fakes import RATE, scene, syllables, tone

MS = RATE // 1000
SPANS = ((1000, 2450), (3500, 4000), (5200, 7950))


def noise(length: int, rms: float, seed: int = 5) -> Pcm:
    drawn: Pcm = np.rint(np.random.default_rng(seed).normal(0, rms, length)).astype(np.int16)
    return drawn


def mu_law(pcm: Pcm) -> Pcm:
    """There and back through 8-bit companding (continuous law, rounded)."""
    x = pcm.astype(float) / 32768
    code = np.rint(np.sign(x) * np.log1p(255 * np.abs(x)) / np.log(256) * 127)
    back = np.sign(code) * (256 ** (np.abs(code) / 127) - 1) / 255
    decoded: Pcm = np.rint(back * 32767).astype(np.int16)
    return decoded


def follow(pcm: Pcm) -> list[Edge]:
    ends = Endpointer()
    blocks = pcm[: len(pcm) // BLOCK * BLOCK].reshape(-1, BLOCK)
    return [edge for block in blocks if (edge := ends.push(block)) is not None]


def spans(edges: list[Edge]) -> list[tuple[float, float]]:
    return [(edge.start / MS, edge.end / MS) for edge in edges if edge.kind is Kind.ENDED]


LINES: dict[str, Callable[[Pcm], Pcm]] = {
    "clean": lambda pcm: pcm,
    "line noise at -60 dBFS": lambda pcm: pcm + noise(len(pcm), 33),
    "white noise at 20 dB": lambda pcm: pcm + noise(len(pcm), 400),
    "mu-law": lambda pcm: mu_law(pcm + noise(len(pcm), 12)),
    "mu-law and noise": lambda pcm: mu_law(pcm + noise(len(pcm), 200)),
    "constant offset": lambda pcm: pcm + 300,
    "12 dB quieter": lambda pcm: pcm // 4,
}


@pytest.mark.parametrize("line", LINES)
def test_every_utterance_is_found_within_20_ms(line: str) -> None:
    heard = LINES[line](scene(9500, *SPANS)).astype(np.int16)
    found = spans(follow(heard))
    assert len(found) == len(SPANS), found
    for (start, end), (true_start, true_end) in zip(found, SPANS, strict=True):
        assert abs(start - true_start) <= 20
        assert abs(end - true_end) <= 20


def test_noise_alone_is_no_speech() -> None:
    assert follow(noise(RATE * 10, 400)) == []


def test_noise_that_sets_in_is_got_used_to_within_three_seconds() -> None:
    quiet, loud = noise(RATE * 2, 10), noise(RATE * 12, 400)
    pcm = np.concatenate([quiet, loud])
    pcm[RATE * 8 : RATE * 9] += syllables(1000)
    found = [(start, end) for start, end in spans(follow(pcm)) if start > 2100]
    assert len(found) == 1
    assert abs(found[0][0] - 8000) <= 20


def test_lost_packets_in_noise_are_no_speech() -> None:
    pcm = noise(RATE * 10, 400)
    for start in range(RATE // 2, len(pcm) - RATE, RATE // 3):
        pcm[start : start + 2 * BLOCK] = 0
    assert follow(pcm) == []


def test_an_end_is_told_500_ms_after_it_and_dated_back() -> None:
    ends = Endpointer()
    pcm = scene(4000, (500, 1500))
    for block in pcm.reshape(-1, BLOCK):
        edge = ends.push(block)
        if edge is not None and edge.kind is Kind.ENDED:
            break
    assert abs(ends.position / MS - 2000) <= 20
    assert abs(edge.end / MS - 1500) <= 20  # type: ignore[union-attr]


def test_a_pause_within_an_utterance_does_not_end_it() -> None:
    assert len(spans(follow(scene(4000, (500, 1200), (1650, 2450))))) == 1


def test_two_utterances_600_ms_apart_are_two() -> None:
    assert len(spans(follow(scene(4000, (500, 1200), (1800, 2500))))) == 2


def test_speech_after_a_pause_is_a_new_burst_of_the_same_utterance() -> None:
    ends = Endpointer()
    for block in scene(2400, (500, 1200), (1600, 2400)).reshape(-1, BLOCK):
        ends.push(block)
    assert ends.speaking
    assert abs(ends.start / MS - 500) <= 20
    assert abs(ends.burst / MS - 1600) <= 20


def test_a_click_is_nothing_and_a_knock_is_dropped() -> None:
    assert follow(scene(2000, (500, 515))) == []
    kinds = [edge.kind for edge in follow(scene(2000, (500, 590)))]
    assert kinds == [Kind.BEGAN, Kind.DROPPED]


def test_an_utterance_of_120_ms_counts() -> None:
    pcm = scene(2000)
    pcm[500 * MS : 630 * MS] = tone(130)
    assert len(spans(follow(pcm))) == 1


def test_endless_speech_is_ended_at_the_longest_and_begins_again() -> None:
    found = spans(follow(scene(40_000, (500, 38_950))))
    assert len(found) == 2
    assert found[0][1] - found[0][0] <= LONGEST / MS
    assert 0 <= found[1][0] - found[0][1] <= 60


def test_speech_from_the_first_sample_is_found_by_its_first_dip() -> None:
    [(start, end)] = spans(follow(scene(3000, (0, 1450))))
    assert start <= 160  # less than the margin that goes to the ears with it
    assert abs(end - 1450) <= 20


def behind(length: int, rms: float) -> Pcm:
    """Voices in the background: sound that rises and falls and is never gone for long."""
    drawn = np.random.default_rng(11)
    levels = np.exp(drawn.normal(0, 0.9, length // (120 * MS) + 2))
    rising = np.interp(np.arange(length), np.arange(len(levels)) * 120 * MS, levels)
    talking: Pcm = np.rint(noise(length, rms, seed=3) * rising).astype(np.int16)
    return talking


def test_voices_in_the_background_do_not_hold_a_turn() -> None:
    turns = ((6000, 8500), (12_000, 13_500), (20_000, 23_000))
    heard = scene(27_000, *turns).astype(np.int32) + behind(27_000 * MS, 150)
    found = spans(follow(np.clip(heard, -32768, 32767).astype(np.int16)))
    for start, end in turns[1:]:
        assert any(abs(a - start) <= 150 and abs(b - end) <= 700 for a, b in found), found
    assert not any(b - a > 6000 for a, b in found if a > 5000), found


@pytest.mark.parametrize("length", [12, 25])
def test_who_speaks_for_long_is_not_taken_for_the_background(length: int) -> None:
    heard = scene(length * 1000 + 3000, (1000, (length + 1) * 1000))
    [(start, end)] = spans(follow(heard))
    assert abs(start - 1000) <= 20
    assert abs(end - (length + 1) * 1000) <= 20
