"""PortAudio's devices by way of sounddevice, imported when they are asked for and never before.

It opens, hands blocks over and closes; it holds no audio. Drivers below PortAudio print
to stderr what they try on the way, so that stream is held shut meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Protocol

import numpy as np

from duplex.card.alsa import Recoveries
from duplex.card.device import Device, Fill, Kind, Stream, Take, Wanted
from duplex.errors import InputError, MissingExtra

MISSING = (
    "no sound device can be used: PortAudio is missing; install it (Debian: apt-get install "
    "libportaudio2, macOS: brew install portaudio)"
)
_STDERR = 2


class _Raw(Protocol):
    """What of a sounddevice stream is used here."""

    samplerate: float
    latency: float
    active: bool

    def start(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class PortAudio:
    """The devices of this machine. Raises MissingExtra where PortAudio is not installed."""

    def __init__(self) -> None:
        self._sound = _imported()
        self._alsa = Recoveries()
        self._alsa.listen()

    @property
    def recoveries(self) -> int:
        return self._alsa.count

    def devices(self) -> Sequence[Device]:
        """Every device there is, in PortAudio's order; empty where there is none."""
        with _hushed():
            hosts = self._sound.query_hostapis()
            found = self._sound.query_devices()
            inward, outward = self._sound.default.device
        return tuple(
            Device(
                index=int(one["index"]),
                name=str(one["name"]),
                host=str(hosts[one["hostapi"]]["name"]),
                inputs=int(one["max_input_channels"]),
                outputs=int(one["max_output_channels"]),
                rate_hz=round(float(one["default_samplerate"])),
                default_input=one["index"] == inward,
                default_output=one["index"] == outward,
            )
            for one in found
        )

    def open_input(self, wanted: Wanted, take: Take) -> Stream:
        def came(block: np.ndarray, _frames: int, _time: object, flags: object) -> None:
            take(block.copy(), bool(getattr(flags, "input_overflow")))  # noqa: B009

        return self._opened("input", wanted, came)

    def open_output(self, wanted: Wanted, fill: Fill) -> Stream:
        def asked(block: np.ndarray, frames: int, _time: object, flags: object) -> None:
            block[:] = fill(frames, bool(getattr(flags, "output_underflow")))[:, None]  # noqa: B009

        return self._opened("output", wanted, asked)

    def _opened(self, kind: Kind, wanted: Wanted, callback: Callable[..., None]) -> Stream:
        """The device at the first rate and with the fewest channels it takes."""
        make = self._sound.InputStream if kind == "input" else self._sound.OutputStream
        device, problem = wanted.device, "no rate was asked for"
        for rate_hz in dict.fromkeys(wanted.rates_hz):
            for channels in dict.fromkeys((1, min(2, device.channels(kind)))):
                try:
                    with _hushed():
                        raw = make(
                            samplerate=rate_hz,
                            device=device.index,
                            channels=channels,
                            dtype="int16",
                            latency=wanted.latency_ms / 1000,
                            callback=callback,
                        )
                        raw.start()
                except self._sound.PortAudioError as error:
                    problem = str(error).splitlines()[0]
                    continue
                return _Stream(raw)
        tried = ", ".join(f"{rate} Hz" for rate in dict.fromkeys(wanted.rates_hz))
        raise InputError(f'{kind} device "{device.name}" cannot be opened at {tried}: {problem}')


class _Stream:
    """One stream of sounddevice."""

    def __init__(self, raw: _Raw) -> None:
        self._raw = raw
        self.rate_hz = round(raw.samplerate)
        self.latency_ms = float(raw.latency) * 1000
        self._closed = False

    @property
    def alive(self) -> bool:
        return not self._closed and bool(self._raw.active)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # A device that is gone cannot be stopped, and need not be.
        with suppress(Exception), _hushed():
            self._raw.abort()
        with suppress(Exception), _hushed():
            self._raw.close()


def _imported() -> ModuleType:
    try:
        with _hushed():
            import sounddevice
    # PortAudio itself may be missing, which is an OSError at import.
    except (ImportError, OSError):
        raise MissingExtra(MISSING) from None
    found: ModuleType = sounddevice
    return found


@contextmanager
def _hushed() -> Iterator[None]:
    """Hold stderr shut, whoever writes to it from C."""
    try:
        kept = os.dup(_STDERR)
    except OSError:  # closed already: nobody is told anything
        yield
        return
    void = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(void, _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
        os.close(void)
