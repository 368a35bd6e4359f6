"""Declared thinking times: what hearing, deciding and speaking cost in media time.

In virtual time they are what the work costs, whatever the processor needed; on
the wall clock they are a floor. Each kind draws its jitter from its own seeded
stream, so one more decode never shifts when a mouth opens.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.local.chance import Chance
from duplex.local.seams import VOICE_RATE_HZ


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkTimes:
    """Thinking times in ms; ``jitter`` is the largest share they vary by, either way."""

    ears_ms: int = 300
    brain_ms: int = 100
    mouth_ms: int = 250
    model_ms: int = 600
    jitter: float = 0.2


class Thinking:
    """Draws the next thinking time of each kind, in samples at 24 kHz."""

    def __init__(self, times: ThinkTimes, seed: int | None, who: str) -> None:
        self._times = times
        self._chance = None if seed is None else Chance(seed, f"{who} thinking")

    def ears(self) -> int:
        return self._draw("ears", self._times.ears_ms)

    def brain(self) -> int:
        return self._draw("brain", self._times.brain_ms)

    def mouth(self) -> int:
        return self._draw("mouth", self._times.mouth_ms)

    def model(self) -> int:
        return self._draw("model", self._times.model_ms)

    def _draw(self, name: str, declared_ms: int) -> int:
        spread = 0.0
        if self._chance is not None:
            spread = self._chance.stream(name).uniform(-self._times.jitter, self._times.jitter)
        return round(declared_ms * (1 + spread)) * VOICE_RATE_HZ // 1000
