"""Who answers a local session: the brain of its role, behind the shared engines.

A session's instructions are all that a brain is built from. An assistant whose
instructions hold no desk (a client that is not duplex) answers as the default
application would; a caller without a brief has nothing to want and is refused.
"""

from __future__ import annotations

from duplex.application.desk import Desk
from duplex.application.loading import load_application
from duplex.application.model import Application
from duplex.application.prompts import assistant_instructions, brief_from, desk_from
from duplex.clock import Clock
from duplex.errors import InputError
from duplex.local.caller_brain import CallerBrain
from duplex.local.engines import SpeechEngines
from duplex.local.host_brain import HostBrain
from duplex.local.manner import Manner, pace_of, plain
from duplex.local.model_brain import Model, ModelCaller, ModelHost
from duplex.local.realtime_errands import Errands
from duplex.local.realtime_session import MakeParty
from duplex.local.realtime_talk import Party
from duplex.local.seams import Brain, Voice
from duplex.local.session import MakeVoice
from duplex.local.thinking import Thinking, ThinkTimes
from duplex.local.timbre import seeded_style
from duplex.local.voice import LocalVoice
from duplex.protocols.gpt_live_server import SessionConfig
from duplex.protocols.realtime_settings import Settings
from duplex.values import Side

ROLES = ("assistant", "caller")


def voice_maker(engines: SpeechEngines, *, seed: int, model: Model | None = None) -> MakeVoice:
    """Return what makes the voice of one session; everything it draws comes from ``seed``.

    With a ``model`` that is what thinks, in place of rules.
    """

    def make(config: SessionConfig, role: str) -> Voice:
        return LocalVoice(
            brain_for(config.instructions, role, seed, model),
            engines.ears,
            engines.mouth,
            voice=config.voice,
            seed=seed,
            role=Side.CALLER if role == "caller" else Side.ASSISTANT,
            pace=_pace(config.instructions, role),
        )

    return make


def party_maker(
    engines: SpeechEngines, *, seed: int, application: Application | None = None
) -> MakeParty:
    """Return what makes who answers one Realtime session.

    The procedures are those of ``application``, by default the default one; the
    tools in them are the client's.
    """

    def make(settings: Settings, role: str, clock: Clock) -> Party:
        side = Side.CALLER if role == "caller" else Side.ASSISTANT
        host = side is Side.ASSISTANT
        known = application or load_application()
        return Party(
            brain=brain_for(settings.instructions, role, seed),
            ears=engines.ears,
            mouth=engines.mouth,
            style=seeded_style(
                settings.voice, seed, side.label, pace=_pace(settings.instructions, role)
            ),
            thinking=Thinking(ThinkTimes(), seed, side.label),
            errands=Errands(known, _desk(settings, known), clock, seed=seed) if host else None,
        )

    return make


def _pace(instructions: str, role: str) -> float:
    """What a caller's persona multiplies the duration of its speech by; 1 for anybody else."""
    if role != "caller":
        return 1.0
    return pace_of(brief_from(instructions).persona)


def _desk(settings: Settings, application: Application) -> Desk:
    try:
        return desk_from(settings.instructions)
    except InputError:
        return application.desk({})


def brain_for(instructions: str, role: str, seed: int, model: Model | None = None) -> Brain:
    """Build the brain of ``role``; raises InputError for a caller without a brief."""
    if role == "caller":
        if model is not None:
            return ModelCaller.from_instructions(instructions, model, seed)
        caller = CallerBrain.from_instructions(instructions, seed)
        persona = brief_from(instructions).persona
        return caller if plain(persona) else Manner(caller, persona, seed)
    if model is not None:
        return ModelHost(instructions, model, seed)
    try:
        desk_from(instructions)
    except InputError:
        instructions = assistant_instructions(load_application(), {})
    return HostBrain.from_instructions(instructions, seed)
