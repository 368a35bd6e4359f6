"""``duplex measure``: any recording to numbers, in every form, with its exit code."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from duplex.detect import Stream
from duplex.errors import InputError
from duplex.measuring import command, measure
from duplex.metrics.measurement import Measurement
from duplex.metrics.of_call import timing_of_call
from duplex.recording import CallRecorder, Recording
from duplex.values import Event, Json, Segment, Side
from stimuli import (
    ASSISTANT,
    CALLER,
    LENGTH,
    RATE,
    Floats,
    conversation,
    noise,
    pcm,
    save,
    side,
    talk,
    voiced,
)

Spans = list[tuple[float, float]]

LEFT, RIGHT = conversation()
CLOSE_MS = 25.0


def latencies(found: Measurement) -> list[float]:
    assert found.timing is not None
    return [value.value for value in found.timing.latencies]


def near(found: Measurement, wanted: list[float], within: float = CLOSE_MS) -> bool:
    got = latencies(found)
    return len(got) == len(wanted) and np.allclose(got, wanted, atol=within)


def run(*paths: Path, **options: object) -> int:
    return command(list(paths), console=Console(stderr=True), **options)  # type: ignore[arg-type]


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Json]:
    line = capsys.readouterr().out
    found = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} in the output"))
    assert isinstance(found, dict)
    return found


# -- every kind of file --------------------------------------------------------


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000])
def test_latencies_are_the_same_at_any_rate(tmp_path: Path, rate: int) -> None:
    found = measure(save(tmp_path / "a.wav", *conversation(rate), rate=rate))
    assert near(found, [600, 600, 700, 700])
    assert found.rate_hz == rate
    assert found.duration_ms == pytest.approx(LENGTH * 1000, abs=0.1)


@pytest.mark.parametrize(
    ("name", "subtype"),
    [
        ("a.wav", "PCM_24"),
        ("a.wav", "PCM_32"),
        ("a.wav", "FLOAT"),
        ("a.wav", "ULAW"),
        ("a.wav", "ALAW"),
        ("a.flac", "PCM_24"),
        ("a.ogg", "VORBIS"),
        ("a.mp3", "MPEG_LAYER_III"),
    ],
)
def test_latencies_are_the_same_in_any_format(tmp_path: Path, name: str, subtype: str) -> None:
    found = measure(save(tmp_path / name, LEFT, RIGHT, subtype=subtype))
    assert near(found, [600, 600, 700, 700], within=45)


def test_two_files_give_what_one_gives(tmp_path: Path) -> None:
    both = measure(save(tmp_path / "a.wav", LEFT, RIGHT))
    pair = measure(save(tmp_path / "agent.wav", RIGHT), save(tmp_path / "caller.wav", LEFT))
    assert latencies(pair) == latencies(both)
    assert pair.health.notes == ("agent.wav and caller.wav are taken to begin at one instant",)
    assert "by the names of the files" in pair.basis.channels


def test_swapped_channels_swap_the_sides(tmp_path: Path) -> None:
    path = save(tmp_path / "a.wav", RIGHT, LEFT)
    assert latencies(measure(path, channels="assistant,caller")) == latencies(
        measure(save(tmp_path / "b.wav", LEFT, RIGHT))
    )
    assert not near(measure(path), [600, 600, 700, 700])


def test_a_steady_offset_of_time_moves_no_latency(tmp_path: Path) -> None:
    found = measure(save(tmp_path / "a.wav", LEFT, RIGHT))
    shift = np.zeros(RATE // 50 * 33)
    later = measure(
        save(tmp_path / "b.wav", np.concatenate([shift, LEFT]), np.concatenate([shift, RIGHT]))
    )
    assert latencies(later) == latencies(found)


# -- reported faults -----------------------------------------------------------


def scene(
    tmp_path: Path,
    caller: Spans,
    assistant: Spans,
    seconds: float,
    *,
    syllables: bool = True,
    floor: bool = False,
) -> Measurement:
    channels: list[Floats] = []
    for index, spans in enumerate((caller, assistant)):
        wave = side(((a, voiced(b - a, syllables=syllables)) for a, b in spans), seconds)
        channels.append(wave + noise(seconds, -75, seed=index) if floor else wave)
    return measure(save(tmp_path / "scene.wav", *channels))


VARIANTS = pytest.mark.parametrize(
    ("syllables", "floor"), [(True, False), (False, False), (True, True), (False, True)]
)


@VARIANTS
def test_a_last_turn_without_a_reply_is_counted(
    tmp_path: Path, syllables: bool, floor: bool
) -> None:
    found = scene(
        tmp_path, [(0.5, 2.0), (6.5, 8.0)], [(2.6, 5.0)], 20, syllables=syllables, floor=floor
    )
    assert near(found, [600], within=45)
    assert found.timing is not None
    assert found.timing.response_rate.value == 0.5
    assert (found.timing.ledger.answered, found.timing.ledger.unanswered) == (1, 1)
    waited = found.timing.responses.fates[1].waited
    assert waited is not None
    assert waited / RATE == pytest.approx(12, abs=0.05)


@VARIANTS
def test_a_middle_turn_without_a_reply_is_counted(
    tmp_path: Path, syllables: bool, floor: bool
) -> None:
    found = scene(
        tmp_path, [(0.5, 2.0), (6.0, 8.0)], [(8.5, 10.0)], 12, syllables=syllables, floor=floor
    )
    assert near(found, [500], within=45)
    assert found.timing is not None
    assert found.timing.responses.fates[0].why == "superseded by the caller's next turn"


@VARIANTS
def test_an_opening_collision_keeps_its_sign(tmp_path: Path, syllables: bool, floor: bool) -> None:
    found = scene(tmp_path, [(0.5, 2.0)], [(1.7, 3.0)], 4, syllables=syllables, floor=floor)
    assert near(found, [-300], within=45)
    assert found.timing is not None
    assert found.timing.floor.overlap / RATE == pytest.approx(0.3, abs=0.045)


@pytest.mark.parametrize("length", [0.02, 0.09])
def test_a_click_is_no_turn_and_no_interruption(tmp_path: Path, length: float) -> None:
    click = side([(2.0, np.tile([0.99, -0.99], round(length * RATE) // 2))], 5)
    found = measure(save(tmp_path / "a.wav", click, side([(0, voiced(4))], 5)))
    assert found.timing is not None
    assert not found.timing.talk.turns[Side.CALLER]
    assert not found.timing.yielding.barge_ins


def test_speech_after_the_assistant_is_no_interruption(tmp_path: Path) -> None:
    found = scene(tmp_path, [(3.0, 4.0)], [(0.0, 2.0)], 5)
    assert found.timing is not None
    assert not found.timing.yielding.barge_ins


def test_speech_from_the_first_to_the_last_sample_stays_inside(tmp_path: Path) -> None:
    found = measure(save(tmp_path / "a.wav", voiced(1.0), np.zeros(RATE)))
    assert found.timing is not None
    (turn,) = found.timing.talk.turns[Side.CALLER]
    assert 0 <= turn.start < turn.end <= RATE


# -- what it says --------------------------------------------------------------


def test_json_has_both_blocks_health_and_a_reason_for_every_null(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "a.wav", LEFT, RIGHT)
    assert run(path, as_json=True) == 0
    found = document(capsys)
    assert list(found)[:3] == ["file", "rate_hz", "duration_ms"]
    assert (found["file"], found["rate_hz"], found["duration_ms"]) == (str(path), RATE, 20_000.0)
    contract, timing, unknown = found["contract"], found["timing"], found["unknown"]
    assert isinstance(contract, dict)
    assert isinstance(timing, dict)
    assert isinstance(unknown, dict)
    latency, turns = timing["response_latency"], timing["turns"]
    assert isinstance(latency, dict)
    assert isinstance(turns, list)
    assert latency["n"] == 4
    assert latency["p50"] == pytest.approx(650, abs=CLOSE_MS)
    assert [turn["side"] for turn in turns if isinstance(turn, dict)] == ["caller", "assistant"] * 4
    for name in ("yield_rate", "floor_hold_silence_ms", "selectivity_backchannel"):
        assert unknown[f"/contract/{name}"]
    assert contract["floor_hold_silence_ms"] == {"cumulative": None, "maximum": None}
    assert unknown["/timing/clock"] == "only a live call's own log knows it"


def test_no_witness_hears_no_second_detector_and_moves_nothing(tmp_path: Path) -> None:
    path = save(tmp_path / "a.wav", LEFT, RIGHT)
    both, alone = measure(path), measure(path, witness=False)
    assert (both.basis.witness, alone.basis.witness) == ("webrtc", None)
    assert latencies(both) == latencies(alone)
    assert run(path, witness=False, as_json=True) == 0


def test_a_refused_file_gives_no_number_one_sentence_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "a.wav", LEFT + RIGHT, LEFT + RIGHT)
    assert run(path, as_json=True) == 2
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert (found["contract"], found["timing"]) == (None, None)
    assert found["health"]["verdict"] == "refused"
    assert set(found["unknown"]) == {"/contract", "/timing", "/words"}
    assert printed.err.count("\n") == 1
    assert "export the two sides as separate channels" in printed.err
    assert run(path) == 2
    assert capsys.readouterr().out == ""


def test_one_bad_file_among_good_ones_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = save(tmp_path / "good.wav", LEFT, RIGHT)
    (tmp_path / "bad.wav").write_bytes(b"RIFF")
    assert run(tmp_path / "bad.wav", good, tmp_path / "none.wav", as_json=True) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["file"] == str(good)
    assert "too few for a sound file" in printed.err
    assert "none.wav cannot be read" in printed.err
    assert run(tmp_path / "bad.wav") == 2


def test_several_files_print_one_object_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [save(tmp_path / name, LEFT, RIGHT) for name in ("a.wav", "b.flac")]
    assert run(*paths, as_json=True) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["file"] for line in lines] == [str(path) for path in paths]


def test_the_table_opens_with_a_sentence_made_from_the_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(save(tmp_path / "a.wav", LEFT, RIGHT)) == 0
    lines = capsys.readouterr().out.splitlines()
    text = " ".join(" ".join(lines).split())
    assert "The assistant answered 4 of 4 caller turns within 5 s, typically after 6" in text
    assert "never cut in" in text
    order = [text.index(word) for word in ("input good", "check", "ledger", "basis")]
    assert order == sorted(order)
    for word in ("attempted 4", "answered 4", "missed 0", "censored 0", "unmeasurable 0"):
        assert word in text


def test_what_was_not_measured_is_never_0_nor_met(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(save(tmp_path / "a.wav", LEFT, np.zeros_like(LEFT))) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "The assistant was not heard, so nothing can be said of its answers." in text
    assert " met" not in text
    assert text.count("not measured") >= 5


def test_an_assistant_of_tones_is_said_to_make_sound_that_is_no_speech(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Contract 2.0 takes its tones for answers: nobody was silent here."""
    tones = np.zeros_like(LEFT)
    for start, _ in ASSISTANT:
        at = slice(int(start * RATE), int((start + 0.9) * RATE))
        tones[at] = 0.2 * np.sin(2 * np.pi * 440 * np.arange(len(tones[at])) / RATE)
    path = save(tmp_path / "a.wav", LEFT, tones)
    assert run(path) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "made sound that is no speech, so nothing can be said of its answers" in text
    assert "3.6 s of sound are on the assistant's channel and none of it is speech" in text
    assert "not recorded" not in text
    assert "recorded at all" not in text
    health = measure(path).health
    assert [(one.code, one.side) for one in health.reasons] == [
        ("sound_without_speech", Side.ASSISTANT)
    ]
    assert measure(save(tmp_path / "b.wav", LEFT, RIGHT)).health.reasons == ()


