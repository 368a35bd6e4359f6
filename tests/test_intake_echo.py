"""What is the other channel heard again, and what only sounds alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from duplex.intake.echo import Echo, EchoFinder
from duplex.values import Segment, Side, Span
from stimuli import RATE, Floats, Seconds, noise, pcm, side, speechlike, talk, voiced

SPANS: tuple[Seconds, ...] = ((1.0, 3.0), (5.0, 6.2), (9.0, 11.5), (14.0, 15.0))
LENGTH = 17.0


def found(
    caller: Floats,
    assistant: Floats,
    caller_spans: Sequence[Seconds],
    assistant_spans: Sequence[Seconds],
    rate: int = RATE,
    block: float = 1.7,
) -> tuple[Echo, ...]:
    """What a finder lists when a detector found just these spans."""
    segments = [
        Segment(side=who, span=Span(start=round(a * rate), end=round(b * rate)))
        for who, spans in ((Side.CALLER, caller_spans), (Side.ASSISTANT, assistant_spans))
        for a, b in spans
    ]
    segments.sort(key=lambda s: s.span.end)
    finder, told = EchoFinder(rate), 0
    left, right = pcm(caller), pcm(assistant)
    step = round(block * rate)
    for at in range(0, len(left), step):
        finder.push(left[at : at + step], right[at : at + step])
        while told < len(segments) and segments[told].span.end <= at + step:
            finder.judge(segments[told])
            told += 1
    return finder.echoes(segments)[0]


def later(wave: Floats, seconds: float, rate: int = RATE) -> Floats:
    return np.concatenate([np.zeros(round(seconds * rate)), wave])[: len(wave)]


def shifted(spans: Sequence[Seconds], seconds: float) -> list[Seconds]:
    return [(a + seconds, b + seconds) for a, b in spans]


@pytest.mark.parametrize("lag", [0.0, 0.012, 0.12, 0.48])
@pytest.mark.parametrize("rate", [8_000, 24_000, 48_000])
def test_a_quiet_late_copy_is_an_echo_at_its_lag(lag: float, rate: int) -> None:
    assistant = talk(SPANS, LENGTH, rate=rate)
    caller = 0.2 * later(assistant, lag, rate) + noise(LENGTH, -75, rate=rate)
    (echo,) = found(caller, assistant, shifted(SPANS, lag), SPANS, rate)
    assert echo.side is Side.CALLER
    assert echo.lag_ms == pytest.approx(lag * 1000, abs=1)
    assert echo.gain_db == pytest.approx(-14, abs=1)
    assert [c.span.start for c in echo.segments] == [round((a + lag) * rate) for a, _ in SPANS]
    assert all(c.correlation > 0.9 for c in echo.segments)


def test_a_filtered_and_inverted_echo_is_one_too() -> None:
    assistant = talk(SPANS, LENGTH)
    room = np.exp(-np.arange(600) / 80) * np.random.default_rng(3).normal(0, 1, 600)
    room[0] = 3.0
    caller = -0.1 * later(np.convolve(assistant, room)[: len(assistant)], 0.2)
    (echo,) = found(caller, assistant, shifted(SPANS, 0.2), SPANS)
    assert echo.lag_ms == pytest.approx(200, abs=4)


def test_own_speech_beside_an_echo_is_kept() -> None:
    own: list[Seconds] = [(3.5, 4.5), (12.0, 13.5)]
    assistant = talk(SPANS, LENGTH)
    caller = talk(own, LENGTH, seed=5) + 0.2 * later(assistant, 0.1)
    (echo,) = found(caller, assistant, [*own, *shifted(SPANS, 0.1)], SPANS)
    assert len(echo.segments) == 4
    assert all(c.span.start not in (84_000, 288_000) for c in echo.segments)


def test_talking_at_once_is_no_echo() -> None:
    inside: list[Seconds] = [(1.5, 2.5), (5.2, 6.0), (9.5, 11.0), (14.2, 14.9)]
    assert found(talk(inside, LENGTH, seed=8), talk(SPANS, LENGTH), inside, SPANS) == ()


@pytest.mark.parametrize("syllables", [True, False])
@pytest.mark.parametrize("floor", [None, -75.0])
def test_equal_stimuli_talking_at_once_are_no_echo(syllables: bool, floor: float | None) -> None:
    def channel(spans: Sequence[Seconds], seed: int) -> Floats:
        waves = ((a, voiced(b - a, syllables=syllables)) for a, b in spans)
        bed = 0.0 if floor is None else noise(LENGTH, floor, seed=seed)
        return side(waves, LENGTH) + bed

    inside: list[Seconds] = [(1.5, 2.5), (5.25, 6.0), (9.5, 11.0), (14.25, 14.9)]
    assert found(channel(inside, 1), channel(SPANS, 2), inside, SPANS) == ()


@pytest.mark.parametrize("syllables", [True, False])
def test_an_echo_of_a_steady_stimulus_is_told_by_its_starts_and_ends(syllables: bool) -> None:
    waves = [(a, voiced(b - a, syllables=syllables)) for a, b in SPANS]
    assistant = side(waves, LENGTH)
    caller = 0.3 * later(assistant, 0.15)
    (echo,) = found(caller, assistant, shifted(SPANS, 0.15), SPANS)
    assert (echo.side, len(echo.segments)) == (Side.CALLER, 4)
    assert echo.lag_ms == pytest.approx(150, abs=1)


def test_two_copies_are_too_few() -> None:
    assistant = talk(SPANS[:2], LENGTH)
    caller = 0.2 * later(assistant, 0.1)
    assert found(caller, assistant, shifted(SPANS[:2], 0.1), SPANS[:2]) == ()


def test_copies_that_are_less_than_half_of_the_speech_are_left_in() -> None:
    short: list[Seconds] = [(1.0, 1.4), (5.0, 5.4), (9.0, 9.4)]
    own: list[Seconds] = [(2.0, 4.5)]
    assistant = talk(short, LENGTH)
    caller = talk(own, LENGTH, seed=4) + 0.2 * later(assistant, 0.1)
    assert found(caller, assistant, [*own, *shifted(short, 0.1)], short) == ()


def test_copies_at_different_lags_are_no_echo() -> None:
    lags = (0.05, 0.15, 0.3, 0.45)
    assistant = talk(SPANS, LENGTH)
    caller = sum(
        (
            0.3 * later(side([(a, speechlike(b - a, i))], LENGTH), lag)
            for i, ((a, b), lag) in enumerate(zip(SPANS, lags, strict=True))
        ),
        np.zeros_like(assistant),
    )
    spans = [(a + lag, b + lag) for (a, b), lag in zip(SPANS, lags, strict=True)]
    assert found(caller, assistant, spans, SPANS) == ()


def test_crosstalk_both_ways_names_only_the_quieter_copies() -> None:
    own: list[Seconds] = [(3.4, 4.6), (7.0, 8.5), (12.0, 13.5)]
    mine, theirs = talk(own, LENGTH, seed=6), talk(SPANS, LENGTH)
    everything = sorted([*own, *SPANS])
    echoes = found(mine + 0.2 * theirs, theirs + 0.2 * mine, everything, everything)
    starts = {e.side: [c.span.start / RATE for c in e.segments] for e in echoes}
    assert starts[Side.CALLER] == [a for a, _ in SPANS]
    assert set(starts.get(Side.ASSISTANT, ())) <= {a for a, _ in own}


def test_the_size_of_blocks_does_not_matter() -> None:
    assistant = talk(SPANS, LENGTH)
    caller = 0.2 * later(assistant, 0.12)
    one = found(caller, assistant, shifted(SPANS, 0.12), SPANS, block=0.31)
    assert one == found(caller, assistant, shifted(SPANS, 0.12), SPANS, block=4.0)
