"""Audio conditions as values: effects, presets, their spelling and their JSON.

Layer 2. What they sound like is in ``beds``, what they do to samples in ``line``.
"""

from duplex.conditions.condition import CLEAN, Condition
from duplex.conditions.effects import (
    EFFECTS,
    AcousticEcho,
    BackgroundSpeech,
    Bursts,
    Echo,
    Effect,
    Microphone,
    Network,
    Noise,
    PacketLoss,
    Reverb,
    SideSpeech,
    Telephony,
    Tics,
)
from duplex.conditions.presets import PRESETS, VERSION, Preset
from duplex.conditions.spelling import names, parse

__all__ = [
    "CLEAN",
    "EFFECTS",
    "PRESETS",
    "VERSION",
    "AcousticEcho",
    "BackgroundSpeech",
    "Bursts",
    "Condition",
    "Echo",
    "Effect",
    "Microphone",
    "Network",
    "Noise",
    "PacketLoss",
    "Preset",
    "Reverb",
    "SideSpeech",
    "Telephony",
    "Tics",
    "names",
    "parse",
]
