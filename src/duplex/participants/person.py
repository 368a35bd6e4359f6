"""A person as the caller: what the microphone hears is said, what is said to it is played.

The card's threads and the call meet in two queues; nothing here waits for the card, and
the call goes on at its own clock whatever the card does. A card that is gone ends the
call with what was recorded. The person hangs up by a key; the participant never guesses
that a conversation is over. The terminal and :class:`~duplex.card.seat.Seat` drive it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict

import numpy as np

from duplex.card.echo_return import LEAST_MS, Returned, audible_ms, measure
from duplex.card.seat import Seat
from duplex.card.settling import Settling
from duplex.clock import Clock, real_pause
from duplex.errors import SessionError
from duplex.participants.audible import is_audible
from duplex.participants.base import Incoming, Pcm, Spoken
from duplex.participants.steady import SteadyRate
from duplex.resample import Resampler
from duplex.values import Happening, Json, RemoteFault, Side

FIRST_AUDIO_MS = 5_000
"""How long a microphone may take to give its first block."""
GONE_MS = 2_000
"""A card that asked for nothing for this long is gone."""
HELD_MS = 20_000
"""This much of both directions is kept to measure the echo by."""
TAIL_MS = 250
"""After the assistant's last sound its echo may still come back for this long."""
_LOOK_EVERY_MS = 3_000
_WAIT_STEP = 0.02

Pause = Callable[[float], Awaitable[None]]
"""Lets that many seconds go by before the call, on the clock of the card."""


