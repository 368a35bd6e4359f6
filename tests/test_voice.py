"""One local voice in conversation: when it speaks, what it tells, how late work shows."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from duplex.clock import VirtualClock, WallClock
from duplex.errors import DuplexError
from duplex.local.seams import Delegate, Finish, Progress, Say
from duplex.local.speech import split
from duplex.local.thinking import ThinkTimes
from duplex.values import Action, Side
from voice_fakes import (
    EXACT,
    LEVEL,
    RATE,
    LabelEars,
    Script,
    ToneMouth,
    make,
    more,
    scene,
    talk,
)

HELLO = "one two three four"


async def test_a_reply_begins_after_the_declared_times_and_no_sooner() -> None:
    done = await talk(make(Script(answers=[(Say(text=HELLO),)])), scene(4000, (200, 1200)))
    first, last = done.sounding()
    # 1 200 end + 500 quiet + 300 ears + 100 brain + 250 mouth
    assert abs(first * 1000 / RATE - 2350) <= 40
    assert abs((last - first) * 1000 / RATE - 1000) <= 2


async def test_a_pause_asked_for_is_added_to_the_thinking() -> None:
    brain = Script(answers=[(Say(text=HELLO, pause_ms=400),)])
    done = await talk(make(brain), scene(4500, (200, 1200)))
    assert abs(done.sounding()[0] * 1000 / RATE - 2750) <= 40


async def test_thinking_times_are_those_that_were_declared() -> None:
    think = ThinkTimes(ears_ms=600, brain_ms=200, mouth_ms=500, jitter=0.0)
    brain = Script(answers=[(Say(text=HELLO),)])
    done = await talk(make(brain, think=think), scene(5000, (200, 1200)))
    assert abs(done.sounding()[0] * 1000 / RATE - 3000) <= 40


@pytest.mark.parametrize("chunk", [(1, 2, 61), 479, 481, 4800, (1, 700, 33, 2399), 96_000])
async def test_what_it_does_is_the_same_however_its_input_is_cut(chunk: int) -> None:
    theirs = scene(6000, (100, 900), (3000, 4500))

    async def run(size: int) -> tuple[bytes, object, object, object, object]:
        brain = Script(answers=[(Say(text="alpha beta gamma. delta epsilon zeta eta"), Delegate())])
        done = await talk(make(brain, seed=3, think=ThinkTimes()), theirs, chunk=size)
        return done.pcm.tobytes(), done.said, done.heard, done.delegations, done.notes

    assert await run(chunk) == await run(480)


async def test_slow_engines_change_nothing_in_virtual_time() -> None:
    theirs = scene(5000, (200, 1200))

    async def run(delay: float) -> tuple[bytes, object]:
        brain = Script(answers=[(Say(text="first sentence here. second one there"),)])
        voice = make(brain, LabelEars("yes", delay=delay), ToneMouth(delay=delay))
        done = await talk(voice, theirs)
        return done.pcm.tobytes(), (done.said, done.notes)

    assert await run(0.03) == await run(0.0)


async def test_the_same_seed_speaks_the_same_and_another_differently() -> None:
    async def run(seed: int) -> bytes:
        brain = Script(answers=[(Say(text=HELLO),)])
        voice = make(brain, seed=seed, think=ThinkTimes())
        return (await talk(voice, scene(4000, (200, 1200)))).pcm.tobytes()

    assert await run(1) == await run(1)
    assert await run(1) != await run(2)


async def test_the_words_said_are_the_text_on_200_ms_boundaries() -> None:
    text = "Good evening, what can I do for you? Tell me."
    done = await talk(make(Script(opens=(Say(text=text),))), scene(5000))
    assert done.text() == f" {text}"
    *ongoing, _last = done.released
    assert len(ongoing) > 5
    assert all(at % 200 == 0 for at in ongoing)
    first, last = done.sounding()
    assert abs(done.said[0].start_ms - first * 1000 / RATE) <= 2
    assert abs(done.said[-1].end_ms - last * 1000 / RATE) <= 2
    edges = [edge for words in done.said for edge in (words.start_ms, words.end_ms)]
    assert edges == sorted(edges)


async def test_a_word_is_never_told_before_it_was_spoken() -> None:
    done = await talk(make(Script(opens=(Say(text=HELLO * 3),))), scene(5000))
    for words, at in list(zip(done.said, done.released, strict=True))[:-1]:
        assert words.end_ms <= at


async def test_words_heard_span_the_utterance() -> None:
    done = await talk(make(Script(), LabelEars("a table for two")), scene(3000, (400, 1400)))
    [words] = done.heard
    assert words.text == " a table for two"
    assert abs(words.start_ms - 400) <= 20
    assert abs(words.end_ms - 1400) <= 20


async def test_the_ears_get_one_utterance_with_a_margin() -> None:
    ears = LabelEars("words")
    await talk(make(Script(), ears), scene(3000, (600, 1600)))
    [audio] = ears.heard
    assert abs(len(audio) * 1000 / RATE - 1400) <= 40


async def test_a_long_utterance_reaches_the_ears_whole() -> None:
    ears = LabelEars("words")
    await talk(make(Script(), ears), scene(13_000, (600, 11_600)), chunk=4800)
    [audio] = ears.heard
    assert abs(len(audio) * 1000 / RATE - 11_400) <= 40


async def test_a_pause_in_mid_utterance_costs_a_decode_but_tells_one_utterance() -> None:
    ears, brain = LabelEars("half", "the whole"), Script()
    done = await talk(make(brain, ears), scene(4000, (400, 1200), (1620, 2450)))
    assert [words.text for words in done.heard] == [" the whole"]
    assert [heard.text for heard in brain.heard()] == ["the whole"]
    assert abs(len(ears.heard[-1]) * 1000 / RATE - 2450) <= 40


async def test_a_text_without_any_marks_is_spoken_in_bounded_pieces() -> None:
    mouth = ToneMouth()
    text = " ".join(["word"] * 120)
    done = await talk(make(Script(opens=(Say(text=text),)), mouth=mouth), scene(33_000), chunk=4800)
    assert max(len(piece) for piece in mouth.asked) < 160
    assert done.text() == f" {text}"


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("At 7 p.m. on Friday. Fine?", ["At 7 p.m. on Friday.", "Fine?"]),
        ("Dr. Ito is in. Mr. Poe too.", ["Dr. Ito is in.", "Mr. Poe too."]),
        ("It costs 3.50 today", ["It costs 3.50 today"]),
        ("Closed at 9 p.m. Sorry.", ["Closed at 9 p.m.", "Sorry."]),
    ],
)
def test_pieces_are_sentences(text: str, pieces: list[str]) -> None:
    assert [" ".join(words) for words, _ in split(text)] == pieces


async def test_several_sayings_follow_each_other() -> None:
    brain = Script(opens=(Say(text="one two"), Say(text="three four", pause_ms=300)))
    done = await talk(make(brain), scene(3000))
    assert done.text() == " one two three four"
    assert [said.text for said in brain.said()] == ["one two", "three four"]
    first, second = (note.fields for note in done.of("utterance"))
    assert abs(int(str(second["start_ms"])) - int(str(first["end_ms"])) - 300) <= 20


async def test_what_is_waiting_is_said_once_the_other_side_is_silent() -> None:
    voice = make(Script())
    await voice.begin(VirtualClock(RATE))
    await more(voice, scene(600, (100, 600)))
    voice.commentary("a b c", None)
    done = await more(voice, scene(3500, (0, 1500)))
    await voice.close()
    assert done.sounding()[0] * 1000 / RATE >= 1500
    assert done.text() == " a b c"


@pytest.mark.parametrize(
    ("starts", "stale"), [(2500, True), (3400, True), (1700, True), (9000, False)]
)
async def test_words_decided_before_the_other_side_spoke_again_say_so(
    starts: int, stale: bool
) -> None:
    # sierra-research/tau2-bench#522: thinking takes 1.5 s, a code word comes meanwhile
    slow = ThinkTimes(brain_ms=1500, jitter=0.0)
    theirs = scene(10_000, (200, 1200), (starts, starts + 700))
    done = await talk(make(Script(answers=[(Say(text=HELLO),)]), think=slow), theirs)
    (note,) = done.of("utterance")
    assert (note.fields.get("stale"), "decided_ms" in note.fields) == (stale or None, stale)
    if stale:
        # 1 200 end + 500 quiet + 300 ears: what was heard until then is what it answers.
        assert abs(int(str(note.fields["decided_ms"])) - 2000) <= 40
        assert int(str(note.fields["start_ms"])) >= starts + 700
    assert done.of("late") == []


async def test_an_interruption_is_never_stale() -> None:
    brain = Script(over={400: (Say(text=HELLO, over=True),)})
    done = await talk(make(brain), scene(4000, (200, 3000)))
    (note,) = done.of("utterance")
    assert "stale" not in note.fields


async def test_commentary_is_spoken_within_a_second_in_a_silence() -> None:
    voice = make(Script())
    await voice.begin(VirtualClock(RATE))
    await more(voice, scene(1000))
    voice.commentary("your table is booked", "d1")
    done = await more(voice, scene(2500))
    await voice.close()
    assert done.sounding()[0] * 1000 / RATE <= 1000
    assert done.text() == " your table is booked"


async def test_speech_is_told_every_200_ms_and_quiet_every_second() -> None:
    brain = Script()
    await talk(make(brain), scene(4300, (200, 1250)))
    assert [ms for kind, ms in brain.log if kind == "speech"] == [200, 400, 600, 800, 1000]
    assert [ms for kind, ms in brain.log if kind == "quiet"] == [1000, 2000, 3000]


async def test_quiet_is_not_told_while_an_answer_is_on_its_way() -> None:
    slow = ThinkTimes(ears_ms=1500, brain_ms=100, mouth_ms=1500, jitter=0.0)
    brain = Script(answers=[(Say(text=HELLO),)])
    await talk(make(brain, think=slow), scene(4500, (200, 800)))
    assert [ms for kind, ms in brain.log if kind == "quiet"] == []


async def test_a_delegation_begins_beside_the_words_and_an_ending_after_them() -> None:
    acts = (Say(text=HELLO), Progress(item_id="i1", status="completed"), Delegate(), Finish())
    done = await talk(make(Script(opens=acts)), scene(3000))
    assert done.delegations == [100]
    [note] = done.of("agenda")
    assert note.fields == {"item_id": "i1", "status": "completed"}
    kinds = [note.kind for note in done.notes]
    assert kinds == ["agenda", "utterance", "finished"]


async def test_a_caller_notes_each_utterance_and_an_assistant_none() -> None:
    say = Say(text=HELLO, action=Action.OPENING, items=("greet",))
    done = await talk(make(Script(opens=(say,))), scene(2000))
    [note] = done.of("utterance")
    first, last = done.sounding()
    assert note.fields["text"] == HELLO
    assert note.fields["action"] == "OPENING"
    assert note.fields["items"] == ["greet"]
    assert note.fields["complete"] is True
    assert abs(int(str(note.fields["start_ms"])) - first * 1000 / RATE) <= 2
    assert abs(int(str(note.fields["end_ms"])) - last * 1000 / RATE) <= 2
    quiet = await talk(make(Script(opens=(say, Finish())), role=Side.ASSISTANT), scene(2000))
    assert quiet.notes == []
    assert quiet.text() == f" {HELLO}"


async def test_nothing_said_is_a_saying_that_ends_at_once() -> None:
    brain = Script(opens=(Say(text="  "), Say(text="one two")))
    done = await talk(make(brain), scene(1500))
    assert [said.complete for said in brain.said()] == [True, True]
    assert done.text() == " one two"
    assert len(done.of("utterance")) == 1


async def test_a_flood_of_commentary_is_bounded() -> None:
    mouth = ToneMouth()
    voice = make(Script(), mouth=mouth)
    await voice.begin(VirtualClock(RATE))
    for number in range(200):
        voice.commentary(f"number {number}", None)
    await more(voice, scene(100))
    await voice.close()
    assert len(mouth.asked) <= 16


async def test_on_the_wall_clock_a_late_decode_comes_late_and_says_so() -> None:
    gate = asyncio.Event()
    brain = Script(answers=[(Say(text=HELLO),)])
    voice = make(brain, LabelEars("yes", gate=gate))
    await voice.begin(WallClock(RATE))
    early = await more(voice, scene(2500, (200, 1200)))
    assert early.heard == []
    gate.set()
    done = await more(voice, scene(2000))
    await voice.close()
    [late] = done.of("late")
    assert late.fields["what"] == "decode"
    # due at 1 200 + 500 + 300, ready at 2 500
    assert abs(int(str(late.fields["late_ms"])) - 500) <= 60
    assert done.text() == f" {HELLO}"


async def test_on_the_wall_clock_late_first_audio_comes_late_and_says_so() -> None:
    gate = asyncio.Event()
    voice = make(Script(opens=(Say(text=HELLO),)), mouth=ToneMouth(gate=gate))
    await voice.begin(WallClock(RATE))
    early = await more(voice, scene(1000))
    assert not early.pcm.any()
    gate.set()
    done = await more(voice, scene(2000))
    await voice.close()
    [late] = done.of("late")
    assert late.fields["what"] == "first_audio"
    assert abs(int(str(late.fields["late_ms"])) - 650) <= 60


class _HaltingMouth(ToneMouth):
    """Needs the gate for everything after its first piece."""

    async def speak(self, text, style):  # type: ignore[no-untyped-def]
        if self.asked:
            assert self.second is not None
            await self.second.wait()
        async for chunk in super().speak(text, style):
            yield chunk

    second: asyncio.Event | None = None


async def test_on_the_wall_clock_speech_that_runs_dry_goes_on_when_it_can() -> None:
    mouth = _HaltingMouth()
    mouth.second = asyncio.Event()
    text = "one two three. Four five six."
    voice = make(Script(opens=(Say(text=text),)), mouth=mouth)
    await voice.begin(WallClock(RATE))
    await more(voice, scene(2000))
    mouth.second.set()
    done = await more(voice, scene(2000))
    await voice.close()
    [late] = done.of("late")
    # 350 + 750 of speech + a 220 ms gap
    assert late.fields["what"] == "speech"
    assert abs(int(str(late.fields["late_ms"])) - 680) <= 60
    [note] = done.of("utterance")
    assert note.fields["text"] == text


async def test_work_on_time_is_never_called_late() -> None:
    brain = Script(answers=[(Say(text="one two. Three four."),)])
    done = await talk(make(brain), scene(5000, (200, 1200)), virtual=False)
    assert done.of("late") == []
    assert done.text() == " one two. Three four."


async def test_a_lost_mouth_is_an_error_of_the_frame() -> None:
    class Lost(ToneMouth):
        async def speak(self, text, style):  # type: ignore[no-untyped-def]
            raise DuplexError("the voice process ended")
            yield

    voice = make(Script(opens=(Say(text=HELLO),)), mouth=Lost())
    with pytest.raises(DuplexError, match="ended"):
        await talk(voice, scene(1000))
    await voice.close()


async def test_closing_leaves_no_work_behind() -> None:
    gate = asyncio.Event()
    mouth, ears = ToneMouth(gate=gate), LabelEars(gate=gate)
    voice = make(Script(opens=(Say(text=HELLO), Say(text=HELLO))), ears, mouth)
    await voice.begin(WallClock(RATE))
    await more(voice, scene(2000, (100, 900)))
    before = mouth.open
    await voice.close()
    assert before > 0
    assert mouth.open == 0
    assert [task for task in asyncio.all_tasks() if task.get_name() in ("speech", "decode")] == []


async def test_silence_in_and_nothing_to_say_is_exact_silence_out() -> None:
    done = await talk(make(Script()), scene(2000))
    assert not done.pcm.any()
    assert done.notes == []


async def test_undisturbed_speech_leaves_as_the_mouth_made_it() -> None:
    done = await talk(make(Script(opens=(Say(text=HELLO),))), scene(2000))
    first, last = done.sounding()
    assert np.abs(done.pcm[first : last + 1].astype(int)).max() == LEVEL


def test_the_declared_times_are_the_documented_ones() -> None:
    assert (EXACT.ears_ms, EXACT.brain_ms, EXACT.mouth_ms) == (300, 100, 250)
