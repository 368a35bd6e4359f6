"""A recording in words: what the ears are given, whole, once, and where it lies."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex.intake import open_sides, told
from duplex.local.seams import VOICE_RATE_HZ, Pcm
from duplex.local.transcribing import (
    JOIN_MS,
    LONGEST_MS,
    MARGIN_MS,
    quietest,
    transcribe,
    windows,
)
from duplex.values import Side, Span
from duplex.wavfile import write_wav

RATE = VOICE_RATE_HZ
SECOND = RATE


class Ears:
    """Writes down what it was given; its words are the length in milliseconds."""

    def __init__(self, text: str | None = None, *, keep: bool = True) -> None:
        self.heard: list[Pcm] = []
        self._text = text
        self._keep = keep

    async def transcribe(self, pcm: Pcm) -> str:
        if self._keep:
            self.heard.append(pcm.copy())
        return f" {len(pcm) * 1000 // RATE} " if self._text is None else self._text

    async def close(self) -> None:
        return


def counting(seconds: float, rate: int = RATE) -> Pcm:
    """Samples that tell their own position."""
    return (np.arange(int(seconds * rate)) % 30_000).astype(np.int16)


def recording(folder: Path, caller: Pcm, assistant: Pcm, rate: int = RATE) -> Path:
    path = folder / "both.wav"
    write_wav(path, np.stack((caller, assistant), axis=1), rate)
    return path


async def words(
    path: Path, ears: Ears, caller: Sequence[Span], assistant: Sequence[Span] = ()
) -> dict[Side, list[tuple[int, int, str]]]:
    with ExitStack() as stack:
        sides = open_sides((path,), told("caller,assistant"), stack)
        found = await transcribe(sides, {Side.CALLER: caller, Side.ASSISTANT: assistant}, ears)
    return {
        side: [(item.span.start, item.span.end, item.text) for item in items]
        for side, items in found.items()
    }


def span(start: float, end: float) -> Span:
    return Span(start=round(start * SECOND), end=round(end * SECOND))


async def test_each_window_is_heard_once_with_its_margins(tmp_path: Path) -> None:
    caller, assistant = counting(12), -counting(12)
    ears = Ears()
    path = recording(tmp_path, caller, assistant)
    found = await words(path, ears, [span(1, 2), span(7.5, 9)], [span(3, 5)])
    assert found == {
        Side.CALLER: [(SECOND, 2 * SECOND, "1400"), (180_000, 9 * SECOND, "1900")],
        Side.ASSISTANT: [(3 * SECOND, 5 * SECOND, "2400")],
    }
    margin = MARGIN_MS * RATE // 1000
    wanted = [
        caller[SECOND - margin : 2 * SECOND + margin],
        assistant[3 * SECOND - margin : 5 * SECOND + margin],
        caller[180_000 - margin : 9 * SECOND + margin],
    ]
    assert sorted(map(len, ears.heard)) == sorted(map(len, wanted))
    for one in wanted:
        assert any(np.array_equal(one, heard) for heard in ears.heard)


async def test_speech_at_both_ends_of_the_file_is_heard(tmp_path: Path) -> None:
    ears = Ears()
    path = recording(tmp_path, counting(5), counting(5))
    found = await words(path, ears, [span(0, 1), span(4.5, 5)])
    assert [item[2] for item in found[Side.CALLER]] == ["1200", "700"]


async def test_a_span_beyond_the_end_of_the_file_ends_with_it(tmp_path: Path) -> None:
    path = recording(tmp_path, counting(5), counting(5))
    found = await words(path, Ears(), [span(4, 9), span(20, 21)])
    assert found[Side.CALLER] == [(4 * SECOND, 5 * SECOND, "1200")]


async def test_windows_without_words_leave_nothing(tmp_path: Path) -> None:
    path = recording(tmp_path, counting(3), counting(3))
    assert await words(path, Ears("  "), [span(1, 2)]) == {Side.CALLER: [], Side.ASSISTANT: []}


async def test_other_rates_are_heard_at_the_ears_own(tmp_path: Path) -> None:
    ears = Ears()
    path = recording(tmp_path, counting(3, 8_000), counting(3, 8_000), 8_000)
    found = await words(path, ears, [Span(start=8_000, end=16_000)])
    assert found[Side.CALLER] == [(8_000, 16_000, "1400")]


async def test_endless_speech_is_cut_where_it_is_quietest(tmp_path: Path) -> None:
    loud = np.full(60 * SECOND, 3_000, np.int16)
    loud[20 * SECOND : 20 * SECOND + SECOND // 5] = 0
    ears = Ears()
    path = recording(tmp_path, loud, loud)
    found = (await words(path, ears, [span(0, 60)]))[Side.CALLER]
    assert found[0][0] == 0
    assert abs(found[0][1] - 20.1 * SECOND) <= SECOND // 10
    assert [item[0] for item in found[1:]] == [item[1] for item in found[:-1]]
    assert found[-1][1] == 60 * SECOND
    assert max(map(len, ears.heard)) <= (LONGEST_MS + 2 * MARGIN_MS) * RATE // 1000


def test_the_cut_lies_in_the_last_seconds_that_fit() -> None:
    pcm = np.full(30 * SECOND, 500, np.int16)
    pcm[5 * SECOND : 6 * SECOND] = 0
    assert 18 * SECOND <= quietest(pcm, RATE) < 24 * SECOND


@given(
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 9_000)), max_size=12),
    st.integers(0, 1),
)
def test_windows_cover_all_speech_and_never_grow_too_long(
    gaps: list[tuple[int, int]], shuffled: int
) -> None:
    speech, end = [], 0
    for gap, length in gaps:
        speech.append(Span(start=end + gap, end=end + gap + length))
        end += gap + length
    found = windows(speech[:: -1 if shuffled else 1], 1_000)
    assert sum(one.length for one in found) >= sum(one.length for one in speech)
    assert all(any(w.start <= s.start and s.end <= w.end for w in found) for s in speech)
    assert all(one.length <= LONGEST_MS for one in found)
    for left, right in pairwise(found):
        own = next(s for s in speech if s.start == right.start)
        assert own.start - left.end >= JOIN_MS or own.end - left.start > LONGEST_MS


async def test_memory_does_not_grow_with_the_recording(tmp_path: Path) -> None:
    async def peak(seconds: int) -> int:
        silence = np.zeros(seconds * 8_000, np.int16)
        (tmp_path / str(seconds)).mkdir()
        path = recording(tmp_path / str(seconds), silence, silence, 8_000)
        speech = [Span(start=s * 8_000, end=(s + 1) * 8_000) for s in range(0, seconds, 5)]
        tracemalloc.start()
        await words(path, Ears("", keep=False), speech, speech)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert await peak(600) < 1.5 * await peak(120)


async def test_progress_tells_the_seconds_heard(tmp_path: Path) -> None:
    told_so: list[float] = []
    path = recording(tmp_path, counting(9), counting(9))
    with ExitStack() as stack:
        sides = open_sides((path,), told("caller,assistant"), stack)
        nothing: dict[Side, list[Span]] = {side: [] for side in Side}
        await transcribe(sides, nothing, Ears(), told_so.append)
    assert told_so[-1] == pytest.approx(9)
    assert told_so == sorted(told_so)
