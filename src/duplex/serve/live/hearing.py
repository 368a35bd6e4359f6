"""One call in progress as far as its files go: levels, speech, replies, transcript.

Speech that is over is found by a detector that hears on; speech that goes on is found by
a fresh one over the last seconds, which is cheap and holds until the first has closed
it. Turns and latencies are the timing block of the audio so far, so a later second may
still move the last ones. One thread at a time drives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from duplex.detect import Stream
from duplex.grading import Evidence
from duplex.intake.levels import Meter
from duplex.intake.listen import Listening
from duplex.intake.roles import Roles
from duplex.intake.sound import Repairs
from duplex.metrics.heard import speech_of_call
from duplex.metrics.of_call import facts_of
from duplex.metrics.timing import timing
from duplex.metrics.timing_policy import TimingPolicy
from duplex.options import RunOptions
from duplex.recording import Recording
from duplex.recording.extract import event_of
from duplex.recording.recorder import ASSISTANT_SOURCE, CALLER_SOURCE
from duplex.run_folder import RunFolder
from duplex.serve.live.levels import Levels
from duplex.serve.live.tails import Frames, Lines
from duplex.values import Event, Json, Segment, Side, Span
from duplex.viewer import say, timeline
from duplex.viewer.lines import lines
from duplex.viewer.reading import number, objects
from duplex.wavfile import Pcm

_AT_ONCE_S = 60
"""Audio heard in one look: whoever comes late to a long call has it in several."""
_RECENT_S = 30
"""How far back speech that goes on is looked for."""
_ROLES = Roles(order=(Side.CALLER, Side.ASSISTANT), source="stems")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What is known by now; lists only grow but for their last entries."""

    position_ms: float = 0.0
    lines: tuple[Json, ...] = ()
    replies: tuple[Json, ...] = ()
    floor: Mapping[str, Json] | None = None
    median: str | None = None
    behind: bool = False
    """More audio lies there than was heard in this look."""


class Hearing:
    """Hears one call on; ``options`` are its run's."""

    def __init__(self, place: RunFolder, call: str, options: RunOptions) -> None:
        self._place = place
        self._call = call
        self._policy = TimingPolicy(response_deadline_ms=options.response_deadline_ms)
        self._lines = Lines(place.path, place.events(call))
        folder = place.audio(call)
        names = {Side.CALLER: CALLER_SOURCE, Side.ASSISTANT: ASSISTANT_SOURCE}
        self._stems = {side: Frames(place.path, folder / name, 1) for side, name in names.items()}
        self._events: dict[int, Event] = {}
        self._ears: _Ears | None = None
        self._heard = Heard()

    @property
    def levels(self) -> Mapping[Side, Levels] | None:
        """None until there is audio."""
        return None if self._ears is None else self._ears.levels

    def look(self) -> Heard:
        """Read what came since, and say what is known by now."""
        told = [event for line in self._lines.read() if (event := event_of(line)) is not None]
        for event in told:
            self._events.setdefault(event.seq, event)
        came = self._listen()
        if self._events and (told or came):
            self._heard = self._said()
        return self._heard

    def _listen(self) -> bool:
        there = min(stem.there() for stem in self._stems.values())
        rates = {stem.rate_hz for stem in self._stems.values()}
        if not there or len(rates) != 1 or (rate_hz := rates.pop()) is None:
            return False
        if self._ears is None:
            self._ears = _Ears(rate_hz)
        most = min(there, _AT_ONCE_S * rate_hz)
        caller, assistant = (self._stems[side].read(most)[:, 0] for side in Side)
        if len(caller) != len(assistant):
            # One of the files was taken away or cut: nothing more can be said of it.
            return False
        self._ears.push(caller, assistant)
        return True

    def _said(self) -> Heard:
        """Everything anew from the events and the speech so far."""
        events = tuple(self._events[seq] for seq in sorted(self._events))
        recording = Recording.of_events(self._place, self._call, events)
        ears = self._ears
        block: dict[str, Json] = {}
        if ears is not None:
            recording = replace(
                recording, duration=ears.position * recording.rate_hz // ears.rate_hz
            )
            speech = speech_of_call(recording, ears.listening())
            block = timing(speech, self._policy, facts_of(recording, ears.rate_hz)).as_json()
        spoken = timeline.voices(block, recording)
        evidence = Evidence.from_recording(recording)
        now = recording.duration_ms
        found = block.get("response_latency")
        median = number(found.get("p50")) if isinstance(found, dict) else None
        floor = block.get("floor")
        return Heard(
            position_ms=float(now),
            lines=tuple(lines(evidence, recording, block, spoken, now, {})),
            replies=tuple(_replies(block, set() if ears is None else ears.open_ms())),
            floor=floor if isinstance(floor, dict) else None,
            median=None if median is None else say.ms(median),
            behind=any(stem.there() for stem in self._stems.values()),
        )


