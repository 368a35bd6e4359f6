"""A pause in real time that ends early when somebody asks to stop."""

from __future__ import annotations

from collections.abc import Callable

from duplex.clock import real_pause

_STEP_SECONDS = 0.2


async def pause(seconds: float, stopping: Callable[[], bool]) -> bool:
    """Wait; return False as soon as ``stopping`` says so, True when the time is over."""
    left = seconds
    while left > 0 and not stopping():
        await real_pause(min(left, _STEP_SECONDS))
        left -= _STEP_SECONDS
    return not stopping()
