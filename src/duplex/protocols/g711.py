"""G.711 companding (ITU-T G.711, 1988): mu-law and A-law, both directions.

Encoding and decoding are one table look-up a sample; the tables are built from
the recommendation's segments on first use. No state, no resampling.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from duplex.protocols.pcm_bytes import Pcm

_BIAS = 0x84
"""Added to a 16-bit magnitude before the mu-law segment is found."""
_CLIP = 32_635
"""Largest 16-bit magnitude that still fits once the bias is added."""

Bytes = npt.NDArray[np.uint8]


def decode(data: bytes, law: str) -> Pcm:
    """Return int16 samples for G.711 bytes; ``law`` is ``mu`` or ``a``."""
    return _decoder(law)[np.frombuffer(data, dtype=np.uint8)]


def encode(pcm: Pcm, law: str) -> bytes:
    """Return G.711 bytes for int16 samples; ``law`` is ``mu`` or ``a``."""
    return _encoder(law)[pcm.astype(np.int32) + 32_768].tobytes()


@cache
def _decoder(law: str) -> Pcm:
    codes = np.arange(256, dtype=np.int32)
    table = _mu_values(codes) if law == "mu" else _a_values(codes)
    return table.astype(np.int16)


@cache
def _encoder(law: str) -> Bytes:
    samples = np.arange(-32_768, 32_768, dtype=np.int32)
    table = _mu_codes(samples) if law == "mu" else _a_codes(samples)
    return table.astype(np.uint8)


def _mu_values(codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    inverted = ~codes & 0xFF
    magnitude = (((inverted & 0x0F) << 3) + _BIAS) << ((inverted & 0x70) >> 4)
    values: npt.NDArray[np.int32] = np.where(inverted & 0x80, _BIAS - magnitude, magnitude - _BIAS)
    return values


def _mu_codes(samples: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    # 14 bits; negative values are mirrored as ones' complement, as ITU-T G.191 has it.
    magnitude = np.minimum(np.where(samples < 0, ~samples >> 2, samples >> 2) << 2, _CLIP)
    biased = magnitude + _BIAS
    segment = _bit_length(biased) - 8
    mantissa = (biased >> (segment + 3)) & 0x0F
    sign = np.where(samples < 0, 0x80, 0)
    codes: npt.NDArray[np.int32] = ~(sign | (segment << 4) | mantissa) & 0xFF
    return codes


def _a_values(codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    plain = codes ^ 0x55
    segment = (plain & 0x70) >> 4
    step = ((plain & 0x0F) << 4) + 8
    magnitude = np.where(segment == 0, step, (step + 0x100) << np.maximum(segment - 1, 0))
    values: npt.NDArray[np.int32] = np.where(plain & 0x80, magnitude, -magnitude)
    return values


def _a_codes(samples: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    # 13-bit magnitudes; negative values are mirrored as ones' complement.
    reduced = samples >> 3
    magnitude = np.where(reduced < 0, -reduced - 1, reduced)
    segment = np.maximum(_bit_length(magnitude) - 5, 0)
    mantissa = (magnitude >> np.maximum(segment, 1)) & 0x0F
    codes: npt.NDArray[np.int32] = ((segment << 4) | mantissa) ^ np.where(samples < 0, 0x55, 0xD5)
    return codes


def _bit_length(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    powers = np.left_shift(1, np.arange(16, dtype=np.int32))
    return np.searchsorted(powers, values, side="right").astype(np.int32)
