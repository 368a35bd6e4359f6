"""The one family of errors duplex raises on purpose.

Messages are lower-case, without a full stop, and name the thing, the value got
and the value wanted. Whoever catches :class:`DuplexError` at the command line
prints the message and exits 2.
"""

from __future__ import annotations


class DuplexError(Exception):
    """Base of every error that is somebody's to mend."""


class InputError(DuplexError):
    """A file, an option or an argument cannot be used."""


class MissingExtra(DuplexError):
    """A part that is not installed is needed; the message says how to get it."""


class SessionError(DuplexError):
    """A session with a peer could not be started.

    ``stage`` is the contract's error stage, ``code`` the peer's own code.
    """

    def __init__(self, message: str, *, stage: str, code: str = "") -> None:
        super().__init__(message)
        self.stage = stage
        self.code = code
