"""The settings of a Realtime session as a server keeps them, and how they are changed.

Pure. An update is sparse: what it does not name stays. What cannot be is a
:class:`Wrong`, never an exception, and then nothing has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from duplex.protocols.gpt_live import FORBIDDEN_VOICES, AudioFormat
from duplex.protocols.realtime import DEFAULT_MODEL, audio_format, format_json
from duplex.values import Json

_KNOWN = frozenset(
    {
        "type",
        "audio",
        "include",
        "instructions",
        "max_output_tokens",
        "model",
        "output_modalities",
        "parallel_tool_calls",
        "prompt",
        "reasoning",
        "tool_choice",
        "tools",
        "tracing",
        "truncation",
    }
)
_VADS = ("server_vad", "semantic_vad")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A client's mistake: the API's code, a message, and what it is about."""

    code: str
    message: str
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is settled; ``vad`` None means that the client says when a turn is over."""

    model: str = DEFAULT_MODEL
    instructions: str = ""
    voice: str = "marin"
    tools: tuple[Json, ...] = ()
    vad: str | None = "server_vad"
    create_response: bool = True
    interrupt_response: bool = True
    transcription: str | None = None
    heard: AudioFormat = field(default_factory=AudioFormat)
    said: AudioFormat = field(default_factory=AudioFormat)

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(
            name
            for tool in self.tools
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str)
        )

    def as_json(self) -> dict[str, Json]:
        turns: Json = None
        if self.vad is not None:
            turns = {
                "type": self.vad,
                "create_response": self.create_response,
                "interrupt_response": self.interrupt_response,
            }
        heard: dict[str, Json] = {
            "format": format_json(self.heard),
            "turn_detection": turns,
            "transcription": {"model": self.transcription} if self.transcription else None,
            "noise_reduction": None,
        }
        said: dict[str, Json] = {
            "format": format_json(self.said),
            "voice": self.voice,
            "speed": 1.0,
        }
        return {
            "type": "realtime",
            "object": "realtime.session",
            "model": self.model,
            "output_modalities": ["audio"],
            "instructions": self.instructions,
            "tools": list(self.tools),
            "tool_choice": "auto",
            "audio": {"input": heard, "output": said},
        }

    def updated(self, session: Json) -> Settings | Wrong:
        """Return the settings after ``session.update``."""
        if not isinstance(session, dict):
            return _bad("session", session, "an object")
        unknown = sorted(set(session) - _KNOWN)
        if unknown:
            param = f"session.{unknown[0]}"
            return Wrong(
                code="unknown_parameter", message=f"Unknown parameter: '{param}'.", param=param
            )
        if session.get("type") != "realtime":
            return _bad("session.type", session.get("type"), "'realtime'")
        audio = session.get("audio", {})
        if not isinstance(audio, dict):
            return _bad("session.audio", audio, "an object")
        after = self._with_words(session)
        for name, change in (("input", _with_input), ("output", _with_output)):
            part = audio.get(name)
            if isinstance(after, Wrong) or part is None:
                continue
            after = (
                change(after, part)
                if isinstance(part, dict)
                else _bad(f"session.audio.{name}", part, "an object")
            )
        return after

    def _with_words(self, session: Mapping[str, Json]) -> Settings | Wrong:
        instructions = session.get("instructions", self.instructions)
        tools = session.get("tools", list(self.tools))
        if instructions is not None and not isinstance(instructions, str):
            return _bad("session.instructions", instructions, "text")
        if not isinstance(tools, list) or not all(_is_tool(tool) for tool in tools):
            return _bad("session.tools", tools, "a list of function tools")
        return replace(self, instructions=instructions or "", tools=tuple(tools))


def _is_tool(tool: Json) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def _with_input(before: Settings, part: Mapping[str, Json]) -> Settings | Wrong:
    where = "session.audio.input"
    heard = _format(part.get("format"), before.heard, f"{where}.format")
    if isinstance(heard, Wrong):
        return heard
    after = replace(before, heard=heard)
    if "transcription" in part:
        wanted = part["transcription"]
        model = wanted.get("model") if isinstance(wanted, dict) else None
        after = replace(after, transcription=model if isinstance(model, str) else None)
    if "turn_detection" not in part:
        return after
    turns = part["turn_detection"]
    if turns is None:
        return replace(after, vad=None)
    kind = turns.get("type") if isinstance(turns, dict) else None
    if not isinstance(turns, dict) or kind not in _VADS:
        return _bad(f"{where}.turn_detection.type", kind, " or ".join(repr(v) for v in _VADS))
    return replace(
        after,
        vad=str(kind),
        create_response=turns.get("create_response") is not False,
        interrupt_response=turns.get("interrupt_response") is not False,
    )


def _with_output(before: Settings, part: Mapping[str, Json]) -> Settings | Wrong:
    said = _format(part.get("format"), before.said, "session.audio.output.format")
    if isinstance(said, Wrong):
        return said
    voice = part.get("voice", before.voice)
    if isinstance(voice, dict):
        voice = voice.get("id")
    if not isinstance(voice, str) or voice in FORBIDDEN_VOICES:
        return _bad("session.audio.output.voice", voice, "a voice")
    return replace(before, said=said, voice=voice)


def _format(value: Json, before: AudioFormat, where: str) -> AudioFormat | Wrong:
    if value is None:
        return before
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or kind not in ("audio/pcm", "audio/pcmu", "audio/pcma"):
        return _bad(f"{where}.type", kind, "'audio/pcm', 'audio/pcmu' or 'audio/pcma'")
    found = audio_format(str(kind).removeprefix("audio/"))
    if value.get("rate", found.rate_hz) != found.rate_hz:
        return _bad(f"{where}.rate", value.get("rate"), str(found.rate_hz))
    return found


def _bad(param: str, got: Json, wanted: str) -> Wrong:
    shown = f"a {type(got).__name__}" if isinstance(got, (dict, list)) else repr(got)[:60]
    message = f"Invalid value for '{param}': got {shown}, wanted {wanted}."
    return Wrong(code="invalid_value", message=message, param=param)