def test_hostile_names_print_as_plain_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "[red]a\x1b[2J.wav", LEFT, RIGHT)
    assert run(path) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[red]a" in out


def test_csv_has_a_row_per_statistic_and_a_reason_for_every_empty_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = save(tmp_path / "a.wav", LEFT, RIGHT)
    mono = save(tmp_path / "=b.wav", LEFT, LEFT)
    assert run(good, mono, csv=True) == 1
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    found = {(r["metric"], r["stat"]): r for r in rows if r["file"] == str(good)}
    p50 = found["response_latency", "p50"]
    assert float(p50["value"]) == pytest.approx(650, abs=CLOSE_MS)
    assert (p50["n"], p50["unit"], p50["block"]) == ("4", "ms", "timing")
    assert found["ledger", "answered"]["value"] == "4"
    assert all(r["value"] or r["why_empty"] for r in rows)
    refused = [r for r in rows if r["file"] != str(good)]
    assert [(r["metric"], r["stat"]) for r in refused] == [("verdict", ""), ("reason", "mono_mix")]
    assert refused[0]["value"] == "refused"


def test_the_end_of_a_longer_file_is_told_as_a_fault_in_every_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = save(tmp_path / "caller.wav", LEFT), save(tmp_path / "agent.wav", RIGHT[: 12 * RATE])
    said = "caller.wav is 8.000 s longer than the other side; what was said in that part is not"
    assert run(*paths) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    assert run(*paths, markdown=True) == 0
    assert said in capsys.readouterr().out.replace("\\", "")
    assert run(*paths, as_json=True) == 0
    health = document(capsys)["health"]
    assert isinstance(health, dict)
    assert health["verdict"] == "usable"
    assert "unequal_length" in str(health["reasons"])
    assert run(*paths, csv=True) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [r["value"].startswith(said) for r in rows if r["stat"] == "unequal_length"] == [True]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"channels": "left,right"}, 'wanted "caller,assistant"'),
        ({"detector": "ears"}, 'detector "ears" is not one of'),
        ({"as_json": True, "csv": True}, "exclude each other"),
    ],
)
def test_options_that_cannot_be_used_are_told(
    tmp_path: Path, options: dict[str, object], words: str
) -> None:
    path = save(tmp_path / "a.wav", LEFT, RIGHT)
    with pytest.raises(InputError, match=words):
        run(path, **options)


