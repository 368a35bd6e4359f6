"""``duplex listen`` and ``run --listen``: a call is heard, stored, growing, or as it happens.

A stored call is read no faster than it is played, a growing one is waited for. A call in
progress is never waited upon: what finds no room is dropped, and what was is told. It
writes nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path

import numpy as np
from rich.console import Console, RenderableType
from rich.text import Text

from duplex.call import Watcher
from duplex.card.device import Driver, Pcm, Stream, choose, wanted
from duplex.card.playback import Playback
from duplex.card.seat import Seat
from duplex.clock import wall_seconds
from duplex.errors import InputError
from duplex.inputs import exists, opened
from duplex.options import RunOptions
from duplex.participants.steady import SteadyRate
from duplex.recording.recorder import CONVERSATION
from duplex.riff import PCM, locate
from duplex.run_folder import RunFolder
from duplex.run_lock import is_running
from duplex.runner import Audience
from duplex.screen import plain
from duplex.values import SESSION_RATE_HZ, Event, Side
from duplex.wavfile import probe_wav

LATENCY_MS = 100
AHEAD_MS = 400
"""This much is read ahead of what is played."""
_BLOCK_MS = 20
_BEGIN_MS = 100
_STEP_SECONDS = 0.02
_GROWN_SECONDS = 0.25
_STILL_SECONDS = 5.0
"""A recording that did not grow for this long, in a run that goes on, is over."""


class Which(StrEnum):
    """Whose voice is heard."""

    CALLER = "caller"
    ASSISTANT = "assistant"
    BOTH = "both"


class Speaker:
    """One output device, playing what is put into it; open until :meth:`close`."""

    def __init__(self, driver: Driver, device: str | None, rate_hz: int) -> None:
        found = choose(driver.devices(), device, "output")
        self._playback: Playback | None = None
        self._stream: Stream = driver.open_output(
            wanted(found, rate_hz, None, LATENCY_MS), self._fill
        )
        self.rate_hz = rate_hz
        self._steady = SteadyRate(rate_hz, self._stream.rate_hz)
        self._playback = Playback(self._stream.rate_hz, wall_seconds, _BEGIN_MS)

    @property
    def playback(self) -> Playback:
        assert self._playback is not None
        return self._playback

    @property
    def waiting_ms(self) -> float:
        return self.playback.depth * 1000 / self.playback.rate_hz

    @property
    def alive(self) -> bool:
        return self._stream.alive

    def put(self, pcm: Pcm) -> None:
        """Queue int16 mono at :attr:`rate_hz`; what finds no room is dropped and counted."""
        self.playback.put(self._steady.push(pcm))

    def close(self) -> None:
        self._stream.close()

    def _fill(self, frames: int, dry: bool) -> Pcm:
        if self._playback is None:
            return np.zeros(frames, np.int16)
        return self._playback.fill(frames, dry)


def command(
    run: Path,
    call: str | None,
    *,
    side: str,
    from_seconds: float,
    device: str | None,
    driver: Callable[[], Driver],
    console: Console,
) -> int:
    """Play a call of a run to its end; return the exit code. Raises DuplexError."""
    which = side_of(side)
    folder = RunFolder.open(run)
    call_id = _call(folder, call)
    path = folder.audio(call_id) / CONVERSATION
    if not exists(path):
        raise InputError(f"call {call_id}: {path} does not exist")
    if not path.resolve().is_relative_to(folder.path.resolve()):
        raise InputError(f"call {call_id}: {path} leads out of the run's folder")
    rate_hz, frames, _ = probe_wav(path)
    live = _goes_on(folder, call_id)
    if not frames and not live:
        raise InputError(f"call {call_id}: its recording holds no sound")
    if from_seconds * rate_hz >= frames and not (live and math.isfinite(from_seconds)):
        raise InputError(f"from {from_seconds} s: call {call_id} is {frames / rate_hz:.1f} s long")
    start = round(from_seconds * rate_hz)
    with closing(Speaker(driver(), device, rate_hz)) as speaker:
        state = "in progress" if live else f"{frames / rate_hz:.1f} s"
        console.print(Text(plain(f"{call_id} ({state}), {which.value}")))
        played = _play(speaker, _blocks(folder, call_id, path, start), which)
        while speaker.waiting_ms and speaker.alive:
            _pause(_STEP_SECONDS)
        _pause(LATENCY_MS / 1000)
        if not speaker.alive:
            raise InputError(f"listen: the output device is gone after {played / rate_hz:.1f} s")
    console.print(Text(f"played {played / rate_hz:.1f} s"))
    return 0


def side_of(side: str) -> Which:
    """Read ``--side``; raises InputError that lists what it may say."""
    try:
        return Which(side)
    except ValueError:
        raise InputError(f'side "{side}" is none of: {", ".join(Which)}') from None


def mixed(caller: Pcm, assistant: Pcm, which: Which) -> Pcm:
    """What is heard of both voices, in one channel, held inside int16."""
    if which is Which.CALLER:
        return np.ascontiguousarray(caller)
    if which is Which.ASSISTANT:
        return np.ascontiguousarray(assistant)
    total = caller.astype(np.int32) + assistant
    both: Pcm = np.clip(total, -32768, 32767).astype(np.int16)
    return both


class Bystander:
    """The company of a run that is listened to: plays the call that began first, then the next.

    Its player is a thread of the sound system; a call in progress only hands it ticks.
    """

    seat: Seat | None = None

    def __init__(self, driver: Driver, device: str | None) -> None:
        self._driver = driver
        self._device = device
        self._speaker: Speaker | None = Speaker(driver, device, SESSION_RATE_HZ)
        self._playing: str | None = None
        self._refused: str | None = None

    def beside(self, screen: Audience) -> Audience:
        return _Overheard(screen, self)

    def line(self) -> RenderableType | None:
        return None if self._playing is None else Text(plain(f"you hear {self._playing}"))

    def interrupted(self) -> str | None:
        return None

    def begins(self, call_id: str, rate_hz: int) -> None:
        """A call opened: it is heard if no other is."""
        if self._playing is not None:
            return
        if self._speaker is not None and self._speaker.rate_hz != rate_hz:
            self._speaker.close()
            self._speaker = None
        if self._speaker is None:
            try:
                self._speaker = Speaker(self._driver, self._device, rate_hz)
            except InputError as error:
                # The call itself needs no loudspeaker.
                self._refused = f"listening: {error}"
                return
        self._playing = call_id

    def hears(self, call_id: str, heard: tuple[Pcm, Pcm]) -> None:
        """A tick of a call: what each side was played, so the assistant's voice comes first."""
        if call_id == self._playing and self._speaker is not None:
            caller, assistant = heard[Side.ASSISTANT], heard[Side.CALLER]
            self._speaker.put(mixed(caller, assistant, Which.BOTH))

    def ends(self, call_id: str) -> None:
        if call_id == self._playing:
            self._playing = None

    def close(self) -> str | None:
        """Close the device; return what is to be told of audio that was not heard."""
        if self._speaker is None:
            return self._refused
        alive = self._speaker.alive
        self._speaker.close()
        if not alive:
            return "listening: the output device is gone, the rest was not played"
        lost = self._speaker.playback.dropped * 1000 // self._speaker.playback.rate_hz
        return f"listening fell behind: {lost} ms were not played" if lost else None


