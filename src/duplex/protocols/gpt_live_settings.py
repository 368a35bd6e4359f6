"""A session's settings on the server's side: resolved, shown to the client, and updated.

Pure, from the strict models of ``gpt_live_models.py``; the server's state machine
(``gpt_live_server.py``) drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duplex.protocols.gpt_live import DEFAULT_VOICE, AudioFormat, clean_text
from duplex.protocols.gpt_live_models import (
    ClientDelegation,
    ResponsesChange,
    ResponsesDelegation,
    SessionModel,
)
from duplex.values import Json

DEFAULT_INSTRUCTIONS = "Speak naturally, keep answers short and help with what is asked."


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """A started session's settings, defaults filled in.

    ``history`` holds (role, text) pairs given before the start.
    """

    model: str
    voice: str
    instructions: str
    audio: AudioFormat
    acknowledgement_delay_ms: int = 0
    history: Sequence[tuple[str, str]] = ()


def resolve(session: SessionModel) -> SessionConfig:
    audio = session.audio
    chosen = audio.format if audio is not None else None
    output = audio.output if audio is not None else None
    voice = output.voice if output is not None else None
    name = voice.get("id") if isinstance(voice, dict) else voice
    blank = session.instructions is None or not session.instructions.strip()
    delay = session.delegation.acknowledgement_delay_ms if session.delegation else None
    return SessionConfig(
        model=session.model,
        voice=clean_text(name) if isinstance(name, str) else DEFAULT_VOICE,
        instructions=DEFAULT_INSTRUCTIONS if blank else clean_text(session.instructions or ""),
        audio=AudioFormat(type=chosen.type, rate_hz=chosen.rate) if chosen else AudioFormat(),
        acknowledgement_delay_ms=delay or 0,
        history=[(item.role, clean_text(item.content[0].text)) for item in session.input or ()],
    )


def resource(session: SessionModel, config: SessionConfig) -> dict[str, Json]:
    """Return the session as the client is shown it, without what was never given."""
    given = session.audio.output.voice if session.audio and session.audio.output else None
    voice: Json = given if isinstance(given, dict) else config.voice
    resource: dict[str, Json] = {
        "model": clean_text(config.model),
        "audio": {"format": config.audio.as_json(), "output": {"voice": voice}},
        "delegation": merged({"type": "client"}, session.delegation)
        if session.delegation is not None
        else {"type": "client"},
        "instructions": config.instructions,
        "store": bool(session.store),
    }
    if session.input is not None:
        resource["input"] = [item.model_dump(exclude_none=True) for item in session.input]
    if session.safety_identifier is not None:
        resource["safety_identifier"] = session.safety_identifier
    return resource


def merged(
    current: dict[str, Json], change: ClientDelegation | ResponsesDelegation | ResponsesChange
) -> dict[str, Json]:
    """Apply what an update names and keep the rest."""
    named = change.model_dump(exclude_none=True)
    before, after = current.get("responses"), named.get("responses")
    if isinstance(before, dict) and isinstance(after, dict):
        named["responses"] = before | after
    return current | named
