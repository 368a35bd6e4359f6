"""What a Realtime server tells, as values: one for each kind of message that matters.

Plain values without behaviour. ``realtime_client.py`` reads them off the wire, the
participant acts on them.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.protocols.gpt_live import Broken
from duplex.protocols.pcm_bytes import Pcm
from duplex.protocols.seen_events import Repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The session is there (``updated``: with the settings that were asked for)."""

    session_id: str
    model: str
    voice: str
    updated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechEdge:
    """The server heard the other side begin (``started``) or end speaking."""

    started: bool
    item_id: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What was heard since the last turn is an item of the conversation now."""

    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardWords:
    """What the server's transcription made of one item of input."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """What the peer says next of one item; possibly empty when a lone odd byte came."""

    response_id: str
    item_id: str
    content_index: int
    pcm: Pcm


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioDone:
    """No more audio of that item will come."""

    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidWords:
    """Words of one item; ``whole`` ones replace the pieces before them."""

    response_id: str
    item_id: str
    text: str
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseBegun:
    response_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBegun:
    """A message of a response was declared; there may be no audio of it yet."""

    response_id: str
    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """The model wants a function run; ``arguments`` is the text as it came.

    ``sure`` is false until the item is finished: arguments are also told of calls that
    were broken off, so such a call waits for its response to complete.
    """

    response_id: str
    call_id: str
    name: str
    arguments: str
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Tokens of one response; None where the server did not say."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseDone:
    """A response is over: completed, cancelled, incomplete or failed, and why."""

    response_id: str
    status: str
    reason: str
    code: str
    message: str
    usage: TokenUsage | None
    calls: tuple[FunctionCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An ``error``; ``event_id`` names the client's message it is about, if it does.

    ``about`` ``transcription`` is a failed transcription of what was heard.
    """

    code: str
    message: str
    event_id: str | None = None
    about: str = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemKept:
    """An item is part of the conversation; ``call_id`` of one that answers a call."""

    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehaves:
    """The local server's own word that it does something wrong on purpose."""

    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A known type that needs no answer."""

    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A type this client does not know; never an error."""

    type: str


ServerMessage = (
    Opened
    | SpeechEdge
    | Committed
    | HeardWords
    | Audio
    | AudioDone
    | SaidWords
    | ResponseBegun
    | ItemBegun
    | FunctionCall
    | ResponseDone
    | Refusal
    | ItemKept
    | Misbehaves
    | Repeated
    | Notice
    | Unknown
    | Broken
)
