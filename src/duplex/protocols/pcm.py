"""Raw PCM over a websocket: binary messages are samples, text messages are JSON.

16-bit little-endian mono at a rate both ends agreed on. Our messages hold one
frame each; the agent may cut its own as it likes, also between the two bytes of
a sample. Text is optional: ``clear``, ``mark`` and the side channel. Pure, and
nothing raises on what a peer sent. ``docs/pcm.md`` is the page for people.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from duplex.errors import InputError
from duplex.protocols.agent_stream import AgentAudio, AgentMessage, Clear, Mark
from duplex.protocols.gpt_live import Broken, read_object
from duplex.protocols.pcm_bytes import Pcm, SampleCarry, from_bytes, to_bytes
from duplex.protocols.side_channel import read_report

RATES_HZ = (8_000, 48_000)
FRAMES_MS = (5, 200)
MARK_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PcmFormat:
    """What both ends agreed on."""

    rate_hz: int = 24_000
    frame_ms: int = 20

    @property
    def frame(self) -> int:
        """Samples of one of our messages."""
        return self.rate_hz * self.frame_ms // 1000


def format_of(url: str) -> PcmFormat:
    """Read ``rate_hz`` and ``frame_ms`` from an address's query; raises InputError."""
    query = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    rate_hz = _whole(query, "rate_hz", 24_000, RATES_HZ)
    frame_ms = _whole(query, "frame_ms", 20, FRAMES_MS)
    if rate_hz * frame_ms % 1000:
        raise InputError(
            f"assistant: frame_ms={frame_ms} is no whole number of samples at {rate_hz} Hz"
        )
    return PcmFormat(rate_hz=rate_hz, frame_ms=frame_ms)


def _whole(query: dict[str, str], name: str, default: int, bounds: tuple[int, int]) -> int:
    text = query.get(name, str(default))
    low, high = bounds
    if text.isascii() and text.isdigit() and len(text) < 9 and low <= int(text) <= high:
        return int(text)
    raise InputError(f"assistant: {name}={text[:40]}, wanted a whole number from {low} to {high}")


class PcmStream:
    """One stream's messages; see :class:`~duplex.protocols.agent_stream.Dialect`."""

    session_id = ""

    def __init__(self, form: PcmFormat | None = None) -> None:
        form = form or PcmFormat()
        self.rate_hz = form.rate_hz
        self.frame = form.frame
        self._carry = SampleCarry()

    def opening(self) -> Sequence[bytes]:
        return ()

    def audio(self, pcm: Pcm) -> bytes:
        return to_bytes(pcm)

    def beside(self, pcm: Pcm) -> Sequence[str]:
        return ()

    def mark(self, name: str) -> str:
        return json.dumps({"type": "mark", "name": name})

    def closing(self) -> Sequence[bytes]:
        return ()

    def receive(self, message: str | bytes) -> AgentMessage:
        if isinstance(message, bytes):
            return AgentAudio(pcm=from_bytes(self._carry.align(message)))
        value = read_object(message)
        if isinstance(value, Broken):
            return value
        match value.get("type"):
            case "clear":
                return Clear()
            case "mark":
                name = value.get("name")
                if isinstance(name, str) and 0 < len(name) <= MARK_LIMIT:
                    return Mark(name=name)
                return Broken(reason=f"mark.name is {str(name)[:40]!r}, wanted text")
        return read_report(value, len(message))

    def end(self) -> int:
        return self._carry.end()
