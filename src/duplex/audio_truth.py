"""What a line really did to a call, worked out again from the files a call leaves.

Speech level, noise level, SNR, share of packets lost and length of bursts, each
beside what was asked and with its error. It trusts no figure of the line itself: it
hears the stems and reads the mask. Results and reports print what it says; a part
that had no effect is said so, never divided by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from duplex.active_level import SpeechLevel, speech_level
from duplex.conditions import BackgroundSpeech, Effect, Noise, PacketLoss
from duplex.errors import InputError
from duplex.values import Json, Span

Pcm = npt.NDArray[np.int16]

_FULL_SCALE = 32768.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMask:
    """Which packets of one leg were lost: runs of (first packet, how many)."""

    packet_ms: int
    packets: int
    runs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, lost: npt.NDArray[np.bool_], packet_ms: int) -> LossMask:
        """Make one from a flag per packet."""
        turns = np.flatnonzero(np.diff(np.concatenate(([False], lost, [False])).astype(np.int8)))
        starts, ends = turns[::2], turns[1::2]
        runs = tuple(
            (int(start), int(end - start)) for start, end in zip(starts, ends, strict=True)
        )
        return cls(packet_ms=packet_ms, packets=len(lost), runs=runs)

    @property
    def lost(self) -> int:
        """How many packets were lost."""
        return sum(count for _, count in self.runs)

    def as_json(self) -> dict[str, Json]:
        """One leg of ``loss.json``."""
        return {
            "packet_ms": self.packet_ms,
            "packets": self.packets,
            "lost": self.lost,
            "runs": [[first, count] for first, count in self.runs],
        }

    @classmethod
    def from_json(cls, told: object) -> LossMask:
        """Read one leg of ``loss.json``; raises InputError naming what is wrong."""
        if not isinstance(told, Mapping):
            raise InputError(f"loss mask: got {type(told).__name__}, wanted an object")
        packet_ms, packets, runs = (told.get(key) for key in ("packet_ms", "packets", "runs"))
        if not isinstance(packet_ms, int) or not isinstance(packets, int) or packet_ms < 1:
            raise InputError("loss mask: packet_ms and packets are wanted as whole numbers")
        if not isinstance(runs, list):
            raise InputError("loss mask: runs is wanted as a list of [first, count]")
        found, at = [], 0
        for run in runs:
            if not (isinstance(run, list) and len(run) == 2 and all(map(_is_whole, run))):
                raise InputError(f"loss mask: run {run!r}, wanted [first, count]")
            first, count = int(run[0]), int(run[1])
            if first < at or count < 1 or first + count > packets:
                raise InputError(f"loss mask: run {run!r} does not fit {packets} packets")
            at = first + count
            found.append((first, count))
        return cls(packet_ms=packet_ms, packets=packets, runs=tuple(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One quantity: what was asked, what it came to; None where there is no such thing."""

    asked: float | None
    achieved: float | None

    @property
    def error(self) -> float | None:
        """Achieved less asked."""
        if self.asked is None or self.achieved is None:
            return None
        return self.achieved - self.asked

    def as_json(self) -> dict[str, Json]:
        parts = (("asked", self.asked), ("achieved", self.achieved), ("error", self.error))
        return {name: None if value is None else round(value, 4) for name, value in parts}


@dataclass(frozen=True, slots=True, kw_only=True)
class LegTruth:
    """One leg of a call; ``ineffective`` says which effects could not have any effect.

    ``snr_db`` compares the P.56 active level of the speech with the rms of the noise.
    ``burst_ms`` is a mean over ``bursts`` runs of lost packets.
    """

    speech: SpeechLevel
    noise_dbov: float | None
    snr_db: Figure | None
    loss: Figure | None
    burst_ms: Figure | None
    packets: int
    bursts: int
    ineffective: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """As results hold it."""
        figures = (("snr_db", self.snr_db), ("loss", self.loss), ("burst_ms", self.burst_ms))
        return {
            "speech_active_dbov": _rounded(self.speech.active_dbov),
            "speech_activity": _rounded(self.speech.activity),
            "noise_dbov": _rounded(self.noise_dbov),
            **{name: None if one is None else one.as_json() for name, one in figures},
            "packets": self.packets,
            "bursts": self.bursts,
            "ineffective": list(self.ineffective),
        }


