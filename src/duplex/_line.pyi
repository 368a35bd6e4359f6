from collections.abc import Sequence
from typing import final

import numpy as np
import numpy.typing as npt

KERNELS: tuple[str, ...]
__test__: dict[str, str]

_Pcm = npt.NDArray[np.int16]
_Section = tuple[Sequence[float], float, float]

def kernels_wanted(asked: str | None = None) -> str: ...
def stream_key(seed: int, leg: int, stream: int) -> int: ...
def round_trip(law: int, pcm: _Pcm, kernels: str | None = None) -> _Pcm: ...

@final
class Line:
    def __new__(
        cls, rate_hz: int, expected: float, follow: bool = False, kernels: str | None = None
    ) -> Line: ...
    @property
    def rate_hz(self) -> int: ...
    @property
    def delay(self) -> int: ...
    @property
    def kernels(self) -> str: ...
    @property
    def position(self) -> int: ...
    @property
    def packet(self) -> int: ...
    @property
    def clipped(self) -> int: ...
    @property
    def level(self) -> float: ...
    def add_bed(
        self,
        key: int,
        loop: _Pcm | None,
        gain: float,
        drift: npt.NDArray[np.float32] | None = None,
        follows: bool = False,
    ) -> None: ...
    def add_sounds(
        self,
        key: int,
        effect: int,
        clips: Sequence[_Pcm],
        gains: Sequence[float],
        at_most: tuple[int, int, int] = (0, 0, 0),
        every: int = 0,
        follows: bool = False,
        needs_quiet: int = 0,
    ) -> None: ...
    def set_echo(self, delay: int, gain: float, decay: float) -> None: ...
    def set_acoustic(self, delay: int, gain: float, decay: float) -> None: ...
    def set_reverb(
        self, delays: Sequence[int], gains: Sequence[float], direct_over_room: float, length: int
    ) -> None: ...
    def set_microphone(
        self,
        band: Sequence[_Section],
        muffled: Sequence[_Section] = (),
        key: int = 0,
        muffle_below: int = 0,
        gain: float = 1.0,
        agc: bool = False,
        dc: int = 0,
        clip: int = 32768,
        bits: int = 16,
    ) -> None: ...
    def set_telephony(
        self,
        factor: int,
        taps: Sequence[int],
        phases: Sequence[Sequence[int]],
        band: Sequence[_Section],
        gain: float,
        law: int,
    ) -> None: ...
    def set_loss(
        self,
        key: int,
        model: int,
        packet: int,
        burst: int,
        to_bad: int,
        to_good: int,
        at_first: int,
        conceals: bool,
    ) -> None: ...
    def set_network(
        self,
        key: int,
        packet: int,
        base: int,
        jitters: Sequence[int],
        reorder_below: int,
        stall_below: int,
        stall: int,
        hold: int,
        bounds: tuple[int, int],
    ) -> None: ...
    def process(self, pcm: _Pcm, played: _Pcm | None = None) -> _Pcm: ...
    def noise(self) -> _Pcm: ...
    def mask(self) -> npt.NDArray[np.uint8]: ...
    def labels(self) -> list[tuple[int, int, int, int]]: ...
    def network_totals(self) -> tuple[int, int, int, int, int, int, int, int]: ...
    def network_waits(self) -> tuple[int, int, int, int, int]: ...
