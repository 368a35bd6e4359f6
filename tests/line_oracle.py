"""The line's streams of random numbers, slowly and obviously: draws, noise, losses, arrivals.

Whole Python integers and lists, one sample or packet at a time, straight from the
definitions. It shares no code with the project.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

WORD = 2**64
LEG_STREAMS = {"noise": 0, "bursts": 1, "packet_loss": 8}


def draw(key: int, index: int) -> int:
    """SplitMix64 at any place of its sequence."""
    z = (key + (index + 1) * 0x9E3779B97F4A7C15) % WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return z ^ z >> 31


def key(seed: int, leg: int, title: str) -> int:
    return draw(draw(seed, leg), LEG_STREAMS[title])


def xorshift(x: int) -> int:
    x ^= x << 13 & 0xFFFFFFFF
    x ^= x >> 17
    return x ^ x << 5 & 0xFFFFFFFF


def signed(x: int) -> int:
    """The low 16 bits."""
    return (x & 0xFFFF ^ 0x8000) - 0x8000


def white(stream: int, at: int) -> int:
    """Sample ``at``: two signed numbers of 16 bits of either generator, added or subtracted."""
    run, place = divmod(at, 160)
    seed = draw(stream, run * 8 + place % 8)
    a, b = seed & 0xFFFFFFFF | 1, seed >> 32 | 1
    for _ in range(place // 32 + 1):
        a, b = xorshift(a), xorshift(b)
    a_low, a_high, b_low, b_high = signed(a), signed(a >> 16), signed(b), signed(b >> 16)
    return (
        a_low + a_high + b_low + b_high + 2,
        a_low + a_high - b_low - b_high,
        a_low - a_high + b_low - b_high,
        a_low - a_high - b_low + b_high,
    )[place // 8 % 4]


def noise(stream: int, rms: float, count: int) -> list[int]:
    """White noise of an rms, rounded to even at a half."""
    gain = np.float32(rms / ((65536**2 - 1) / 3) ** 0.5)
    return [int(np.rint(np.float32(white(stream, at)) * gain)) for at in range(count)]


@dataclass(kw_only=True)
class Losses:
    """The chain on the packet clock: probabilities are exact fractions of 2^64."""

    model: str
    loss: Fraction
    packets: Fraction

    def mask(self, stream: int, count: int) -> list[int]:
        lost: list[int] = []
        left, bad = 0, False
        for k in range(count):
            chance = Fraction(draw(stream, k), WORD)
            if self.model == "iid":
                bad = chance < self.loss
            elif self.model == "gilbert_elliott":
                back = 1 / self.packets
                there = back * self.loss / (1 - self.loss)
                there = self.loss if k == 0 else there
                bad = chance >= back if bad else chance < there
            elif bad and left > 1:
                left -= 1
            elif bad:
                bad = False  # one packet comes through between bursts
            else:
                bad = chance < self.loss / (self.packets * (1 - self.loss))
                left = int(self.packets)
            lost.append(int(bad))
        return lost


def arrivals(stream: int, rate_per_min: float, block: int, blocks: int) -> list[int]:
    """The samples at which sounds come: a Poisson process, drawn 20 ms at a time."""
    mean = rate_per_min / 60 * 0.02
    at: list[int] = []
    for k in range(blocks):
        total, term, count = 0.0, np.exp(-mean), 0
        while count < 3 and draw(stream, 8 * k) / WORD > total + term:
            total += term
            count += 1
            term *= mean / count
        drawn = [draw(stream, 8 * k + 1 + n) >> 32 for n in range(count)]
        at += sorted(k * block + (d * block >> 32) for d in drawn)
    return at