class Person:
    """One call's caller at a card that is open; started, heard and finished by the loop."""

    side = Side.CALLER
    lock_step = False

    def __init__(self, seat: Seat, *, detector: str = "edge", pause: Pause = real_pause) -> None:
        self._seat = seat
        self._pause = pause
        self._detector = detector
        self._told: list[Incoming] = []
        self._began: float | None = None
        self._base: int | None = None
        self._behind = [0.0, 0]
        self._now = 0
        self._closed = False
        self._gone = False
        self._finished = False
        self._muted = False
        self._interrupting = False
        self._loud_until = -1
        self._shut = 0
        self._echo = _EchoWatch()
        self._looking: asyncio.Task[None] | None = None

    # -- opening ------------------------------------------------------------

    async def start(self, clock: Clock) -> None:
        """Wait for the microphone's first block; raises SessionError when none comes."""
        self._clock = clock
        self._rate = clock.rate_hz
        await self._settled()
        self._inward = Resampler(self._seat.capture.rate_hz, self._rate)
        self._outward = SteadyRate(self._rate, self._seat.playback.rate_hz)
        self._echo.begin(self._rate)
        self._tell("session.started", session_id="", model="", voice="", provider="person")
        delay = self._seat.delay or self._seat.reported
        self._tell(
            "card.opened",
            input=self._seat.opened.input,
            output=self._seat.opened.output,
            input_rate_hz=self._seat.capture.rate_hz,
            output_rate_hz=self._seat.playback.rate_hz,
            push_to_interrupt=self._seat.keys.push_to_interrupt,
            delay=dict(delay.model_dump()),
        )

    async def _settled(self) -> None:
        """Wait for both streams to keep the pace; a card that never does is used as it is."""
        settling, waited = Settling(self._seat), 0.0
        while not settling.steady() and waited * 1000 < FIRST_AUDIO_MS:
            await self._pause(_WAIT_STEP)
            waited += _WAIT_STEP
        if not self._seat.capture.frames:
            text = f"caller: the microphone gave no audio within {FIRST_AUDIO_MS} ms"
            raise SessionError(text, stage="caller_connection", code="no_audio")

    # -- the call -----------------------------------------------------------

    def hear(self, position: int, pcm: Pcm) -> None:
        self._now = position + len(pcm)
        if self._closed:
            return
        if is_audible(pcm):
            self._loud_until = self._now + self._samples(self._hearing_ms())
        if self._began is not None:
            self._behind[0] += self._seat.now() - self._began - position / self._rate
            self._behind[1] += 1
        self._seat.playback.put(self._outward.push(pcm))
        self._echo.played(pcm)
        if self._now // self._samples(_LOOK_EVERY_MS) != position // self._samples(_LOOK_EVERY_MS):
            self._look()

    def collect(self) -> Sequence[Incoming]:
        if not self._closed:
            self._follow_keys()
            self._watch()
            self._listen()
        told, self._told = self._told, []
        return told

    def _listen(self) -> None:
        """Hand over what the microphone gave; what came before the call began is not of it."""
        capture, blocks = self._seat.capture, self._seat.capture.drain()
        if self._began is None:
            elapsed = self._clock.elapsed()
            now = self._clock.position / self._rate if elapsed is None else elapsed
            self._began = self._seat.now() - now
            self._counts_before = self._counts()
            capture.clock.restart()
            self._seat.playback.clock.restart()
            return
        shut = self._is_shut()
        for block in blocks:
            if self._base is None:
                self._base = block.end - len(block.pcm)
            self._show(block.pcm)
            pcm = self._inward.push(block.pcm)
            if not len(pcm):
                continue
            self._echo.recorded(pcm)
            if shut:
                self._shut += len(pcm)
                pcm = np.zeros(len(pcm), np.int16)
            self._told.append(Spoken(pcm=pcm, received_at=max(0.0, block.at - self._began)))

    def _is_shut(self) -> bool:
        """Whether the microphone is not to be heard now."""
        keys = self._seat.keys
        held = keys.push_to_interrupt and self._now < self._loud_until and not keys.interrupting
        shut = keys.muted or keys.hung_up or held
        self._seat.shown.shut = shut
        return shut

    def _hearing_ms(self) -> int:
        """How long after its tick the assistant's sound may still be in the air."""
        delay = self._seat.delay or self._seat.reported
        return (
            TAIL_MS
            + round(delay.delay_ms)
            + 1000 * self._seat.playback.depth // (self._seat.playback.rate_hz)
        )

    def _follow_keys(self) -> None:
        keys = self._seat.keys
        if keys.muted != self._muted:
            self._muted = keys.muted
            self._tell("card.muted", muted=self._muted)
        if keys.interrupting != self._interrupting:
            self._interrupting = keys.interrupting
            self._tell("card.interrupt", held=self._interrupting)
        if keys.hung_up and not self._finished:
            self._finished = True
            self._tell("caller.finished", outcome="completed")

    def _watch(self) -> None:
        """A card that asks for nothing any more, or says so, is gone."""
        seat = self._seat
        quiet = seat.now() - min(seat.capture.last_at, seat.playback.last_at)
        if self._gone or (seat.alive and quiet * 1000 < GONE_MS):
            return
        self._gone = True
        which = "microphone" if seat.capture.last_at <= seat.playback.last_at else "loudspeaker"
        fault = RemoteFault(
            side=self.side,
            stage="transport",
            code="device_gone",
            message=f"the {which}'s device is gone, the call ends with what was recorded",
            fatal=True,
        )
        self._told.append(fault)

    def _show(self, pcm: Pcm) -> None:
        """What the meter shows of a block."""
        if len(pcm):
            level = float(np.sqrt(np.mean(pcm.astype(np.float64) ** 2)))
            shown = self._seat.shown
            shown.level_dbfs = 20 * float(np.log10(max(level, 0.1) / 32768))
            shown.clipped = bool(np.abs(pcm.astype(np.int32)).max() >= 32_700)

    # -- echo ---------------------------------------------------------------

    def _look(self) -> None:
        """Measure the echo beside the call, until one is found and told."""
        if self._looking is None or self._looking.done():
            if self._echo.told:
                return
            pair = self._echo.pair()
            if pair is not None:
                self._looking = asyncio.ensure_future(self._looked(*pair))

    async def _looked(self, played: Pcm, recorded: Pcm) -> None:
        found = await asyncio.to_thread(measure, played, recorded, self._rate, self._detector)
        if found is None or self._closed or self._echo.told:
            return
        self._echo.told = True
        self._tell("card.echo", **asdict(found))
        if found.heard_as_speech:
            self._seat.shown.warnings.append(_warning(found))

    # -- the end ------------------------------------------------------------

    async def finish(self) -> None:
        """Say what the card did during the call; the card itself stays open."""
        if self._closed:
            return
        # What the card does while sessions are closed is not of the call.
        account = None if self._began is None else self._account()
        self._seat.playback.closing = True
        if self._looking is not None:
            await asyncio.gather(self._looking, return_exceptions=True)
        self._closed = True
        if account is not None:
            self._tell("card.closed", **account)
        self._tell("session.closed", reason="close_requested")

    async def abort(self) -> None:
        self._closed = True

    def _account(self) -> dict[str, Json]:
        """What the card did: its clocks, its waits, everything that was lost."""
        capture, playback = self._seat.capture, self._seat.playback
        wait = playback.wait_ms()
        drifts = {"input": capture.clock.drift(), "output": playback.clock.drift()}
        first = None if self._base is None else capture.clock.time_of(self._base)
        began = self._began or 0.0
        counts = {name: count - self._counts_before[name] for name, count in self._counts().items()}
        return {
            **counts,
            "shut_ms": round(self._shut * 1000 / self._rate),
            "output_ms": None if wait is None else round(wait[0] + self._before_ms(), 2),
            "output_sd_ms": None if wait is None else round(wait[1], 2),
            "input_zero_ms": None if first is None else round((first - began) * 1000, 2),
            "drift_ppm": {
                name: None if drift is None else drift.ppm for name, drift in drifts.items()
            },
            "drift_plus_minus_ppm": {
                name: None if drift is None else drift.plus_minus_ppm
                for name, drift in drifts.items()
            },
        }

    def _before_ms(self) -> float:
        """From a sample's position in the call until it was put into the jitter buffer."""
        total, count = self._behind
        fixed = self._outward.delay / self._seat.playback.rate_hz
        return 1000 * (total / max(count, 1) + fixed)

    def _counts(self) -> dict[str, int]:
        capture, playback = self._seat.capture, self._seat.playback

        def ms(frames: int, rate_hz: int) -> int:
            return round(frames * 1000 / rate_hz)

        return {
            "overruns": capture.overruns,
            "underruns": playback.underruns,
            "recoveries": self._seat.recoveries,
            "gaps": playback.gaps,
            "gap_ms": ms(playback.gap_frames, playback.rate_hz),
            "input_dropped_ms": ms(capture.dropped, capture.rate_hz),
            "output_dropped_ms": ms(playback.dropped, playback.rate_hz),
            "left_out_ms": ms(playback.left_out, playback.rate_hz),
            "added_ms": ms(playback.added, playback.rate_hz),
        }

    def _samples(self, ms: int) -> int:
        return ms * self._rate // 1000

    def _tell(self, kind: str, **fields: Json) -> None:
        self._told.append(Happening(type=kind, fields=fields))


