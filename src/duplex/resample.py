"""Sample rates at the edges: int16 PCM from one rate to another, whole or in pieces.

The work is soxr's (HQ, float32; its int16 path dithers, so its bytes would
depend on the chunking) and the rounding is ours. Output sample ``k`` always
stands for the moment ``k / to_hz`` of the input: there is no shift to take out.
It never resets on a gap in arrival, only when it is finished. Participants and
file readers drive it; the engine itself never resamples.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import soxr

from duplex.errors import InputError

Pcm = npt.NDArray[np.int16]

_RANGE_HZ = (1_000, 384_000)


class Resampler:
    """A stream from ``from_hz`` to ``to_hz``; any chunking gives the same samples.

    What comes out lags what went in, because the filter looks ahead and soxr
    works in blocks. Fed 20 ms at a time, :attr:`held` swings between a few and 40
    ms of audio among 16, 24 and 48 kHz, 75 ms between 8 and 24 kHz, 115 ms between
    8 and 16 kHz and 175 ms between 8 and 48 kHz. The samples stand where they
    belong, but they are handed over that much later: a live user must count
    :attr:`held` as its own delay, never as the peer's.

    Raises:
        InputError: a rate is outside 1 000 to 384 000 Hz.
    """

    def __init__(self, from_hz: int, to_hz: int) -> None:
        for rate_hz in (from_hz, to_hz):
            if not _RANGE_HZ[0] <= rate_hz <= _RANGE_HZ[1]:
                raise InputError(
                    f"resampler: rate {rate_hz} Hz is outside {_RANGE_HZ[0]} to {_RANGE_HZ[1]} Hz"
                )
        self.from_hz = from_hz
        self.to_hz = to_hz
        self._stream = (
            None
            if from_hz == to_hz
            else soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32", quality="HQ")
        )
        self._taken = 0
        self._given = 0
        self._finished = False

    @property
    def finished(self) -> bool:
        return self._finished

    @property
    def held(self) -> int:
        """Output samples that the input so far stands for but that are still inside."""
        if self._finished:
            return 0
        return max(0, self._taken * self.to_hz // self.from_hz - self._given)

    def push(self, pcm: Pcm) -> Pcm:
        """Take int16 mono of any length, give what is ready: often nothing at first."""
        assert not self._finished, "push after finish"
        self._taken += len(pcm)
        if self._stream is None:
            return pcm.copy()
        return self._give(self._stream.resample_chunk(pcm.astype(np.float32)))

    def finish(self) -> Pcm:
        """Give the tail, down to the last input sample; the stream is over then."""
        assert not self._finished, "finish was called twice"
        self._finished = True
        if self._stream is None:
            return np.zeros(0, np.int16)
        return self._give(self._stream.resample_chunk(np.zeros(0, np.float32), last=True))

    def _give(self, samples: npt.NDArray[np.float32]) -> Pcm:
        self._given += len(samples)
        return np.clip(np.rint(samples), -32768, 32767).astype(np.int16)


def resample(pcm: Pcm, from_hz: int, to_hz: int) -> Pcm:
    """Return the whole of ``pcm`` (int16 mono) at ``to_hz``, an array of its own."""
    stream = Resampler(from_hz, to_hz)
    head = stream.push(pcm)
    return np.concatenate((head, stream.finish()))
