"""Where a session's own milliseconds fall on the shared timeline.

A session counts the audio it produced; the engine plays that audio later, after
a playout hold, and may pad or drop silence in between. This keeps the pairs
(samples consumed, engine position) at which the offset changed, and holds
labels back until the audio they speak of was played. It reads no clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from duplex.values import Happening, Json

_SPANNED = {"utterance", "transcript"}


class Placement:
    """Maps one side's session time to engine positions, monotonically."""

    def __init__(self, rate_hz: int) -> None:
        self._rate = rate_hz
        self._consumed = 0
        self._position = 0
        self._lost = 0
        self._starts: list[int] = [0]
        self._offsets: list[int] = [0]
        self._waiting: list[Happening] = []

    def fed(self, given: int, accepted: int) -> None:
        """Count samples that never reached the ring, so later ones stay in place."""
        self._lost += given - accepted

    def note(self, position: int, consumed: int) -> list[Happening]:
        """After a tick: the engine is at ``position``, ``consumed`` samples are gone.

        Returns the labels whose audio has now been played.
        """
        offset = position - (consumed + self._lost)
        if consumed > self._consumed and offset != self._offsets[-1]:
            self._starts.append(self._consumed + self._lost)
            self._offsets.append(offset)
        self._consumed, self._position = consumed, position
        played = consumed + self._lost
        ready = [item for item in self._waiting if self._last_sample(item) <= played]
        if ready:
            self._waiting = [item for item in self._waiting if self._last_sample(item) > played]
        return [self._placed(item) for item in ready]

    def place(self, happening: Happening) -> list[Happening]:
        """Pass a happening through: at once, or held until its audio was played."""
        fields = happening.fields
        if happening.type not in _SPANNED or "start_ms" not in fields:
            return [happening]
        if fields.get("direction") == "heard":
            return [self._converted(happening, offset=0)]
        if self._last_sample(happening) <= self._consumed + self._lost:
            return [self._placed(happening)]
        self._waiting.append(happening)
        return []

    def flush(self) -> list[Happening]:
        """At the end: place what is left; nothing ends after the recording does."""
        rest, self._waiting = self._waiting, []
        return [self._placed(item) for item in rest]

    def position_of(self, sample: int) -> int:
        """Engine position at which session sample ``sample`` was played."""
        index = bisect_right(self._starts, sample) - 1
        return max(0, sample + self._offsets[max(0, index)])

    def _last_sample(self, happening: Happening) -> int:
        return self._sample(happening.fields, "end_ms")

    def _sample(self, fields: Mapping[str, Json], name: str) -> int:
        value = fields.get(name)
        return round(value * self._rate / 1000) if isinstance(value, (int, float)) else 0

    def _placed(self, happening: Happening) -> Happening:
        return self._converted(happening, offset=None)

    def _converted(self, happening: Happening, *, offset: int | None) -> Happening:
        fields = dict(happening.fields)
        for name in ("start", "end"):
            sample = self._sample(fields, f"{name}_ms")
            at = sample + offset if offset is not None else self.position_of(sample)
            # Half-open: an end is one past the last sample, so place that sample.
            if name == "end" and offset is None and sample > 0:
                at = self.position_of(sample - 1) + 1
            fields[name] = min(at, self._position) if offset is None else at
        fields.pop("start_ms", None)
        fields.pop("end_ms", None)
        if isinstance(fields["start"], int) and isinstance(fields["end"], int):
            fields["end"] = max(fields["start"], fields["end"])
        return Happening(type=happening.type, fields=fields, received_at=happening.received_at)
