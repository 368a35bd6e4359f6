"""The chair of the caller: a card that is open, what is known of it, and the person's keys.

It is opened before the call, so that a card that cannot be used is told before anything
else begins, and closed after it. Keys are flags that the terminal sets and the
participant reads; both streams run all the while.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from duplex.card.capture import LIMIT_MS, Capture
from duplex.card.device import Driver, Pcm, Stream, Wanted
from duplex.card.kept import Delay, Opened
from duplex.card.playback import BEGIN_MS, Playback

HOLD_OPEN_SECONDS = 0.7
"""A key that is held repeats: this long after the last one it counts as let go."""
_REPORTED_LEAST_MS = 50.0


@dataclass(slots=True, kw_only=True)
class Keys:
    """What the person asks for; ``now`` is in seconds."""

    now: Callable[[], float]
    push_to_interrupt: bool = False
    """The microphone is shut while the assistant is heard, unless the key is held."""
    muted: bool = False
    hung_up: bool = False
    _pressed_at: float | None = None

    def mute(self) -> None:
        self.muted = not self.muted

    def interrupt(self) -> None:
        self._pressed_at = self.now()

    def hang_up(self) -> None:
        self.hung_up = True

    @property
    def interrupting(self) -> bool:
        at = self._pressed_at
        return at is not None and self.now() - at < HOLD_OPEN_SECONDS


@dataclass(slots=True, kw_only=True)
class Shown:
    """What the participant tells the terminal: level of the microphone, and a warning."""

    level_dbfs: float | None = None
    clipped: bool = False
    shut: bool = False
    warnings: list[str] = field(default_factory=list)


class Seat:
    """Both streams of a card from :meth:`open` to :meth:`close`."""

    def __init__(self, source: Wanted, sink: Wanted, keys: Keys, now: Callable[[], float]) -> None:
        self.source_wanted, self.sink_wanted = source, sink
        self.keys = keys
        self.now = now
        self.shown = Shown()
        self.delay: Delay | None = None
        self._capture: Capture | None = None
        self._playback: Playback | None = None
        self._streams: list[Stream] = []
        self._driver: Driver | None = None

    def open(self, driver: Driver, *, begin_ms: int = BEGIN_MS, limit_ms: int = LIMIT_MS) -> None:
        """Open both streams; raises InputError for a device that cannot be used."""
        self._driver = driver
        try:
            source = driver.open_input(self.source_wanted, self._take)
            self._streams.append(source)
            self._capture = Capture(source.rate_hz, self.now, limit_ms)
            sink = driver.open_output(self.sink_wanted, self._fill)
            self._streams.append(sink)
            self._playback = Playback(sink.rate_hz, self.now, begin_ms)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for stream in self._streams:
            stream.close()

    @property
    def capture(self) -> Capture:
        assert self._capture is not None, "a seat is opened before it is used"
        return self._capture

    @property
    def playback(self) -> Playback:
        assert self._playback is not None, "a seat is opened before it is used"
        return self._playback

    @property
    def alive(self) -> bool:
        """Whether both devices are still there, as far as their drivers know."""
        return all(stream.alive for stream in self._streams)

    @property
    def recoveries(self) -> int:
        """How often the system put a stream right and told nobody but itself."""
        return 0 if self._driver is None else self._driver.recoveries

    @property
    def opened(self) -> Opened:
        """What a delay of this card is a delay of."""
        source, sink = self.source_wanted, self.sink_wanted
        return Opened(
            input=source.device.name,
            output=sink.device.name,
            input_hz=self._streams[0].rate_hz,
            output_hz=self._streams[1].rate_hz,
            latency_ms=source.latency_ms,
        )

    @property
    def reported(self) -> Delay:
        """What the drivers say the card takes; nobody measured it."""
        said = sum(stream.latency_ms for stream in self._streams)
        return Delay(
            delay_ms=round(said, 2),
            plus_minus_ms=round(max(said, _REPORTED_LEAST_MS), 2),
            source="reported",
        )

    def _take(self, block: Pcm, lost: bool) -> None:
        # A block may come before the rate of its stream is known here.
        if self._capture is not None:
            self._capture.take(block, lost)

    def _fill(self, frames: int, dry: bool) -> Pcm:
        if self._playback is not None:
            return self._playback.fill(frames, dry)
        return np.zeros(frames, np.int16)
