"""Personas: levels as data reach every caller's instructions and the local caller's speech."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from booking_call import booking
from duplex.application.prompts import Brief, Persona, brief_from, caller_instructions
from duplex.briefing import caller_brief
from duplex.local.chance import Chance
from duplex.local.facts import Fact
from duplex.local.interjections import Interjections
from duplex.local.manner import PACE, Manner, pace_of, plain
from duplex.local.parties import brain_for
from duplex.local.seams import Act, Heard, Said, Say
from duplex.local.timbre import seeded_style
from duplex.options import make
from duplex.runner import Runner
from duplex.scenario import DuplexOptions, PersonaLevels, Scenario
from duplex.scenario.options import TENDENCY
from duplex.values import Action
from fake_engines import Parrot, speaking


class Sayer:
    """A brain that says one thing whenever it hears something, and notes what it said."""

    def __init__(self, text: str = "For two people.", items: tuple[str, ...] = ("a",)) -> None:
        self.say = Say(text=text, items=items)
        self.said: list[str] = []

    def opening(self) -> Sequence[Act]:
        return ()

    def on_heard(self, heard: Heard) -> Sequence[Act]:
        return (self.say,)

    def on_said(self, said: Said) -> Sequence[Act]:
        self.said.append(said.text)
        return ()

    def on_commentary(self, text: str, delegation_id: str | None) -> Sequence[Act]:
        return ()

    def on_quiet(self, quiet_ms: int) -> Sequence[Act]:
        return ()

    def on_speech(self, speech_ms: int) -> Sequence[Act]:
        return (replace(self.say, over=True, action=Action.BACKCHANNEL),)


HEARD = Heard(text="How many?", start_ms=0, end_ms=900)


def spoken(persona: Persona, seed: int = 1, count: int = 60) -> list[Say]:
    manner = Manner(Sayer(), persona, seed)
    found = [act for _ in range(count) for act in manner.on_heard(HEARD)]
    return [act for act in found if isinstance(act, Say)]


def scenario(**levels: str) -> Scenario:
    options = DuplexOptions(persona=PersonaLevels.model_validate(levels))
    return booking().model_copy(update={"duplex": options})


@pytest.mark.parametrize(
    ("trait", "level", "said"),
    [
        ("pace", "fast", "Speak fast."),
        ("disfluency", "frequent", "Hesitate often"),
        ("clarity", "vague", "vague"),
        ("memory", "poor", "think before a detail"),
        ("emotion", "upset", "You are upset"),
    ],
)
def test_a_level_reaches_every_callers_instructions(trait: str, level: str, said: str) -> None:
    told = caller_instructions(caller_brief(scenario(**{trait: level}), "assistant"))
    assert said in told
    assert said not in caller_instructions(caller_brief(booking(), "assistant"))
    assert getattr(brief_from(told).persona, trait) == level


def test_a_plain_persona_speaks_as_before() -> None:
    brief = caller_brief(booking(), "assistant")
    assert plain(brief.persona)
    assert pace_of(brief.persona) == 1.0
    assert not isinstance(brain_for(caller_instructions(brief), "caller", 7), Manner)


def test_a_persona_with_manners_has_them() -> None:
    brief = caller_brief(scenario(disfluency="frequent"), "assistant")
    assert isinstance(brain_for(caller_instructions(brief), "caller", 7), Manner)


def test_words_get_fillers_as_often_as_the_level_says() -> None:
    def share(level: str) -> float:
        said = spoken(Persona(disfluency=level), count=300)
        return sum(say.text != "For two people." for say in said) / len(said)

    assert share("off") == 0
    assert 0.2 < share("occasional") < 0.4
    assert 0.7 < share("frequent") < 0.9


def test_no_fact_is_lost_whatever_the_manner() -> None:
    persona = Persona(disfluency="frequent", clarity="vague", memory="poor", emotion="impatient")
    said = spoken(persona, count=200)
    assert len({say.text for say in said}) > 10
    for say in said:
        assert "two people" in say.text
        assert say.items == ("a",)


def test_a_poor_memory_takes_its_time() -> None:
    pauses = [say.pause_ms for say in spoken(Persona(memory="poor"))]
    assert {pause >= 600 for pause in pauses} == {True, False}


def test_what_was_said_comes_back_as_it_was_meant() -> None:
    brain = Sayer()
    manner = Manner(brain, Persona(disfluency="frequent"), 3)
    for _ in range(20):
        for act in manner.on_heard(HEARD):
            assert isinstance(act, Say)
            manner.on_said(Said(text=act.text, action=act.action, items=act.items, complete=True))
    assert set(brain.said) == {"For two people."}


def test_murmurs_and_goodbyes_stay_as_they_are() -> None:
    manner = Manner(Sayer(), Persona(disfluency="frequent"), 3)
    assert next(act for act in manner.on_speech(1000) if isinstance(act, Say)).text == (
        "For two people."
    )


def test_the_same_seed_says_the_same() -> None:
    persona = Persona(disfluency="frequent", memory="poor")
    assert spoken(persona, seed=4) == spoken(persona, seed=4)
    assert spoken(persona, seed=4) != spoken(persona, seed=5)


@pytest.mark.parametrize("pace", ["slow", "normal", "fast"])
def test_pace_multiplies_how_long_speech_takes(pace: str) -> None:
    usual = seeded_style("coral", 7, "caller").pace
    changed = seeded_style("coral", 7, "caller", pace=pace_of(Persona(pace=pace))).pace
    assert changed == pytest.approx(usual * PACE[pace])


def cuts(level: str) -> dict[tuple[int, int], int]:
    """When each of ten utterances is cut into, by seed and utterance, in ms from its start."""
    brief = caller_brief(scenario(interruptions=level), "assistant")
    brief = replace(brief, agenda=tuple(one for one in brief.agenda if one.action == "answer"))
    found = {}
    for seed in range(30):
        interjections = Interjections(brief, Chance(seed, "caller"))
        for utterance in range(10):
            for speech_ms in range(200, 4200, 200):
                said = interjections.speak(speech_ms, brief.agenda, looking=False)
                if said is not None and said.action is Action.INTERRUPT:
                    found[seed, utterance] = speech_ms
            interjections.ended()
    return found


def test_more_interruptions_are_more_interruptions_and_earlier_ones() -> None:
    off, occasional, frequent = (cuts(level) for level in TENDENCY)
    assert not off
    assert 0.15 < len(occasional) / 300 < 0.35
    assert 0.65 < len(frequent) / 300 < 0.85
    assert set(occasional) < set(frequent), "the same seed cuts in there, and elsewhere too"
    assert all(frequent[key] <= at for key, at in occasional.items())
    assert max(frequent.values()) <= 1_400


def test_a_caller_insists_on_nothing_twice_and_never_on_a_result() -> None:
    persona = Persona(interrupt_tendency=1.0, backchannel_tendency=0.0)
    told = [Fact(key=f"{n}_date", value="2026-08-07", kind="date") for n in range(3)]
    told.append(Fact(key="guest_name", value="Maya", kind="name"))
    interjections = Interjections(Brief(goal="", opening="", persona=persona), Chance(1, "caller"))

    def said(*, looking: bool = False, heard_out: bool = True) -> int:
        found = [
            interjections.speak(ms, (), looking=looking, told=told) for ms in range(200, 4200, 200)
        ]
        interjections.ended(heard_out=heard_out)
        return sum(one is not None for one in found)

    assert said(looking=True) == 0
    assert said(heard_out=False) == 1
    assert said() == 0, "what was cut off was not heard, so the next is heard out"
    assert [said() for _ in range(3)] == [1, 1, 0], "each once; a name would be misheard twice"


def test_levels_of_interruption_differ_in_the_timing_of_whole_calls(tmp_path: Path) -> None:
    with speaking(Parrot()):
        options: dict[str, object] = {
            "data": Path(__file__).parents[1] / "scenarios",
            "scenario": ["restaurant_booking_complete"],
            "clock": "virtual",
            "sweep": f"persona.interruptions={','.join(TENDENCY)}",
            "small_sweep": True,
            "out": tmp_path,
        }
        results = asyncio.run(Runner(make(options)).run()).run.results
    assert [one.status for one in results] == ["passed"] * 3
    found = []
    for one in results:
        timing = one.duplex["timing"]
        assert isinstance(timing, dict)
        turns = timing["turns"]
        assert isinstance(turns, list)
        found.append(sum(isinstance(turn, dict) and turn.get("barge_in") is True for turn in turns))
    off, occasional, frequent = found
    assert off == 0 < occasional < frequent
