"""The local caller's brain: follows its brief, answering what it actually heard.

It knows its goal, facts, agenda and persona, and never the expectations, the
tools or the other side's desk. Everything it says answers words it heard, apart
from its opening, prompts into silence, and what its persona makes it say over
the other side's speech. Its patience is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from duplex.application.prompts import AgendaItem, Brief, brief_from
from duplex.application.words import is_farewell
from duplex.local import caller_words as words
from duplex.local.agenda import Agenda
from duplex.local.chance import Chance
from duplex.local.facts import Fact, together
from duplex.local.interjections import Interjections
from duplex.local.knowledge import Knowledge
from duplex.local.meaning import Meaning, trigger_kind, trigger_score, understand
from duplex.local.seams import Act, Finish, Heard, Said, Say
from duplex.values import Action

OPEN_QUIET_MS = 5_000
"""Silence after which a caller who waits for a greeting speaks anyway, in ms."""
QUIET_MS = 8_000
"""Silence after which the caller prompts, in ms; longer while the other side looks."""
PATIENCE = 3
"""Unanswered prompts, failed corrections or misunderstandings before it gives up."""


class CallerBrain:
    """One caller in one call (see ``seams.Brain``)."""

    def __init__(self, brief: Brief, seed: int) -> None:
        self._brief = brief
        self._chance = Chance(seed, "caller")
        self._known = Knowledge(brief)
        self._interjections = Interjections(brief, self._chance)
        self._agenda = Agenda(brief.agenda)
        self._misheard: set[str] = set()
        self._misnamed = False
        self._spelled = False
        self._outstanding: list[Say] = []
        self._unsaid: Say | None = None
        self._last = ""
        self._repeated = ""
        self._opened = False
        self._finishing = ""
        self._finished = False
        self._holding = False
        self._deaf_once = False
        self._doubted = False
        self._tries = {"prompt": 0, "pardon": 0, "correct": 0, "confirm": 0}

    @classmethod
    def from_instructions(cls, instructions: str, seed: int) -> CallerBrain:
        """Build from a session's instructions; raise InputError without a brief block."""
        return cls(brief_from(instructions), seed)

    def opening(self) -> Sequence[Act]:
        return self._open() if self._brief.first_speaker == "caller" else ()

    def on_commentary(self, text: str, delegation_id: str | None) -> Sequence[Act]:
        return self._open() if not self._opened else ()

    def on_heard(self, heard: Heard) -> Sequence[Act]:
        self._interjections.ended(heard_out=not self._deaf_once)
        if self._finishing or self._finished:
            return ()
        if self._deaf_once:
            # These are the words this side cut into.
            self._deaf_once = False
            return ()
        meaning = understand(heard.text, self._known.active(self._agenda.told))
        if not meaning.nothing:
            self._tries["prompt"] = 0
        if not self._opened:
            return self._open()
        acts = self._answer(meaning)
        if not meaning.nothing:
            self._holding = meaning.hold or (self._holding and not acts and not meaning.question)
        if not acts and self._unsaid is not None and not meaning.hold:
            again, self._unsaid = self._unsaid, None
            return self._say(again.text, items=again.items, action=again.action)
        return acts

    def on_said(self, said: Said) -> Sequence[Act]:
        sent = next((s for s in self._outstanding if s.text == said.text), None)
        if sent is not None:
            self._outstanding.remove(sent)
        if not said.complete:
            if self._finishing and said.action is not Action.STOP:
                return ()
            if not self._finishing:
                self._agenda.cut(said.items)
                if said.action is not Action.BACKCHANNEL:
                    self._unsaid = sent
                return ()
        acts: list[Act] = [*self._agenda.complete(said.items)]
        if self._finishing and said.action is Action.STOP:
            self._finished = True
            acts += self._agenda.leave()
            acts.append(Finish(outcome=self._finishing))
        return acts

    def on_quiet(self, quiet_ms: int) -> Sequence[Act]:
        if self._finished:
            return ()
        if quiet_ms >= QUIET_MS:
            # Words that never came out must not silence this side for good.
            self._outstanding.clear()
        if not self._opened:
            return self._open() if quiet_ms >= OPEN_QUIET_MS else ()
        if self._outstanding:
            return ()
        if quiet_ms >= 2_000:
            self._deaf_once = False
        if self._finishing:
            return self._leave(self._finishing)
        if self._unsaid is not None and quiet_ms >= 1_000:
            again, self._unsaid = self._unsaid, None
            return self._say(again.text, items=again.items, action=again.action)
        if quiet_ms < QUIET_MS + (4_000 if self._holding else 0):
            return ()
        self._tries["prompt"] += 1
        if self._tries["prompt"] > PATIENCE:
            return self._leave("refused")
        return self._say(self._chance.pick("prompts", words.PROMPTS), noted=False)

    def on_speech(self, speech_ms: int) -> Sequence[Act]:
        if not self._opened or self._finishing or self._outstanding:
            return ()
        unsaid = self._agenda.unsaid()
        out = self._known.out(self._agenda.told)
        say = self._interjections.speak(speech_ms, unsaid, looking=self._holding, told=out)
        if say is None:
            return ()
        self._outstanding.append(say)
        self._agenda.say(say.items)
        if say.action is Action.INTERRUPT:
            self._deaf_once = True
            self._last = say.text
        return (say,)

    def _answer(self, meaning: Meaning) -> Sequence[Act]:
        """Decide on a reply: the first of these that has something to say."""
        if meaning.nothing:
            return self._pardon()
        if meaning.farewell and not meaning.question:
            return self._leave("completed" if meaning.done else "refused")
        if meaning.spell and (spelled := self._spell()):
            return spelled
        if meaning.repeat and not (meaning.asks and self._repeated == self._last):
            self._repeated = self._last
            return self._repeat()
        if meaning.done:
            return self._on_done(meaning)
        if meaning.hold:
            return self._wait()
        for reply in (self._triggered, self._on_refused, self._on_confirm, self._on_asked):
            acts = reply(meaning)
            if acts:
                return acts
        if self._sounds_settled(meaning):
            return self._on_done(meaning)
        if meaning.greets:
            return self._say(self._brief.opening)
        if meaning.more:
            return self._doubt()
        if not meaning.question:
            return ()
        if (self._tries["correct"] or self._tries["confirm"]) and not self._tries["pardon"]:
            # Asked what should be different: the correction once more.
            self._tries["pardon"] += 1
            return self._repeat()
        if self._tries["confirm"] and self._tries["pardon"] == 1:
            self._tries["pardon"] += 1
            return self._say(words.RIGHT)
        # Not understood twice: offer what is still to be said.
        due = [
            item for item in self._agenda.ready() if trigger_kind(item.trigger_condition) == "asks"
        ]
        if self._tries["pardon"] % 2 and due:
            self._tries["pardon"] += 1
            return self._give(due[:1], ())
        return self._pardon()

    def _open(self) -> Sequence[Act]:
        self._opened = True
        opening = self._brief.opening
        hello = self._chance.pick("greeting", words.GREETINGS)
        if re.match(r"(?i)(?:hi|hello|hey|good)\b", opening):
            hello = ""
        return self._say(f"{hello}{opening}", action=Action.OPENING)

    def _triggered(self, meaning: Meaning) -> Sequence[Act]:
        """Say the agenda item whose trigger fits best, with whatever else was asked."""
        wrong = self._known.wrong(meaning, self._agenda.told)
        scored = [
            (trigger_score(item, meaning, wrong), -index, item)
            for index, item in enumerate(self._agenda.ready())
        ]
        if len(self._agenda.answers_to(meaning.asks)) > 1:
            return ()
        best = max(scored, default=(0, 0, None), key=lambda entry: entry[:2])
        item = best[2]
        if item is None or best[0] < 2:
            return ()
        if item.action == "wait":
            return self._agenda.complete((item.id,))
        if item.action == "finish":
            return self._leave("refused" if meaning.refused else "completed")
        if meaning.refused:
            # An offer that is agreed to is what is wanted from now on.
            self._known.take_offer(meaning, self._agenda.told)
        return self._give([item], [key for key in meaning.asks if key not in item.facts])

    def _on_done(self, meaning: Meaning) -> Sequence[Act]:
        wrong = self._wrong(meaning, final=True)
        if wrong:
            self._tries["correct"] += 1
            if self._tries["correct"] >= PATIENCE:
                return self._leave("refused")
            return self._correct(meaning, wrong)
        return self._carry_on("completed") if self._agenda.owed() else self._leave("completed")

    def _wrong(self, meaning: Meaning, *, final: bool = False) -> list[str]:
        """Return the facts said wrongly, but for what may be these ears' own fault.

        That is a name that was put right and spelled, or a reference that was put right,
        and that sounds just as wrong again.
        """
        wrong = self._known.wrong(meaning, self._agenda.told, final=final)
        kinds = {fact.key: fact.kind for fact in self._known.get(wrong)}
        tried = {"code"} | ({"name"} if self._spelled else set())
        return [
            key
            for key in wrong
            if kinds.get(key) not in tried
            or not {str(value) for value in meaning.values[key]} <= self._misheard
        ]

    def _on_refused(self, meaning: Meaning) -> Sequence[Act]:
        """Nothing on the agenda answers a refusal: take or seek an alternative, or give up."""
        if not meaning.refused:
            return ()
        taken = self._known.take_offer(meaning, self._agenda.told)
        if taken is not None:
            return self._say(f"Yes, {taken.said(self._chance)} works. Please book that.")
        other = self._known.next_alternatives()
        if other:
            asked = " ".join(fact.said(self._chance) for fact in other)
            return self._say(f"Could we do it {asked} instead?")
        return self._leave("refused")

    def _on_confirm(self, meaning: Meaning) -> Sequence[Act]:
        if not meaning.confirm:
            return ()
        wrong = self._wrong(meaning)
        if wrong:
            self._tries["confirm"] += 1
            if self._tries["confirm"] > PATIENCE:
                return self._leave("refused")
            return self._correct(meaning, wrong)
        # What is agreed to is wanted from now on.
        self._known.take_offer(meaning, self._agenda.told)
        return self._say(self._chance.pick("yes", ("Yes, please.", "Yes, that's right, please.")))

    def _on_asked(self, meaning: Meaning) -> Sequence[Act]:
        if not meaning.asks:
            return ()
        items = self._agenda.answers_to(meaning.asks)
        covered = {key for item in items for key in item.facts}
        return self._give(items, [key for key in meaning.asks if key not in covered])

    def _give(self, items: Sequence[AgendaItem], keys: Sequence[str]) -> Sequence[Act]:
        """Say items in their own words and further facts in ours."""
        for item in items:
            self._known.adopt(item.facts)
        said = [item.response_hint or self._in_words(item) for item in items]
        rest = [fact.said(self._chance) for fact in self._facts_of(keys)]
        text = " ".join(
            [words.sentence(part) for part in said if part] + ([together(rest)] if rest else [])
        )
        if not text:
            return ()
        correct = any(item.action == "correct" for item in items)
        return self._say(
            f"{self._lead(text)}{text}",
            items=tuple(item.id for item in items),
            action=Action.CORRECT if correct else Action.SPEAK,
        )

    def _facts_of(self, keys: Sequence[str]) -> list[Fact]:
        return [fact for fact in self._known.active(self._agenda.told) if fact.key in keys]

    def _in_words(self, item: AgendaItem) -> str:
        """An item without a hint is its facts, or else its commitment as it stands."""
        facts = self._known.get(item.facts)
        if facts:
            return together([fact.said(self._chance) for fact in facts])
        return item.commitment

    def _correct(self, meaning: Meaning, wrong: Sequence[str]) -> Sequence[Act]:
        """Put right what was said wrongly, as the agenda's own item where it has one."""
        item = self._agenda.correction_of(wrong)
        if item is not None and (item.response_hint or not set(item.facts) & set(wrong)):
            return self._give([item], ())
        active = {fact.key: fact for fact in self._known.active(self._agenda.told, final=True)}
        names = [key for key in wrong if active[key].kind == "name"]
        again = bool(names) and self._misnamed
        self._misnamed = self._misnamed or bool(names)
        self._misheard |= {str(value) for key in wrong for value in meaning.values[key]}
        parts = [active[key].corrected(meaning.values[key][-1]) for key in wrong]
        text = words.sentence(f"Sorry, no, {' and '.join(parts)}")
        if again:
            # Saying it was of no use: letters are.
            self._spelled = True
            text = f"{text} {active[names[0]].spelled(self._misheard)}"
        if item is None:
            return self._say(text, action=Action.CORRECT)
        rest = [fact for key, fact in active.items() if key in item.facts and key not in wrong]
        if rest:
            text = f"{text} {together([fact.said(self._chance) for fact in rest])}"
        return self._say(text, items=(item.id,), action=Action.CORRECT)

    def _spell(self) -> Sequence[Act]:
        """Say the name and its letters: of the words that were misheard, or of all."""
        name = next((f for f in self._known.active(self._agenda.told) if f.kind == "name"), None)
        if name is None:
            return ()
        self._spelled = True
        return self._say(f"{name.value}. {name.spelled(self._misheard)}")

    def _repeat(self) -> Sequence[Act]:
        lead = self._chance.pick("repeat", ("", "Sure. ", "Yes. ", "I said: "))
        return self._say(f"{lead}{self._last}", noted=False)

    def _pardon(self) -> Sequence[Act]:
        if self._outstanding:
            return ()
        self._tries["pardon"] += 1
        if self._tries["pardon"] > 2 * PATIENCE:
            return self._leave("refused")
        return self._say(self._chance.pick("pardon", words.AGAIN), noted=False)

    def _wait(self) -> Sequence[Act]:
        """The other side asked for a moment: a ``wait`` item is done by saying nothing."""
        waits = [item.id for item in self._agenda.ready() if item.action == "wait"]
        return self._agenda.complete(tuple(waits[:1]))

    def _carry_on(self, outcome: str) -> Sequence[Act]:
        """Bring up what is still owed, or take leave."""
        owed = self._agenda.owed()
        return self._give(owed[:1], ()) if owed else self._leave(outcome)

    def _sounds_settled(self, meaning: Meaning) -> bool:
        """After a wait, a statement with the caller's own details is the result."""
        right = [
            fact
            for fact in self._known.active(self._agenda.told, final=True)
            if any(fact.same(value) for value in meaning.values.get(fact.key, ()))
        ]
        return self._holding and not meaning.question and not meaning.refused and len(right) > 1

    def _doubt(self) -> Sequence[Act]:
        """Asked whether that was all before hearing that anything was done: make sure, once."""
        if self._agenda.owed() or self._doubted:
            return self._carry_on("refused")
        self._doubted = True
        return self._say(self._chance.pick("doubt", words.DOUBTS))

    def _leave(self, outcome: str) -> Sequence[Act]:
        self._finishing = outcome
        self._unsaid = None
        undone = outcome != "completed"
        last = [
            item
            for item in self._agenda.ready()
            if item.action == "finish"
            # A goodbye that waits for success is not the one said without it.
            and not (undone and trigger_kind(item.trigger_condition) == "done")
        ]
        hint = next((item.response_hint for item in last if item.response_hint), "")
        text = hint or self._chance.pick(
            "bye", words.BYES if outcome == "completed" else words.BYES_UNDONE
        )
        if not is_farewell(text):
            text = f"{words.sentence(text)} Goodbye."
        items = tuple(item.id for item in last[:1])
        return self._say(text, items=items, action=Action.STOP, noted=False)

    def _lead(self, text: str) -> str:
        plain = self._brief.persona.verbosity.lower() in ("brief", "concise", "terse", "low")
        if plain or re.match(
            r"(?i)(?:actually|sorry|yes|no|sure|okay|please|can|could|it's)\b", text
        ):
            return ""
        return self._chance.pick("leads", words.LEADS)

    def _say(
        self,
        text: str,
        *,
        items: tuple[str, ...] = (),
        action: Action = Action.SPEAK,
        noted: bool = True,
    ) -> Sequence[Act]:
        """Say ``text`` unless it is on its way; ``noted`` words are those to repeat on request."""
        if not text or any(say.text == text for say in self._outstanding):
            return ()
        say = Say(text=text, action=action, pause_ms=self._chance.pause_ms(), items=items)
        self._outstanding.append(say)
        self._agenda.say(items)
        if noted:
            self._last = text
        return (say,)
