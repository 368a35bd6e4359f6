"""What an agent behind a bare audio stream can say, whatever its wire: the shared values.

Twilio's Media Streams and raw PCM both carry nothing but audio, marks, a clear
and our side channel. A dialect turns messages into these and the call's side
into messages. Pure: no socket, no clock, and nothing raises on what came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from duplex.protocols.gpt_live import Broken
from duplex.protocols.pcm_bytes import Pcm
from duplex.protocols.side_channel import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAudio:
    """What the agent says next: int16 at the dialect's rate, maybe seconds at once."""

    pcm: Pcm


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """To be returned by name once everything before it was played."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Forget what was not played yet."""


AgentMessage = AgentAudio | Mark | Clear | Report | Broken


class Dialect(Protocol):
    """One wire; a fresh one for each call."""

    rate_hz: int
    frame: int
    """Samples of one outgoing audio message."""
    session_id: str

    def opening(self) -> Sequence[str | bytes]:
        """What is sent before the first audio."""

    def audio(self, pcm: Pcm) -> str | bytes:
        """Return ``frame`` samples as the next message."""

    def beside(self, pcm: Pcm) -> Sequence[str]:
        """What is told of a frame beside its audio, once it was sent."""

    def mark(self, name: str) -> str:
        """Return the message that gives a mark back."""

    def closing(self) -> Sequence[str | bytes]:
        """What is sent last."""

    def receive(self, message: str | bytes) -> AgentMessage:
        """Read one message; never raises."""

    def end(self) -> int:
        """The stream is over; return the bytes that never became a sample."""
