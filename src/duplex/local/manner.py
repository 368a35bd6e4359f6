"""How a caller says what it has decided to say: hesitant, forgetful, vague, in a mood.

Stands between a caller's brain and its voice: words get fillers, second thoughts
and pauses on their way out, and what was said comes back to the brain as it meant
it. Whether, is drawn from the seed. A persona without such traits passes through
untouched; no fact is ever added or lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from duplex.application.prompts import Persona
from duplex.local.chance import Chance
from duplex.local.seams import Act, Brain, Heard, Ponder, Said, Say
from duplex.values import Action

PACE = {"slow": 1.2, "normal": 1.0, "fast": 0.85}
"""What a pace multiplies the duration of speech by."""
_MOOD_PACE = {"impatient": 0.94, "upset": 0.96, "anxious": 0.96, "sad": 1.08, "calm": 1.04}
_OFTEN = {"occasional": 0.3, "frequent": 0.8}
_FILLERS = ("Um, ", "Uh, ", "Er, ", "Well, um, ")
_RECALLING = ("Hmm, let me think. ", "Oh, what was it. ", "Let me see. ", "One moment. ")
_HEDGES = (" I think.", " or so I believe.", " if I'm not mistaken.")
_MOODS = {
    "impatient": ("Look, ", "Listen, ", ""),
    "upset": ("Honestly, ", "Look, ", ""),
    "cheerful": ("Great! ", "Lovely! ", ""),
    "anxious": ("Oh dear, ", "Sorry, ", ""),
}
_RECALL_MS = (600, 1_500)


def pace_of(persona: Persona) -> float:
    """What the persona multiplies the duration of its speech by."""
    return PACE.get(persona.pace, 1.0) * _MOOD_PACE.get(persona.emotion, 1.0)


def plain(persona: Persona) -> bool:
    """Whether the persona says things as they come."""
    hesitates = persona.disfluency in _OFTEN or persona.memory == "poor"
    return not (hesitates or persona.clarity == "vague" or persona.emotion in _MOODS)


class Manner:
    """A caller's brain with its persona's manner of speaking (see ``seams.Brain``)."""

    def __init__(self, brain: Brain, persona: Persona, seed: int) -> None:
        self._brain = brain
        self._persona = persona
        self._chance = Chance(seed, "manner")
        self._meant: dict[str, str] = {}

    def opening(self) -> Sequence[Act]:
        return self._put(self._brain.opening())

    def on_heard(self, heard: Heard) -> Sequence[Act]:
        return self._put(self._brain.on_heard(heard))

    def on_said(self, said: Said) -> Sequence[Act]:
        meant = self._meant.pop(said.text, said.text)
        return self._put(self._brain.on_said(replace(said, text=meant)))

    def on_commentary(self, text: str, delegation_id: str | None) -> Sequence[Act]:
        return self._put(self._brain.on_commentary(text, delegation_id))

    def on_quiet(self, quiet_ms: int) -> Sequence[Act]:
        return self._put(self._brain.on_quiet(quiet_ms))

    def on_speech(self, speech_ms: int) -> Sequence[Act]:
        return self._put(self._brain.on_speech(speech_ms))

    def _put(self, acts: Sequence[Act]) -> Sequence[Act]:
        return [self._act(act) for act in acts]

    def _act(self, act: Act) -> Act:
        if isinstance(act, Ponder):
            return Ponder(asyncio.create_task(self._decided(act.task)))
        if not isinstance(act, Say) or act.over or act.action is not Action.SPEAK:
            return act
        return self._said(act)

    async def _decided(
        self, task: asyncio.Task[Callable[[], Sequence[Act]]]
    ) -> Callable[[], Sequence[Act]]:
        decide = await task
        return lambda: self._put(decide())

    def _said(self, say: Say) -> Say:
        persona, chance = self._persona, self._chance
        text, pause_ms = say.text, say.pause_ms
        if persona.clarity == "vague" and chance.happens("hedges", 0.5):
            text = text.rstrip(".") + chance.pick("hedge", _HEDGES) if text.endswith(".") else text
        if persona.memory == "poor" and say.items and chance.happens("recalls", 0.5):
            text = chance.pick("recall", _RECALLING) + text
            pause_ms += chance.stream("recall_pauses").randint(*_RECALL_MS)
        elif persona.emotion in _MOODS and chance.happens("moods", 0.5):
            text = chance.pick("mood", _MOODS[persona.emotion]) + text
        if chance.happens("fillers", _OFTEN.get(persona.disfluency, 0.0)):
            text = self._hesitant(text)
        if text == say.text:
            return say
        self._meant[text] = say.text
        return replace(say, text=text, pause_ms=pause_ms)

    def _hesitant(self, text: str) -> str:
        """A filler before the words, and now and then the first word twice."""
        first, space, rest = text.partition(" ")
        if space and first.isalpha() and self._chance.happens("repeats", 0.4):
            text = f"{first}, {first[:1].lower() + first[1:] if first != 'I' else first} {rest}"
        return self._chance.pick("filler", _FILLERS) + text
