"""A sound card in virtual time: a room in which a voice and the loudspeaker are heard.

Its clock moves only when a test moves it. What the loudspeaker played is heard by the
microphone ``loop_ms`` later, at ``loop_db``; on top lie a voice at set times and noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from duplex import beds
from duplex.call import Call, CallEnd, CallPlan
from duplex.card.device import Device, Fill, Pcm, Stream, Take, Wanted, wanted
from duplex.card.seat import Keys, Seat
from duplex.card.settling import SPAN_S
from duplex.clock import VirtualClock
from duplex.errors import InputError
from duplex.hangup import Policy
from duplex.participants.base import Incoming
from duplex.participants.person import Person
from duplex.participants.python_agent import PythonAgent
from duplex.recording import CallRecorder, Recording
from duplex.resample import resample
from duplex.values import Side
from plan_runs import AGENT
from stimuli import pcm, voiced

SESSION_HZ = 24_000
VOICE = pcm(voiced(1.0, pitch=140))
EARLY_S = 1.5
"""The card's time when a call begins: it ran a second, and half of one to be steady."""


class FakeStream:
    def __init__(self, card: FakeCard) -> None:
        self._card = card
        self.rate_hz = card.rate_hz
        self.latency_ms = 30.0
        self.closed = False

    @property
    def alive(self) -> bool:
        return not self.closed and not self._card.gone

    def close(self) -> None:
        self.closed = True


@dataclass(kw_only=True)
class FakeCard:
    """The driver, the devices and the room; ``ppm`` is how fast the card's clock runs."""

    rate_hz: int = SESSION_HZ
    channels: int = 1
    block_ms: int = 10
    loop_ms: float = 60.0
    loop_db: float = -200.0
    noise: float = 0.0
    ppm: float = 0.0
    jitter_ms: float = 0.0
    voice: Sequence[tuple[float, Pcm]] = ()
    """(seconds of the card's time, int16 at 24 kHz)."""
    time: float = 0.0
    gone: bool = False
    recoveries: int = 0
    refuses: bool = False
    lost_at: set[int] = field(default_factory=set)
    dry_at: set[int] = field(default_factory=set)
    """Numbers of blocks before which the card says that it lost audio, or ran dry."""

    def __post_init__(self) -> None:
        self._take: Take | None = None
        self._fill: Fill | None = None
        self._block = self.rate_hz * self.block_ms // 1000
        self._count = 0
        self._zero = 0.0
        self._played: Pcm = np.zeros(0, np.int16)
        self._random = np.random.default_rng(3)
        self.late = 0.0
        self._placed = [
            (round(at * self.rate_hz), resample(said, SESSION_HZ, self.rate_hz))
            for at, said in self.voice
        ]

    def now(self) -> float:
        return self.time + self.late

    def devices(self) -> Sequence[Device]:
        names = ("built in", "USB headset")
        return tuple(
            Device(
                index=index,
                name=name,
                host="fake",
                inputs=self.channels,
                outputs=2,
                rate_hz=self.rate_hz,
                default_input=index == 0,
                default_output=index == 0,
            )
            for index, name in enumerate(names)
        )

    def open_input(self, wanted: Wanted, take: Take) -> Stream:
        self._opened(wanted)
        self._take = take
        return FakeStream(self)

    def open_output(self, wanted: Wanted, fill: Fill) -> Stream:
        self._opened(wanted)
        self._fill = fill
        return FakeStream(self)

    def _opened(self, wanted: Wanted) -> None:
        if self.refuses:
            raise InputError(f'device "{wanted.device.name}" cannot be opened')
        # A new opening starts both streams anew.
        self._zero, self._count = self.time, 0
        self._played = np.zeros(0, np.int16)

    def advance(self, seconds: float) -> None:
        """Let time go by; blocks come and go at the card's own pace."""
        until = self.time + seconds
        while (due := self._due()) <= until + 1e-9:
            self.time = due
            self.late = self.jitter_ms / 1000 * float(self._random.random() ** 3)
            if not self.gone:
                self._step()
            self.late = 0.0
            self._count += 1
        self.time = until

    async def pause(self, seconds: float) -> None:
        self.advance(seconds)

    @property
    def heard(self) -> Pcm:
        """Everything that the loudspeaker played since it was opened."""
        return self._played

    def _due(self) -> float:
        frames = (self._count + 1) * self._block
        return self._zero + frames / self.rate_hz / (1 + self.ppm * 1e-6)

    def _step(self) -> None:
        start = self._count * self._block
        if self._take is not None:
            mono = self._mic(start)
            block = np.repeat(mono[:, None], self.channels, axis=1)
            self._take(block, self._count in self.lost_at)
        if self._fill is not None:
            out = self._fill(self._block, self._count in self.dry_at)
            self._played = np.concatenate((self._played, out))

    def _mic(self, start: int) -> Pcm:
        """What the microphone gives in the block that begins at frame ``start``."""
        total = (
            self._random.normal(0, self.noise, self._block) if self.noise else np.zeros(self._block)
        )
        lag = round(self.loop_ms * self.rate_hz / 1000) + self._block
        total += _cut(self._played, start - lag, self._block) * 10 ** (self.loop_db / 20)
        opened = round(self._zero * self.rate_hz)
        for at, said in self._placed:
            total += _cut(said, start + opened - at, self._block)
        return np.clip(np.rint(total), -32768, 32767).astype(np.int16)