@contextmanager
def beside(
    options: RunOptions, console: Console, *, listen: bool, device: str | None
) -> Iterator[Bystander | None]:
    """Who listens to a run, if anybody; the device is opened first, so that it can be refused.

    Raises:
        InputError: there is no such device, or the calls are faster than they can be heard.
    """
    if not listen:
        if device is not None:
            raise InputError("listen-device is of --listen, which was not asked for")
        yield None
        return
    if options.clock != "wall":
        raise InputError(
            "listen: calls in virtual time are over before they can be heard; want --clock wall, "
            "or duplex listen RUN afterwards"
        )
    from duplex.card.portaudio import PortAudio

    bystander = Bystander(PortAudio(), device)
    try:
        yield bystander
    finally:
        told = bystander.close()
        if told is not None:
            console.print(Text(told))


class _Overheard:
    """The screen, and the bystander's ears."""

    def __init__(self, screen: Audience, bystander: Bystander) -> None:
        self._screen = screen
        self._bystander = bystander

    def opened(self, call_id: str, title: str, rate_hz: int, limit_ms: int) -> Watcher:
        shown = self._screen.opened(call_id, title, rate_hz, limit_ms)
        self._bystander.begins(call_id, rate_hz)
        return _Ears(shown, self._bystander, call_id)

    def finished(self, call_id: str, sentence: str) -> None:
        self._bystander.ends(call_id)
        self._screen.finished(call_id, sentence)


