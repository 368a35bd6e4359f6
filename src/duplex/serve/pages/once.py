"""What a form asks for, begun once however often its button is pressed before the answer comes.

A run has its folder after seconds, and whoever sees nothing happen presses again. The same
form sent while the first is under way has the first one's answer; it remembers nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


class Once:
    """Beginnings that are under way, by what was sent."""

    def __init__(self) -> None:
        self._going: dict[tuple[str, bytes], asyncio.Task[str]] = {}

    async def begun(
        self, place: str, sent: bytes, begin: Callable[[], Coroutine[None, None, str]]
    ) -> str:
        """The id of the run that ``begin`` begins, now or since the same was sent before."""
        key = (place, sent)
        task = self._going.get(key)
        if task is None:
            task = asyncio.create_task(begin())
            self._going[key] = task
            task.add_done_callback(lambda _: self._going.pop(key, None))
        # One who leaves must not take the run of the other answer away.
        return await asyncio.shield(task)
