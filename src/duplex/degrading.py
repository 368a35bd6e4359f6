"""``duplex degrade``: a condition applied to a file, as it would be in a call.

A file of one channel is a caller and takes the uplink; of two, the caller and the
assistant, and each takes its own leg. What comes out has the rate, channels and
length that went in, and depends on nothing but the arguments: not on the clock, not
on ``--tick-ms``. Levels asked for against the speaker are met against this file's
own active level, so that its speech stays as loud as it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from duplex import conditions
from duplex.active_level import speech_level
from duplex.audio_truth import LegTruth, LossMask, leg_truth
from duplex.conditions import AcousticEcho, Condition, Effect, PacketLoss
from duplex.errors import InputError
from duplex.inputs import exists
from duplex.line import RATES_HZ, Label, Line, build_line, labels
from duplex.resample import resample
from duplex.screen import plain
from duplex.values import Json, Side, Span
from duplex.wavfile import Wav, read_wav, write_wav

Pcm = npt.NDArray[np.int16]

_LEGS = ("uplink", "downlink")
_TICK_MS = (10, 1_000)
_STEMS = ("caller_source.wav", "assistant_source.wav", "noise.wav", "loss.json", "sounds.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One channel before and after, what was added to it, what was lost of it."""

    side: Side
    effects: tuple[Effect, ...]
    source: Pcm
    out: Pcm
    noise: Pcm
    mask: LossMask | None
    sounds: tuple[Label, ...]
    truth: LegTruth

    @property
    def name(self) -> str:
        return _LEGS[self.side]


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
    for path in (out, *((stems / name for name in _STEMS) if stems is not None else ())):
        if exists(path):
            raise InputError(f"{path} exists already, wanted a new file")
    wav = read_wav(source)
    legs = degrade(wav, wanted, tick_ms=tick_ms, seed=seed, name=str(source))
    write_wav(out, np.stack([leg.out for leg in legs], axis=1), wav.rate_hz)
    if stems is not None:
        _write_stems(stems, legs, wav.rate_hz)
    told = _told(wanted, legs, seed)
    if as_json:
        print(json.dumps(told))
    for line in _sentences(legs):
        console.print(plain(line))
    return 0


def degrade(
    wav: Wav, condition: Condition, *, tick_ms: int = 200, seed: int = 7, name: str = "the file"
) -> tuple[Leg, ...]:
    """Pass every channel over its leg.

    Raises:
        InputError: the file has more than two channels, or one and a condition on
            the downlink.
    """
    if wav.channels > 2:
        raise InputError(f"{name} has {wav.channels} channels, wanted 1 (caller) or 2 (and agent)")
    if wav.channels == 1 and condition.downlink:
        raise InputError(f"{name} has one channel, the caller's; a downlink condition wants two")
    effects = (condition.uplink, condition.downlink)
    sides = [Side(index) for index in range(wav.channels)]
    # The way back first: what the caller is played may come back through the microphone.
    found: dict[Side, Leg] = {}
    for side in reversed(sides):
        played = found.get(side.other)
        found[side] = _passed(
            wav.channel(side),
            effects[side],
            wav.rate_hz,
            side=side,
            played=None if played is None else played.out,
            tick_ms=tick_ms,
            seed=seed,
        )
    return tuple(found[side] for side in sides)


def _passed(
    source: Pcm,
    effects: tuple[Effect, ...],
    rate_hz: int,
    *,
    side: Side,
    played: Pcm | None,
    tick_ms: int,
    seed: int,
) -> Leg:
    """One channel over one leg, at the nearest rate a line has; a clean leg as it is."""
    line_hz = next((rate for rate in RATES_HZ if rate >= rate_hz), RATES_HZ[-1])
    line_hz = line_hz if effects else rate_hz
    pcm = _at(source, rate_hz, line_hz)
    speaker = speech_level(pcm, line_hz).active_dbov
    line = build_line(effects, rate_hz=line_hz, seed=seed, leg=int(side), speaker_dbov=speaker)
    if line is None:
        out, noise, lost = pcm, np.zeros(len(pcm), np.int16), None
        sounds: tuple[Label, ...] = ()
    else:
        far = None if played is None else _at(played, rate_hz, line_hz)
        out, noise, lost = _processed(line, pcm, far, line_hz * tick_ms // 1000)
        sounds = tuple(labels(line, effects))
    mask = _mask(effects, lost)
    spans = [Span(start=label.start, end=label.end) for label in sounds]
    truth = leg_truth(effects, pcm, noise, line_hz, mask=mask, sounds=spans)
    if played is None and any(isinstance(effect, AcousticEcho) for effect in effects):
        reason = "acoustic_echo: there is no other side to hear"
        truth = replace(truth, ineffective=(*truth.ineffective, reason))
    count = len(source)
    return Leg(
        side=side,
        effects=effects,
        source=source,
        out=_at(out, line_hz, rate_hz, count),
        noise=_at(noise, line_hz, rate_hz, count),
        mask=mask,
        sounds=tuple(_moved(label, line_hz, rate_hz) for label in sounds),
        truth=truth,
    )


def _processed(
    line: Line, pcm: Pcm, far: Pcm | None, tick: int
) -> tuple[Pcm, Pcm, npt.NDArray[np.uint8]]:
    out, noise, lost = [pcm[:0]], [pcm[:0]], [np.zeros(0, np.uint8)]
    for start in range(0, len(pcm), tick):
        piece = slice(start, start + tick)
        out.append(line.process(pcm[piece], None if far is None else far[piece]))
        noise.append(line.noise())
        lost.append(line.mask())
    return np.concatenate(out), np.concatenate(noise), np.concatenate(lost)


def _mask(effects: Sequence[Effect], lost: npt.NDArray[np.uint8] | None) -> LossMask | None:
    for effect in effects:
        if isinstance(effect, PacketLoss) and lost is not None:
            return LossMask.of(lost.astype(np.bool_), effect.packet_ms)
    return None


def _at(pcm: Pcm, from_hz: int, to_hz: int, count: int | None = None) -> Pcm:
    """At another rate, and exactly ``count`` samples where that is given."""
    made = pcm if from_hz == to_hz else resample(pcm, from_hz, to_hz)
    if count is None or len(made) == count:
        return np.ascontiguousarray(made)
    fitted = np.zeros(count, np.int16)
    fitted[: min(count, len(made))] = made[:count]
    return fitted


def _moved(label: Label, from_hz: int, to_hz: int) -> Label:
    return Label(
        effect=label.effect,
        kind=label.kind,
        start=label.start * to_hz // from_hz,
        end=label.end * to_hz // from_hz,
    )


# -- what is left behind -------------------------------------------------------


def _write_stems(folder: Path, legs: Sequence[Leg], rate_hz: int) -> None:
    """The stems of a call's folder, so that every figure can be had from them again."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"stems {folder}: cannot be made ({reason})") from None
    for leg in legs:
        write_wav(folder / f"{leg.side.label}_source.wav", leg.source, rate_hz)
    write_wav(folder / "noise.wav", np.stack([leg.noise for leg in legs], axis=1), rate_hz)
    masks: dict[str, Json] = {leg.name: leg.mask.as_json() for leg in legs if leg.mask}
    sounds: list[Json] = [
        {
            "leg": leg.name,
            "effect": label.effect,
            "kind": label.kind,
            "start_ms": round(label.start * 1000 / rate_hz, 3),
            "end_ms": round(label.end * 1000 / rate_hz, 3),
        }
        for leg in legs
        for label in leg.sounds
    ]
    for name, held in (("loss.json", masks), ("sounds.json", sounds)):
        (folder / name).write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")


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
