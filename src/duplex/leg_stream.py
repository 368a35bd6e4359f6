"""A file's channels over the legs of a condition, piece by piece, in bounded memory.

Each channel is moved to a rate a line has, passed over its leg, and moved back; what the
caller is played comes back through its microphone in step. Any pieces give the same samples.
It opens no file: ``degrading.py`` feeds it and takes what it gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from duplex.active_level import LevelMeter, SpeechLevel
from duplex.audio_truth import LegTruth, LossMask, NoiseLevel, truth_of_levels
from duplex.conditions import (
    AcousticEcho,
    Bursts,
    Condition,
    Effect,
    PacketLoss,
    SideSpeech,
    Tics,
)
from duplex.line import RATES_HZ, Label, build_line, labels, sounds
from duplex.resample import Resampler
from duplex.sample_queue import SampleQueue
from duplex.values import Side, Span

Pcm = npt.NDArray[np.int16]
Mask = npt.NDArray[np.uint8]

_LEGS = ("uplink", "downlink")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What became of one channel: what was added, what was lost, what that came to."""

    side: Side
    effects: tuple[Effect, ...]
    mask: LossMask | None
    sounds: tuple[Label, ...]
    truth: LegTruth

    @property
    def name(self) -> str:
        return _LEGS[self.side]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The next samples of every channel: what comes out, the noise in it, packets lost."""

    out: tuple[Pcm, ...]
    noise: tuple[Pcm, ...]
    lost: tuple[Mask, ...]


def effects_of(condition: Condition, side: Side) -> tuple[Effect, ...]:
    """What a condition does to this side's speech."""
    return (condition.uplink, condition.downlink)[side]


class Levels:
    """The first of two passes: how loud each channel's speech is, at its line's rate."""

    def __init__(self, condition: Condition, rate_hz: int, channels: int) -> None:
        self.frames = 0
        self._rates = [_line_rate(effects_of(condition, Side(i)), rate_hz) for i in range(channels)]
        self._meters = [LevelMeter(line_hz) for line_hz in self._rates]
        self._resamplers = [Resampler(rate_hz, line_hz) for line_hz in self._rates]

    def push(self, block: Pcm) -> None:
        """Hear int16 of shape (n, channels)."""
        self.frames += len(block)
        for index, (meter, up) in enumerate(zip(self._meters, self._resamplers, strict=True)):
            meter.push(up.push(block[:, index]))

    def finish(self) -> tuple[SpeechLevel, ...]:
        """The level of each channel, all of it heard."""
        for meter, up in zip(self._meters, self._resamplers, strict=True):
            meter.push(up.finish())
        return tuple(meter.level() for meter in self._meters)


class Passage:
    """The second pass: all channels of a file over their legs, in step.

    ``levels`` are those of the whole file and ``frames`` its length; so much comes out.
    """

    def __init__(
        self,
        condition: Condition,
        levels: Sequence[SpeechLevel],
        frames: int,
        *,
        rate_hz: int,
        tick_ms: int,
        seed: int,
    ) -> None:
        self._ways = [
            _Way(
                effects_of(condition, Side(index)),
                level,
                frames,
                rate_hz=rate_hz,
                side=Side(index),
                hears_back=index == Side.CALLER and len(levels) == 2,
                tick_ms=tick_ms,
                seed=seed,
            )
            for index, level in enumerate(levels)
        ]

    def push(self, block: Pcm) -> Piece:
        """Pass int16 of shape (n, channels); what comes out may be more or less than that."""
        played: Pcm | None = None
        # The way back first: what the caller is played may come back through the microphone.
        for way in reversed(self._ways):
            played = way.push(block[:, way.side], played)
        return self._piece()

    def finish(self) -> Piece:
        """What is still on the way, down to the last sample."""
        played: Pcm | None = None
        for way in reversed(self._ways):
            played = way.finish(played)
        return self._piece()

    def legs(self) -> tuple[Leg, ...]:
        """What became of each channel, once all is finished."""
        return tuple(way.leg() for way in self._ways)

    def _piece(self) -> Piece:
        count = min(way.out.waiting for way in self._ways)
        return Piece(
            out=tuple(way.out.take(count) for way in self._ways),
            noise=tuple(way.noise.take(count) for way in self._ways),
            lost=tuple(way.take_lost() for way in self._ways),
        )