class _Ears:
    def __init__(self, shown: Watcher, bystander: Bystander, call_id: str) -> None:
        self._shown = shown
        self._bystander = bystander
        self._call_id = call_id

    def on_event(self, event: Event) -> None:
        self._shown.on_event(event)

    def on_tick(self, position: int, heard: tuple[Pcm, Pcm]) -> None:
        self._shown.on_tick(position, heard)
        self._bystander.hears(self._call_id, heard)


# -- a stored or growing recording ------------------------------------------------


def _call(folder: RunFolder, call: str | None) -> str:
    """The call that is named, else the newest of a run that goes on, or the first."""
    found = folder.call_ids()
    if not found:
        raise InputError(f"run {folder.path}: it holds no call yet")
    if call is not None:
        if call not in found:
            raise InputError(f'call "{call}" is none of: {", ".join(found)}')
        return call
    if is_running(folder.path):
        return max(found, key=lambda one: folder.events(one).stat().st_ctime)
    return found[0]


def _goes_on(folder: RunFolder, call_id: str) -> bool:
    """Whether a recording still grows: its run is held, and its last line is not written."""
    if not is_running(folder.path):
        return False
    try:
        with folder.events(call_id).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 65_536))
            return b'"type": "call.ended"' not in file.read()
    except OSError:
        return False


def _blocks(folder: RunFolder, call_id: str, path: Path, start: int) -> Iterator[Pcm]:
    """Blocks of shape (n, 2) from frame ``start`` on; empty ones while nothing is there yet."""
    at, still = start, 0.0
    while True:
        live = _goes_on(folder, call_id)
        found = False
        for block in _from(path, at):
            found = True
            at += len(block)
            yield block
        if found:
            still = 0.0
            continue
        if not live or still >= _STILL_SECONDS:
            return
        still += _GROWN_SECONDS
        _pause(_GROWN_SECONDS)
        yield np.zeros((0, 2), np.int16)


def _from(path: Path, start: int) -> Iterator[Pcm]:
    """What a recording holds from frame ``start`` on, in blocks of 20 ms; the rest is not read."""
    with opened(path) as file:
        place = locate(file, path)
        if place is None or place.format.tag != PCM or place.format.bits != 16:
            raise InputError(f"recording {path} is not as a call writes it, want 16-bit PCM")
        width = 2 * place.format.channels
        size = width * max(1, place.format.rate_hz * _BLOCK_MS // 1000)
        at = start * width
        file.seek(place.offset + at)
        while at + width <= place.length:
            raw = file.read(min(size, place.length - at))
            whole = len(raw) - len(raw) % width
            if not whole:
                return
            at += whole
            yield np.frombuffer(raw, "<i2", whole // 2).reshape(-1, place.format.channels)


def _play(speaker: Speaker, blocks: Iterator[Pcm], which: Which) -> int:
    """Play all blocks at the card's pace; return the frames."""
    played = 0
    for block in blocks:
        if len(block):
            left, right = block[:, 0], block[:, -1]
            speaker.put(mixed(left, right, which))
            played += len(block)
        while speaker.waiting_ms > AHEAD_MS and speaker.alive:
            _pause(_STEP_SECONDS)
        if not speaker.alive:
            break
    return played


_WAIT = threading.Event()


def _pause(seconds: float) -> None:
    _WAIT.wait(seconds)