class _Ears:
    """Both sides' audio heard so far."""

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self.position = 0
        self.levels = {side: Levels(rate_hz) for side in Side}
        self._stream = Stream(rate_hz, "edge")
        self._closed: list[Segment] = []
        self._open: list[Segment] = []
        self._recent = {side: np.zeros(0, np.int16) for side in Side}

    def push(self, caller: Pcm, assistant: Pcm) -> None:
        for side, pcm in zip(Side, (caller, assistant), strict=True):
            self.levels[side].push(pcm)
            joined = np.concatenate([self._recent[side], pcm])
            self._recent[side] = joined[-_RECENT_S * self.rate_hz :]
        self.position += len(caller)
        self._closed += self._stream.push(caller, assistant)
        self._open = self._going_on()

    def open_ms(self) -> set[float]:
        """Where assistant speech that goes on began."""
        starts = (one.span.start for one in self._open if one.side is Side.ASSISTANT)
        return {round(start * 1000 / self.rate_hz, 3) for start in starts}

    def listening(self) -> Listening:
        """What was heard, in the shape in which a whole recording's is measured."""
        found = sorted([*self._closed, *self._open], key=lambda one: (one.span, one.side))
        return Listening(
            files=(),
            formats=(),
            file_rate_hz=self.rate_hz,
            rate_hz=self.rate_hz,
            duration=self.position,
            roles=_ROLES,
            detector="edge",
            segments={"edge": tuple(found)},
            levels=Meter(self.rate_hz).levels(),
            echoes=(),
            repairs=Repairs(),
            warnings=(),
        )

    def _going_on(self) -> list[Segment]:
        """Speech after the last that is over, as a fresh detector hears the last seconds."""
        fresh = Stream(self.rate_hz, "edge")
        caller, assistant = (self._recent[side] for side in Side)
        found = [*fresh.push(caller, assistant), *fresh.finish()]
        offset = self.position - len(caller)
        over = dict.fromkeys(Side, 0)
        for one in self._closed:
            over[one.side] = max(over[one.side], one.span.end)
        moved = (_moved(one, offset) for one in found)
        return [one for one in moved if one.span.start >= over[one.side]]


def _moved(segment: Segment, by: int) -> Segment:
    span = segment.span
    return replace(
        segment,
        span=Span(start=span.start + by, end=span.end + by),
        pauses=tuple(Span(start=one.start + by, end=one.end + by) for one in segment.pauses),
    )


def _replies(block: Mapping[str, Json], open_ms: set[float]) -> list[Json]:
    """Assistant turns that have a latency, with the words for it."""
    deadline = number(_policy(block).get("response_deadline_ms")) or 0.0
    found: list[Json] = []
    for turn in objects(block.get("turns")):
        latency = number(turn.get("response_latency_ms"))
        start, end = number(turn.get("start_ms")), number(turn.get("end_ms"))
        words = timeline.latency_words(turn)
        if turn.get("side") != "assistant" or latency is None or words is None or start is None:
            continue
        found.append(
            {
                "start_ms": start,
                "at": say.clock(start),
                "latency_ms": latency,
                "words": words,
                "late": latency > deadline,
                "open": any(start <= at <= (end or start) for at in open_ms),
            }
        )
    return found


def _policy(block: Mapping[str, Json]) -> Mapping[str, Json]:
    policy = block.get("policy")
    return policy if isinstance(policy, dict) else {}


def changed(before: Sequence[Json], now: Sequence[Json]) -> int | None:
    """The first place at which two lists differ; None when they are the same."""
    for at, (old, new) in enumerate(zip(before, now, strict=False)):
        if old != new:
            return at
    return None if len(before) == len(now) else min(len(before), len(now))
