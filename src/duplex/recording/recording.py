"""One call as it was kept: a frozen value read from events and WAVs alone.

Reading is tolerant, because a call may have been killed: lines may be doubled,
out of order or cut, files may differ in length by what the last second held.
It judges nothing; metrics and grades are functions of this value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from duplex.errors import InputError
from duplex.inputs import exists
from duplex.recording import extract, instrument
from duplex.recording.extract import BackendUsage, Delegation, Fault, Session, Transcript
from duplex.recording.instrument import (
    Arrival,
    CallerSound,
    Interrupted,
    LineDelay,
    LineSound,
    Pace,
    Sending,
)
from duplex.recording.recorder import ASSISTANT_SOURCE, AUDIO_FILES, CALLER_SOURCE, CONVERSATION
from duplex.run_folder import RunFolder
from duplex.values import SESSION_RATE_HZ, Event, Json, Segment, Side, ToolCall, Utterance
from duplex.wavfile import Pcm, Wav, probe_wav, read_wav

LINE_GAP_MS = 500
"""Heard words this close together are one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Everything known of one call; positions and spans in samples at ``rate_hz``.

    ``duration`` is what all audio files hold, or the position reached when
    there are none. ``termination_reason`` is None when the call never came to
    its last line. ``damage`` says in words what had to be left out.
    """

    call_id: str
    run_dir: Path
    rate_hz: int
    duration: int
    scenario_id: str | None
    clock: str | None
    first_speaker: str | None
    seed: int | None
    condition: str | None
    transport_ms: int | None
    tick_ms: int | None
    versions: Mapping[str, Json]
    events: tuple[Event, ...]
    utterances: tuple[Utterance, ...]
    transcripts: tuple[Transcript, ...]
    segments: tuple[Segment, ...]
    tool_calls: tuple[ToolCall, ...]
    delegations: tuple[Delegation, ...]
    agenda: Mapping[str, str]
    caller_outcome: str | None
    states: tuple[tuple[int, Json], ...]
    caller: Session
    assistant: Session
    backend_usage: tuple[BackendUsage, ...]
    faults: tuple[Fault, ...]
    lateness: Mapping[str, Json] | None
    termination_reason: str | None
    counts: Mapping[str, Json] | None
    damage: tuple[str, ...]
    sounds: tuple[CallerSound, ...] = ()
    arrivals: tuple[Arrival, ...] = ()
    sendings: tuple[Sending, ...] = ()
    paces: tuple[Pace, ...] = ()
    interrupted: tuple[Interrupted, ...] = ()
    realism: Mapping[str, Json] = field(default_factory=dict)
    line_sounds: tuple[LineSound, ...] = ()
    delays: tuple[LineDelay, ...] = ()

    @classmethod
    def load(cls, run_dir: str | Path, call_id: str) -> Recording:
        """Read a call back; raises InputError when there are no events to read."""
        run = RunFolder.open(run_dir)
        events, damage = extract.read_events(run.events(call_id))
        if not events:
            raise InputError(f"events {run.events(call_id)} hold no event")
        return cls.of_events(run, call_id, events, damage)

    @classmethod
    def of_events(
        cls, run: RunFolder, call_id: str, events: tuple[Event, ...], damage: tuple[str, ...] = ()
    ) -> Recording:
        """A call from events that somebody has read, at least one, such as one going on."""
        started = _fields(events, "call.started") or {}
        ended = _fields(events, "call.ended")
        rate_hz = extract.whole(started, "rate_hz") or SESSION_RATE_HZ
        frames, audio_damage = _frames(run.audio(call_id), rate_hz)
        finished = extract.last(events, "caller.finished")
        return cls(
            call_id=call_id,
            run_dir=run.path,
            rate_hz=rate_hz,
            duration=frames if frames is not None else max(event.at for event in events),
            scenario_id=extract.text(started, "scenario_id"),
            clock=extract.text(started, "clock"),
            first_speaker=extract.text(started, "first_speaker"),
            seed=extract.whole(started, "seed"),
            condition=extract.text(started, "condition"),
            transport_ms=extract.whole(started, "transport_ms"),
            tick_ms=extract.whole(started, "tick_ms"),
            versions=extract.members(started, "versions"),
            events=events,
            utterances=extract.utterances(events),
            transcripts=extract.transcripts(events),
            segments=extract.segments(events),
            tool_calls=extract.tool_calls(events),
            delegations=extract.delegations(events),
            agenda=extract.agenda(events),
            caller_outcome=extract.text(finished.fields, "outcome") if finished else None,
            states=extract.states(events),
            caller=extract.session(events, Side.CALLER),
            assistant=extract.session(events, Side.ASSISTANT),
            backend_usage=extract.backend_usage(events),
            faults=extract.faults(events),
            lateness=_fields(events, "late"),
            termination_reason=extract.text(ended, "termination_reason") if ended else None,
            counts=extract.members(ended, "counts") if ended else None,
            damage=(*damage, *audio_damage),
            sounds=instrument.sounds(events),
            arrivals=instrument.arrivals(events),
            sendings=instrument.sendings(events),
            paces=instrument.paces(events),
            interrupted=instrument.interrupted(events),
            realism=extract.members(started, "realism"),
            line_sounds=instrument.line_sounds(events),
            delays=instrument.line_delays(events),
        )

    @property
    def audio_folder(self) -> Path:
        return RunFolder(self.run_dir).audio(self.call_id)

    @property
    def lines(self) -> tuple[Utterance, ...]:
        """What was said, by start; an assistant that told no word has what the caller heard."""
        heard = extract.heard_of_assistant(self.events, self.rate_hz * LINE_GAP_MS // 1000)
        return tuple(sorted((*self.utterances, *heard), key=lambda one: (one.span, one.side)))

    @property
    def ended(self) -> bool:
        """Whether the call came to its last line."""
        return self.termination_reason is not None

    @property
    def duration_ms(self) -> int:
        return self.ms(self.duration)

    @property
    def initial_state(self) -> Json:
        """The application's state at the start; None when none was recorded."""
        return self.states[0][1] if self.states else None

    @property
    def final_state(self) -> Json:
        return self.states[-1][1] if self.states else None

    @property
    def fatal_fault(self) -> Fault | None:
        """The fault that ended the call."""
        return next((fault for fault in self.faults if fault.fatal), None)

    def ms(self, position: int) -> int:
        """A position or length in milliseconds, rounded to the nearest."""
        return (position * 2000 + self.rate_hz) // (2 * self.rate_hz)

    def session(self, side: Side) -> Session:
        return self.caller if side is Side.CALLER else self.assistant

    def spoken_by(self, side: Side) -> tuple[Utterance, ...]:
        """The labelled utterances of one side."""
        return tuple(item for item in self.utterances if item.side is side)

    def words(self, side: Side, direction: str) -> tuple[Transcript, ...]:
        """What one side's session transcribed: what it ``said`` or what it ``heard``."""
        pieces = (item for item in self.transcripts if item.side is side)
        return tuple(item for item in pieces if item.direction == direction)

    def source(self, side: Side) -> Pcm:
        """What one side said, before conditions: int16 of shape (frames,)."""
        name = CALLER_SOURCE if side is Side.CALLER else ASSISTANT_SOURCE
        return self._read(name).channel(0)[: self.duration]

    def conversation(self) -> Pcm:
        """What was heard: int16 of shape (frames, 2), the caller on the left."""
        samples: Pcm = self._read(CONVERSATION).samples[: self.duration]
        return samples

    def _read(self, name: str) -> Wav:
        return read_wav(self.audio_folder / name)


def _fields(events: tuple[Event, ...], kind: str) -> Mapping[str, Json] | None:
    event = extract.last(events, kind)
    return None if event is None else event.fields


def _frames(folder: Path, rate_hz: int) -> tuple[int | None, list[str]]:
    """Frames that every audio file holds, and what is wrong with them."""
    counts: dict[str, int] = {}
    damage: list[str] = []
    for name in AUDIO_FILES:
        if not exists(folder / name):
            damage.append(f"{name} is missing")
            continue
        try:
            wav_rate_hz, counts[name], warnings = probe_wav(folder / name)
        except InputError as error:
            damage.append(str(error))
            continue
        damage += warnings
        if wav_rate_hz != rate_hz:
            damage.append(f"{name} is at {wav_rate_hz} Hz, the call was held at {rate_hz} Hz")
    if len(set(counts.values())) > 1:
        damage.append(f"audio files differ in length ({counts}), the shortest counts")
    return (min(counts.values()) if counts else None), damage