def _cut(pcm: Pcm, start: int, length: int) -> np.ndarray:
    """``length`` samples from ``start`` on, zeros outside."""
    out = np.zeros(length)
    low, high = max(0, start), min(len(pcm), start + length)
    if low < high:
        out[low - start : high - start] = pcm[low:high]
    return out


def seat_of(card: FakeCard, **keys: bool) -> Seat:
    """An open seat at the card's first device."""
    device = card.devices()[0]
    how = wanted(device, SESSION_HZ, card.rate_hz, 60)
    seat = Seat(how, how, Keys(now=card.now, **keys), card.now)
    seat.open(card)
    return seat


def speaks(call: object) -> object:
    """An agent that says a second of speech every 2 s, whatever it hears."""
    voice = beds.background_speech(1, SESSION_HZ).samples[8 * SESSION_HZ :]
    ticks = 0

    def hear(_: Pcm, rate_hz: int) -> Pcm | None:
        nonlocal ticks
        ticks += 1
        turn, at = divmod(ticks, 100)
        return voice[turn * rate_hz :][:rate_hz].copy() if at == 75 else None

    return hear


class Pumped(PythonAgent):
    """An agent beside which the card's time goes on with the call's; ``acts`` happen at ticks."""

    def __init__(self, card: FakeCard, factory: str, acts: dict[int, object]) -> None:
        made: dict[str, object] = {"speaks": speaks}
        exec(AGENT, made)
        maker = made[factory]
        assert callable(maker)
        super().__init__(maker)
        self._card = card
        self._acts = acts
        self._count = 0

    def hear(self, position: int, pcm: Pcm) -> None:
        super().hear(position, pcm)
        act = self._acts.get(self._count)
        if callable(act):
            act()
        self._count += 1
        self._card.advance(len(pcm) / SESSION_HZ)

    def collect(self) -> Sequence[Incoming]:
        return super().collect()


async def hold(
    folder: Path,
    card: FakeCard,
    seat: Seat,
    *,
    seconds: float,
    factory: str = "answers",
    acts: dict[int, object] | None = None,
) -> tuple[CallEnd, Recording]:
    """A call of at most so many seconds between the seat and an agent, in virtual time."""
    card.advance(EARLY_S - SPAN_S)
    recorder = CallRecorder(folder, "c", rate_hz=SESSION_HZ)
    policy = Policy(max_duration_ms=round(seconds * 1000), drain_ms=200)
    call = Call(
        CallPlan(
            call_id="c",
            scenario_id="c",
            first_speaker="caller",
            policy=policy,
            hold_ms=(60, 0),
            adaptive=(True, False),
        ),
        caller=Person(seat, pause=card.pause),
        assistant=Pumped(card, factory, acts or {}),
        clock=VirtualClock(SESSION_HZ),
        recorder=recorder,
    )
    end = await call.hold()
    return end, Recording.load(folder, "c")


def told(recording: Recording, kind: str) -> list[dict[str, object]]:
    return [
        dict(event.fields)
        for event in recording.events
        if event.type == kind and event.side in (Side.CALLER, None)
    ]
