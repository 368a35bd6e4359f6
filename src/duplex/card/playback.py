"""The loudspeaker's side: a small jitter buffer between the call and the card.

The call puts a tick in, the card takes blocks out; each counts only what it does itself,
so neither waits for the other. It begins once a little waits, plays silence when it runs
dry and counts that. Where the card's clock is slow or fast the depth is kept by leaving
out, or repeating, ticks in which nothing is heard.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from duplex.card.device import Pcm
from duplex.card.stream_clock import StreamClock

BEGIN_MS = 40
"""This much waits before it begins, or begins again."""
SLACK_MS = 40
"""Depth above the beginning's that is left alone."""
LIMIT_MS = 1_000
"""More is dropped, heard or not: the card does not keep the pace of real time."""
_LEAST_MS = 10
_STEPS = 50
_QUIET = 33
_MARKS = 5_000


class Playback:
    """What is to be played and was not yet; ``now`` is in seconds."""

    def __init__(self, rate_hz: int, now: Callable[[], float], begin_ms: int = BEGIN_MS) -> None:
        self.rate_hz = rate_hz
        self.clock = StreamClock(rate_hz)
        self.underruns = 0
        """How often the card said that it ran dry, whatever we gave it."""
        self.gaps = 0
        """How often nothing was here to play in the midst of it, and the frames of silence."""
        self.gap_frames = 0
        self.left_out = 0
        """Frames of silence left out, or added, to keep the depth."""
        self.added = 0
        self.dropped = 0
        """Frames that found no room."""
        self.frames = 0
        self.first_frame: int | None = None
        """The stream's frame that was the first of what was put in."""
        self.last_at = now()
        self.closing = False
        self._now = now
        self._begin = begin_ms * rate_hz // 1000
        self._slack = SLACK_MS * rate_hz // 1000
        self._limit = LIMIT_MS * rate_hz // 1000
        self._pieces: deque[tuple[Pcm, float]] = deque()
        self._head: Pcm = np.zeros(0, np.int16)
        self._put = 0
        self._taken = 0
        self._playing = False
        self._depths: deque[int] = deque(maxlen=_STEPS)
        self._marks: deque[tuple[int, float]] = deque(maxlen=_MARKS)

    @property
    def depth(self) -> int:
        """Frames that wait."""
        return self._put - self._taken

    def put(self, pcm: Pcm) -> None:
        """Queue one tick, int16 mono at the card's rate; the call's thread."""
        depth = self.depth
        self._depths.append(depth)
        quiet = not len(pcm) or int(np.abs(pcm.astype(np.int32)).max()) < _QUIET
        if depth > self._limit:
            self.dropped += len(pcm)
            return
        if quiet and len(self._depths) == _STEPS and self._playing:
            least = min(self._depths)
            if least > self._begin + self._slack:
                self.left_out += len(pcm)
                self._depths.clear()
                return
            if least < _LEAST_MS * self.rate_hz // 1000:
                self.added += len(pcm)
                self._depths.clear()
                self._append(np.zeros(len(pcm), np.int16))
        self._append(pcm)

    def fill(self, frames: int, dry: bool) -> Pcm:
        """Give the card its next block; the card's thread."""
        at = self.last_at = self._now()
        self.clock.add(self.frames, at)
        self.underruns += dry
        if not self._playing and self.depth >= self._begin:
            self._playing = True
        out = np.zeros(frames, np.int16)
        got = self._copy(out) if self._playing else 0
        if got < frames and self.first_frame is not None and not self.closing:
            self.gaps += self._playing
            self.gap_frames += frames - got
        self._playing = self._playing and got == frames
        self.frames += frames
        return out

    def wait_ms(self) -> tuple[float, float] | None:
        """Mean and standard deviation of what a tick waited here, by the stream's own clock."""
        marks = [(self.clock.time_of(frame), at) for frame, at in list(self._marks)]
        waits = [(due - at) * 1000 for due, at in marks if due is not None]
        return (float(np.mean(waits)), float(np.std(waits))) if waits else None

    def _append(self, pcm: Pcm) -> None:
        self._pieces.append((pcm, self._now()))
        self._put += len(pcm)

    def _copy(self, out: Pcm) -> int:
        """Copy what waits into ``out``; return how much that was."""
        got = 0
        while got < len(out):
            if not len(self._head):
                if not self._pieces:
                    break
                self._head, put_at = self._pieces.popleft()
                if self.first_frame is None:
                    self.first_frame = self.frames + got
                self._marks.append((self.frames + got, put_at))
            part = self._head[: len(out) - got]
            out[got : got + len(part)] = part
            self._head = self._head[len(part) :]
            got += len(part)
        self._taken += got
        return got
