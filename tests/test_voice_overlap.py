"""Both sides at once: ducking, stopping, carrying on, speaking over on purpose."""

from __future__ import annotations

import numpy as np
import pytest

from duplex.local.endpoint import BLOCK
from duplex.local.seams import Say
from duplex.local.yielding import Fader, Level, level
from duplex.values import Action
from voice_fakes import LEVEL, RATE, LabelEars, Script, ToneMouth, make, scene, talk, tone

TWENTY = " ".join(f"w{number}" for number in range(1, 21))
"""Five seconds of the fake mouth, from 350 ms on."""
MS = RATE // 1000


async def test_it_ducks_by_12_db_and_comes_back_when_the_overlap_ends_soon() -> None:
    brain = Script(opens=(Say(text=TWENTY),))
    done = await talk(make(brain, LabelEars("mm-hmm")), scene(6500, (2000, 2450)))
    before, during, after = done.level(1000, 1900), done.level(2300, 2450), done.level(3000, 4000)
    assert abs(20 * np.log10(during / before) + 12) < 0.3
    assert abs(20 * np.log10(after / before)) < 0.05
    assert done.level(2020, 2180) == pytest.approx(before, rel=0.02)
    assert done.text() == f" {TWENTY}"
    assert brain.said()[0].complete


async def test_it_stops_once_the_overlap_has_lasted_700_ms() -> None:
    brain = Script(opens=(Say(text=TWENTY, items=("a",)),))
    done = await talk(make(brain, LabelEars("wait, no")), scene(6500, (2000, 3600)))
    stopped = done.sounding()[1] / MS
    assert 2700 <= stopped <= 3000
    [said] = brain.said()
    assert (said.text, said.complete) == (TWENTY, False)
    [heard] = brain.heard()
    assert (heard.overlapped, heard.cut) == (True, True)
    [note] = done.of("utterance")
    assert note.fields["complete"] is False
    assert abs(int(str(note.fields["end_ms"])) - stopped) <= 20


async def test_the_transcript_of_a_cut_saying_stops_at_the_cut() -> None:
    brain = Script(opens=(Say(text=TWENTY),))
    done = await talk(make(brain), scene(6500, (2000, 3600)))
    spoken = done.text()
    assert f" {TWENTY}".startswith(spoken)
    # some 2 400 of 5 000 ms were spoken
    assert 8 <= len(spoken.split()) <= 11
    assert done.of("utterance")[0].fields["text"] == spoken.strip()
    assert max(words.end_ms for words in done.said) <= done.sounding()[1] / MS + 20


async def test_a_short_word_that_is_no_backchannel_stops_it_when_understood() -> None:
    brain = Script(opens=(Say(text=TWENTY),))
    done = await talk(make(brain, LabelEars("Stop!")), scene(6500, (2000, 2450)))
    stopped = done.sounding()[1] / MS
    # 2 450 end + 500 quiet + 300 ears
    assert 3250 <= stopped <= 3310
    assert [said.complete for said in brain.said()] == [False]
    assert brain.heard()[0].cut
    kinds = [kind for kind, _ in brain.log if kind in ("said", "heard")]
    assert kinds == ["said", "heard"]


@pytest.mark.parametrize("words", ["Mm-hmm.", "uh-huh", "Okay.", "Right.", "Yeah, sure.", "I see."])
async def test_backchannels_do_not_stop_it(words: str) -> None:
    brain = Script(opens=(Say(text=TWENTY),))
    await talk(make(brain, LabelEars(words)), scene(6500, (2000, 2500)))
    assert [said.complete for said in brain.said()] == [True]
    [heard] = brain.heard()
    assert (heard.overlapped, heard.cut) == (True, False)


@pytest.mark.parametrize("words", ["no", "Actually, six.", "hold on", "okay but at seven"])
async def test_words_that_say_something_stop_it(words: str) -> None:
    brain = Script(opens=(Say(text=TWENTY),))
    await talk(make(brain, LabelEars(words)), scene(6500, (2000, 2450)))
    assert [said.complete for said in brain.said()] == [False]


async def test_two_short_overlaps_apart_do_not_add_up_to_a_stop() -> None:
    brain = Script(opens=(Say(text=TWENTY),))
    spans = ((1500, 1950), (2350, 2800), (3200, 3600))
    await talk(make(brain, LabelEars(*["okay"] * 5)), scene(6500, *spans))
    assert [said.complete for said in brain.said()] == [True]


