"""Audio that is due and has not come: late, uneven, or stalled, in plain words.

It is told how long audio has been overdue, and when some came; what it returns is a
fault's code and text. Each thing is told once a spell. A session drives it.
"""

from __future__ import annotations

from collections import deque

STALLED_MS = 1_500
UNEVEN_GAPS = 3
UNEVEN_WITHIN_MS = 10_000

Found = tuple[str, str]


class Overdue:
    """One session's punctuality; times in ms."""

    def __init__(self, *, late_ms: int, uneven_ms: int, stalled_ms: int = STALLED_MS) -> None:
        """``late_ms`` is a delay worth telling; ``uneven_ms`` a gap of which several are."""
        self._late_ms = late_ms
        self._uneven_ms = uneven_ms
        self._stalled_ms = stalled_ms
        self._ms = 0
        self._stalled = False
        self._gaps: deque[int] = deque(maxlen=UNEVEN_GAPS)

    def waits(self, ms: int) -> Found | None:
        """Nothing has come for ``ms`` though audio is due."""
        self._ms = ms
        if ms < self._stalled_ms or self._stalled:
            return None
        self._stalled = True
        return "stalled", f"nothing came for {ms} ms while audio was due"

    def came(self, now_ms: int) -> Found | None:
        """Something came, or nothing is due any more: the spell is over."""
        ms, stalled = self._ms, self._stalled
        self._ms, self._stalled = 0, False
        if ms < self._uneven_ms or stalled:
            return None
        self._gaps.append(now_ms)
        many = len(self._gaps) == UNEVEN_GAPS
        if many and now_ms - self._gaps[0] <= UNEVEN_WITHIN_MS:
            self._gaps.clear()
            return "jitter", f"audio comes unevenly: {UNEVEN_GAPS} gaps, the last of {ms} ms"
        if ms >= self._late_ms:
            return "delayed", f"nothing came for {ms} ms while audio was due"
        return None
