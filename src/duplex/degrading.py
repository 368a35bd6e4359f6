"""``duplex degrade``: a condition applied to a file, as it would be in a call.

A file of one channel is a caller and takes the uplink; of two, the caller and the
assistant, and each takes its own leg. What comes out has the rate, channels and
length that went in, and depends on nothing but the arguments: not on the clock, not
on ``--tick-ms``. Levels asked for against the speaker are met against this file's
own active level, so that its speech stays as loud as it was: the file is heard once
for that and then passed, both in pieces, so that its length takes no memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from duplex import conditions
from duplex.conditions import Condition, PacketLoss
from duplex.errors import InputError
from duplex.inputs import exists
from duplex.leg_stream import Leg, Levels, Passage, Piece, effects_of
from duplex.recording.line_stems import LOSS, NOISE, LegStems, LegTick, LineStems
from duplex.recording.recorder import ASSISTANT_SOURCE, CALLER_SOURCE
from duplex.run_folder import RunFolder
from duplex.screen import plain
from duplex.values import Json, Side
from duplex.wavfile import Wav, WavWriter, open_wav

Pcm = npt.NDArray[np.int16]

_BLOCK_S = 4
_TICK_MS = (10, 1_000)
_SOUNDS = "sounds.json"
_SOURCES = (CALLER_SOURCE, ASSISTANT_SOURCE)
_STEMS = (*_SOURCES, NOISE, LOSS, _SOUNDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradedLeg(Leg):
    """One channel before and after, and the noise in it."""

    source: Pcm
    out: Pcm
    noise: Pcm


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A file, what to do to it and where to."""

    source: Path
    out: Path
    stems: Path | None
    condition: Condition
    tick_ms: int
    seed: int

    @property
    def files(self) -> list[Path]:
        """Every file this may write."""
        return [self.out, *((self.stems / name for name in _STEMS) if self.stems else ())]


def command(
    source: Path,
    out: Path,
    *,
    condition: Sequence[str],
    tick_ms: int,
    seed: int,
    stems: Path | None,
    as_json: bool,
    console: Console,
) -> int:
    """Degrade a file and say what was achieved; returns the exit code."""
    if not _TICK_MS[0] <= tick_ms <= _TICK_MS[1]:
        raise InputError(f"tick-ms {tick_ms} is outside {_TICK_MS[0]} to {_TICK_MS[1]}")
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed} is outside 0 to 2^63 − 1")
    wanted = conditions.parse(condition)
    asked = _Asked(
        source=source, out=out, stems=stems, condition=wanted, tick_ms=tick_ms, seed=seed
    )
    for path in asked.files:
        if exists(path):
            raise InputError(f"{path} exists already, wanted a new file")
    shown = f"degrading {plain(str(source))}"
    with console.status(shown) if console.is_terminal else nullcontext():
        legs = _file_degraded(asked)
    told = _told(wanted, legs, seed)
    if as_json:
        print(json.dumps(told))
    for line in _sentences(legs):
        console.print(plain(line))
    return 0


def degrade(
    wav: Wav, condition: Condition, *, tick_ms: int = 200, seed: int = 7, name: str = "the file"
) -> tuple[DegradedLeg, ...]:
    """Pass every channel over its leg.

    Raises:
        InputError: the file has more than two channels, or one and a condition on
            the downlink.
    """
    _check_channels(condition, wav.channels, name)
    levels = Levels(condition, wav.rate_hz, wav.channels)
    levels.push(wav.samples)
    way = Passage(
        condition, levels.finish(), wav.frames, rate_hz=wav.rate_hz, tick_ms=tick_ms, seed=seed
    )
    pieces = [way.push(wav.samples), way.finish()]
    return tuple(
        DegradedLeg(
            side=leg.side,
            effects=leg.effects,
            mask=leg.mask,
            sounds=leg.sounds,
            truth=leg.truth,
            source=wav.channel(leg.side),
            out=np.concatenate([piece.out[leg.side] for piece in pieces]),
            noise=np.concatenate([piece.noise[leg.side] for piece in pieces]),
        )
        for leg in way.legs()
    )


def _check_channels(condition: Condition, channels: int, name: str) -> None:
    if channels > 2:
        raise InputError(f"{name} has {channels} channels, wanted 1 (caller) or 2 (and agent)")
    if channels == 1 and condition.downlink:
        raise InputError(f"{name} has one channel, the caller's; a downlink condition wants two")


# -- a file, read twice --------------------------------------------------------


