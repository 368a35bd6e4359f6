"""Who speaks in planted calls: a folder's speakers, or the embedded voices.

The embedded ones say a fixed list of sentences in three timbres, so that calibration needs
nothing but the extra ``local``. What comes out is clips with known edges; how they are
placed is not decided here. The command drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from duplex.calibration.clips import RATE_HZ, Clip, Speakers, levelled, load_speakers, phrases
from duplex.calibration.stimuli import (
    ClipTalker,
    SharpTalker,
    ShortTalker,
    Stimuli,
    Talker,
)
from duplex.errors import MissingExtra
from duplex.local.mouth import PiperMouth
from duplex.local.seams import VOICE_RATE_HZ, Style
from duplex.local.weights import find_mouth

VOICES = (
    Style(voice="cedar"),
    Style(voice="marin", pace=0.95),
    Style(voice="ash", pace=1.08, semitones=-2.0),
)
SENTENCES = (
    "Good morning, how can I help you?",
    "I would like to book a table for four.",
    "Which day would suit you best?",
    "Thursday evening, around half past seven.",
    "Let me look that up for you.",
    "Could you spell the name, please?",
    "No, that is not what I meant.",
    "Is there anything by the window?",
    "We are fully booked on Saturday.",
    "What about the week after?",
    "That works for me.",
    "Can you hold the line for a moment?",
    "My number ends in twenty three.",
    "Please say that once more.",
    "Yes, exactly.",
    "Thank you very much, goodbye.",
)
_WITHOUT = "; or name a folder of clips with --speech DIR"


async def embedded() -> Speakers:
    """Let the embedded voices say their sentences.

    Raises:
        MissingExtra: the extra ``local`` is not installed.
    """
    try:
        mouth = await PiperMouth.open(find_mouth())
    except MissingExtra as error:
        raise MissingExtra(f"{error}{_WITHOUT}") from error
    try:
        return {style.voice: await _said(mouth, style) for style in VOICES}
    finally:
        await mouth.close()


async def found(folder: Path | None, names: Sequence[str]) -> Speakers:
    """The speakers that were asked for."""
    return await embedded() if folder is None else load_speakers(folder, names)


def talkers(stimuli: Stimuli, speakers: Speakers, index: int) -> tuple[Talker, Talker]:
    """Caller and assistant of conversation ``index``: every speaker meets every other."""
    if stimuli is Stimuli.SHARP:
        return SharpTalker(), SharpTalker()
    names = sorted(speakers)
    first = index % len(names)
    others = max(1, len(names) - 1)
    second = (first + 1 + index // len(names) % others) % len(names)
    caller, assistant = (
        ClipTalker(speakers[names[i]], uncut=stimuli is Stimuli.UNCUT) for i in (first, second)
    )
    return (ShortTalker(caller) if stimuli is Stimuli.SHORT else caller), assistant


async def _said(mouth: PiperMouth, style: Style) -> list[Clip]:
    clips: list[Clip] = []
    assert VOICE_RATE_HZ == RATE_HZ
    for sentence in SENTENCES:
        parts = [pcm async for pcm in mouth.speak(sentence, style)]
        spoken = np.concatenate(parts).astype(np.float32) / np.float32(32768)
        x = levelled(spoken, VOICE_RATE_HZ)
        clips += phrases(x) if x is not None else []
    return clips
