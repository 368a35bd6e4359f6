"""Calls held in several processes at once, each with engines of its own.

A worker is a ``duplex`` of the same run that holds the attempts it is told to and
writes them into the run's folder; only the runner keeps the journal and the list.
A worker that dies loses the attempt it was at, which another then holds; a call
that kills two is given up and said so. Lines of JSON go both ways.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from duplex.about_run import Held
from duplex.call import CallEnd
from duplex.clock import real_pause
from duplex.errors import DuplexError
from duplex.holding import Done
from duplex.plan import PlannedCall
from duplex.run_folder import RunFolder
from duplex.taking_up import stored_result
from duplex.values import Json

_TRIES = 2
_LINE_BYTES = 1 << 20
_STOP_SECONDS = 0.25
_LEAVE_SECONDS = 10.0


class Workers:
    """A pool of worker processes; :meth:`hold` waits for a free one."""

    def __init__(
        self,
        folder: Path,
        *,
        count: int,
        stop: Callable[[], bool],
        inherited: tuple[int, ...] = (),
    ) -> None:
        """``inherited``: open files that every worker holds too, as long as it lives."""
        self._folder = RunFolder(folder)
        self._stop = stop
        self._inherited = inherited
        self._slots: asyncio.Queue[Process | None] = asyncio.Queue()
        for _ in range(count):
            self._slots.put_nowait(None)
        self._processes: set[Process] = set()

    async def hold(self, planned: PlannedCall, attempt: int) -> Done:
        """Hold one attempt in some worker. Raises DuplexError when no worker can."""
        call_id = planned.attempt_id(attempt)
        for _ in range(_TRIES):
            process = await self._slots.get()
            try:
                if process is None:
                    process = await self._started()
                answer = await self._asked(process, planned.id, attempt)
            except BaseException:
                await self._ended(process)
                self._slots.put_nowait(None)
                raise
            if answer is None:
                await self._ended(process)
                self._slots.put_nowait(None)
                self._folder.set_aside(call_id)
                continue
            self._slots.put_nowait(process)
            return _done(answer, self._folder, call_id)
        raise DuplexError(f"call {call_id} ended {_TRIES} worker processes in a row")

    async def close(self) -> None:
        """End every worker; one that does not leave is killed."""
        await asyncio.gather(*(self._ended(process) for process in list(self._processes)))

    async def _started(self) -> Process:
        words = (sys.executable, "-m", "duplex.worker", str(self._folder.path), str(os.getpid()))
        if sys.platform == "win32":
            process = await asyncio.create_subprocess_exec(
                *words, stdin=PIPE, stdout=PIPE, limit=_LINE_BYTES
            )
        else:
            # A group of its own: a terminal's Ctrl-C is the runner's, who passes it on.
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=PIPE,
                stdout=PIPE,
                limit=_LINE_BYTES,
                process_group=0,
                pass_fds=self._inherited,
            )
        self._processes.add(process)
        return process

    async def _asked(self, process: Process, case: str, attempt: int) -> dict[str, Json] | None:
        """Tell a worker what to hold; None when it died over it."""
        assert process.stdin is not None, "a worker is spoken to"
        assert process.stdout is not None, "a worker answers"
        watching = asyncio.create_task(self._passing_on(process))
        try:
            process.stdin.write(json.dumps({"hold": case, "attempt": attempt}).encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        except (ConnectionError, ValueError):
            return None
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        try:
            answer: Json = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            return None
        if not isinstance(answer, dict):
            return None
        if isinstance(problem := answer.get("problem"), str):
            raise DuplexError(problem)
        return answer

    async def _passing_on(self, process: Process) -> None:
        """Tell a worker to stop when the run is to stop."""
        while not self._stop():
            await real_pause(_STOP_SECONDS)
        assert process.stdin is not None, "a worker is spoken to"
        with suppress(ConnectionError):
            process.stdin.write(b'{"stop": true}\n')
            await process.stdin.drain()

    async def _ended(self, process: Process | None) -> None:
        if process is None:
            return
        self._processes.discard(process)
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _LEAVE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()


def _done(answer: dict[str, Json], folder: RunFolder, call_id: str) -> Done:
    """An attempt as its worker told it; the result is read from the call's folder."""
    result = stored_result(folder, call_id)
    if result is None:
        raise DuplexError(f"call {call_id}: its worker left no result")
    numbers = [answer.get(name) for name in ("media_seconds", "began", "ended", "position")]
    media, began, ended, position = (
        float(n) if isinstance(n, int | float) else 0.0 for n in numbers
    )
    reason = str(answer.get("reason") or "error")
    return Done(
        held=Held(
            end=CallEnd(reason=reason, position=int(position)),
            media_seconds=media,
            began=began,
            ended=ended,
        ),
        result=result,
        final=answer.get("final") is not False,
    )


def told(done: Done) -> dict[str, Json]:
    """What a worker says of an attempt it held."""
    return {
        "final": done.final,
        "media_seconds": done.held.media_seconds,
        "began": done.held.began,
        "ended": done.held.ended,
        "position": done.held.end.position,
        "reason": done.held.end.reason,
    }
