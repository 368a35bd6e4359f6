"""A run asked to stop from outside: a file in its folder that its runner looks for.

Whoever may write the folder may ask. The runner looks about once a second, ends
its calls as a signal would, and takes the file away when it leaves.
"""

from __future__ import annotations

from contextlib import suppress

from duplex.clock import wall_seconds
from duplex.inputs import exists
from duplex.run_folder import RunFolder

NAME = "cancel"
_EVERY_SECONDS = 0.5


class StopFile:
    """Tells whether a run was asked to stop; looks at most twice a second."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = folder.path / NAME
        self._looked = 0.0
        self._asked = False

    def __call__(self) -> bool:
        now = wall_seconds()
        if not self._asked and now - self._looked >= _EVERY_SECONDS:
            self._looked = now
            self._asked = exists(self._path)
        return self._asked

    def clear(self) -> None:
        with suppress(OSError):
            self._path.unlink()


def ask_to_stop(folder: RunFolder) -> None:
    """Ask the run in this folder to stop; raises WriteFailed when that cannot be written."""
    folder.write_text(folder.path / NAME, "stop\n")