class NoiseLevel:
    """The level of a noise, heard in pieces, where no single sound (burst, caller sound) is.

    A sound may be told up to ``reach`` samples after it began; more is never kept.
    """

    def __init__(self, reach: int = 0) -> None:
        self._reach = reach
        self._waiting: list[Pcm] = []
        self._heard = self._settled = 0
        self._sounds: list[Span] = []
        self._squares = self._samples = 0

    def leave_out(self, sounds: Sequence[Span]) -> None:
        """Name sounds that do not count."""
        self._sounds += sounds

    def push(self, noise: Pcm) -> None:
        """Hear int16 of shape (n,), whatever n is."""
        self._waiting.append(noise)
        self._heard += len(noise)
        if self._heard - self._settled > 2 * self._reach:
            self._settle(self._heard - self._reach)

    def dbov(self) -> float | None:
        """Rms in dBov of all that was heard, None when there is nothing but silence."""
        self._settle(self._heard)
        if not self._squares:
            return None
        return 10 * math.log10(self._squares / self._samples / _FULL_SCALE**2)

    def _settle(self, end: int) -> None:
        """Count what lies before ``end``; no sound that is still to be told can reach it."""
        start, count = self._settled, end - self._settled
        whole = np.concatenate([np.zeros(0, np.int16), *self._waiting])
        keep = np.ones(count, np.bool_)
        for span in self._sounds:
            keep[max(0, span.start - start) : max(0, span.end - start)] = False
        wide = whole[:count][keep].astype(np.int64)
        self._squares += int(wide @ wide)
        self._samples += len(wide)
        self._waiting, self._settled = [whole[count:]], end
        self._sounds = [span for span in self._sounds if span.end > end]


def leg_truth(
    effects: Sequence[Effect],
    source: Pcm,
    noise: Pcm | None,
    rate_hz: int,
    *,
    mask: LossMask | None = None,
    sounds: Sequence[Span] = (),
) -> LegTruth:
    """Work out one leg from its stems, int16 mono of one rate.

    ``noise`` is what was added to ``source``; ``sounds`` are spans of it that hold
    single sounds (bursts, caller sounds) and are left out of the noise's level.
    """
    level = None
    if noise is not None:
        meter = NoiseLevel()
        meter.leave_out(sounds)
        meter.push(noise)
        level = meter.dbov()
    return truth_of_levels(effects, speech_level(source, rate_hz), level, mask)


def truth_of_levels(
    effects: Sequence[Effect], speech: SpeechLevel, level: float | None, mask: LossMask | None
) -> LegTruth:
    """The same where both levels were heard on the way; ``level`` is the noise's, in dBov."""
    beds = [effect for effect in effects if isinstance(effect, Noise | BackgroundSpeech)]
    losses = [effect for effect in effects if isinstance(effect, PacketLoss)]
    reasons = []
    if beds and level is None:
        reasons.append("noise: the bed is silent")
    if beds and speech.active_dbov is None:
        reasons.append("noise: the speech is silent")
    lost = None if mask is None or not losses else _loss(losses[0], mask)
    return LegTruth(
        speech=speech,
        noise_dbov=level,
        snr_db=_snr(beds, speech, level) if beds else None,
        loss=lost[0] if lost else None,
        burst_ms=lost[1] if lost else None,
        packets=mask.packets if mask else 0,
        bursts=len(mask.runs) if mask else 0,
        ineffective=tuple(reasons),
    )


def _snr(
    beds: Sequence[Noise | BackgroundSpeech], speech: SpeechLevel, level: float | None
) -> Figure:
    active = speech.active_dbov
    if active is None:
        return Figure(asked=None, achieved=None)
    power = sum(10 ** (_asked_dbov(bed, active) / 10) for bed in beds)
    return Figure(
        asked=active - 10 * math.log10(power) if power > 0 else None,
        achieved=None if level is None else active - level,
    )


def _asked_dbov(bed: Noise | BackgroundSpeech, active: float) -> float:
    if bed.snr is not None:
        return active - bed.snr
    if bed.gain is not None:
        return active + _db(bed.gain)
    assert isinstance(bed, Noise)
    assert bed.rms is not None
    return _db(bed.rms / _FULL_SCALE)


def _loss(asked: PacketLoss, mask: LossMask) -> tuple[Figure, Figure]:
    share = mask.lost / mask.packets if mask.packets else None
    mean = mask.lost / len(mask.runs) * mask.packet_ms if mask.runs else None
    burst = asked.burst_ms if asked.model != "iid" else asked.packet_ms / (1 - asked.loss)
    return (
        Figure(asked=asked.loss, achieved=share),
        Figure(asked=burst if asked.loss else None, achieved=mean),
    )


def _db(ratio: float) -> float:
    return 20 * math.log10(ratio) if ratio > 0 else -math.inf


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