def test_nothing_to_measure_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name a recording"):
        run()
    with pytest.raises(InputError, match="neither a call nor a sound file"):
        run(tmp_path)
    with pytest.raises(InputError, match="stands alone"):
        run(tmp_path, timeline=tmp_path / "t.jsonl")


def test_a_folder_of_recordings_is_measured_file_by_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("b.wav", "a.flac"):
        save(tmp_path / name, LEFT, RIGHT)
    save(tmp_path / "c_caller.wav", LEFT)
    save(tmp_path / "c_agent.wav", RIGHT)
    (tmp_path / "readme.txt").write_text("no sound")
    assert run(tmp_path, as_json=True) == 0
    files = [json.loads(line)["file"] for line in capsys.readouterr().out.splitlines()]
    assert [Path(name).name for name in files] == ["a.flac", "b.wav", "c_caller.wav"]
    assert "c_agent.wav + " in files[2]


# -- labels --------------------------------------------------------------------


def test_labels_say_what_is_a_backchannel(tmp_path: Path) -> None:
    caller = talk([(0.5, 2.0), (4.0, 4.5)], 10, seed=3)
    path = save(tmp_path / "a.wav", caller, talk([(2.6, 7.0)], 10, seed=4))
    (tmp_path / "a.txt").write_text("0.5\t2.0\thello\n4.0\t4.5\tINTERRUPT\n")
    named = measure(path, labels=tmp_path / "a.txt")
    guessed = measure(path)
    assert named.timing is not None
    assert guessed.timing is not None
    assert len(named.timing.talk.turns[Side.CALLER]) == 2
    assert len(guessed.timing.talk.turns[Side.CALLER]) == 1
    assert named.basis.labels == str(tmp_path / "a.txt")
    assert named.contract is not None
    assert named.contract["yield_total"] == 1