async def test_no_gain_change_makes_a_step() -> None:
    brain = Script(opens=(Say(text=TWENTY),))
    done = await talk(make(brain), scene(6500, (1000, 1400), (2500, 3600)))
    speech = done.pcm[500 * MS :].astype(int)
    steepest = int(np.abs(np.diff(tone(500, 330.0).astype(int))).max())
    # the start and end of a word of the fake mouth aside, which are zero crossings
    assert int(np.abs(np.diff(speech)).max()) <= steepest * 1.15


async def test_a_cut_gives_up_what_was_waiting_and_tells_the_brain() -> None:
    brain = Script(opens=(Say(text=TWENTY), Say(text="more", items=("b",))))
    done = await talk(make(brain), scene(7000, (2000, 3600)))
    assert [(said.text, said.complete) for said in brain.said()] == [
        (TWENTY, False),
        ("more", False),
    ]
    assert "more" not in done.text()
    assert len(done.of("utterance")) == 1


async def test_a_cut_takes_back_what_was_not_made_yet() -> None:
    mouth = ToneMouth()
    brain = Script(opens=(Say(text=TWENTY),))
    await talk(make(brain, mouth=mouth), scene(6500, (2000, 3600)))
    assert mouth.open == 0


async def test_an_interruption_begins_over_the_other_side_and_is_not_stopped_by_it() -> None:
    words = "sorry actually make it six people please"
    say = Say(text=words, action=Action.INTERRUPT, over=True)
    brain = Script(over={600: (say,)})
    done = await talk(make(brain), scene(7000, (500, 5000)))
    first, last = (edge / MS for edge in done.sounding())
    # 500 + 600 + 100 brain + 250 mouth
    assert abs(first - 1450) <= 60
    assert abs(last - first - 7 * 250) <= 5
    assert [said.complete for said in brain.said()] == [True]
    assert done.level(1500, 3000) == pytest.approx(LEVEL / 2**0.5, rel=0.03)


async def test_an_interruption_yields_to_the_next_thing_the_other_side_says() -> None:
    say = Say(text=TWENTY, action=Action.INTERRUPT, over=True)
    brain = Script(over={600: (say,)})
    done = await talk(make(brain), scene(8000, (500, 2000), (3500, 5000)))
    assert [said.complete for said in brain.said()] == [False]
    assert 4200 <= done.sounding()[1] / MS <= 4500


async def test_a_backchannel_of_its_own_leaves_the_other_side_the_floor() -> None:
    say = Say(text="mm-hmm", action=Action.BACKCHANNEL, over=True)
    brain = Script(over={1000: (say,)}, answers=[(Say(text="one two"),)])
    done = await talk(make(brain), scene(7000, (500, 3500)))
    assert done.text() == " mm-hmm one two"
    [heard] = brain.heard()
    assert not heard.overlapped
    assert done.said[-1].start_ms >= 3500 + 500


async def test_it_hears_while_it_speaks() -> None:
    brain = Script(opens=(Say(text=TWENTY),))
    done = await talk(make(brain, LabelEars("right")), scene(6500, (2000, 2500)))
    [words] = done.heard
    assert abs(words.start_ms - 2000) <= 20
    assert abs(words.end_ms - 2500) <= 20


def test_the_level_follows_the_length_of_the_overlap() -> None:
    own, burst = 0, 10_000

    def after(overlap_ms: int, quiet_ms: int = 0) -> Level:
        last = burst + overlap_ms * MS
        return level(last + quiet_ms * MS, own, burst, last)

    assert after(190) is Level.FULL
    assert after(200) is Level.DUCKED
    assert after(690) is Level.DUCKED
    assert after(700) is Level.OFF
    assert after(690, quiet_ms=199) is Level.DUCKED
    assert after(690, quiet_ms=200) is Level.FULL


def test_overlap_counts_from_this_sides_own_start() -> None:
    assert level(20_000, 19_000, 1_000, 20_000) is Level.FULL


def test_a_fader_moves_over_one_block_and_stays() -> None:
    fader = Fader()
    block = np.full(BLOCK, 10_000, np.int16)
    falling = fader.apply(block, Level.DUCKED)
    low = fader.apply(block, Level.DUCKED)
    assert np.all(np.diff(falling.astype(int)) <= 0)
    assert falling[-1] == low[0] == low[-1] == 2512
    assert fader.apply(block, Level.OFF)[-1] == 0
