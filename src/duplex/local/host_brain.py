"""The local assistant's brain: collects details, delegates, passes results on.

It works from its desk alone. It confirms nothing itself: that something is
free, booked, changed or cancelled is only ever said in words the application
returned. It never sees the caller's agenda and has no tools of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from duplex.application.desk import Desk
from duplex.application.dialogue import Tracker, Turn
from duplex.application.names import spelled_out
from duplex.application.prompts import desk_from
from duplex.application.template import fill
from duplex.application.words import (
    asks_repeat,
    is_backchannel,
    is_farewell,
    is_nothing,
    is_thanks,
    questions,
    says_all,
)
from duplex.local.chance import Chance
from duplex.local.seams import Act, Delegate, Heard, Said, Say

QUIET_MS = 6_000
"""Mutual silence after which the host speaks up, in ms."""
RESULT_PAUSE_MS = (700, 1_000)
"""Shortest and longest pause before a result is passed on, in ms."""
PATIENCE = 3
"""How often the host asks into silence, or for the same detail, before it gives up."""

_HOLDS = (
    "One moment, let me check.",
    "Let me check that for you.",
    "Just a moment, please, I'll look.",
    "Let me see. One moment.",
)
_THANKS = ("Thank you.", "Great.", "Sure.", "Of course.", "Lovely, thank you.", "All right.")
_ASK_TWO = (
    "Could I have {a} and {b}, please?",
    "May I have {a} and {b}?",
    "I'll just need {a} and {b}, please.",
)
_ASK_ONE = ("Could I have {a}, please?", "May I have {a}?")
_PARDON = ("Sorry, I didn't catch that.", "I'm sorry, I missed that.", "Sorry, once more?")
_HELLOS = ("", "", "Hello! ", "Hi there! ", "Good day! ")
_ELSE = (
    "Is there anything else I can help you with?",
    "Can I do anything else for you?",
)
_WELCOME = ("You're welcome.", "My pleasure.", "Happy to help.")
_WHAT = "I'm sorry about that. What should I change?"
_OTHER = "What other day or time would suit you?"
_SPELL = "How do you spell the name?"
_STILL = "Thanks for holding, I'm still checking."
_CORRECTS = re.compile(
    r"\b(?:should be|should have been|wrong|incorrect|not right|isn't right|not correct|"
    r"i said|i meant|correct(?:ion| that)|change (?:it|that|the)|mistake)\b"
)
_ASKS_LETTERS = re.compile(r"\bspell(?:ed|ing|s)?\b.*\?|\b(?:can|could|would) you spell\b")
_TOLD_TO_OPEN = re.compile(r"\b(?:greet|open|begin|start|speak first|say hello|caller is)\b", re.I)


class HostBrain:
    """One assistant in one call (see ``seams.Brain``)."""

    def __init__(self, desk: Desk, seed: int) -> None:
        self._desk = desk
        self._chance = Chance(seed, "host")
        self._tracker = Tracker(desk)
        self._greeted = False
        self._closed = False
        self._waiting = 0
        self._answered: set[str] = set()
        self._delegated = ""
        self._read_back = ""
        self._agreed = ""
        self._unclear = ""
        self._givings = 0
        self._result = ""
        self._result_cut = False
        self._last = ""
        self._outstanding: list[str] = []
        self._asked_times: dict[str, int] = {}
        self._prompts = 0

    @classmethod
    def from_instructions(cls, instructions: str, seed: int) -> HostBrain:
        """Build from a session's instructions; raise InputError without a desk block."""
        return cls(desk_from(instructions), seed)

    def opening(self) -> Sequence[Act]:
        return ()

    def on_heard(self, heard: Heard) -> Sequence[Act]:
        if self._closed:
            return ()
        self._prompts = 0
        text = heard.text
        stopped = heard.cut or self._result_cut
        if is_backchannel(text) and not stopped and (heard.overlapped or not self._wants_yes()):
            return ()
        if is_nothing(text) and heard.overlapped and not stopped:
            return ()
        if is_nothing(text):
            return self._pardon()
        self._greeted = True
        turn = self._tracker.user(text)
        self._givings += bool(turn.given)
        if not turn.changed:
            if is_farewell(text) or says_all(text):
                return self._close(self._desk.farewell)
            if _ASKS_LETTERS.search(text.lower()) and (letters := self._letters()):
                return self._say(letters)
            if asks_repeat(text) and self._last:
                return self._say(_without_lead(self._last))
            if self._result_cut:
                self._result_cut = False
                return self._say(self._result)
            if self._result and is_thanks(text) and not turn.cued:
                return self._say(f"{self._pick('welcome', _WELCOME)} {self._pick('else', _ELSE)}")
        self._result_cut = False
        return self._next(turn, text)

    def on_said(self, said: Said) -> Sequence[Act]:
        if said.text in self._outstanding:
            self._outstanding.remove(said.text)
        if not said.complete and self._result and said.text.endswith(self._result):
            self._result_cut = True
        return ()

    def on_commentary(self, text: str, delegation_id: str | None) -> Sequence[Act]:
        if self._closed or not text.strip():
            return ()
        if delegation_id is None and not self._greeted:
            return self._greet(self._desk.greeting if _TOLD_TO_OPEN.search(text) else text)
        if delegation_id is not None and delegation_id not in self._answered:
            self._answered.add(delegation_id)
            self._waiting = max(0, self._waiting - 1)
        self._result = text.strip()
        self._asked_times.clear()
        # A breath after "one moment", so that the result is a turn of its own.
        return self._say(self._result, pause_ms=self._chance.pause_ms(*RESULT_PAUSE_MS))

    def on_quiet(self, quiet_ms: int) -> Sequence[Act]:
        if self._closed or quiet_ms < QUIET_MS:
            return ()
        # Words that never came out must not silence this side for good.
        self._outstanding.clear()
        if not self._greeted:
            return self._greet(self._desk.greeting)
        self._prompts += 1
        if self._prompts > PATIENCE:
            return self._close(f"I can't hear you, so I'll hang up now. {self._desk.farewell}")
        if self._waiting:
            return self._say(_STILL)
        if self._read_back != self._agreed and self._read_back == self._tracker.signature():
            # Nobody objects.
            self._agreed = self._read_back
            return self._delegate()
        if self._result and not questions(self._result):
            return self._say(self._pick("else", _ELSE))
        return self._say(f"Are you still there? {_without_lead(self._last)}", noted=False)

    def on_speech(self, speech_ms: int) -> Sequence[Act]:
        return ()

    def _wants_yes(self) -> bool:
        """Whether the last question can be answered by a mere yes."""
        tracker = self._tracker
        return bool(tracker.offers) or (bool(questions(self._last)) and not tracker.asked)

    def _greet(self, words: str) -> Sequence[Act]:
        self._greeted = True
        return self._say(f"{self._pick('hello', _HELLOS)}{words}")

    def _next(self, turn: Turn, text: str) -> Sequence[Act]:
        """Decide what the call needs now: refuse, ask, have it confirmed, delegate or wind up."""
        tracker = self._tracker
        if self._waiting:
            if turn.changed and not tracker.missing() and tracker.signature() != self._delegated:
                return self._delegate()
            return self._say(_STILL) if questions(text) else ()
        said = self._desk.said(tracker.values)
        refused = tracker.not_allowed()
        if refused is not None:
            return self._say(fill(refused.refusal, said))
        if tracker.missing():
            return self._ask(turn, lost=bool(turn.doubted))
        errand = tracker.errand or self._desk.errands[0]
        if tracker.undecided:
            return self._say(errand.ask)
        if tracker.signature() == self._delegated:
            return self._after_result(turn, text)
        if errand.confirm and not tracker.confirmed:
            if turn.no and not turn.changed:
                return self._say("All right, I'll leave it as it is. Anything else?")
            return self._say(fill(errand.confirm, said))
        # What was all said in one breath is read back by the result; who said it may be gone.
        if errand.read_back and self._givings > 1 and tracker.signature() != self._agreed:
            return self._reads_back(turn, text, fill(errand.read_back, said))
        return self._delegate()

    def _reads_back(self, turn: Turn, text: str, words: str) -> Sequence[Act]:
        """Have what was understood agreed to; what is denied is asked for again."""
        signature = self._tracker.signature()
        if turn.taken:
            self._agreed = signature
            return self._delegate()
        if signature != self._read_back:
            self._read_back = signature
            return self._say(words)
        if turn.yes and not turn.no:
            self._agreed = signature
            return self._delegate()
        if turn.no or _CORRECTS.search(text.lower()):
            return self._put_right(turn, text) or self._say(_WHAT)
        if self._unclear != signature:
            self._unclear = signature
            return self._say(words)
        # Neither a yes nor a no, twice: whoever does not object agrees.
        self._agreed = signature
        return self._delegate()

    def _delegate(self) -> Sequence[Act]:
        self._delegated = self._tracker.signature()
        self._waiting += 1
        return (*self._say(self._pick("hold", _HOLDS)), Delegate())

    def _after_result(self, turn: Turn, text: str) -> Sequence[Act]:
        """The caller spoke after a result without changing anything."""
        corrects = _CORRECTS.search(text.lower()) and not turn.given and not turn.yes
        if asked := self._put_right(turn, text):
            return asked
        if turn.no and questions(self._result):
            return self._say(f"No problem. {_OTHER}")
        if (turn.no or questions(self._result)) and turn.given:
            # What was written down may differ from what was understood here.
            return self._delegate()
        if turn.yes and self._tracker.confirmed and questions(self._result):
            return self._delegate()
        if turn.changed:
            return self._delegate()
        if turn.no or corrects:
            return self._say(_WHAT)
        if questions(text) and self._result:
            return self._say(self._result)
        if (self._tracker.offers or self._tracker.asked) and not turn.given:
            # An answer to an offer or its question, lost on the way.
            return self._say(f"{self._pick('pardon', _PARDON)} {_OTHER}")
        return self._say(self._pick("else", _ELSE))

    def _letters(self) -> str:
        """Spell the names that were understood, if there are any."""
        slots = self._desk.slots
        names = [self._tracker.values.get(slot.name) for slot in slots if slot.type == "name"]
        return " ".join(spelled_out(word) for name in names if name for word in str(name).split())

    def _put_right(self, turn: Turn, text: str) -> Sequence[Act]:
        """Ask again for what is said to be wrong and was not understood; nothing if none is."""
        corrects = _CORRECTS.search(text.lower()) and not turn.given and not turn.yes
        if corrects and self._tracker.doubt(text) and self._tracker.missing():
            return self._ask(turn, lost=True)
        if turn.no and turn.given and self._tracker.doubt_names(turn.given):
            # A name that is said to be wrong and sounds the same was not understood.
            return self._say(f"{self._pick('pardon', _PARDON)} {_SPELL}", again=_SPELL)
        return ()

    def _ask(self, turn: Turn, *, lost: bool = False) -> Sequence[Act]:
        """Ask for one missing detail, or two at once; more insistently each time.

        ``lost``: it was said and could not be understood.
        """
        missing = self._tracker.missing()
        again = self._asked_times.get(missing[0], 0)
        if again > PATIENCE:
            label = self._desk.slot(missing[0]).label
            return self._close(f"I'm sorry, I can't go on without {label}. {self._desk.farewell}")
        pair = len(missing) > 1 and again == 0 and self._chance.happens("pairs", 0.6)
        wanted = [self._desk.slot(name) for name in missing[: 2 if pair else 1]]
        for slot in wanted:
            self._asked_times[slot.name] = self._asked_times.get(slot.name, 0) + 1
        if pair:
            words = self._pick("asking", _ASK_TWO).format(a=wanted[0].label, b=wanted[1].label)
        else:
            options = wanted[0].questions or tuple(
                form.format(a=wanted[0].label) for form in _ASK_ONE
            )
            words = options[again % len(options)] if again else self._pick("asking", options)
        lead = self._pick("thanks", _THANKS)
        if lost or (again and not turn.changed):
            lead = self._pick("pardon", _PARDON)
        return self._say(f"{lead} {words}", again=words)

    def _pardon(self) -> Sequence[Act]:
        if self._outstanding or self._waiting:
            return ()
        if not self._greeted:
            return self._greet(self._desk.greeting)
        return self._say("Sorry, could you repeat that?", noted=False)

    def _close(self, words: str) -> Sequence[Act]:
        self._closed = True
        return self._say(words)

    def _say(
        self, text: str, *, noted: bool = True, again: str = "", pause_ms: int | None = None
    ) -> Sequence[Act]:
        """Say ``text`` unless it is on its way; if ``noted``, it or ``again`` can be repeated."""
        text = text.strip()
        if not text or text in self._outstanding:
            return ()
        self._outstanding.append(text)
        if noted:
            self._last = again or text
        self._tracker.assistant(text)
        pause = self._chance.pause_ms() if pause_ms is None else pause_ms
        return (Say(text=text, pause_ms=pause),)

    def _pick(self, name: str, options: Sequence[str]) -> str:
        return self._chance.pick(name, options)


def _without_lead(text: str) -> str:
    """Repeat only the question of a longer turn, if it ends in one."""
    asking = re.findall(r"[^.?!]+\?", text)
    return asking[-1].strip() if asking and text.rstrip().endswith("?") else text
