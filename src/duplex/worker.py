"""A worker process of a run: ``python -m duplex.worker RUN``, spoken to in lines of JSON.

``{"hold": CASE, "attempt": N}`` holds one attempt and answers when its folder is
complete; ``{"stop": true}`` ends calls as a signal would. It leaves when its
input ends, and at the latest some seconds after its runner is gone, whatever the
agent it calls is at. It writes no journal and no list, and takes no signal of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from duplex.errors import DuplexError
from duplex.runner import Hold, Runner
from duplex.values import Json
from duplex.workers import told

_LOOK_SECONDS = 0.5
_LEAVE_SECONDS = 10.0


async def serve(folder: Path) -> None:
    """Hold what is asked for until nobody asks any more."""
    stopping = False
    runner = Runner.taking_up(folder, stop=lambda: stopping)
    reader = await _standard_input()
    calls: set[asyncio.Task[None]] = set()
    async with runner.helping() as hold:
        while line := await reader.readline():
            try:
                asked: Json = json.loads(line)
            except ValueError:
                continue
            if not isinstance(asked, dict):
                continue
            if asked.get("stop") is True:
                stopping = True
                continue
            case, attempt = asked.get("hold"), asked.get("attempt")
            if isinstance(case, str) and isinstance(attempt, int):
                task = asyncio.create_task(_answered(hold, case, attempt))
                calls.add(task)
                task.add_done_callback(calls.discard)
        stopping = True
        await asyncio.gather(*calls)


async def _answered(hold: Hold, case: str, attempt: int) -> None:
    try:
        answer: dict[str, Json] = told(await hold(case, attempt))
    except DuplexError as error:
        answer = {"problem": str(error)}
    with suppress(BrokenPipeError):  # the runner is gone; what was held lies in its folder
        print(json.dumps(answer), flush=True)


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def _orphaned(runner: int) -> None:
    """End this process some seconds after its runner; an agent that blocks would keep it here."""
    gone = threading.Event()
    while os.getppid() == runner:
        gone.wait(_LOOK_SECONDS)
    gone.wait(_LEAVE_SECONDS)
    os._exit(1)


def main() -> None:
    """A signal from a terminal goes to the runner, who passes it on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Told and not asked for: a runner that was killed as this began is no longer the parent.
    threading.Thread(target=_orphaned, args=(int(sys.argv[2]),), daemon=True).start()
    asyncio.run(serve(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
