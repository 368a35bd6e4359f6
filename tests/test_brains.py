"""The two local brains, each on its own, answering single events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from duplex.application.prompts import (
    OPENING_COMMENTARY,
    AgendaItem,
    Brief,
    Persona,
    assistant_instructions,
    caller_instructions,
)
from duplex.application.restaurant import application as restaurant
from duplex.errors import InputError
from duplex.local.caller_brain import CallerBrain
from duplex.local.host_brain import HostBrain
from duplex.local.seams import Act, Delegate, Finish, Heard, Progress, Said, Say
from duplex.values import Action, Json

NAME = AgendaItem(
    id="name",
    trigger_condition="The host asks for the name or the number of guests.",
    facts=("guest_name", "party_size"),
    response_hint="Under Rosa, for three.",
)
TIME = AgendaItem(
    id="time",
    trigger_condition="The host asks when it should be.",
    facts=("time",),
    response_hint="At half past six, please.",
)
BYE = AgendaItem(id="bye", action="finish", trigger_condition="It is booked.", required=False)
QUIET = Persona(backchannel_tendency=0.0, interrupt_tendency=0.0)
BRIEF = Brief(
    goal="Book a table.",
    opening="I'd like a table on September 12.",
    known_facts={
        "guest_name": "Rosa",
        "date": "2026-09-12",
        "time": "18:30",
        "party_size": 3,
    },
    agenda=(NAME, TIME, BYE),
    persona=QUIET,
)
GREETING = "Thank you for calling. How can I help you?"
BOOKED = "Your table for three is booked for September 12 at 6:30 p.m., under Rosa."


def heard(text: str, *, overlapped: bool = False, cut: bool = False) -> Heard:
    return Heard(text=text, start_ms=0, end_ms=1, overlapped=overlapped, cut=cut)


def said(say: Say, *, complete: bool = True) -> Said:
    return Said(text=say.text, action=say.action, items=say.items, complete=complete)


def only(acts: Sequence[Act]) -> Say:
    says = [act for act in acts if isinstance(act, Say)]
    assert len(says) == 1, acts
    return says[0]


def caller(brief: Brief = BRIEF, seed: int = 1, *, opened: bool = True) -> CallerBrain:
    brain = CallerBrain.from_instructions(caller_instructions(brief), seed)
    if opened:
        opening = only(brain.on_heard(heard(GREETING)))
        brain.on_said(said(opening))
    return brain


def reply(brain: CallerBrain | HostBrain, text: str) -> str:
    """Let a brain hear ``text``, finish what it says, and return that."""
    say = only(brain.on_heard(heard(text)))
    brain.on_said(said(say))
    return say.text


# The caller.


def test_the_opening_keeps_its_content_and_varies_around_it() -> None:
    openings = set()
    for seed in range(20):
        brain = caller(seed=seed, opened=False)
        say = only(brain.on_heard(heard(GREETING)))
        assert say.text.endswith(BRIEF.opening)
        assert say.action is Action.OPENING
        openings.add(say.text)
    assert len(openings) > 2


def test_a_caller_who_speaks_first_opens_unasked() -> None:
    first = caller(replace(BRIEF, first_speaker="caller"), opened=False)
    assert only(first.opening()).text.endswith(BRIEF.opening)
    assert first.on_commentary("Begin.", None) == ()
    assert caller(opened=False).opening() == ()


def test_a_caller_nobody_greets_speaks_in_the_end() -> None:
    brain = caller(opened=False)
    assert brain.on_quiet(4_000) == ()
    assert only(brain.on_quiet(5_000)).action is Action.OPENING


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What name should I put it under?", "Under Rosa, for three."),
        ("how many people will be coming", "Under Rosa, for three."),
        ("What time would you like?", "At half past six, please."),
        ("When should that be?", "At half past six, please."),
        ("Which day was it again?", "September 12"),
    ],
)
def test_the_question_heard_is_the_one_answered(question: str, answer: str) -> None:
    assert answer in reply(caller(), question)


def test_details_asked_together_are_given_together() -> None:
    text = reply(caller(), "Could I have your name and the time, please?")
    assert "Under Rosa, for three." in text
    assert "At half past six, please." in text


def test_an_item_counts_only_once_it_was_spoken_to_the_end() -> None:
    brain = caller()
    say = only(brain.on_heard(heard("What time would you like?")))
    assert say.items == ("time",)
    assert brain.on_said(said(say, complete=False)) == ()
    again = only(brain.on_quiet(1_500))
    assert again.text == say.text
    assert brain.on_said(said(again)) == [Progress(item_id="time", status="completed")]


def test_a_detail_asked_again_is_given_again() -> None:
    brain = caller()
    reply(brain, "What time would you like?")
    assert "6:30 p.m." in reply(brain, "Sorry, at what time was that?")
    last = reply(brain, "And what name?")
    assert last in reply(brain, "Could you repeat that, please?")


def test_unintelligible_words_are_asked_for_again() -> None:
    text = reply(caller(), "")
    assert any(word in text for word in ("again", "repeat", "catch"))


def test_a_request_to_hold_is_not_answered() -> None:
    assert not caller().on_heard(heard("One moment, let me check."))


def test_a_result_that_runs_on_from_the_request_to_hold_is_understood() -> None:
    text = f"Let me see, one moment, {BOOKED[0].lower()}{BOOKED[1:]}"
    assert only(caller().on_heard(heard(text))).action is Action.STOP


def test_a_question_that_runs_on_from_the_request_to_hold_is_answered() -> None:
    text = "let me see one moment i still need the time for it could i have that please"
    assert "half past six" in reply(caller(), text)


def test_a_caller_who_missed_the_result_makes_sure_of_it() -> None:
    brain = caller()
    assert reply(brain, "Is there anything else I can do for you?").endswith("?")
    assert only(brain.on_heard(heard(BOOKED))).action is Action.STOP


def test_a_host_in_doubt_says_the_result_again() -> None:
    brain, _ = ready()
    brain.on_said(said(only(brain.on_commentary(BOOKED, "d1"))))
    for text in ("Sorry, is that done now?", "So is that settled now?", "Sorry, is it all done?"):
        assert reply(brain, text) == BOOKED


def test_a_right_confirmation_ends_the_call() -> None:
    brain = caller()
    say = only(brain.on_heard(heard(BOOKED)))
    assert say.action is Action.STOP
    acts = brain.on_said(said(say))
    assert Progress(item_id="bye", status="completed") in acts
    assert Progress(item_id="name", status="bypassed") in acts
    assert acts[-1] == Finish(outcome="completed")
    assert brain.on_heard(heard("Goodbye!")) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Your table for three is book for September 12 at 6.30 PM under Rosa.",
        "There's a table for three on September 12 at 6:30 p.m. now.",
    ],
)
def test_a_confirmation_is_understood_though_its_verb_was_lost(text: str) -> None:
    brain = caller()
    brain.on_heard(heard("One moment, let me check."))
    assert only(brain.on_heard(heard(text))).action is Action.STOP


@pytest.mark.parametrize(
    ("wrong", "correction"),
    [
        ("6:30", "at 6:30 p.m., not at 5:30 p.m."),
        ("three", "for three, not for four"),
        ("September 12", "on September 12, not on September 13"),
    ],
)
def test_a_wrong_confirmation_is_corrected(wrong: str, correction: str) -> None:
    other = {"6:30": "5:30", "three": "four", "September 12": "September 13", "Rosa": "Bill"}
    brain = caller()
    say = only(brain.on_heard(heard(BOOKED.replace(wrong, other[wrong]))))
    assert say.action is Action.CORRECT
    value, _, denied = correction.partition(", not ")
    assert value in say.text
    assert denied.split(" ", 1)[1] in say.text
    assert only(brain.on_heard(heard(BOOKED))).action is Action.STOP


def test_a_wrong_name_is_put_right_without_saying_it_again() -> None:
    say = only(caller().on_heard(heard(BOOKED.replace("Rosa", "Bill"))))
    assert (say.text, say.action) == ("Sorry, no, the name is Rosa.", Action.CORRECT)


def test_a_name_that_only_sounds_alike_is_let_pass() -> None:
    assert only(caller().on_heard(heard(BOOKED.replace("Rosa", "Roza")))).action is Action.STOP


def test_corrections_are_bounded() -> None:
    brain = caller()
    acts: list[Act] = []
    for _ in range(4):
        for act in brain.on_heard(heard(BOOKED.replace("three", "four"))):
            assert isinstance(act, Say)
            acts += brain.on_said(said(act))
    assert acts[-1] == Finish(outcome="refused")


REFUSED = (
    "I'm sorry, 6:30 p.m. is not available. I can offer 7 p.m. or 8 p.m. instead. Would that work?"
)


def refusal(**facts: str | bool) -> tuple[CallerBrain, str]:
    brain = caller(replace(BRIEF, known_facts={**BRIEF.known_facts, **facts}))
    return brain, reply(brain, REFUSED)


def test_an_offer_is_taken_by_the_facts() -> None:
    assert "8 p.m." in refusal(alternative_time="20:00")[1]
    assert "8 p.m." in refusal(earliest_time="19:30", latest_time="21:00")[1]
    assert "7 p.m." in refusal(accept_alternative=True)[1]


def test_an_alternative_not_offered_is_asked_for_and_then_given_up() -> None:
    brain, text = refusal(alternative_time="21:00")
    assert "9 p.m. instead?" in text
    assert only(brain.on_heard(heard(REFUSED.replace("6:30", "9")))).action is Action.STOP


def test_a_confirmed_alternative_is_no_mistake() -> None:
    brain, _ = refusal(alternative_time="20:00")
    assert only(brain.on_heard(heard(BOOKED.replace("6:30", "8")))).action is Action.STOP


def test_a_refusal_without_alternative_ends_the_call() -> None:
    brain = caller()
    acts = brain.on_said(said(only(brain.on_heard(heard(REFUSED)))))
    assert acts[-1] == Finish(outcome="refused")


def test_silence_is_borne_three_times() -> None:
    brain = caller()
    assert brain.on_quiet(7_000) == ()
    for _ in range(3):
        prompt = only(brain.on_quiet(8_000))
        assert prompt.action is Action.SPEAK
        brain.on_said(said(prompt))
    acts = brain.on_said(said(only(brain.on_quiet(8_000))))
    assert acts[-1] == Finish(outcome="refused")


def murmuring(tendency: float, seed: int) -> list[Say]:
    brain = caller(replace(BRIEF, persona=Persona(backchannel_tendency=tendency)), seed)
    acts: list[Say] = []
    for utterance in range(10):
        for ms in range(200, 3_000, 200):
            for act in brain.on_speech(ms):
                assert isinstance(act, Say)
                acts.append(act)
                brain.on_said(said(act))
        if utterance < 9:
            for act in brain.on_heard(heard("One moment, let me check.")):
                assert isinstance(act, Say)
    return acts


def test_murmurs_follow_the_personas_tendency() -> None:
    assert murmuring(0.0, 1) == []
    always = murmuring(1.0, 1)
    assert len(always) == 10
    assert all(say.over and say.action is Action.BACKCHANNEL for say in always)
    assert 1 <= len(murmuring(0.4, 1)) <= 8


def test_a_backchannel_item_is_murmured_over_speech() -> None:
    item = AgendaItem(id="hum", action="backchannel", response_hint="Uh-huh.")
    brain = caller(replace(BRIEF, agenda=(item, BYE)))
    say = next(a for ms in range(200, 3_000, 200) for a in brain.on_speech(ms))
    assert isinstance(say, Say)
    assert (say.text, say.items, say.over) == ("Uh-huh.", ("hum",), True)
    assert brain.on_said(said(say)) == [Progress(item_id="hum", status="completed")]


CUT_IN = AgendaItem(
    id="cut",
    action="interrupt",
    trigger_condition="While the host explains that it is unavailable.",
    facts=("time",),
    response_hint="Actually, is seven free?",
)


def test_an_interruption_waits_until_its_trigger_is_plausible() -> None:
    brain = caller(replace(BRIEF, agenda=(CUT_IN, BYE)))
    assert [a for ms in range(200, 4_000, 200) for a in brain.on_speech(ms)] == []
    brain.on_heard(heard("One moment, let me check."))
    say = next(a for ms in range(200, 4_000, 200) for a in brain.on_speech(ms))
    assert isinstance(say, Say)
    assert (say.action, say.over) == (Action.INTERRUPT, True)
    # The words it cut into are not answered a second time.
    assert brain.on_heard(heard("I'm sorry, six thirty is not avail")) == ()


def test_an_interruption_that_came_too_late_is_said_in_its_turn() -> None:
    brain = caller(replace(BRIEF, agenda=(CUT_IN, BYE)))
    brain.on_heard(heard("One moment, let me check."))
    say = only(brain.on_heard(heard("It's not available.")))
    assert (say.text, say.action, say.over) == ("Actually, is seven free?", Action.SPEAK, False)


def test_a_wait_item_is_done_by_saying_nothing() -> None:
    item = AgendaItem(id="wait", action="wait", trigger_condition="The host checks.")
    brain = caller(replace(BRIEF, agenda=(item, BYE)))
    assert brain.on_heard(heard("One moment, please.")) == [
        Progress(item_id="wait", status="completed")
    ]


def test_the_first_value_is_kept_until_the_correction_is_due() -> None:
    fix = AgendaItem(
        id="fix",
        action="correct",
        trigger_condition="The host asks for the name.",
        facts=("date", "guest_name"),
        response_hint="Actually, make it September 13, under Rosa.",
    )
    facts: dict[str, str | int | float | bool | None] = {
        **BRIEF.known_facts, "original_date": "2026-09-12", "date": "2026-09-13",
    }  # fmt: skip
    brain = caller(replace(BRIEF, agenda=(fix, BYE), known_facts=facts))
    assert "Yes" in reply(brain, "So that's September 12, is that right?")
    say = only(brain.on_heard(heard("And your name?")))
    assert (say.text, say.action) == (fix.response_hint, Action.CORRECT)
    brain.on_said(said(say))
    assert "on September 13, not September 12" in reply(brain, "So that's September 12, right?")


# The host.


def host(seed: int = 1, state: dict[str, Json] | None = None, *, greeted: bool = True) -> HostBrain:
    brain = HostBrain.from_instructions(assistant_instructions(restaurant, state or {}), seed)
    if greeted:
        brain.on_said(said(only(brain.on_commentary(OPENING_COMMENTARY, None))))
    return brain


def ready(state: dict[str, Json] | None = None) -> tuple[HostBrain, Sequence[Act]]:
    """A host that has just heard everything."""
    brain = host(state=state)
    text = "A table for two on August 7 at 7 p.m., my name is Rosa."
    return brain, brain.on_heard(heard(text))


def delegates(acts: Sequence[Act]) -> int:
    return sum(isinstance(act, Delegate) for act in acts)


def test_the_host_greets_when_told_to_and_only_once() -> None:
    brain = host(greeted=False)
    assert brain.opening() == ()
    assert only(brain.on_commentary(OPENING_COMMENTARY, None)).text.endswith("How can I help you?")
    assert only(host(greeted=False).on_commentary("Welcome to Rosa's.", None)).text.endswith(
        "Welcome to Rosa's."
    )


def test_the_host_asks_for_one_or_two_of_what_is_missing() -> None:
    texts = {reply(host(seed), "I'd like a table on August 7.") for seed in range(20)}
    assert len(texts) > 5
    assert all("name" in text and "what day" not in text.lower() for text in texts)
    assert any("guests" in text for text in texts)
    assert not any("time" in text for text in texts)


def test_complete_details_are_delegated_after_a_word_of_waiting() -> None:
    _, acts = ready()
    assert [type(act) for act in acts] == [Say, Delegate]
    assert not any(word in only(acts).text for word in ("booked", "available", "confirmed"))


def test_what_the_application_says_is_passed_on_word_for_word() -> None:
    brain, _ = ready()
    assert only(brain.on_commentary(BOOKED, "d1")).text == BOOKED


@pytest.mark.parametrize(
    "text", ["Thank you.", "Great, thanks so much!", "Is it booked?", "Mm-hmm."]
)
def test_nothing_is_delegated_twice(text: str) -> None:
    brain, _ = ready()
    brain.on_said(said(only(brain.on_commentary(BOOKED, "d1"))))
    assert delegates(brain.on_heard(heard(text))) == 0


def test_what_is_read_back_into_silence_is_taken_as_agreed() -> None:
    brain = host()
    reply(brain, "A table for two on August 7.")
    assert "Is that right?" in reply(brain, "At 7 p.m., under the name Rosa.")
    assert brain.on_quiet(5_000) == ()
    assert delegates(brain.on_quiet(6_000)) == 1
    assert delegates(brain.on_quiet(6_000)) == 0


def test_a_changed_detail_is_delegated_again() -> None:
    brain, _ = ready()
    brain.on_said(said(only(brain.on_commentary(BOOKED, "d1"))))
    assert "at 8 p.m." in reply(brain, "No, at eight, please, not at seven.")
    assert delegates(brain.on_heard(heard("Yes, please."))) == 1


def test_an_accepted_offer_is_delegated() -> None:
    brain, _ = ready()
    offer = "I'm sorry, it is not available. I can offer 8 p.m. instead. Would that work for you?"
    brain.on_said(said(only(brain.on_commentary(offer, "d1"))))
    assert delegates(brain.on_heard(heard("Yes, that works."))) == 1


def test_a_declined_offer_is_not() -> None:
    brain, _ = ready()
    offer = "I'm sorry, it is not available. I can offer 8 p.m. instead. Would that work for you?"
    brain.on_said(said(only(brain.on_commentary(offer, "d1"))))
    assert delegates(brain.on_heard(heard("No, that doesn't work."))) == 0


def test_after_the_farewell_the_host_is_done() -> None:
    brain = host()
    assert "Goodbye" in reply(brain, "Never mind. Goodbye.")
    assert brain.on_heard(heard("A table for two on August 7 at 7 p.m., my name is Rosa.")) == ()
    assert brain.on_commentary(BOOKED, "d1") == ()
    assert brain.on_quiet(60_000) == ()


def test_words_that_were_not_understood_are_asked_for_again() -> None:
    brain = host()
    assert reply(brain, " ") == "Sorry, could you repeat that?"
    question = reply(brain, "I'd like a table on August 7.")
    assert reply(brain, "Sorry, could you say that again?") in question


def test_an_unanswered_question_is_put_in_other_words_and_not_for_ever() -> None:
    brain = host()
    reply(brain, "A table for two on August 7 at 7 p.m., please.")
    texts = [reply(brain, "It is raining here.") for _ in range(4)]
    assert "name" in texts[0]
    assert texts[0] != texts[1]
    assert "Goodbye" in texts[3]


@pytest.mark.parametrize("overlapped", [True, False])
def test_a_murmur_is_no_answer_to_a_question_for_a_detail(overlapped: bool) -> None:
    brain = host()
    reply(brain, "I'd like a table on August 7.")
    assert brain.on_heard(heard("Mm-hmm.", overlapped=overlapped)) == ()


def test_a_mere_okay_answers_an_offer() -> None:
    brain, _ = ready()
    offer = "I'm sorry, it is not available. I can offer 8 p.m. instead. Would that work for you?"
    brain.on_said(said(only(brain.on_commentary(offer, "d1"))))
    assert delegates(brain.on_heard(heard("Okay."))) == 1


def test_a_result_cut_short_by_a_murmur_is_said_again() -> None:
    brain, _ = ready()
    say = only(brain.on_commentary(BOOKED, "d1"))
    brain.on_said(said(say, complete=False))
    assert reply(brain, "Mm-hmm.") == BOOKED


def test_silence_makes_the_host_ask_and_in_the_end_hang_up() -> None:
    brain = host()
    question = reply(brain, "I'd like a table on August 7.")
    assert brain.on_quiet(5_000) == ()
    again = only(brain.on_quiet(6_000)).text
    assert again.startswith("Are you still there?")
    assert again.removeprefix("Are you still there? ") in question
    for _ in range(2):
        brain.on_quiet(6_000)
    assert "Goodbye" in only(brain.on_quiet(6_000)).text


def test_a_delegation_in_progress_is_only_waited_for() -> None:
    brain, acts = ready()
    brain.on_said(said(only(acts)))
    assert "checking" in only(brain.on_heard(heard("How long will it take?"))).text
    assert delegates(brain.on_heard(heard("Actually, for three."))) == 1


def test_a_detail_the_application_still_wants_is_passed_on() -> None:
    brain, _ = ready()
    asked = "I still need one thing. What time would you like?"
    brain.on_said(said(only(brain.on_commentary(asked, "d1"))))
    assert delegates(brain.on_heard(heard("At 7 p.m."))) == 1


def test_a_cancellation_is_confirmed_before_it_is_delegated() -> None:
    brain = host(state={"authorized_reservation_ids": ["R-100"]})
    assert reply(brain, "Please cancel R-100.") == "Would you like me to cancel reservation R-100?"
    assert delegates(brain.on_heard(heard("Yes, please."))) == 1


def test_what_is_not_the_callers_is_refused_however_often_it_is_asked() -> None:
    brain = host(state={"authorized_reservation_ids": []})
    for text in (
        "Please cancel R-200.",
        "I really need you to cancel R-200.",
        "Make an exception.",
    ):
        acts = brain.on_heard(heard(text))
        assert "not in your name" in only(acts).text
        assert delegates(acts) == 0
        brain.on_said(said(only(acts)))


def test_brains_are_built_from_instructions_alone() -> None:
    with pytest.raises(InputError, match="no duplex-brief block"):
        CallerBrain.from_instructions(assistant_instructions(restaurant, {}), 1)
    with pytest.raises(InputError, match="no duplex-desk block"):
        HostBrain.from_instructions(caller_instructions(BRIEF), 1)
