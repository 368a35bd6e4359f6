"""Planted conversations through a whole call in virtual time: engine, recording, timing block.

Both sides are scripted, so every sample has its place before the call; whether it stands
there in the recording is compared bit by bit. With a playout hold the assistant's audio
comes in deltas that jitter, and where each turn was played is read from its own bits, never
from what the call says of itself. Nothing is measured here but by the product's own code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from duplex.calibration.clips import RATE_HZ, Floats
from duplex.calibration.matching import AllFigures, Figures, Metric, compared
from duplex.calibration.plan import Conversation, Pcm, Truth, pcm_of, with_floor
from duplex.calibration.rows import Route, Row
from duplex.call import Call, CallPlan
from duplex.clock import Clock, VirtualClock
from duplex.detect import segments
from duplex.hangup import Policy
from duplex.legs import LinePlan, stems_of
from duplex.metrics.of_call import timing_of_call
from duplex.metrics.timing import TimingBlock
from duplex.participants.base import Incoming, Spoken
from duplex.participants.scripted import Scripted
from duplex.recording import CallRecorder, Recording
from duplex.recording.recorder import CONVERSATION
from duplex.values import Happening, Side, Span
from duplex.wavfile import write_wav

TICK_MS, LONG_TICK_MS = 20, 200
"""Of calls whose every edge or arrival is looked at, and of all others: the audio is the same."""
DELTA = RATE_HZ // 10
HOLD_MS = 120
FRAME = RATE_HZ // 400
"""2.5 ms: the frame of the edge detector."""
SOUGHT, DEEPEST = RATE_HZ // 100, RATE_HZ // 50
"""The 10 ms of a turn's edge that are looked for, and how far inside they may lie: a hold may
move within the last, soft milliseconds of a word, by less than 5 ms."""
MOST_SHIFT = RATE_HZ * 6 // 10
NEVER_MS = 10**9


@dataclass(slots=True, kw_only=True)
class Placement:
    """Whether audio stood where it was planted, over any number of calls.

    ``moved`` counts samples that did not, ``edges`` the detected edges that were compared
    alone and in the call, ``apart`` the most samples by which two of them differed; None
    when not even their number agreed.
    """

    calls: int = 0
    samples: int = 0
    moved: int = 0
    edges: int = 0
    apart: int | None = 0

    def join(self, other: Placement) -> None:
        self.calls += other.calls
        self.samples += other.samples
        self.moved += other.moved
        self.edges += other.edges
        known = self.apart is not None and other.apart is not None
        self.apart = max(self.apart or 0, other.apart or 0) if known else None

    @property
    def exact(self) -> bool:
        return self.samples > 0 and self.moved == 0

    @property
    def edges_agree(self) -> bool:
        return self.apart is not None and self.apart <= FRAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One call that was held and measured."""

    figures: AllFigures
    placement: Placement


async def hold(
    row: Row,
    conversation: Conversation,
    rng: np.random.Generator,
    folder: Path,
    call_id: str,
    *,
    edges: bool,
) -> Held:
    """Hold one conversation and compare; with ``edges`` also hear each side alone."""
    streams = sent(row, conversation, rng)
    paced = Paced(streams[Side.ASSISTANT], rng) if row.route is Route.ARRIVAL else None
    tick_ms = TICK_MS if paced or edges else LONG_TICK_MS
    caller = Scripted(
        Side.CALLER,
        [(0, streams[Side.CALLER])],
        conversation.utterances,
        conversation.sounds,
    )
    answering = paced or Scripted(Side.ASSISTANT, [(0, streams[Side.ASSISTANT])])
    plan = call_plan(call_id, conversation, (0, HOLD_MS) if paced else (0, 0), tick_ms)
    plan = replace(plan, line=LinePlan(condition=row.line, seed=int(rng.integers(2**31))))
    call = Call(
        # Metrics hear the stems themselves: a call whose own edges nobody looks at is cheaper.
        plan if edges else replace(plan, detector="rms"),
        caller=caller,
        assistant=answering,
        clock=VirtualClock(RATE_HZ),
        recorder=CallRecorder(folder, call_id, rate_hz=RATE_HZ, legs=stems_of(row.line)),
    )
    await call.hold()
    recording = Recording.load(folder, call_id)
    if row.uplink is not None:
        _degrade_line(recording, row, conversation, rng)
    block = timing_of_call(recording)
    if paced is None:
        figures = compared(block, conversation.truth, tick_ms)
        placement = placed(recording, streams, line=row.uplink is None and row.line.is_clean)
    else:
        truth, placement = found(recording, streams, conversation.truth)
        figures = compared(block, truth, tick_ms) | {
            Metric.OWN: _own(block, truth, conversation.truth, paced)
        }
    if edges and paced is None:
        placement.join(edges_alone(recording, streams))
    return Held(figures=figures, placement=placement)


