"""The sound of a call in progress as one WAV without an end, until the call is over.

It follows ``conversation.wav`` as that grows, both sides on their own ears or one side on
both. Frames are sent as they are; a listener who takes nothing holds up nobody but
itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Literal

from duplex.clock import real_pause, wall_seconds
from duplex.recording.recorder import CONVERSATION
from duplex.serve.library import Library
from duplex.serve.live.following import going_on
from duplex.serve.live.tails import Frames
from duplex.serve.progress import Streams
from duplex.serve.refusals import Refusal
from duplex.wavfile import wav_header

Hear = Literal["both", "caller", "assistant"]
_LOOK_SECONDS = 0.2
_CHECK_SECONDS = 1.0
_AT_ONCE_FRAMES = 24_000
_ENDLESS = 1 << 31
_SIDES = {"caller": 0, "assistant": 1}


def sound(
    library: Library, streams: Streams, run: str, call: str, hear: Hear, from_ms: int | None
) -> AsyncGenerator[bytes, None]:
    """A call's sound from ``from_ms``, or from now on. Raises Refusal."""
    place = library.place(going_on(library, run, call).row)
    frames = Frames(place.path, place.audio(call) / CONVERSATION, 2)
    return streams.counted(_sound(library, run, call, frames, hear, from_ms))


async def _sound(
    library: Library, run: str, call: str, frames: Frames, hear: Hear, from_ms: int | None
) -> AsyncGenerator[bytes, None]:
    checked, over = wall_seconds(), False
    there = await asyncio.to_thread(frames.there)
    while frames.rate_hz is None and not over:
        await real_pause(_LOOK_SECONDS)
        there, over = await asyncio.to_thread(frames.there), await _is_over(library, run, call)
    rate_hz = frames.rate_hz or 24_000
    start = max(0, there - rate_hz // 2) if from_ms is None else from_ms * rate_hz // 1000
    frames.skip(min(start, there))
    yield wav_header(_ENDLESS, rate_hz, 2 if hear == "both" else 1)
    while True:
        found = await asyncio.to_thread(frames.read, _AT_ONCE_FRAMES)
        if len(found):
            yield (found if hear == "both" else found[:, _SIDES[hear]]).tobytes()
            continue
        if over:
            return
        if wall_seconds() - checked >= _CHECK_SECONDS:
            over, checked = await _is_over(library, run, call), wall_seconds()
        await real_pause(_LOOK_SECONDS)


async def _is_over(library: Library, run: str, call: str) -> bool:
    try:
        await asyncio.to_thread(going_on, library, run, call)
    except Refusal:
        return True
    return False