class _EchoWatch:
    """The last of both directions, in step, as far as the card's own clock allows."""

    def __init__(self) -> None:
        self.told = False
        self._both: tuple[deque[Pcm], deque[Pcm]] = (deque(), deque())
        self._sizes = [0, 0]
        self._rate = 0

    def begin(self, rate_hz: int) -> None:
        self._rate = rate_hz

    def played(self, pcm: Pcm) -> None:
        self._keep(0, pcm)

    def recorded(self, pcm: Pcm) -> None:
        self._keep(1, pcm)

    def pair(self) -> tuple[Pcm, Pcm] | None:
        """Both directions, once enough was played to hear it come back."""
        if not self._both[0] or not self._both[1]:
            return None
        played, recorded = (np.concatenate(tuple(side)) for side in self._both)
        return (played, recorded) if audible_ms(played, self._rate) >= LEAST_MS else None

    def _keep(self, at: int, pcm: Pcm) -> None:
        """Keep the first 20 s: what is dropped from one side only would shift it."""
        if self._sizes[at] < HELD_MS * self._rate // 1000 and not self.told:
            self._both[at].append(pcm)
            self._sizes[at] += len(pcm)


def _warning(found: Returned) -> str:
    return (
        f"the assistant comes back by the microphone at {found.level_db:.0f} dB, "
        f"{found.delay_ms:.0f} ms later, and would be taken for you: use headphones, or "
        "--push-to-interrupt"
    )