def test_labels_belong_to_one_recording(tmp_path: Path) -> None:
    paths = [save(tmp_path / name, LEFT, RIGHT) for name in ("a.wav", "b.wav")]
    with pytest.raises(InputError, match="belong to one recording, 2 were named"):
        run(*paths, labels=tmp_path / "a.txt")


# -- a call's own folder -------------------------------------------------------


def held(
    tmp_path: Path,
    *,
    labelled: bool = False,
    noisy: bool = False,
    extra: Sequence[tuple[str, dict[str, Json]]] = (),
) -> Path:
    """A run with one call, recorded as the call loop records it; the call's folder."""
    bed = noise(LENGTH, -30) if noisy else np.zeros_like(LEFT)
    left, right, heard = pcm(LEFT), pcm(RIGHT), pcm(LEFT + bed)
    told: list[tuple[int, Side | None, str, dict[str, Json]]] = [
        (0, None, "call.started", {"rate_hz": RATE, "clock": "virtual", "transport_ms": 20})
    ]
    if labelled:
        for start, end in CALLER:
            fields: dict[str, Json] = {"text": "words", "action": "SPEAK"}
            fields |= {"start": round(start * RATE), "end": round(end * RATE)}
            fields["source"] = "caller_intent"
            told.append((round(end * RATE), Side.CALLER, "utterance", fields))
    told.append((len(left), None, "call.ended", {"termination_reason": "response_completed"}))
    told += [(len(left), None, kind, said) for kind, said in extra]
    with CallRecorder(tmp_path / "run", "one", rate_hz=RATE) as recorder:
        for seq, (at, who, kind, said) in enumerate(told):
            recorder.event(Event(seq=seq, at=at, side=who, type=kind, fields=said))
        recorder.append(heard, right, left, right)
    return tmp_path / "run" / "audio" / "one"


