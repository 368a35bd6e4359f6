"""How fast the other end's clock runs against ours, from when its samples had come.

A Theil-Sen line (Sen 1968) through the least delayed pieces of audio: late
pieces cannot bend it, and points across a pause are never joined. It answers
with a reason instead of a number where there is nothing to tell. Pure; the
facts of a call drive it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duplex.recording.instrument import Pace

LEAST_S = 10
"""A call must hold this much of one unbroken stream."""
STEADY_PPM = 20_000
"""No clock is this wrong: a stream that is does not keep the pace of real time."""
_POINTS = 500
Drift = tuple[float | None, str | None]
"""Parts per million, positive when the side sends too much; or why that is unknown."""


def drift_of(points: Sequence[Pace], rate_hz: int, clock: str | None) -> Drift:
    """The drift of one side's clock; ``points`` are that side's."""
    if clock == "virtual":
        return None, "in virtual time both sides have one clock: it cannot drift"
    if not points:
        return None, "that side has no clock of its own, or the call was shorter than 10 s"
    step = -(-len(points) // _POINTS)
    at = np.array([point.arrived_at for point in points[::step]], np.float64) / rate_hz
    came = np.array([point.samples for point in points[::step]], np.float64) / rate_hz
    stretch = np.array([point.stretch for point in points[::step]])
    one, other = np.triu_indices(len(at), 1)
    joined = (stretch[one] == stretch[other]) & (at[other] - at[one] >= LEAST_S / 4)
    one, other = one[joined], other[joined]
    if not len(one) or float((at[other] - at[one]).max()) < LEAST_S:
        return None, f"less than {LEAST_S} s of audio came without a pause"
    slopes = (came[other] - came[one]) / (at[other] - at[one])
    ppm = (float(np.median(slopes)) - 1) * 1e6
    if abs(ppm) > STEADY_PPM:
        return None, "that side does not send at the pace of real time"
    return round(ppm, 1), None