def _file_degraded(asked: _Asked) -> tuple[Leg, ...]:
    """Write everything that was asked for, all of it or none."""
    with open_wav(asked.source) as first:
        _check_channels(asked.condition, first.channels, str(asked.source))
        rate_hz, channels = first.rate_hz, first.channels
        levels = Levels(asked.condition, rate_hz, channels)
        for block in first.blocks(_BLOCK_S * rate_hz):
            levels.push(block)
    way = Passage(
        asked.condition,
        levels.finish(),
        levels.frames,
        rate_hz=rate_hz,
        tick_ms=asked.tick_ms,
        seed=asked.seed,
    )
    with _all_or_none(asked.files), ExitStack() as stack:
        into = _Written(asked, rate_hz, channels, stack)
        with open_wav(asked.source) as second:
            for block in _as_long(second.blocks(_BLOCK_S * rate_hz), levels.frames, asked.source):
                into.source(block)
                into.passed(way.push(block))
        into.passed(way.finish())
        legs = way.legs()
        into.finish(legs)
    return legs


def _as_long(blocks: Iterable[Pcm], frames: int, path: Path) -> Iterator[Pcm]:
    """The same audio a second time; raises InputError when it is not as long any more."""
    read = 0
    for block in blocks:
        read += len(block)
        yield block
    if read != frames:
        raise InputError(f"{path} changed while it was read")


@contextmanager
def _all_or_none(files: Sequence[Path]) -> Iterator[None]:
    """Take away what was written when not all of it could be; nothing was there before."""
    try:
        yield
    except BaseException:
        for path in files:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise


class _Written:
    """The new files: the degraded one and, where asked for, the stems of a call's folder.

    Every figure can be had from them again.
    """

    def __init__(self, asked: _Asked, rate_hz: int, channels: int, stack: ExitStack) -> None:
        self._rate_hz = rate_hz
        self._out = stack.enter_context(WavWriter(asked.out, rate_hz, channels))
        self._folder = asked.stems
        self._sources: list[WavWriter] = []
        self._legs: LineStems | None = None
        if asked.stems is None:
            return
        _make_folder(asked.stems)
        for name in _SOURCES[:channels]:
            self._sources.append(stack.enter_context(WavWriter(asked.stems / name, rate_hz)))
        kept = [_kept(asked.condition, Side(index)) for index in range(channels)]
        self._legs = LineStems(asked.stems, rate_hz, (kept[0], kept[1] if channels == 2 else None))
        stack.callback(self._legs.close)

    def source(self, block: Pcm) -> None:
        """Keep the next of the sources, int16 of shape (n, channels)."""
        for index, wav in enumerate(self._sources):
            wav.append(block[:, index])

    def passed(self, piece: Piece) -> None:
        """Keep the next of what came out."""
        self._out.append(*piece.out)
        if self._legs is not None:
            ticks: list[LegTick | None] = [
                LegTick(noise=noise, lost=lost)
                for noise, lost in zip(piece.noise, piece.lost, strict=True)
            ]
            self._legs.append([*ticks, None][:2], len(piece.out[0]))

    def finish(self, legs: Sequence[Leg]) -> None:
        """Put the stems on disk that are whole only now."""
        if self._legs is None or self._folder is None:
            return
        self._legs.flush()
        sounds = [
            {
                "leg": leg.name,
                "effect": label.effect,
                "kind": label.kind,
                "start_ms": round(label.start * 1000 / self._rate_hz, 3),
                "end_ms": round(label.end * 1000 / self._rate_hz, 3),
            }
            for leg in legs
            for label in leg.sounds
        ]
        RunFolder(self._folder).write_json(self._folder / _SOUNDS, sounds)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"stems {folder}: cannot be made ({reason})") from None


def _kept(condition: Condition, side: Side) -> LegStems:
    losses = [one for one in effects_of(condition, side) if isinstance(one, PacketLoss)]
    return LegStems(packet_ms=losses[0].packet_ms if losses else None)


# -- what is said --------------------------------------------------------------


def _told(condition: Condition, legs: Sequence[Leg], seed: int) -> dict[str, Json]:
    told: dict[str, Json] = {
        "audio_condition": str(condition),
        "audio_realism": condition.as_json(seed),
    }
    return told | {leg.name: leg.truth.as_json() for leg in legs}


def _sentences(legs: Sequence[Leg]) -> list[str]:
    """What was achieved, a line a leg and quantity."""
    found = []
    for leg in legs:
        truth = leg.truth
        figures = (("SNR", truth.snr_db, " dB", 1.0), ("loss", truth.loss, " %", 100.0))
        for name, figure, unit, scale in figures:
            if figure is not None and figure.achieved is not None:
                asked = "" if figure.asked is None else f" (asked {figure.asked * scale:.1f})"
                found.append(f"{leg.name}: {name} {figure.achieved * scale:.1f}{unit}{asked}")
        found += [f"{leg.name}: {reason}, so it has no effect" for reason in truth.ineffective]
    return found