class _Way:
    """One channel over one leg, at the nearest rate a line has; a clean leg as it is."""

    def __init__(
        self,
        effects: tuple[Effect, ...],
        level: SpeechLevel,
        frames: int,
        *,
        rate_hz: int,
        side: Side,
        hears_back: bool,
        tick_ms: int,
        seed: int,
    ) -> None:
        self.side = side
        self.out, self.noise = SampleQueue(), SampleQueue()
        self._effects, self._level, self._left = effects, level, frames
        self._rate, self._line_hz = rate_hz, _line_rate(effects, rate_hz)
        self._tick = self._line_hz * tick_ms // 1000
        self._line = build_line(
            effects,
            rate_hz=self._line_hz,
            seed=seed,
            leg=int(side),
            speaker_dbov=level.active_dbov,
        )
        self._hears_back = hears_back
        self._up, self._far_up = (Resampler(rate_hz, self._line_hz) for _ in range(2))
        self._down, self._noise_down = (Resampler(self._line_hz, rate_hz) for _ in range(2))
        self._source, self._far = SampleQueue(), SampleQueue()
        self._lost, self._taken = [np.zeros(0, np.uint8)], 0
        self._sounds: list[Label] = []
        self._noise_level = NoiseLevel(_longest_sound(effects, self._line_hz))

    def push(self, source: Pcm, played: Pcm | None) -> Pcm:
        """Take the next of the source, and of what its microphone hears; give what comes out."""
        self._source.add(self._up.push(source))
        if played is not None:
            self._far.add(self._far_up.push(played))
        ready = self._source.waiting
        if self._hears_back:
            ready = min(ready, self._far.waiting)
        return self._back(*self._processed(ready - ready % self._tick))

    def finish(self, played: Pcm | None) -> Pcm:
        """Give the rest, so that as many samples have come out as went in."""
        self._source.add(self._up.finish())
        if played is not None:
            self._far.add(self._far_up.push(played))
            self._far.add(self._far_up.finish())
        out, noise = self._processed(self._source.waiting)
        given = self._back(out, noise)
        rest = self._back(self._down.finish(), self._noise_down.finish(), moved=True)
        missing = np.zeros(self._left, np.int16)
        self.out.add(missing)
        self.noise.add(missing)
        return np.concatenate((given, rest, missing))

    def take_lost(self) -> Mask:
        """A flag for each packet that began since this was asked last."""
        taken = np.concatenate(self._lost[self._taken :])
        self._lost[self._taken :] = [taken, np.zeros(0, np.uint8)]
        self._taken = len(self._lost) - 1
        return taken

    def leg(self) -> Leg:
        """What became of this channel."""
        mask = _mask(self._effects, np.concatenate(self._lost))
        truth = truth_of_levels(self._effects, self._level, self._noise_level.dbov(), mask)
        alone = not self._hears_back
        if alone and any(isinstance(effect, AcousticEcho) for effect in self._effects):
            reason = "acoustic_echo: there is no other side to hear"
            truth = replace(truth, ineffective=(*truth.ineffective, reason))
        return Leg(
            side=self.side,
            effects=self._effects,
            mask=mask,
            sounds=tuple(_moved(label, self._line_hz, self._rate) for label in self._sounds),
            truth=truth,
        )

    def _processed(self, count: int) -> tuple[Pcm, Pcm]:
        """What comes of the next ``count`` samples at the line's rate, and the noise in it."""
        source = self._source.take(count)
        far = self._far.take(count) if self._hears_back else None
        if self._line is None:
            noise = np.zeros(count, np.int16)
            self._noise_level.push(noise)
            return source, noise
        outs, noises, lost = [source[:0]], [source[:0]], [np.zeros(0, np.uint8)]
        for start in range(0, count, self._tick):
            piece = slice(start, start + self._tick)
            outs.append(self._line.process(source[piece], None if far is None else far[piece]))
            noises.append(self._line.noise())
            lost.append(self._line.mask())
            ended = labels(self._line, self._effects)
            self._sounds += ended
            self._noise_level.leave_out([Span(start=one.start, end=one.end) for one in ended])
        noise = np.concatenate(noises)
        self._noise_level.push(noise)
        self._lost.append(np.concatenate(lost))
        return np.concatenate(outs), noise

    def _back(self, out: Pcm, noise: Pcm, *, moved: bool = False) -> Pcm:
        """Put both out at the file's rate, never more samples than the file has."""
        if not moved:
            out, noise = self._down.push(out), self._noise_down.push(noise)
        out, noise = out[: self._left], noise[: self._left]
        self._left -= len(out)
        self.out.add(out)
        self.noise.add(noise)
        return out


def _line_rate(effects: Sequence[Effect], rate_hz: int) -> int:
    nearest = next((rate for rate in RATES_HZ if rate >= rate_hz), RATES_HZ[-1])
    return nearest if effects else rate_hz


def _longest_sound(effects: Sequence[Effect], rate_hz: int) -> int:
    """How long after its beginning a sound may be told at the latest."""
    takes = [
        take
        for effect in effects
        if isinstance(effect, Bursts | Tics | SideSpeech)
        for take in sounds(effect, rate_hz)
    ]
    return max(map(len, takes), default=0) + rate_hz


def _mask(effects: Sequence[Effect], lost: Mask) -> LossMask | None:
    for effect in effects:
        if isinstance(effect, PacketLoss):
            return LossMask.of(lost.astype(np.bool_), effect.packet_ms)
    return None


def _moved(label: Label, from_hz: int, to_hz: int) -> Label:
    return Label(
        effect=label.effect,
        kind=label.kind,
        start=label.start * to_hz // from_hz,
        end=label.end * to_hz // from_hz,
    )
