"""Who answers a local session: the brain of its role, behind the shared engines.

A session's instructions are all that a brain is built from. An assistant whose
instructions hold no desk (a client that is not duplex) answers as the default
application would; a caller without a brief has nothing to want and is refused.
"""

from __future__ import annotations

from duplex.application.loading import load_application
from duplex.application.prompts import assistant_instructions, desk_from
from duplex.errors import InputError
from duplex.local.caller_brain import CallerBrain
from duplex.local.engines import SpeechEngines
from duplex.local.host_brain import HostBrain
from duplex.local.seams import Brain, Voice
from duplex.local.session import MakeVoice
from duplex.local.voice import LocalVoice
from duplex.protocols.gpt_live_server import SessionConfig
from duplex.values import Side

ROLES = ("assistant", "caller")


def voice_maker(engines: SpeechEngines, *, seed: int) -> MakeVoice:
    """Return what makes the voice of one session; everything it draws comes from ``seed``."""

    def make(config: SessionConfig, role: str) -> Voice:
        return LocalVoice(
            brain_for(config.instructions, role, seed),
            engines.ears,
            engines.mouth,
            voice=config.voice,
            seed=seed,
            role=Side.CALLER if role == "caller" else Side.ASSISTANT,
        )

    return make


def brain_for(instructions: str, role: str, seed: int) -> Brain:
    """Build the brain of ``role``; raises InputError for a caller without a brief."""
    if role == "caller":
        return CallerBrain.from_instructions(instructions, seed)
    try:
        desk_from(instructions)
    except InputError:
        instructions = assistant_instructions(load_application(), {})
    return HostBrain.from_instructions(instructions, seed)
