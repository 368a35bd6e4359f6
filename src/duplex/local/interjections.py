"""What the caller says over the other side's speech: murmurs and interruptions.

While someone speaks the caller has no words of theirs yet, only how long they
have been at it, so this decides from time, the seed, the persona and how far the
agenda has come.
"""

from __future__ import annotations

from collections.abc import Sequence

from duplex.application.prompts import AgendaItem, Brief
from duplex.local.chance import Chance
from duplex.local.meaning import trigger_kind
from duplex.local.seams import Say
from duplex.values import Action

USUAL_INTERRUPT_TENDENCY = 0.15
"""The tendency of an ordinary persona: it interrupts only where its agenda says so."""

_MURMURS = ("Mm-hmm.", "Uh-huh.", "Okay.", "Right.")
_RESULTS = ("refused", "available", "done")


class Interjections:
    """Decides, every 200 ms of the other side's speech, whether to speak over it."""

    def __init__(self, brief: Brief, chance: Chance) -> None:
        self._persona = brief.persona
        self._chance = chance
        self._begun = False
        self._murmur_at: int | None = None
        self._cut_in_at: int | None = None
        self._item_at = 0

    def ended(self) -> None:
        """The other side's utterance is over; the next one is decided afresh."""
        self._begun = False

    def speak(self, speech_ms: int, pending: Sequence[AgendaItem], *, looking: bool) -> Say | None:
        """Return what to say over speech that has lasted ``speech_ms``, if anything.

        ``looking``: the other side had asked for a moment, so this is the result.
        """
        if not self._begun:
            self._begin()
        for item in pending:
            if item.action in ("backchannel", "interrupt") and self._fits(item, looking):
                if speech_ms < self._item_at:
                    continue
                return self._of_item(item)
        if self._murmur_at is not None and speech_ms >= self._murmur_at:
            self._murmur_at = None
            return self._murmur(())
        if self._cut_in_at is not None and speech_ms >= self._cut_in_at:
            self._cut_in_at = None
            return self._cut_in(pending)
        return None

    def _begin(self) -> None:
        """Draw for one utterance; every stream moves once, whatever the outcome."""
        self._begun = True
        draw = self._chance
        murmurs = draw.happens("backchannels", self._persona.backchannel_tendency)
        at = draw.stream("backchannel_times").randint(1_000, 2_200)
        self._murmur_at = at if murmurs else None
        beyond = max(0.0, self._persona.interrupt_tendency - USUAL_INTERRUPT_TENDENCY)
        cuts = draw.happens("interrupts", beyond)
        at = draw.stream("interrupt_times").randint(2_400, 3_600)
        self._cut_in_at = at if cuts else None
        self._item_at = draw.stream("item_times").randint(1_200, 2_000)

    def _fits(self, item: AgendaItem, looking: bool) -> bool:
        about_result = trigger_kind(item.trigger_condition) in _RESULTS
        return looking or not about_result

    def _of_item(self, item: AgendaItem) -> Say:
        if item.action == "backchannel":
            return self._murmur((item.id,), item.response_hint)
        text = item.response_hint or item.commitment
        return Say(text=text, action=Action.INTERRUPT, over=True, items=(item.id,))

    def _murmur(self, items: tuple[str, ...], hint: str = "") -> Say:
        words = self._persona.backchannels or _MURMURS
        text = hint or self._chance.pick("murmurs", words)
        return Say(text=text, action=Action.BACKCHANNEL, over=True, items=items)

    def _cut_in(self, pending: Sequence[AgendaItem]) -> Say | None:
        """An impatient caller gives its next answer before the question is out."""
        for item in pending:
            kind = trigger_kind(item.trigger_condition)
            if item.action in ("answer", "correct") and kind in ("asks", "") and item.response_hint:
                text = item.response_hint
                return Say(text=text, action=Action.INTERRUPT, over=True, items=(item.id,))
        return None
