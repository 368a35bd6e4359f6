"""A caller's channel through an audio condition, as ``duplex degrade`` would pass it.

It is what makes a row of every preset there is: the speaker is brought to the level that
conditions are made for, and the condition's own seed is drawn. Nothing is degraded by code of
its own. Rows drive it.
"""

from __future__ import annotations

import numpy as np

from duplex import conditions
from duplex.beds import LEVEL_DBOV
from duplex.calibration.clips import RATE_HZ, Floats
from duplex.calibration.plan import pcm_of
from duplex.calibration.rows import Degrade
from duplex.conditions import Condition
from duplex.degrading import degrade
from duplex.errors import InputError
from duplex.wavfile import Wav


def uplink(spelled: str) -> Condition:
    """Read a condition of the uplink.

    Raises:
        InputError: there is no such condition, or it is one of the way back.
    """
    condition = conditions.parse(spelled)
    if condition.downlink:
        raise InputError(f"condition {spelled}: calibration degrades the caller's uplink only")
    return condition


def through(condition: Condition) -> Degrade:
    """A whole channel through a condition."""

    def passed(channel: Floats, level: float, rng: np.random.Generator) -> Floats:
        nominal = np.float32(10 ** (LEVEL_DBOV / 20) / level)
        wav = Wav(rate_hz=RATE_HZ, samples=pcm_of(channel * nominal)[:, None])
        out = degrade(wav, condition, seed=int(rng.integers(2**62)))[0].out
        return out.astype(np.float32) / np.float32(32768)

    return passed
