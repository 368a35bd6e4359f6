"""Planted conversations: sound whose edges are known, truths that hold, figures that can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex.calibration.clips import (
    BLOCK,
    RATE_HZ,
    Floats,
    active_rms,
    levelled,
    load_speakers,
    phrases,
    trimmed,
)
from duplex.calibration.goals import COVERED, NOT_WIDER, Goal, judged
from duplex.calibration.matching import Figures, Metric, compared, matched
from duplex.calibration.noise import Noises
from duplex.calibration.plan import (
    GRID,
    SCENES,
    Conversation,
    Scene,
    Truth,
    pcm_of,
    plan,
    with_floor,
)
from duplex.calibration.rows import condition_rows, sharp_rows, short_rows, speech_rows
from duplex.calibration.speakers import talkers
from duplex.calibration.stimuli import (
    ClipTalker,
    SharpTalker,
    ShortTalker,
    Stimuli,
)
from duplex.conditions import CLEAN
from duplex.errors import InputError
from duplex.metrics.speech import Sound, SoundKind, Speech, SpokenSegment
from duplex.metrics.timing import TimingBlock, timing
from duplex.metrics.voices import VoiceKind
from duplex.values import EdgeError, Side


def voice(seconds: float, seed: int = 1) -> Floats:
    """A sharp stimulus, active level −20 dBFS."""
    said = SharpTalker().turn(seconds, np.random.default_rng(seed)).samples
    return said * np.float32(0.1)


def quiet(seconds: float) -> Floats:
    return np.zeros(round(seconds * RATE_HZ), np.float32)


def conversation(seed: int = 3, scenes: tuple[Scene, ...] = SCENES) -> Conversation:
    talker = SharpTalker()
    return plan(talker, talker, np.random.default_rng(seed), scenes)


def block_of(planted: Conversation, late: int = 0, width_ms: float | None = 5.0) -> TimingBlock:
    """What a detector that is ``late`` on assistant starts would make of a conversation."""
    edge = EdgeError(plus_minus_ms=width_ms)
    truth = planted.truth
    sides = {
        side: tuple(
            SpokenSegment(
                start=start + (late if side is Side.ASSISTANT else 0),
                end=end,
                onset=edge,
                offset=edge,
            )
            for start, end in truth.voice[side]
        )
        for side in Side
    }
    sounds = tuple(Sound(kind=SoundKind(kind), span=span) for kind, span in planted.sounds)
    speech = Speech(
        rate_hz=RATE_HZ,
        duration=planted.length,
        caller=sides[Side.CALLER],
        assistant=sides[Side.ASSISTANT],
        labels=planted.utterances,
        sounds=sounds,
    )
    return timing(speech)


# -- clips ----------------------------------------------------------------------


def test_a_clip_is_cut_at_the_first_and_last_loud_window() -> None:
    x = np.concatenate((quiet(0.1), voice(1.0), quiet(0.2)))
    kept = trimmed(x)
    first = round(0.1 * RATE_HZ)
    assert np.array_equal(kept, x[first : first + len(kept)])
    assert 0 <= len(kept) - (len(x) - round(0.3 * RATE_HZ)) <= BLOCK


def test_a_pause_parts_a_file_and_what_was_cut_away_stays_beside_the_clip() -> None:
    faint = np.full(round(0.3 * RATE_HZ), 1e-4, np.float32)
    parts = phrases(np.concatenate((voice(0.8, 1), faint, voice(0.6, 2), faint)))
    assert len(parts) == 2
    assert 0 <= len(faint) - len(parts[0].tail) < 2 * BLOCK
    assert not len(parts[0].head)
    assert len(parts[1].head) == len(parts[0].tail)


def test_hiss_and_beeps_are_no_clips() -> None:
    random = np.random.default_rng(1)
    hiss = 0.1 * random.standard_normal(RATE_HZ).astype(np.float32)
    swell = (0.3 + 0.7 * np.abs(np.sin(np.arange(RATE_HZ) / 2000))).astype(np.float32)
    beep = 0.2 * np.sin(2 * np.pi * 800 * np.arange(RATE_HZ) / RATE_HZ).astype(np.float32) * swell
    assert phrases(hiss) == []
    assert phrases(beep) == []


def test_speakers_are_sub_folders_and_links_to_them_count_once(tmp_path: Path) -> None:
    for name in ("anna", "ben"):
        (tmp_path / name).mkdir()
        soundfile.write(tmp_path / name / "a.wav", voice(1.0), RATE_HZ)
    (tmp_path / "en").symlink_to(tmp_path / "anna")
    assert sorted(load_speakers(tmp_path)) == ["anna", "ben"]
    assert sorted(load_speakers(tmp_path, ["ben"])) == ["ben"]


def test_without_folders_the_first_part_of_a_name_is_the_speaker(tmp_path: Path) -> None:
    for name in ("anna_1.wav", "anna_2.wav", "ben-1.flac"):
        soundfile.write(tmp_path / name, voice(1.0), RATE_HZ)
    found = load_speakers(tmp_path)
    assert {name: len(clips) for name, clips in found.items()} == {"anna": 2, "ben": 1}


@pytest.mark.parametrize(
    ("names", "says"),
    [([], "no such folder"), (["carla"], "no speaker carla, it has anna")],
)
def test_speech_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, names: list[str], says: str
) -> None:
    folder = tmp_path / "clips"
    if names:
        (folder / "anna").mkdir(parents=True)
        soundfile.write(folder / "anna" / "a.wav", voice(1.0), RATE_HZ)
    with pytest.raises(InputError, match=says):
        load_speakers(folder, names)


def test_a_file_without_speech_is_no_speaker(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", quiet(1.0), RATE_HZ)
    with pytest.raises(InputError, match="no sound file with a phrase"):
        load_speakers(tmp_path)


# -- stimuli and plans ----------------------------------------------------------


def test_turns_have_unit_level_and_a_short_one_is_as_long_as_asked() -> None:
    random = np.random.default_rng(2)
    clips = phrases(np.concatenate((voice(0.8, 1), quiet(0.3), voice(1.1, 2))))
    turn = ClipTalker(clips).turn(2.5, random)
    assert len(turn.samples) >= 2.5 * RATE_HZ
    assert active_rms(turn.samples) == pytest.approx(1.0, rel=0.1)
    short = ShortTalker(ClipTalker(clips)).turn(0.3, random)
    assert 0.27 * RATE_HZ <= len(short.samples) <= 0.3 * RATE_HZ


def test_truth_stands_where_sound_begins_and_ends_in_the_stream() -> None:
    planted = conversation()
    for side in Side:
        loud = np.flatnonzero(planted.speech[side])
        for start, end in planted.truth.turns[side]:
            assert start in loud
            assert end - 1 in loud
            assert not planted.speech[side][start - GRID : start].any()
            assert not planted.speech[side][end : end + GRID].any()


def test_no_start_lies_on_a_ten_ms_grid_and_delays_are_those_of_the_design() -> None:
    delays = []
    for seed in range(6):
        truth = conversation(seed).truth
        assert all(start % GRID for side in Side for start, _ in truth.turns[side])
        asked, said = truth.turns[Side.CALLER], truth.turns[Side.ASSISTANT]
        delays += [(said[a][0] - asked[c][1]) / RATE_HZ for c, a in truth.pairs]
    assert min(delays) >= -0.51
    assert max(delays) <= 4.02
    assert min(delays) < -0.3
    assert max(delays) > 3.0


def test_between_the_turns_there_is_a_noise_floor_and_never_digital_silence() -> None:
    random = np.random.default_rng(1)
    pcm = pcm_of(with_floor(np.zeros(RATE_HZ * 5, np.float32), random))
    still = np.flatnonzero(np.diff(pcm.astype(np.int32)) == 0)
    assert np.diff(still, prepend=-1).min() >= 1
    assert max(np.diff(np.flatnonzero(np.diff(pcm))), default=0) < 10
    assert 3 < float(np.std(pcm)) < 9


def test_the_same_seed_plants_the_same_conversation() -> None:
    first, second = conversation(5), conversation(5)
    assert first.truth == second.truth
    assert all(np.array_equal(first.speech[side], second.speech[side]) for side in Side)
    assert conversation(6).truth != first.truth


def test_every_speaker_meets_every_other() -> None:
    clips = phrases(voice(1.0))
    speakers = {name: list(clips) for name in ("a", "b", "c")}
    names = {id(held): name for name, held in speakers.items()}
    met = set()
    for index in range(6):
        pair = talkers(Stimuli.SPEECH, speakers, index)
        assert isinstance(pair[0], ClipTalker)
        assert isinstance(pair[1], ClipTalker)
        met.add((names[id(pair[0]._clips)], names[id(pair[1]._clips)]))
    assert len(met) == 6


# -- matching -------------------------------------------------------------------


def test_runs_are_matched_one_to_one_by_the_most_overlap() -> None:
    assert matched(((0, 10), (20, 30)), [(1, 9), (8, 25), (26, 31)]) == {0: 0, 1: 1}
    assert matched(((0, 10),), [(10, 12)]) == {}


@pytest.mark.parametrize("seed", range(8))
def test_a_perfect_detector_has_no_error_and_misses_nothing(seed: int) -> None:
    planted = conversation(seed)
    figures = compared(block_of(planted), planted.truth, tick_ms=0)
    for metric, found in figures.items():
        assert (found.missed, found.false_alarms) == (0, 0), metric
        assert not any(found.errors), metric
    assert figures[Metric.LATENCY].covered == 1.0


def test_a_late_detector_is_late_by_just_that() -> None:
    planted = conversation(1, (Scene.REPLY,) * 5)
    late = round(0.007 * RATE_HZ)
    figures = compared(block_of(planted, late), planted.truth, tick_ms=0)
    assert figures[Metric.LATENCY].bias_ms == pytest.approx(7.0)
    assert figures[Metric.ASSISTANT_START].p95_ms == pytest.approx(7.0)
    assert figures[Metric.CALLER_END].bias_ms == 0
    # √(5² + 5²) ms of two edges hold 7 ms; one edge of 5 ms does not.
    assert figures[Metric.LATENCY].covered == 1.0
    assert figures[Metric.ASSISTANT_START].covered == 0.0


def test_a_turn_nobody_found_is_missed_and_one_nobody_planted_is_false() -> None:
    planted = conversation(1, (Scene.REPLY,) * 4)
    truth = planted.truth
    caller = truth.turns[Side.CALLER]
    gone = replace(truth, turns=truth.turns | {Side.CALLER: caller[:2] + caller[3:]}, pairs=())
    found = compared(block_of(planted), gone, tick_ms=0)
    assert found[Metric.CALLER_TURN].false_alarms == 1
    moved = ((1, RATE_HZ // 5), *caller)
    more = compared(
        block_of(planted),
        replace(truth, turns=truth.turns | {Side.CALLER: moved}, pairs=()),
        tick_ms=0,
    )
    assert more[Metric.CALLER_TURN].missed == 1


def test_a_wrong_verdict_on_a_reaction_is_missed_or_false() -> None:
    planted = conversation(2)
    flipped = tuple(replace(event, error=not event.error) for event in planted.truth.events)
    truth = replace(planted.truth, events=flipped)
    figures = compared(block_of(planted), truth, tick_ms=0)
    wrong = figures[Metric.BACKCHANNEL]
    assert wrong.missed == sum(e.error for e in flipped if e.kind is VoiceKind.BACKCHANNEL)
    assert wrong.missed + wrong.false_alarms == wrong.n


def test_a_moved_assistant_moves_the_truth_and_can_turn_a_yield_into_none() -> None:
    planted = conversation(4, (Scene.YIELD,) * 3)
    truth: Truth = planted.truth
    shifted = truth.with_assistant_moved(lambda at: at + 240, lambda at: at + 240)
    old, new = truth.turns[Side.ASSISTANT], shifted.turns[Side.ASSISTANT]
    assert [b - a for (a, _), (b, _) in zip(old, new, strict=True)] == [240] * len(old)
    late = truth.with_assistant_moved(lambda at: at, lambda at: at + 2 * RATE_HZ)
    assert [y.yielded for y in truth.yields] == [True] * 3
    assert [y.yielded for y in late.yields] == [False] * 3


# -- goals and rows -------------------------------------------------------------


def figures_of(errors: list[float], width: float | None = 5.0) -> dict[Metric, Figures]:
    figures = Figures(n=len(errors))
    for error in errors:
        figures.add(error, width)
    return {Metric.LATENCY: figures}


def test_a_goal_is_met_missed_or_not_measured() -> None:
    goal = Goal(metric=Metric.LATENCY, figure="bias_ms", limit=2)
    assert judged((goal,), figures_of([-1.0, -3.0]))[0].met is True
    assert judged((goal,), figures_of([-2.0, -3.0]))[0].met is False
    assert judged((goal,), figures_of([]))[0].met is None


def test_a_known_miss_is_no_regression_until_it_grows() -> None:
    goal = Goal(metric=Metric.LATENCY, figure="bias_ms", limit=2, known=6)
    assert judged((goal,), figures_of([-5.0]))[0].regressed is False
    assert judged((goal,), figures_of([-7.0]))[0].regressed is True
    least = replace(COVERED, known=0.6)
    assert judged((least,), figures_of([1.0, 1.0, 9.0]))[0].regressed is False
    assert judged((least,), figures_of([1.0, 9.0, 9.0]))[0].regressed is True
    unknown = replace(goal, known=None)
    assert judged((unknown,), figures_of([-5.0]))[0].regressed is True


def test_coverage_can_be_too_small_and_too_large() -> None:
    held = figures_of([1.0] * 95 + [9.0] * 5)
    assert [v.met for v in judged((COVERED, NOT_WIDER), held)] == [True, True]
    loose = figures_of([1.0] * 100)
    assert judged((NOT_WIDER,), loose)[0].met is False
    tight = figures_of([9.0] * 100)
    assert judged((COVERED,), tight)[0].met is False
    assert judged((COVERED,), figures_of([1.0], width=None))[0].met is None


def test_row_names_are_unique_and_every_condition_can_make_two() -> None:
    noises = Noises({})

    def muffle(channel: Floats, level: float, rng: np.random.Generator) -> Floats:
        return channel * np.float32(0.5)

    rows = [*sharp_rows(noises), *speech_rows(noises), *condition_rows("telephony", muffle, CLEAN)]
    assert len({row.key for row in rows}) == len(rows)
    assert len({row.key for row in short_rows(noises)}) == len(short_rows(noises))
    assert [row.uplink for row in rows[-2:]] == [None, None]
    assert [row.caller is muffle for row in rows[-2:]] == [True, False]


def test_noise_has_the_snr_that_was_asked_for() -> None:
    row = next(r for r in sharp_rows(Noises({})) if r.name == "pink 10 dB")
    assert row.caller is not None
    noise = row.caller(np.zeros(RATE_HZ * 60, np.float32), 0.1, np.random.default_rng(1))
    assert 20 * np.log10(0.1 / np.sqrt(np.mean(noise**2))) == pytest.approx(10, abs=0.3)


def test_babble_needs_speech() -> None:
    with pytest.raises(InputError, match="babble needs speech"):
        Noises({}).cut("babble", 10, np.random.default_rng(1))


def test_levelling_refuses_what_is_no_sound() -> None:
    assert levelled(np.zeros(RATE_HZ, np.float32), RATE_HZ) is None
    assert levelled(voice(0.1), RATE_HZ) is None
