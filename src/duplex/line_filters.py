"""Filter coefficients of the line: Butterworth sections and the telephone's linear-phase filter.

Plain arithmetic on Python floats; every coefficient is rounded to 2^-24 (or to the
integers the kernels multiply with), so that a last bit of libm cannot show. It never
sees audio; ``line`` asks, ``_line`` filters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

UNIT = 2**24
PHASE_TAPS = 26
"""Taps of one phase of the telephone's filter, zero padded."""
NARROW_HZ = 8_000
_PASS_HZ, _STOP_HZ = 3_400, 4_600
"""What lies beyond the stop edge would fold below the pass edge."""
_KAISER_BETA = 6.2
_MOST_Q15 = 32_767

Section = tuple[float, float, float, float, float]
"""b0, b1, b2, a1, a2 of a second-order section, a0 being 1."""
Looked = tuple[tuple[float, ...], float, float]
"""The same section as kernels run it: five taps, and the outputs 2 and 4 samples ago."""


def rounded(value: float) -> float:
    """Round to a multiple of 2^-24."""
    return round(value * UNIT) / UNIT


def butterworth(
    order: int, edge_hz: float, rate_hz: int, kind: Literal["low", "high"]
) -> list[Section]:
    """Second-order sections of an even-order Butterworth filter (bilinear transform, prewarped)."""
    assert order % 2 == 0, order
    warped = math.tan(math.pi * edge_hz / rate_hz)
    made = []
    for k in range(order // 2):
        # Poles of the prototype: 1 / Q = 2 sin((2k + 1) pi / 2n).
        damping = 2 * math.sin((2 * k + 1) * math.pi / (2 * order))
        scale = 1 + damping * warped + warped * warped
        a1 = 2 * (warped * warped - 1) / scale
        a2 = (1 - damping * warped + warped * warped) / scale
        b0, b1 = (warped * warped / scale, 2.0) if kind == "low" else (1 / scale, -2.0)
        made.append(_section(b0, b1 * b0, b0, a1, a2))
    return made


def _section(*coefficients: float) -> Section:
    b0, b1, b2, a1, a2 = (rounded(value) for value in coefficients)
    return b0, b1, b2, a1, a2


def looked_ahead(section: Section) -> Looked:
    """Multiply numerator and denominator so that only z^-2 and z^-4 are fed back."""
    b0, b1, b2, a1, a2 = section
    # D(z) D(-z) = 1 + (2 a2 - a1^2) z^-2 + a2^2 z^-4.
    return _times((b0, b1, b2), (1.0, -a1, a2)), a1 * a1 - 2 * a2, -a2 * a2


def _times(one: Sequence[float], two: Sequence[float]) -> tuple[float, ...]:
    product = [0.0] * (len(one) + len(two) - 1)
    for i, x in enumerate(one):
        for k, y in enumerate(two):
            product[i + k] += x * y
    return tuple(product)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decimator:
    """The filter between a session's rate and 8 kHz, both ways.

    ``taps`` are Q15 for the way down; ``phases`` Q14, oldest sample first, for the way up.
    """

    factor: int
    taps: tuple[int, ...]
    phases: tuple[tuple[int, ...], ...]


def decimator(rate_hz: int) -> Decimator:
    """Design the filter for a multiple of 8 kHz; 24 samples of delay at 8 kHz rates in all."""
    factor = rate_hz // NARROW_HZ
    if factor == 1:
        return Decimator(factor=1, taps=(), phases=())
    half = 12 * factor
    cut = (_PASS_HZ + _STOP_HZ) / rate_hz
    shape = [_windowed_sinc(k, half, cut) for k in range(-half, half + 1)]
    total = sum(shape)
    taps = tuple(round(value / total * (_MOST_Q15 + 1)) for value in shape)
    phases = []
    for phase in range(factor):
        own = [value / total * factor * (1 << 14) for value in shape[phase::factor]]
        whole = [round(value) for value in reversed(own)]
        phases.append(tuple([0] * (PHASE_TAPS - len(whole)) + whole))
    return Decimator(factor=factor, taps=taps, phases=tuple(phases))


def _windowed_sinc(k: int, half: int, cut: float) -> float:
    ideal = cut if k == 0 else math.sin(math.pi * cut * k) / (math.pi * k)
    inside = math.sqrt(max(0.0, 1 - (k / half) ** 2))
    return ideal * _bessel(_KAISER_BETA * inside) / _bessel(_KAISER_BETA)


def _bessel(x: float) -> float:
    """The modified Bessel function of the first kind and order zero, by its series."""
    total = term = 1.0
    for k in range(1, 40):
        term *= (x / (2 * k)) ** 2
        total += term
    return total
