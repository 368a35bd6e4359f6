"""One pass over a recording: speech of both sides, levels, and what is an echo.

Everything that is measured about a recording's sound is gathered here while it
streams by, in memory that does not grow with the audio. It judges nothing:
``health.py`` does. Measuring drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duplex.detect import Stream
from duplex.errors import DuplexError
from duplex.intake.echo import Echo, EchoFinder
from duplex.intake.levels import Levels, Meter
from duplex.intake.roles import Roles
from duplex.intake.sound import Pcm, Repairs
from duplex.intake.two_sides import LeftOut, TwoSides
from duplex.values import Segment, Side, Span

MAIN_DETECTOR = "edge"
"""What finds speech unless somebody asks for another detector."""
CONTRACT_DETECTOR = "rms"
WITNESS_DETECTOR = "webrtc"


class DetectorFailed(DuplexError):
    """A detector could not do its work, so nothing can be said of the recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """What one pass heard; positions are samples at ``rate_hz``.

    ``segments`` holds the finds of every detector that listened, by its name;
    those of ``detector`` are measured. ``echoes`` are listed, not taken out; ``leaks``
    are copies that make too little of a side's speech to be left out of it. ``left_out``
    is what of the files nobody heard, because the other side was over.
    """

    files: tuple[str, ...]
    formats: tuple[str, ...]
    file_rate_hz: int
    rate_hz: int
    duration: int
    roles: Roles
    detector: str
    segments: dict[str, tuple[Segment, ...]]
    levels: Levels
    echoes: tuple[Echo, ...]
    repairs: Repairs
    warnings: tuple[str, ...]
    leaks: tuple[Echo, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def duration_ms(self) -> float:
        return self.duration * 1000 / self.rate_hz

    def spans(self, side: Side, detector: str | None = None) -> tuple[Span, ...]:
        """All that a detector found on one side."""
        found = self.segments[detector or self.detector]
        return tuple(segment.span for segment in found if segment.side is side)

    def own_speech(self, side: Side) -> tuple[Segment, ...]:
        """What the detector found on one side, without the echoes of the other."""
        copies = {c.span for echo in self.echoes if echo.side is side for c in echo.segments}
        found = self.segments[self.detector]
        return tuple(s for s in found if s.side is side and s.span not in copies)


def listen(sides: TwoSides, detector: str = MAIN_DETECTOR, also: Sequence[str] = ()) -> Listening:
    """Hear a recording to its end; ``also`` names further detectors.

    Raises:
        InputError: no such detector, or a file that cannot be decoded.
        DetectorFailed: a detector gave up on the way.
    """
    ears = {name: Stream(sides.rate_hz, name) for name in dict.fromkeys([detector, *also])}
    heard: dict[str, list[Segment]] = {name: [] for name in ears}
    meter = Meter(sides.rate_hz)
    finder = EchoFinder(sides.rate_hz)
    duration = judged = 0
    for caller, assistant in sides.blocks():
        duration += len(caller)
        meter.push(caller, assistant)
        finder.push(caller, assistant)
        for name, ear in ears.items():
            heard[name] += _hear(name, ear, caller, assistant)
        judged = _judge(finder, heard[detector], judged)
    for name, ear in ears.items():
        heard[name] += ear.finish()
    _judge(finder, heard[detector], judged)
    segments = {name: tuple(sorted(found, key=_by_place)) for name, found in heard.items()}
    echoes, leaks = finder.echoes(segments[detector])
    return Listening(
        files=tuple(str(sound.path) for sound in sides.sounds),
        formats=tuple(sound.format for sound in sides.sounds),
        file_rate_hz=sides.file_rate_hz,
        rate_hz=sides.rate_hz,
        duration=duration,
        roles=sides.roles,
        detector=detector,
        segments=segments,
        levels=meter.levels(),
        echoes=echoes,
        leaks=leaks,
        repairs=_all_repairs([sound.repairs for sound in sides.sounds]),
        warnings=sides.warnings,
        left_out=tuple(sides.left_out),
    )


def _hear(name: str, ear: Stream, caller: Pcm, assistant: Pcm) -> list[Segment]:
    """What a detector finds; its failure is never taken for silence."""
    try:
        return ear.push(caller, assistant)
    except RuntimeError as error:
        raise DetectorFailed(f"the {name} detector failed: {error}") from error


def _judge(finder: EchoFinder, found: Sequence[Segment], judged: int) -> int:
    """Let the finder see the segments it has not seen, while their audio is there."""
    for segment in found[judged:]:
        finder.judge(segment)
    return len(found)


def _by_place(segment: Segment) -> tuple[Span, Side]:
    return segment.span, segment.side


def _all_repairs(repairs: Sequence[Repairs]) -> Repairs:
    return Repairs(
        invalid=sum(r.invalid for r in repairs),
        beyond=sum(r.beyond for r in repairs),
        peak=max((r.peak for r in repairs), default=0.0),
    )