def call_plan(
    call_id: str, conversation: Conversation, hold_ms: tuple[int, int], tick_ms: int
) -> CallPlan:
    """A call exactly as long as its conversation; nothing ends it before."""
    return CallPlan(
        call_id=call_id,
        scenario_id="calibration",
        transport_ms=tick_ms,
        first_speaker="caller",
        hold_ms=hold_ms,
        adaptive=(hold_ms[0] > 0, hold_ms[1] > 0),
        policy=Policy(
            quiet_ms=NEVER_MS,
            opening_ms=NEVER_MS,
            max_duration_ms=conversation.length * 1000 // RATE_HZ,
        ),
    )


def sent(row: Row, conversation: Conversation, rng: np.random.Generator) -> dict[Side, Pcm]:
    """What both sides put on the line: speech, its degradation, a noise floor."""
    changes = {Side.CALLER: row.caller, Side.ASSISTANT: row.assistant}
    streams = {}
    for side, degrade in changes.items():
        x: Floats = conversation.speech[side]
        if degrade is not None:
            x = degrade(x, conversation.levels[side], rng)
        streams[side] = pcm_of(with_floor(x, rng))
    return streams


class Paced:
    """An assistant whose audio comes in 100 ms deltas, due every 100 ms, ± 7.5 ms.

    One in twenty comes 150 to 180 ms late, and those behind it catch up.
    """

    lock_step = True

    def __init__(self, stream: Pcm, rng: np.random.Generator) -> None:
        self.side = Side.ASSISTANT
        self._stream = stream
        due = (np.arange(-(-len(stream) // DELTA)) + 1) * 0.1
        jitter = rng.uniform(-0.0075, 0.0075, len(due)) + 0.0075
        stalls = rng.uniform(size=len(due)) < 0.05
        jitter = np.where(stalls, rng.uniform(0.15, 0.18, len(due)), jitter)
        self.arrivals = np.maximum.accumulate(np.rint((due + jitter) * RATE_HZ).astype(np.int64))
        self._given = 0
        self._told: list[Incoming] = []

    async def start(self, clock: Clock) -> None:
        self._clock = clock
        fields = {"provider": "paced", "session_id": "", "model": "", "voice": ""}
        self._told.append(Happening(type="session.started", fields=dict(fields)))

    def hear(self, position: int, pcm: Pcm) -> None:
        return

    def collect(self) -> Sequence[Incoming]:
        told, self._told = self._told, []
        while self._given < len(self.arrivals):
            arrived = int(self.arrivals[self._given])
            if arrived > self._clock.position:
                break
            piece = self._stream[self._given * DELTA : (self._given + 1) * DELTA]
            told.append(Spoken(pcm=piece, arrived_at=arrived))
            self._given += 1
        return told

    async def finish(self) -> None:
        return

    async def abort(self) -> None:
        return


def placed(recording: Recording, streams: dict[Side, Pcm], *, line: bool) -> Placement:
    """Compare stems, and the conversation if the line was clean, with what was planted."""
    result = Placement(calls=1)
    heard = recording.conversation()
    for side in Side:
        takes = [recording.source(side)]
        if line or side is Side.ASSISTANT:
            takes.append(heard[:, side])
        for take in takes:
            planted = streams[side][: len(take)]
            result.samples += len(streams[side])
            result.moved += int((take[: len(planted)] != planted).sum())
            result.moved += len(streams[side]) - len(planted)
    return result


def found(recording: Recording, streams: dict[Side, Pcm], truth: Truth) -> tuple[Truth, Placement]:
    """Find the assistant's turns by their bits; the caller's stand where they were planted."""
    stem, stream = recording.source(Side.ASSISTANT), streams[Side.ASSISTANT]
    caller = recording.source(Side.CALLER)
    result = Placement(calls=1, samples=len(caller))
    result.moved = int((caller != streams[Side.CALLER][: len(caller)]).sum())

    def place(at: int, *, end: bool) -> int:
        result.samples += SOUGHT
        for inward in range(0, DEEPEST + 1, SOUGHT // 5):
            first = at - SOUGHT - inward if end else at + inward
            shift = shift_of(stem, stream[first : first + SOUGHT], first)
            if shift is not None:
                return at + shift
        result.moved += SOUGHT
        return at

    moved = truth.with_assistant_moved(
        start=lambda at: place(at, end=False), end=lambda at: place(at, end=True)
    )
    return moved, result


def shift_of(stem: Pcm, bits: Pcm, first: int) -> int | None:
    """How much later than ``first`` these very samples stand in the stem; None if nowhere."""
    window = stem[first : first + MOST_SHIFT + len(bits)]
    if len(window) < len(bits):
        return None
    for shift in np.flatnonzero(window[: len(window) - len(bits) + 1] == bits[0]):
        if np.array_equal(window[shift : shift + len(bits)], bits):
            return int(shift)
    return None


def edges_alone(recording: Recording, streams: dict[Side, Pcm]) -> Placement:
    """Edges that the detector finds in a side by itself, beside those of the call."""
    result = Placement()
    for side in Side:
        alone = segments(streams[side][: recording.duration], RATE_HZ, "edge")
        in_call = [segment.span for segment in recording.segments if segment.side is side]
        result.join(Placement(edges=2 * len(alone), apart=_apart(alone, in_call)))
    return result


def _apart(alone: Sequence[Span], in_call: Sequence[Span]) -> int | None:
    if len(alone) != len(in_call):
        return None
    pairs = zip(alone, in_call, strict=True)
    return max((max(abs(a.start - b.start), abs(a.end - b.end)) for a, b in pairs), default=0)


def _own(block: TimingBlock, truth: Truth, planted: Truth, paced: Paced) -> Figures:
    """The assistant's own share, true by its arrivals, against what the block says."""
    figures = Figures(n=len(truth.pairs))
    ms = 1000 / RATE_HZ
    tick = TICK_MS * RATE_HZ // 1000
    replies = block.relay.replies
    starts = {turn.start: index for index, turn in enumerate(block.talk.turns[Side.ASSISTANT])}
    for caller, assistant in truth.pairs:
        start = planted.turns[Side.ASSISTANT][assistant][0]
        end = planted.turns[Side.CALLER][caller][1]
        piece = start // DELTA
        own = int(paced.arrivals[piece]) + start - piece * DELTA - -(-end // tick) * tick
        near = min(
            starts, key=lambda at: abs(at - truth.turns[Side.ASSISTANT][assistant][0]), default=None
        )
        timing = None if near is None else replies[starts[near]]
        if timing is None or timing.own_ms is None:
            figures.missed += 1
        else:
            figures.add(timing.own_ms - own * ms)
    return figures


def _degrade_line(
    recording: Recording, row: Row, conversation: Conversation, rng: np.random.Generator
) -> None:
    """Let the assistant have heard a bad line: the conversation changes, the stems do not."""
    assert row.uplink is not None
    both = recording.conversation().copy()
    caller = both[:, Side.CALLER].astype(np.float32) / np.float32(32768)
    both[:, Side.CALLER] = pcm_of(row.uplink(caller, conversation.levels[Side.CALLER], rng))
    path = recording.audio_folder / CONVERSATION
    path.unlink()
    write_wav(path, both, RATE_HZ)