def test_a_bare_conversation_agrees_with_its_call(tmp_path: Path) -> None:
    folder = held(tmp_path)
    call, bare = measure(folder), measure(folder / "conversation.wav")
    assert call.timing is not None
    assert bare.timing is not None
    assert bare.timing.talk == call.timing.talk
    assert bare.timing.floor == call.timing.floor
    assert latencies(bare) == latencies(call)
    assert call.basis.origin == "simulated call"
    assert call.basis.channels == "each side from its own source stem"
    assert call.contract is not None
    assert call.contract["floor_hold_silence_ms"] == {"cumulative": 0, "maximum": 0}
    assert "/contract/floor_hold_silence_ms" not in call.unknown


def test_a_call_is_measured_on_its_stems_so_noise_moves_nothing(tmp_path: Path) -> None:
    clean = measure(held(tmp_path / "clean"))
    noisy = measure(held(tmp_path / "noisy", noisy=True))
    assert clean.timing is not None
    assert noisy.timing is not None
    assert noisy.timing.as_json() == clean.timing.as_json()
    assert noisy.contract == clean.contract


def test_a_call_brings_its_labels(tmp_path: Path) -> None:
    found = measure(held(tmp_path, labelled=True))
    assert found.basis.labels == "the call's events"
    assert found.timing is not None
    assert [turn.actions for turn in found.timing.talk.turns[Side.CALLER]] == [("SPEAK",)] * 4


def test_a_run_folder_gives_all_its_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = held(tmp_path)
    assert run(tmp_path / "run", as_json=True) == 0
    assert document(capsys)["file"] == str(folder)


def test_a_call_without_its_events_is_a_bare_recording_and_says_so(tmp_path: Path) -> None:
    folder = held(tmp_path)
    (tmp_path / "run" / "events" / "one.jsonl").unlink()
    found = measure(folder)
    assert found.basis.origin == "recording"
    assert "the call's events are missing" in found.health.notes[0]
    (folder / "caller_source.wav").unlink()
    assert near(measure(folder), [600, 600, 700, 700])


def test_a_call_without_its_stems_falls_back_to_the_conversation(tmp_path: Path) -> None:
    folder = held(tmp_path)
    (folder / "assistant_source.wav").unlink()
    found = measure(folder)
    assert near(found, [600, 600, 700, 700])
    assert "stems are missing" in found.health.notes[0]


def test_the_instruments_own_account_comes_from_the_events(tmp_path: Path) -> None:
    sides: dict[str, Json] = {"underrun": 3, "idle": 5, "discarded": 7}
    counts: dict[str, Json] = {"caller": sides, "assistant": {**sides, "underrun": 40}}
    late: dict[str, Json] = {"ticks": 2, "p99_ms": 1.5, "max_ms": 4.0}
    folder = held(tmp_path, extra=[("late", late), ("call.ended", {"counts": counts})])
    timing = measure(folder).as_json()["timing"]
    assert isinstance(timing, dict)
    clock = timing["clock"]
    assert isinstance(clock, dict)
    assert clock["late_ticks"] == {"count": 2, "p99_ms": 1.5, "max_ms": 4.0}
    named = ("underrun_samples", "idle_samples", "discarded_samples")
    assert [clock[name] for name in named] == [43, 10, 14]


def test_a_runs_timing_block_is_what_measure_gives(tmp_path: Path) -> None:
    folder = held(tmp_path, labelled=True)
    block = timing_of_call(Recording.load(tmp_path / "run", "one"))
    assert block.as_json() == measure(folder).as_json()["timing"]


def test_a_detector_that_fails_is_never_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> list[Segment]:
        raise RuntimeError("rate not allowed")

    monkeypatch.setattr(Stream, "push", fail)
    assert run(save(tmp_path / "a.wav", LEFT, RIGHT), as_json=True) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "detector failed: rate not allowed" in printed.err


def test_a_silent_assistant_of_a_call_is_measured_not_excused(tmp_path: Path) -> None:
    left = pcm(LEFT)
    with CallRecorder(tmp_path / "run", "one", rate_hz=RATE) as recorder:
        started = Event(seq=0, at=0, side=None, type="call.started", fields={"rate_hz": RATE})
        recorder.event(started)
        recorder.append(left, np.zeros_like(left), left, np.zeros_like(left))
    found = measure(tmp_path / "run" / "audio" / "one")
    assert found.timing is not None
    assert found.timing.response_rate.value == 0.0


def test_doubled_and_disordered_events_change_nothing(tmp_path: Path) -> None:
    folder = held(tmp_path, labelled=True)
    before = measure(folder).as_json()
    events = tmp_path / "run" / "events" / "one.jsonl"
    lines = events.read_text().splitlines()
    events.write_text("\n".join(reversed(lines + lines[1:3])) + "\n")
    after = measure(folder).as_json()
    assert (after["timing"], after["contract"]) == (before["timing"], before["contract"])
