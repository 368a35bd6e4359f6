"""What a sound card looks like from here: devices with names, and streams that are open.

Only shapes and a choice by name; who opens a device is a :class:`Driver`. A stream
calls ``take`` or ``fill`` from a thread of its own, which must return at once. Input and
output are always two streams: many systems cannot open two devices as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from duplex.errors import InputError

Pcm = npt.NDArray[np.int16]
Kind = Literal["input", "output"]
Take = Callable[[Pcm, bool], None]
"""Takes a block, int16 of shape (frames, channels), and whether audio was lost before it."""
Fill = Callable[[int, bool], Pcm]
"""Gives that many frames, int16 mono, told whether the device had run dry before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device as its driver names it; ``rate_hz`` is the rate it likes best."""

    index: int
    name: str
    host: str
    inputs: int
    outputs: int
    rate_hz: int
    default_input: bool = False
    default_output: bool = False

    def channels(self, kind: Kind) -> int:
        return self.inputs if kind == "input" else self.outputs

    def is_default(self, kind: Kind) -> bool:
        return self.default_input if kind == "input" else self.default_output


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How to open a device: rates to try in order (Hz), and the latency asked for, in ms."""

    device: Device
    rates_hz: tuple[int, ...]
    latency_ms: float


class Stream(Protocol):
    """One direction of a card, open and running until :meth:`close`."""

    rate_hz: int
    latency_ms: float
    """What the driver says of its own delay."""

    @property
    def alive(self) -> bool:
        """Whether the device still asks for or gives audio, as far as its driver knows."""

    def close(self) -> None:
        """Stop at once; never raises, may be called twice."""


class Driver(Protocol):
    """Whoever knows the devices of a machine. Raises InputError for what cannot be opened."""

    @property
    def recoveries(self) -> int:
        """How often the system below put a stream right by itself, so far."""

    def devices(self) -> Sequence[Device]: ...

    def open_input(self, wanted: Wanted, take: Take) -> Stream: ...

    def open_output(self, wanted: Wanted, fill: Fill) -> Stream: ...


def choose(devices: Sequence[Device], wanted: str | None, kind: Kind) -> Device:
    """The device called ``wanted`` (its number, its name, a part of it), else the default.

    Raises:
        InputError: none is meant, or several are.
    """
    able = [one for one in devices if one.channels(kind) > 0]
    if not able:
        raise InputError(f"no {kind} device: this machine has no sound card that can be used")
    if wanted is None:
        return next((one for one in able if one.is_default(kind)), able[0])
    found = [one for one in able if wanted == str(one.index)]
    found = found or [one for one in able if one.name == wanted]
    found = found or [one for one in able if wanted.casefold() in one.name.casefold()]
    names = ", ".join(f'{one.index} "{one.name}"' for one in (found or able))
    if len(found) != 1:
        what = "fits several" if found else "does not exist"
        raise InputError(f'{kind}-device "{wanted}" {what}, want one of: {names}')
    return found[0]


def wanted(device: Device, session_hz: int, rate_hz: int | None, latency_ms: float) -> Wanted:
    """How to open ``device``: at the rate asked for, else the session's, else its own."""
    rates = (rate_hz,) if rate_hz is not None else (session_hz, device.rate_hz)
    return Wanted(device=device, rates_hz=rates, latency_ms=latency_ms)
