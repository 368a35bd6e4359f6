"""Seeded choices, one independent stream per purpose.

Two brains with the same seed make the same choices; a draw for pauses never
shifts the draws for wording.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """Random streams named by purpose."""

    def __init__(self, seed: int, who: str) -> None:
        self._root = f"{seed}:{who}"
        self._streams: dict[str, random.Random] = {}

    def stream(self, name: str) -> random.Random:
        if name not in self._streams:
            self._streams[name] = random.Random(f"{self._root}:{name}")
        return self._streams[name]

    def pick(self, name: str, options: Sequence[T]) -> T:
        """Choose one of ``options`` from the stream ``name``."""
        return self.stream(name).choice(options)

    def pause_ms(self, low: int = 0, high: int = 350) -> int:
        """Draw a thinking pause in ms."""
        return self.stream("pauses").randint(low, high)

    def happens(self, name: str, probability: float) -> bool:
        return self.stream(name).random() < probability
