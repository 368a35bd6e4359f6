"""Twilio Media Streams, from Twilio's place: the messages an agent built for it expects.

Bidirectional streams only: ``connected``, ``start``, ``media``, ``mark``, ``dtmf``
and ``stop`` go out, ``media``, ``mark`` and ``clear`` come in, as JSON text with
mu-law at 8 kHz in base64. Reports of the side channel come in as ``duplex``
messages, which ``start`` invites by a custom parameter. Pure: the sequence
numbers and the stream's clock are counted, never read; nothing raises on what
a peer sent.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duplex.protocols import g711
from duplex.protocols.agent_stream import AgentAudio, AgentMessage, Clear, Mark
from duplex.protocols.dtmf import KeyEar
from duplex.protocols.gpt_live import Broken, read_base64, read_object, write_base64
from duplex.protocols.pcm_bytes import Pcm
from duplex.protocols.side_channel import read_report
from duplex.values import Json

RATE_HZ = 8_000
FRAME = 160
"""Samples, and bytes, of one media message: 20 ms."""
FRAME_MS = 20
MARK_LIMIT = 500
"""Longest name of a mark that is given back."""
SIDE_CHANNEL = "duplex"
"""The custom parameter that invites reports, and the event that carries one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamIds:
    """A call's ids, in Twilio's form: two letters and 32 hexadecimal digits."""

    stream: str
    account: str
    call: str

    @classmethod
    def drawn(cls, seed: int) -> StreamIds:
        """Draw all three from ``seed``."""
        dice = random.Random(f"{seed}:media_stream")
        stream, account, call = (
            f"{kind}{dice.getrandbits(128):032x}" for kind in ("MZ", "AC", "CA")
        )
        return cls(stream=stream, account=account, call=call)


class MediaStream:
    """One stream's messages; see :class:`~duplex.protocols.agent_stream.Dialect`."""

    rate_hz = RATE_HZ
    frame = FRAME

    def __init__(self, ids: StreamIds, parameters: Mapping[str, str] | None = None) -> None:
        self.ids = ids
        self.session_id = ids.stream
        self._parameters = {SIDE_CHANNEL: "1", **(parameters or {})}
        self._sequence = 0
        self._chunk = 0
        self._keys = KeyEar(FRAME)

    # -- what goes out ------------------------------------------------------

    def opening(self) -> Sequence[str]:
        connected = {"event": "connected", "protocol": "Call", "version": "1.0.0"}
        start: dict[str, Json] = {
            "accountSid": self.ids.account,
            "streamSid": self.ids.stream,
            "callSid": self.ids.call,
            "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": RATE_HZ, "channels": 1},
            "customParameters": dict(self._parameters),
        }
        return [json.dumps(connected), self._message("start", start)]

    def audio(self, pcm: Pcm) -> str:
        # Fifty a second: written out by hand, since nothing in it needs escaping.
        payload = write_base64(g711.encode(pcm, "mu"))
        at_ms = self._chunk * FRAME_MS
        self._sequence += 1
        self._chunk += 1
        return (
            f'{{"event":"media","sequenceNumber":"{self._sequence}","media":{{"track":"inbound",'
            f'"chunk":"{self._chunk}","timestamp":"{at_ms}","payload":"{payload}"}},'
            f'"streamSid":"{self.ids.stream}"}}'
        )

    def beside(self, pcm: Pcm) -> Sequence[str]:
        """Tell of a key that the caller pressed, as a telephone network would."""
        key = self._keys.hear(pcm)
        return [self.dtmf(key)] if key else ()

    def mark(self, name: str) -> str:
        return self._message("mark", {"name": name})

    def dtmf(self, digit: str) -> str:
        """Return the message for a key that was pressed."""
        return self._message("dtmf", {"track": "inbound_track", "digit": digit})

    def closing(self) -> Sequence[str]:
        fields: dict[str, Json] = {"accountSid": self.ids.account, "callSid": self.ids.call}
        return [self._message("stop", fields)]

    def _message(self, event: str, fields: dict[str, Json]) -> str:
        self._sequence += 1
        message: dict[str, Json] = {
            "event": event,
            "sequenceNumber": str(self._sequence),
            event: fields,
            "streamSid": self.ids.stream,
        }
        return json.dumps(message, separators=(",", ":"))

    # -- what comes in ------------------------------------------------------

    def receive(self, message: str | bytes) -> AgentMessage:
        if isinstance(message, bytes):
            return Broken(reason=f"binary message of {len(message)} bytes, wanted json text")
        value = read_object(message)
        if isinstance(value, Broken):
            return value
        stream = value.get("streamSid")
        if stream != self.ids.stream:
            return Broken(reason=f"streamSid is {str(stream)[:40]!r}, wanted {self.ids.stream!r}")
        match value.get("event"):
            case "media":
                return _audio(_member(value, "media"))
            case "mark":
                return _mark(_member(value, "mark"))
            case "clear":
                return Clear()
            case "duplex":
                return read_report(_member(value, "duplex"), len(message))
            case other:
                known = "media, mark, clear, duplex"
                return Broken(reason=f"event is {str(other)[:40]!r}, wanted one of: {known}")

    def end(self) -> int:
        return 0


def _member(value: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _audio(media: Mapping[str, Json]) -> AgentMessage:
    data = read_base64(media.get("payload"))
    return data if isinstance(data, Broken) else AgentAudio(pcm=g711.decode(data, "mu"))


def _mark(mark: Mapping[str, Json]) -> AgentMessage:
    name = mark.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MARK_LIMIT:
        return Broken(reason=f"mark.name is {str(name)[:40]!r}, wanted 1 to {MARK_LIMIT} letters")
    return Mark(name=name)
