"""Both sides of a conversation as one stream of equal blocks at one rate.

Takes one file of two channels, or two files of one. Rates the detectors cannot
take are moved to 48 kHz; of two files the longer one is cut where the shorter
ends, because what was not recorded must not count as silence. It must never
hold more than a few seconds. ``listen.py`` drives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from duplex.errors import InputError
from duplex.intake.roles import ASSUMED, Roles, by_name
from duplex.intake.sound import Pcm, Sound, open_sound
from duplex.resample import Resampler
from duplex.sample_queue import SampleQueue
from duplex.values import Side

BLOCK_S = 4
OTHER_RATE_HZ = 48_000
_FRAME_MULTIPLE_HZ = 400
"""Rates that have a whole number of samples in 2.5 ms are heard as they are."""

LEFT_OUT_S = 0.5
"""What one of two files is longer by is only noted below this; above, it is told as a fault."""

Both = tuple[Pcm, Pcm]


def rate_heard(rate_hz: int) -> int:
    """The rate at which audio of ``rate_hz`` is measured."""
    fits = rate_hz % _FRAME_MULTIPLE_HZ == 0 and rate_hz <= OTHER_RATE_HZ
    return rate_hz if fits else OTHER_RATE_HZ


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The end of one file that the other side has nothing beside; nobody measures it."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSides:
    """An open recording: one or two sounds, who is who, and the rate it is heard at.

    ``limit`` ends it after so many samples at that rate; None when the files do.
    ``left_out`` is complete once all blocks are read.
    """

    sounds: tuple[Sound, ...]
    roles: Roles
    rate_hz: int
    limit: int | None = None
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def file_rate_hz(self) -> int:
        """Rate of the file; the higher one of two."""
        return max(sound.rate_hz for sound in self.sounds)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong with the files, complete once all blocks are read."""
        return tuple(text for sound in self.sounds for text in sound.warnings)

    def blocks(self) -> Iterator[Both]:
        """Yield (caller, assistant), int16 of one length: 4 s each, the last one less."""
        feeds = self._feeds()
        size = BLOCK_S * self.rate_hz
        given = 0
        while all(feed.fill(size) for feed in feeds):
            count = min(size, *(feed.waiting for feed in feeds))
            if self.limit is not None:
                count = min(count, self.limit - given)
                if not count:
                    return
            given += count
            pair = [feed.take(count) for feed in feeds]
            yield pair[self.roles.index(Side.CALLER)], pair[self.roles.index(Side.ASSISTANT)]
        self._say_what_is_left(feeds)

    def _feeds(self) -> tuple[_Feed, _Feed]:
        if len(self.sounds) == 2:
            first, second = (_Feed(_alone(s), s.rate_hz, self.rate_hz) for s in self.sounds)
            return first, second
        sound = self.sounds[0]
        fork = _Fork(sound.blocks(BLOCK_S * sound.rate_hz))
        first, second = (_Feed(fork.side(i), sound.rate_hz, self.rate_hz) for i in (0, 1))
        return first, second

    def _say_what_is_left(self, feeds: tuple[_Feed, _Feed]) -> None:
        if len(self.sounds) == 1:
            return
        left = [feed.rest() / self.rate_hz for feed in feeds]
        longer = int(left[1] > left[0])
        name = self.sounds[longer].path.name
        if left[longer] >= LEFT_OUT_S:
            self.left_out.append(LeftOut(name=name, seconds=left[longer]))
        elif left[longer] >= 0.001:
            self.sounds[longer].warnings.append(
                f"{name}: is {left[longer]:.3f} s longer than the other side; that part is not "
                "measured"
            )


def open_sides(paths: tuple[Path, ...], roles: Roles | None, stack: ExitStack) -> TwoSides:
    """Open a recording of two channels, or two of one; ``stack`` closes it.

    Raises:
        InputError: a file cannot be used, or does not hold two sides.
    """
    assert len(paths) in (1, 2), paths
    sounds = tuple(stack.enter_context(open_sound(path)) for path in paths)
    for sound in sounds:
        _check_channels(sound, 2 // len(sounds))
    guessed = by_name([path.stem for path in paths]) if len(paths) == 2 else ASSUMED
    rates = {rate_heard(sound.rate_hz) for sound in sounds}
    return TwoSides(sounds=sounds, roles=roles or guessed, rate_hz=max(rates))


def _check_channels(sound: Sound, wanted: int) -> None:
    if sound.channels == wanted:
        return
    name = sound.path
    if sound.channels == 1:
        raise InputError(
            f"{name} has one channel, in which the sides cannot be told apart; "
            "record two channels, or give two files, one of each side"
        )
    if wanted == 1:
        raise InputError(
            f"{name} has {sound.channels} channels and was given with another file; "
            "a recording is one file of two channels or two files of one"
        )
    raise InputError(
        f"{name} has {sound.channels} channels, wanted 2: keep those of caller and assistant, "
        "e.g. ffmpeg -i FILE -af 'pan=stereo|c0=c0|c1=c1' out.wav"
    )


def _alone(sound: Sound) -> Iterator[Pcm]:
    for block in sound.blocks(BLOCK_S * sound.rate_hz):
        yield block[:, 0]


class _Fork:
    """The two channels of one stream, read in step."""

    def __init__(self, blocks: Iterator[Pcm]) -> None:
        self._blocks = blocks
        self._kept: list[list[Pcm]] = [[], []]

    def side(self, index: int) -> Iterator[Pcm]:
        while True:
            if not self._kept[index]:
                block = next(self._blocks, None)
                if block is None:
                    return
                for channel in (0, 1):
                    self._kept[channel].append(np.ascontiguousarray(block[:, channel]))
            yield self._kept[index].pop(0)


class _Feed:
    """One side, moved to the rate heard, handed out in the sizes asked for."""

    def __init__(self, blocks: Iterator[Pcm], from_hz: int, to_hz: int) -> None:
        self._blocks = blocks
        self._resampler = None if from_hz == to_hz else Resampler(from_hz, to_hz)
        self._queue = SampleQueue()
        self._over = False

    @property
    def waiting(self) -> int:
        return self._queue.waiting

    def fill(self, size: int) -> bool:
        """Read until ``size`` samples wait or the file is over; whether any do."""
        while self.waiting < size and not self._over:
            self._queue.add(self._next())
        return self.waiting > 0

    def take(self, count: int) -> Pcm:
        """The next ``count`` samples, which must be waiting."""
        return self._queue.take(count)

    def rest(self) -> int:
        """Read the file to its end and count what nobody took, keeping nothing."""
        left = self._queue.clear()
        while not self._over:
            left += len(self._next())
        return left

    def _next(self) -> Pcm:
        block = next(self._blocks, None)
        if block is not None:
            return block if self._resampler is None else self._resampler.push(block)
        self._over = True
        return np.zeros(0, np.int16) if self._resampler is None else self._resampler.finish()
