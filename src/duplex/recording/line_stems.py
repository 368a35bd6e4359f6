"""What lines did to a call, kept beside its sound: the noise as it was mixed, the packets lost.

``noise.wav`` has a channel for each leg up to the last one with effects, the uplink
first; ``loss.json`` a mask for each leg that loses packets. Every SNR and loss figure
can be worked out again from them. The call's recorder drives it, at its own pace.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from duplex.audio_truth import LossMask
from duplex.errors import InputError
from duplex.inputs import read_text
from duplex.values import Json
from duplex.wavfile import Pcm, WavWriter, read_wav, write_failed

NOISE = "noise.wav"
LOSS = "loss.json"
LEGS = ("uplink", "downlink")

Mask = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegStems:
    """What is kept of one leg; ``packet_ms`` is None for a leg that loses nothing."""

    packet_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LegTick:
    """One tick of a leg: its noise (int16) and a flag for each packet that began in it."""

    noise: Pcm
    lost: Mask


class LineStems:
    """The two files of one call; ``legs`` are (uplink, downlink), None for a clean one."""

    def __init__(
        self, folder: Path, rate_hz: int, legs: tuple[LegStems | None, LegStems | None]
    ) -> None:
        self._legs = legs
        self._channels = 2 if legs[1] is not None else 1
        self._wav = WavWriter(folder / NOISE, rate_hz, self._channels)
        self._masks: list[list[Mask]] = [[], []]
        self._path = folder / LOSS
        self._written = -1

    def append(self, ticks: Sequence[LegTick | None], samples: int) -> None:
        """Append one tick of both legs, None for a clean one; raises WriteFailed."""
        quiet = np.zeros(samples, np.int16)
        noises = [quiet if tick is None else tick.noise for tick in ticks]
        self._wav.append(*noises[: self._channels])
        for masks, tick in zip(self._masks, ticks, strict=True):
            if tick is not None and len(tick.lost):
                masks.append(tick.lost)

    def flush(self) -> None:
        """Put both files on disk whole; raises WriteFailed."""
        self._wav.flush()
        packets = sum(len(mask) for masks in self._masks for mask in masks)
        if packets != self._written:
            self._write_masks()
            self._written = packets

    def close(self) -> None:
        """Close without writing; what was flushed stays."""
        self._wav.abandon()

    def _write_masks(self) -> None:
        told: dict[str, Json] = {}
        for name, leg, masks in zip(LEGS, self._legs, self._masks, strict=True):
            if leg is not None and leg.packet_ms is not None:
                masks[:] = [np.concatenate([np.zeros(0, np.uint8), *masks])]
                told[name] = LossMask.of(masks[0].astype(np.bool_), leg.packet_ms).as_json()
        beside = self._path.with_name(f".{self._path.name}.tmp")
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
                f.write(json.dumps(told) + "\n")
            beside.replace(self._path)
        except OSError as error:
            raise write_failed(self._path, error) from error


def read_noise(folder: Path, leg: int, duration: int) -> Pcm | None:
    """The noise of one leg as it was mixed, None where none was kept; raises InputError."""
    path = folder / NOISE
    if not path.exists():
        return None
    wav = read_wav(path)
    return wav.channel(leg)[:duration] if leg < wav.channels else None


def read_mask(folder: Path, leg: int) -> LossMask | None:
    """The packets lost on one leg, None where no mask was kept; raises InputError."""
    path = folder / LOSS
    if not path.exists():
        return None
    try:
        told = json.loads(read_text(path))
    except ValueError as error:
        raise InputError(f"loss mask {path}: {error}") from None
    if not isinstance(told, dict):
        raise InputError(f"loss mask {path}: got {type(told).__name__}, wanted an object")
    return LossMask.from_json(told[LEGS[leg]]) if LEGS[leg] in told else None
