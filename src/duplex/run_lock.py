"""One runner to a run's folder, held by the operating system.

The lock falls with the process that holds it, however that ends, so a run that
was killed can be taken up again at once and two runners can never share one. Worker
processes hold a lock of their own until the last has left: whoever takes the run up
waits for them, lest two calls be written to one place.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from duplex.clock import real_pause, wall_seconds
from duplex.errors import InputError
from duplex.wavfile import write_failed

NAME = "run.lock"
_TRIES, _AGAIN_SECONDS = 10, 0.05
_LATER = threading.Event()
"""Never set: waiting for it is a pause."""
WORKERS = "workers.lock"
_LEAVE_SECONDS = 30.0


class RunLock:
    """Held from :meth:`take` to :meth:`release`, or to the end of the process."""

    def __init__(self) -> None:
        self._file: int | None = None

    def take(self, folder: Path) -> None:
        """Take the folder; raises InputError when somebody else has it.

        Whoever merely asks whether a run goes on has it for an instant, so it is tried a
        few times.
        """
        path = folder / NAME
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise write_failed(path, error) from error
        if not any(_taken(file) or _LATER.wait(_AGAIN_SECONDS) for _ in range(_TRIES)):
            os.close(file)
            raise InputError(f"run {folder} has a runner already")
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class WorkersLock:
    """Held by a runner and by every process that inherits :attr:`inherited`."""

    def __init__(self) -> None:
        self._file: int | None = None

    @property
    def inherited(self) -> tuple[int, ...]:
        return () if self._file is None else (self._file,)

    async def take(self, folder: Path) -> None:
        """Wait until no worker of an earlier runner is left; raises InputError when one stays."""
        path = folder / WORKERS
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise write_failed(path, error) from error
        end = wall_seconds() + _LEAVE_SECONDS
        while not _taken(self._file):
            if wall_seconds() > end:
                raise InputError(f"run {folder}: a worker of an earlier runner is still at work")
            await real_pause(0.1)

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def is_running(folder: Path) -> bool:
    """Whether some process holds the run's folder now."""
    try:
        file = os.open(folder / NAME, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _taken(file)
    finally:
        os.close(file)


if sys.platform == "win32":

    def _taken(file: int) -> bool:
        import msvcrt

        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:

    def _taken(file: int) -> bool:
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
