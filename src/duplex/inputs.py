"""Files and folders somebody named, opened for reading: the one door for all readers.

Only regular files come in: a pipe, device or socket could keep a reader waiting
for ever, so it is refused at once. Whatever the system has against a path comes
out as an InputError with the path and the reason in words. It knows no format.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from duplex.errors import InputError

if sys.platform == "win32":
    _FLAGS = os.O_RDONLY | os.O_BINARY
else:
    # Opening a pipe that nobody writes to waits; told not to, it opens and is then refused.
    _FLAGS = os.O_RDONLY | os.O_NONBLOCK
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def opened(path: Path, name: str = "") -> Iterator[BinaryIO]:
    """Open a regular file for reading; ``name`` is what messages call it, else the path.

    Raises:
        InputError: it is no regular file, or cannot be opened or read to its end.
    """
    try:
        with open_file(path, name) as file:
            yield file
    except OSError as error:
        raise unreadable(name or str(path), error) from error


def open_file(path: Path, name: str = "") -> BinaryIO:
    """Open a regular file for whoever closes it; raises InputError as :func:`opened` does."""
    name = name or str(path)
    with _in_words(name):
        # Asked before it is opened too: merely opening some devices sets them to work.
        _refuse(path.stat().st_mode, name)
        descriptor = os.open(path, _FLAGS)
        try:
            _refuse(os.fstat(descriptor).st_mode, name)
        except BaseException:
            os.close(descriptor)
            raise
        return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, name: str = "", *, limit: int | None = None) -> bytes:
    """Read a whole regular file of at most ``limit`` bytes; raises InputError."""
    with opened(path, name) as file:
        data = file.read() if limit is None else file.read(limit + 1)
        if limit is not None and len(data) > limit:
            size = max(os.fstat(file.fileno()).st_size, len(data))
            raise InputError(f"{name or path} has {size} bytes, want at most {limit}")
    return data


def read_text(path: Path, name: str = "", *, limit: int | None = None) -> str:
    """Read a regular file as UTF-8, a byte order mark left out; raises InputError."""
    data = read_bytes(path, name, limit=limit).removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{name or path}: byte {error.start} is not UTF-8") from None


def is_folder(path: Path) -> bool:
    """Whether ``path`` is a folder; one that may not be looked at raises InputError."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def is_file(path: Path) -> bool:
    """Whether ``path`` is a regular file; one that may not be looked at raises InputError."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def exists(path: Path) -> bool:
    """Whether anything is there; a place that may not be looked at raises InputError."""
    return _mode(path) is not None


def entries(folder: Path, name: str = "") -> list[Path]:
    """List a folder, sorted; raises InputError when it cannot be listed."""
    with _in_words(name or str(folder)):
        return sorted(folder.iterdir())


def unreadable(name: str, error: OSError) -> InputError:
    """The error for what the system would not let us read, with its reason in words."""
    return InputError(f"{name} cannot be read: {reason(error)}")


def reason(error: OSError) -> str:
    """Why the system refused, in lower case."""
    return (error.strerror or str(error) or type(error).__name__).lower()


def _mode(path: Path) -> int | None:
    """The kind of what is at ``path``, links followed; None when nothing is there."""
    with _in_words(str(path)):
        try:
            return path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None


@contextmanager
def _in_words(name: str) -> Iterator[None]:
    """Turn what the system, or the path itself, has against being looked at into a sentence."""
    try:
        yield
    except OSError as error:
        raise unreadable(name, error) from error
    except ValueError:
        raise InputError(f"{name!r} is no path, it holds a null character") from None


def _refuse(mode: int, name: str) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((told for is_kind, told in _KINDS if is_kind(mode)), "something else")
    mend = "; save what comes through it to a file first" if stat.S_ISFIFO(mode) else ""
    raise InputError(f"{name} is no regular file but {kind}{mend}")
