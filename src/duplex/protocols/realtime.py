"""The Realtime dialect: names, limits, audio formats, and a session's settings.

What both ends of the wire share and nothing more. Everything here is pure. The
client's half is in ``realtime_client.py``, the server's in ``realtime_server.py``;
reading JSON and base64 is GPT-Live's, because the two wires agree on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from duplex.protocols.gpt_live import AudioFormat
from duplex.protocols.model_values import Function
from duplex.values import Json

REALTIME_PATH = "/realtime"
"""What follows the base URL's own path; the model is in the query."""
DEFAULT_MODEL = "gpt-realtime-2"
TRANSCRIPTION_MODEL = "gpt-4o-mini-transcribe"
SESSION_SECONDS = 3_600
APPEND_BYTES = 15 * 1024 * 1024
"""Audio of one ``input_audio_buffer.append``, at most."""

MISBEHAVES = "duplex.misbehaves"
"""Type of the one event the service does not have: the local server's word for a fault."""

TurnDetection = Literal["server_vad", "semantic_vad", "manual"]
TURN_DETECTIONS: tuple[str, ...] = get_args(TurnDetection)
Encoding = Literal["pcm", "pcmu", "pcma"]
ENCODINGS: tuple[str, ...] = get_args(Encoding)


def audio_format(encoding: str) -> AudioFormat:
    """Return the wire format of an encoding; PCM travels at 24 kHz only, the others at 8."""
    rate_hz = 24_000 if encoding == "pcm" else 8_000
    return AudioFormat(type=f"audio/{encoding}", rate_hz=rate_hz)


def format_json(audio: AudioFormat) -> dict[str, Json]:
    """Write a format as the wire has it: only PCM has a rate."""
    return audio.as_json() if audio.width == 2 else {"type": audio.type}


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeConfig:
    """What a client asks of a session in ``session.update``."""

    model: str = DEFAULT_MODEL
    voice: str = "marin"
    instructions: str = ""
    tools: Sequence[Function] = ()
    turn_detection: TurnDetection = "server_vad"
    encoding: Encoding = "pcm"
    transcription: str | None = TRANSCRIPTION_MODEL

    def as_json(self) -> dict[str, Json]:
        audio = format_json(audio_format(self.encoding))
        custom = self.voice.startswith("voice_")
        voice: Json = {"id": self.voice} if custom else self.voice
        heard: dict[str, Json] = {"format": audio, "turn_detection": self._turns()}
        if self.transcription is not None:
            heard["transcription"] = {"model": self.transcription}
        session: dict[str, Json] = {
            "type": "realtime",
            "output_modalities": ["audio"],
            "audio": {"input": heard, "output": {"format": dict(audio), "voice": voice}},
            "tools": [_tool(tool) for tool in self.tools],
            "tool_choice": "auto",
        }
        if self.instructions.strip():
            session["instructions"] = self.instructions
        return session

    def _turns(self) -> Json:
        if self.turn_detection == "manual":
            return None
        return {
            "type": self.turn_detection,
            "create_response": True,
            "interrupt_response": True,
        }


def _tool(function: Function) -> Json:
    return {
        "type": "function",
        "name": function.name,
        "description": function.description,
        "parameters": dict(function.parameters),
    }
