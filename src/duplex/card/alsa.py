"""What ALSA, Linux's sound library, says of itself: counted, and kept off the terminal.

PortAudio recovers a stream that ran dry or over without telling; ALSA prints it. The
handler set here counts such recoveries instead. Where there is no ALSA it does nothing.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from collections.abc import Callable

_RECOVER = b"snd_pcm_recover"
_HANDLER = ctypes.CFUNCTYPE(
    None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
)


class Recoveries:
    """How often ALSA put a stream right since :meth:`listen`."""

    def __init__(self) -> None:
        self.count = 0
        # The library keeps the address: the handler must live as long as the process.
        self._handler = _HANDLER(self._told)

    def listen(self) -> None:
        """Take ALSA's messages from now on."""
        library = _library()
        if library is not None:
            library(self._handler)

    def _told(
        self, _file: bytes | None, _line: int, function: bytes | None, _code: int, _text: bytes
    ) -> None:
        self.count += function == _RECOVER


def _library() -> Callable[..., object] | None:
    """ALSA's function that takes a handler, if there is an ALSA."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL("libasound.so.2").snd_lib_error_set_handler
    except (OSError, AttributeError):
        return None
    handler: Callable[..., object] = found
    return handler
