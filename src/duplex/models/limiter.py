"""How long to leave a host alone: one memory for all calls of a run that ask it.

A host that answers 429, or is too busy, is asked again when it said so, and otherwise
after pauses that double. Whoever wants the same host meanwhile waits as well. Times are
seconds of the wall clock, handed in; it neither sleeps nor reads a clock.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from duplex.models.meter import Meter

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 60.0
"""A host that asks for more than this at once is told of as it is."""


@dataclass(slots=True)
class _Host:
    until: float = 0.0
    refusals: int = 0


@dataclass(slots=True)
class Limiter:
    """Which host may be asked when; ``seed`` draws the spread of the pauses."""

    seed: int = 0
    meter: Meter = field(default_factory=Meter)
    """What all who share the limiter have used."""
    _hosts: dict[str, _Host] = field(default_factory=dict)
    _random: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self._random = random.Random(f"{self.seed}:limiter")

    def wait(self, host: str, now: float) -> float:
        """Return how many seconds ``host`` is to be left alone from ``now``."""
        return max(0.0, self._host(host).until - now)

    def refused(self, host: str, now: float, retry_after: float | None) -> float:
        """``host`` asked for time; return how many seconds it gets."""
        state = self._host(host)
        state.refusals += 1
        pause = retry_after
        if pause is None:
            doubled = FIRST_SECONDS * 2.0 ** min(state.refusals - 1, 10)
            pause = doubled * self._random.uniform(1.0, 1.25)
        state.until = max(state.until, now + min(pause, LONGEST_SECONDS))
        return state.until - now

    def served(self, host: str) -> None:
        self._host(host).refusals = 0

    def _host(self, host: str) -> _Host:
        return self._hosts.setdefault(host, _Host())


def retry_after(headers: dict[str, str], now_utc: float) -> float | None:
    """Read ``retry-after-ms`` or ``Retry-After`` (seconds or a date), in seconds; None if none.

    ``headers`` has lower-case names, ``now_utc`` is the time since the epoch.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        return seconds if 0 <= seconds < 86_400 else None
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
        return min(max(0.0, when.timestamp() - now_utc), 86_400)
    except (ValueError, TypeError, OverflowError):
        return None
