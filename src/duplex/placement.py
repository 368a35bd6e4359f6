"""Where a session's own samples and milliseconds fall on the shared timeline.

A session counts the audio it produced; the engine plays that audio later, after
a playout hold, and may pad, drop or discard in between. This keeps what playout
did, sample by sample, and holds labels back until the audio they speak of was
played. It reads no clock; the call loop drives it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from duplex.values import Happening, Json

_SPANNED = {"utterance", "transcript", "sound"}


class _Shifts:
    """A step function of a count: from each start on, its shift."""

    def __init__(self) -> None:
        self._starts = [0]
        self._shifts = [0]

    @property
    def last(self) -> int:
        return self._shifts[-1]

    def add(self, start: int, by: int) -> None:
        """From ``start`` on shift by that much more; what was told late goes in place."""
        shift = self.last + by
        while len(self._starts) > 1 and self._starts[-1] >= start:
            self._starts.pop()
            self._shifts.pop()
        self._starts.append(start)
        self._shifts.append(shift)

    def of(self, count: int) -> int:
        """``count`` shifted; what fell out lands where the rest goes on."""
        index = max(0, bisect_right(self._starts, count) - 1)
        moved = count + self._shifts[index]
        if index + 1 < len(self._starts):
            moved = min(moved, self._starts[index + 1] + self._shifts[index + 1])
        return moved


class Placement:
    """Maps one side's session time to engine positions, monotonically."""

    def __init__(self, rate_hz: int) -> None:
        self._rate = rate_hz
        self._given = 0
        self._consumed = 0
        self._position = 0
        self._queued = _Shifts()
        self._played = _Shifts()
        self._discards: list[tuple[int, int]] = []
        self._waiting: list[Happening] = []

    @property
    def given(self) -> int:
        """Session samples handed over so far."""
        return self._given

    def fed(self, given: int, accepted: int) -> None:
        """Count samples handed over; those that never reached the ring shift no later one."""
        self._given += given
        if accepted < given:
            self._queued.add(self._given, accepted - given)

    def moved(self, start: int, samples: int) -> None:
        """Playout put ``samples`` of silence at position ``start``, or left that many out."""
        at = start - self._played.last
        self._played.add(at if samples >= 0 else at - samples, samples)

    def discarded(self, samples: int) -> None:
        """Since the last tick that many queued samples were thrown away, never to be played."""
        before = self._discards[-1][1] if self._discards else 0
        at = max(self._consumed, before)
        self._discards.append((at, at + samples))
        self._played.add(at + samples, -samples)

    def note(self, position: int, consumed: int) -> list[Happening]:
        """After a tick: the engine is at ``position``, ``consumed`` samples are gone.

        Returns the labels whose audio has now been played.
        """
        self._consumed, self._position = consumed, position
        ready = [item for item in self._waiting if self._is_over(item)]
        if ready:
            self._waiting = [item for item in self._waiting if not self._is_over(item)]
        return [self._placed(item) for item in ready]

    def place(self, happening: Happening) -> list[Happening]:
        """Pass a happening through: at once, or held until its audio was played."""
        fields = happening.fields
        if happening.type not in _SPANNED or "start_ms" not in fields:
            return [happening]
        if fields.get("direction") == "heard":
            return [self._converted(happening, offset=0)]
        if self._is_over(happening):
            return [self._placed(happening)]
        self._waiting.append(happening)
        return []

    def flush(self) -> list[Happening]:
        """At the end: place what is left; nothing ends after the recording does."""
        rest, self._waiting = self._waiting, []
        return [self._placed(item) for item in rest]

    def position_of(self, sample: int) -> int:
        """Engine position at which session sample ``sample`` was played."""
        return max(0, self._played.of(self._queued.of(sample)))

    def is_gone(self, sample: int) -> bool:
        """Whether session sample ``sample`` was played or discarded."""
        return self._queued.of(sample) < self._consumed

    def was_discarded(self, sample: int) -> bool:
        """Whether session sample ``sample`` was thrown away before it was played."""
        at = self._queued.of(sample)
        return any(start <= at < end for start, end in self._discards)

    def _is_over(self, happening: Happening) -> bool:
        return self._queued.of(self._sample(happening.fields, "end_ms")) <= self._consumed

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
