"""Two sides from one file or two: roles, rates, lengths, order."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from duplex.errors import InputError
from duplex.intake import Roles, TwoSides, open_sides, told
from duplex.intake.roles import by_name
from duplex.intake.sound import Pcm
from duplex.intake.two_sides import BLOCK_S, LeftOut, rate_heard
from duplex.resample import resample
from duplex.values import Side
from stimuli import RATE, Floats, pcm, save, speechlike

CALLER, ASSISTANT = speechlike(9.5, 1), speechlike(9.5, 2)


def heard(*paths: Path, roles: Roles | None = None) -> tuple[TwoSides, Pcm, Pcm]:
    with ExitStack() as stack:
        sides = open_sides(tuple(paths), roles, stack)
        blocks = list(sides.blocks())
    assert all(len(a) == len(b) <= BLOCK_S * sides.rate_hz for a, b in blocks)
    caller, assistant = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return sides, caller, assistant


def test_the_first_channel_is_the_caller_and_that_is_said(tmp_path: Path) -> None:
    sides, caller, assistant = heard(save(tmp_path / "a.wav", CALLER, ASSISTANT))
    assert np.array_equal(caller, pcm(CALLER))
    assert np.array_equal(assistant, pcm(ASSISTANT))
    assert "first channel is the caller (assumed" in sides.roles.sentence()


def test_channels_are_swapped_when_told(tmp_path: Path) -> None:
    path = save(tmp_path / "a.wav", ASSISTANT, CALLER)
    sides, caller, _ = heard(path, roles=told("assistant, caller"))
    assert np.array_equal(caller, pcm(CALLER))
    assert sides.roles.sentence() == "the first channel is the assistant (as told)"


@pytest.mark.parametrize(
    "text", ["", "caller", "caller,caller", "left,right", "caller,assistant,x"]
)
def test_other_channel_names_are_refused(text: str) -> None:
    with pytest.raises(InputError, match='wanted "caller,assistant"'):
        told(text)


@pytest.mark.parametrize(
    ("names", "order", "source"),
    [
        (("call_agent", "call_customer"), (Side.ASSISTANT, Side.CALLER), "name"),
        (("a-user", "a-bot"), (Side.CALLER, Side.ASSISTANT), "name"),
        (("userAudio", "x"), (Side.CALLER, Side.ASSISTANT), "name"),
        (("x", "customer"), (Side.ASSISTANT, Side.CALLER), "name"),
        (("one", "two"), (Side.CALLER, Side.ASSISTANT), "assumed"),
        (("agent1", "agent2"), (Side.CALLER, Side.ASSISTANT), "assumed"),
        (("agent_caller", "b"), (Side.CALLER, Side.ASSISTANT), "assumed"),
        (("maintain", "botany"), (Side.CALLER, Side.ASSISTANT), "assumed"),
    ],
)
def test_names_of_two_files_tell_who_is_who(
    names: tuple[str, str], order: tuple[Side, Side], source: str
) -> None:
    roles = by_name(names)
    assert (roles.order, roles.source) == (order, source)


def test_two_files_of_one_channel_are_one_recording(tmp_path: Path) -> None:
    first = save(tmp_path / "call_assistant.wav", ASSISTANT)
    second = save(tmp_path / "call_caller.flac", CALLER)
    sides, caller, assistant = heard(first, second)
    assert np.array_equal(caller, pcm(CALLER))
    assert np.array_equal(assistant, pcm(ASSISTANT))
    assert sides.warnings == ()


def test_the_longer_of_two_files_is_cut_and_that_is_said(tmp_path: Path) -> None:
    short = CALLER[: 5 * RATE + 77]
    sides, caller, assistant = heard(
        save(tmp_path / "caller.wav", short), save(tmp_path / "agent.wav", ASSISTANT)
    )
    assert np.array_equal(caller, pcm(short))
    assert np.array_equal(assistant, pcm(ASSISTANT)[: len(short)])
    assert sides.left_out == [
        LeftOut(name="agent.wav", seconds=len(ASSISTANT) / RATE - len(short) / RATE)
    ]
    assert sides.warnings == ()


def test_a_few_samples_more_are_only_noted(tmp_path: Path) -> None:
    sides, _, assistant = heard(
        save(tmp_path / "caller.wav", CALLER), save(tmp_path / "agent.wav", ASSISTANT[:-2_000])
    )
    assert len(assistant) == len(ASSISTANT) - 2_000
    assert sides.left_out == []
    assert sides.warnings == (
        f"caller.wav: is {2_000 / RATE:.3f} s longer than the other side; that part is not "
        "measured",
    )


def test_two_files_of_different_rates_are_heard_at_the_higher_one(tmp_path: Path) -> None:
    low = speechlike(3.0, 7, rate=8_000)
    sides, caller, assistant = heard(
        save(tmp_path / "a.wav", low, rate=8_000), save(tmp_path / "b.wav", ASSISTANT[: 3 * RATE])
    )
    assert (sides.rate_hz, sides.file_rate_hz) == (RATE, RATE)
    assert np.array_equal(caller, resample(pcm(low), 8_000, RATE))
    assert np.array_equal(assistant, pcm(ASSISTANT)[: 3 * RATE])


@pytest.mark.parametrize(
    ("rate_hz", "wanted"),
    [(8_000, 8_000), (11_025, 48_000), (16_000, 16_000), (22_050, 48_000), (24_000, 24_000),
     (32_000, 32_000), (44_100, 48_000), (48_000, 48_000), (96_000, 48_000), (192_000, 48_000)],
)  # fmt: skip
def test_rates_the_detectors_cannot_take_are_moved_to_48_khz(
    tmp_path: Path, rate_hz: int, wanted: int
) -> None:
    assert rate_heard(rate_hz) == wanted
    wave = speechlike(5.0, 3, rate=rate_hz)
    sides, caller, assistant = heard(save(tmp_path / "a.wav", wave, wave / 2, rate=rate_hz))
    assert sides.rate_hz == wanted
    assert abs(len(caller) - 5 * wanted) <= 1
    moved = pcm(wave) if rate_hz == wanted else resample(pcm(wave), rate_hz, wanted)
    assert np.array_equal(caller, moved)
    assert np.abs(assistant.astype(int) * 2 - caller).max() <= 4


def many(count: int) -> list[Floats]:
    return [CALLER[:RATE]] * count


@pytest.mark.parametrize(
    ("channels", "words"),
    [(1, "cannot be told apart; record two channels"), (3, "3 channels, wanted 2"), (6, "ffmpeg")],
)
def test_other_numbers_of_channels_are_refused_with_the_remedy(
    tmp_path: Path, channels: int, words: str
) -> None:
    path = save(tmp_path / "a.wav", *many(channels))
    with ExitStack() as stack, pytest.raises(InputError, match=words):
        open_sides((path,), None, stack)


def test_a_stereo_file_cannot_be_one_of_two(tmp_path: Path) -> None:
    paths = (save(tmp_path / "a.wav", *many(2)), save(tmp_path / "b.wav", *many(1)))
    with ExitStack() as stack, pytest.raises(InputError, match="given with another file"):
        open_sides(paths, None, stack)


def test_an_empty_file_gives_no_blocks(tmp_path: Path) -> None:
    path = save(tmp_path / "a.wav", CALLER[:0], CALLER[:0])
    with ExitStack() as stack:
        assert list(open_sides((path,), None, stack).blocks()) == []
