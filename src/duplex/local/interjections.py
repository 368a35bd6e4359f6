"""What the caller says over the other side's speech: murmurs and interruptions.

While someone speaks the caller has no words of theirs yet, only how long they
have been at it, so this decides from time, the seed, the persona and how far the
agenda has come.
"""

from __future__ import annotations

from collections.abc import Sequence

from duplex.application.prompts import AgendaItem, Brief
from duplex.local.chance import Chance
from duplex.local.facts import Fact
from duplex.local.meaning import trigger_kind
from duplex.local.seams import Say
from duplex.values import Action

USUAL_INTERRUPT_TENDENCY = 0.15
"""The tendency of an ordinary persona: it interrupts only where its agenda says so.

A higher one is the chance that an utterance is cut into where nothing else is due.
"""
SOONEST_MS = 600
"""How much of an utterance even the most impatient caller hears before it cuts in, in ms."""
INSIST_MS = 2_000
"""The same where it only says again what it has said: longer than a request to wait lasts."""
PATIENT_MS = 2_000
"""How much longer a caller waits at most whose tendency is near 0, in ms."""

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
        self._insisted: set[str] = set()
        self._listens = False

    def ended(self, *, heard_out: bool = True) -> None:
        """The other side's utterance is over; the next one is decided afresh."""
        self._begun = False
        if heard_out:
            self._listens = False

    def speak(
        self,
        speech_ms: int,
        pending: Sequence[AgendaItem],
        *,
        looking: bool,
        told: Sequence[Fact] = (),
    ) -> Say | None:
        """Return what to say over speech that has lasted ``speech_ms``, if anything.

        ``looking``: the other side had asked for a moment, so this is the result, which
        is cut into only where the agenda says so. ``told`` are facts that are out.
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
            say = None if looking else self._cut_in(pending)
            if say is None and speech_ms < INSIST_MS:
                return None
            self._cut_in_at = None
            return say if say is not None or looking else self._insist(pending, told)
        return None

    def _begin(self) -> None:
        """Draw for one utterance; every stream moves once, whatever the outcome."""
        self._begun = True
        draw = self._chance
        murmurs = draw.happens("backchannels", self._persona.backchannel_tendency)
        at = draw.stream("backchannel_times").randint(1_000, 2_200)
        self._murmur_at = at if murmurs else None
        tendency = self._persona.interrupt_tendency
        cuts = draw.happens("interrupts", tendency) and tendency > USUAL_INTERRUPT_TENDENCY
        # One draw for all levels: who interrupts more also does it where others would, and sooner.
        within = PATIENT_MS * (1 - tendency)
        at = SOONEST_MS + round(draw.stream("interrupt_times").random() * within)
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

    def _insist(self, pending: Sequence[AgendaItem], told: Sequence[Fact]) -> Say | None:
        """Or says a thing again; none twice, and it hears an utterance out in between."""
        # A name said twice is a name misheard twice.
        plain = [
            fact
            for fact in told
            if fact.key not in self._insisted and (fact.kind in ("date", "time") or fact.people)
        ]
        if self._listens or not plain or any(item.action == "interrupt" for item in pending):
            return None
        fact = self._chance.pick("insists", plain)
        self._insisted.add(fact.key)
        self._listens = True
        said = fact.said(self._chance)
        return Say(text=f"And that's {said}, please.", action=Action.INTERRUPT, over=True)
