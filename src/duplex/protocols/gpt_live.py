"""The GPT-Live dialect: names, limits, audio formats, reading one JSON message.

What both ends of the wire share and nothing more. Everything here is pure and
no function raises on what a peer sent: a message that cannot be read becomes a
:class:`Broken` value. The client's half is in ``gpt_live_client.py``, the
server's in ``gpt_live_server.py``.
"""

from __future__ import annotations

import binascii
import json
import re
from dataclasses import dataclass

from duplex.protocols import g711
from duplex.protocols.pcm_bytes import Pcm, from_bytes, to_bytes
from duplex.values import Json

SESSIONS_PATH = "/live/sessions"
"""What follows the base URL's own path; the model is never in the query."""

CLIENT_TYPES = (
    "session.start",
    "session.update",
    "session.input_audio.append",
    "session.input_audio.mute",
    "session.input_audio.unmute",
    "session.output_audio.fixture.play",
    "session.instructions.append",
    "session.thinking.append",
    "session.commentary.append",
    "decision.create",
    "decision.item.create",
    "decision.item.delete",
    "response.item.create",
    "response.create",
    "session.close",
)
VOICES = (
    "alloy",
    "ash",
    "ballad",
    "beacon",
    "bossa",
    "cedar",
    "cinder",
    "coral",
    "delta",
    "echo",
    "gleam",
    "marin",
    "meridian",
    "quartz",
    "ripple",
    "sage",
    "shida",
    "shimmer",
    "stone",
    "tempo",
    "verse",
    "vesper",
    "willow",
)
FORBIDDEN_VOICES = ("fable", "nova", "onyx")
DEFAULT_VOICE = "marin"
APPEND_TOKENS = 500
INSTRUCTIONS_TOKENS = 16_384
HISTORY_TOKENS = 8_192
HISTORY_MESSAGES = 128
FIXTURE_SECONDS = 30
FIXTURE_RATE_HZ = 24_000
FATAL_CODES = frozenset(
    {
        "insufficient_quota",
        "invalid_api_key",
        "account_deactivated",
        "billing_hard_limit_reached",
    }
)
"""Error codes after which a session cannot go on, though its socket may be open."""
SESSION_SECONDS = 7_200
MESSAGE_LIMIT = 4 * 1024 * 1024
"""Letters or bytes of one message that a client reads: a 30 s fixture twice over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFormat:
    """One wire format of a session, the same in both directions."""

    type: str = "audio/pcm"
    rate_hz: int = 24_000

    @property
    def width(self) -> int:
        """Bytes a sample."""
        return 2 if self.type == "audio/pcm" else 1

    def as_json(self) -> dict[str, Json]:
        return {"type": self.type, "rate": self.rate_hz}

    def encode(self, pcm: Pcm) -> bytes:
        """Return int16 samples at ``rate_hz`` as wire bytes."""
        return to_bytes(pcm) if self.width == 2 else g711.encode(pcm, self._law)

    def decode(self, data: bytes) -> Pcm:
        """Return whole samples' wire bytes as int16 at ``rate_hz``."""
        return from_bytes(data) if self.width == 2 else g711.decode(data, self._law)

    @property
    def _law(self) -> str:
        return "mu" if self.type == "audio/pcmu" else "a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A message that could not be read, and why (a clause, without a full stop).

    ``code`` is how a fault of it is called.
    """

    reason: str
    code: str = "unreadable"


def read_object(message: str | bytes, *, limit: int | None = None) -> dict[str, Json] | Broken:
    """Read one text or binary message as a JSON object; never raises.

    One that is longer than ``limit`` is not looked into.
    """
    if limit is not None and len(message) > limit:
        reason = f"a message of {len(message)} is too long, {limit} are taken"
        return Broken(reason=reason, code="oversize")
    try:
        text = message.decode("utf-8") if isinstance(message, bytes) else message
        value: Json = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        kind = "binary message" if isinstance(message, bytes) else "message"
        return Broken(reason=f"{kind} of {len(message)} is not json: {str(error)[:80]}")
    if not isinstance(value, dict):
        return Broken(reason=f"message is a json {type(value).__name__}, not an object")
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not json")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def read_base64(value: Json) -> bytes | Broken:
    """Decode a base64 string strictly; never raises."""
    if not isinstance(value, str):
        return Broken(reason=f"audio is a {type(value).__name__}, not base64 text")
    try:
        return binascii.a2b_base64(value, strict_mode=True)
    except ValueError as error:
        return Broken(reason=f"audio is not base64: {str(error)[:80]}")


def write_base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def clean_text(text: str) -> str:
    """Replace what UTF-8 cannot carry (lone surrogates), so text can be written anywhere."""
    return text.encode("utf-8", "replace").decode("utf-8")


_PIECES = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[^\sA-Za-z0-9]")


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens ``text`` is: words of up to 8 letters, marks and signs count 1.

    No tokenizer is at hand; the estimate is on the high side for English prose.
    """
    return sum(-(-len(piece) // 8) for piece in _PIECES.findall(text))


def split_text(text: str, limit: int) -> list[str]:
    """Split ``text`` into pieces of at most ``limit`` estimated tokens, at sentence ends
    where possible, at words otherwise; a single longer word is cut.
    """
    pieces: list[str] = []
    for sentence in re.findall(r"\S.*?(?:[.!?…](?=\s)|$)", text, flags=re.DOTALL):
        for part in [sentence] if estimate_tokens(sentence) <= limit else _words(sentence, limit):
            joined = f"{pieces[-1]} {part}" if pieces else part
            if pieces and estimate_tokens(joined) <= limit:
                pieces[-1] = joined
            else:
                pieces.append(part)
    return pieces


def _words(sentence: str, limit: int) -> list[str]:
    """Return the words of an overlong sentence, the longest cut to fit."""
    # A character is never more than one token, so a cut at ``limit`` always fits.
    return [
        word[start : start + limit]
        for word in sentence.split()
        for start in range(0, len(word), limit)
    ]
