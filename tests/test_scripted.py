"""Participants that need no session: a script, and a recording played as a caller."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex.clock import VirtualClock
from duplex.errors import InputError
from duplex.participants.base import Incoming, Participant, Pcm, Spoken
from duplex.participants.scripted import Scripted
from duplex.participants.wav import Cue, WavParticipant, read_mono
from duplex.values import Action, Happening, Json, Side, Span, Utterance

RATE = 24_000


def loud(samples: int) -> Pcm:
    return np.full(samples, 3_000, np.int16)


class Stage:
    """Ticks one participant; ``heard`` is what it hears, silence where there is nothing."""

    def __init__(self, part: Participant, *, tick_ms: int = 20, rate: int = RATE) -> None:
        self.part = part
        self.clock = VirtualClock(rate)
        self.tick = rate * tick_ms // 1000
        self.items: list[Incoming] = []
        self.given: list[int] = []
        """Samples handed over before each tick."""

    async def run(self, ms: int, heard: Pcm | None = None) -> None:
        await self.part.start(self.clock)
        total = ms * self.clock.rate_hz // 1000
        sound = np.zeros(total + self.tick, np.int16)
        if heard is not None:
            sound[: len(heard)] = heard
        for position in range(0, total, self.tick):
            self.items += self.part.collect()
            self.given.append(len(self.audio()))
            self.part.hear(position, sound[position : position + self.tick])
        self.items += self.part.collect()
        await self.part.finish()
        self.items += self.part.collect()
        await self.part.abort()

    def audio(self) -> Pcm:
        pieces = [item.pcm for item in self.items if isinstance(item, Spoken)]
        return np.concatenate([np.zeros(0, np.int16), *pieces])

    def told(self, kind: str) -> list[dict[str, Json]]:
        return [
            dict(item.fields)
            for item in self.items
            if isinstance(item, Happening) and item.type == kind
        ]


@pytest.mark.parametrize("tick_ms", [10, 20, 137, 200])
async def test_a_script_is_said_at_its_positions_at_any_tick(tick_ms: int) -> None:
    rng = np.random.default_rng(5)
    first = rng.integers(-9_000, 9_000, 1_000).astype(np.int16)
    second = rng.integers(-9_000, 9_000, 5_000).astype(np.int16)
    stage = Stage(Scripted(Side.CALLER, [(12_000, second), (480, first)]), tick_ms=tick_ms)
    await stage.run(1_500)
    audio = stage.audio()
    assert np.array_equal(audio[480:1_480], first)
    assert np.array_equal(audio[12_000:17_000], second)
    assert np.count_nonzero(audio) == np.count_nonzero(first) + np.count_nonzero(second)
    for number, given in enumerate(stage.given):
        assert given >= (number + 1) * stage.tick, "audio is there before the tick that needs it"


async def test_a_script_tells_its_labels_once_they_are_over_and_then_finishes() -> None:
    label = Utterance(
        side=Side.CALLER,
        text="hello",
        span=Span(start=481, end=24_001),
        action=Action.OPENING,
        source="caller_intent",
    )
    stage = Stage(Scripted(Side.CALLER, [(481, loud(100))], [label]))
    await stage.run(1_500)
    (told,) = stage.told("utterance")
    assert isinstance(told["start_ms"], float)
    assert round(told["start_ms"] * RATE / 1000) == 481, "samples survive the trip"
    assert told["text"] == "hello"
    assert told["action"] == "OPENING"
    assert stage.told("caller.finished") == [{"outcome": "completed"}]
    kinds = [item.type for item in stage.items if isinstance(item, Happening)]
    assert kinds == ["session.started", "utterance", "caller.finished", "session.closed"]


async def test_a_script_cut_short_tells_the_labels_that_are_left() -> None:
    label = Utterance(side=Side.ASSISTANT, text="x", span=Span(start=0, end=96_000))
    stage = Stage(Scripted(Side.ASSISTANT, [], [label]))
    await stage.run(200)
    assert len(stage.told("utterance")) == 1
    assert stage.told("caller.finished") == []


def test_pieces_that_overlap_are_refused() -> None:
    with pytest.raises(InputError, match="sample 500"):
        Scripted(Side.CALLER, [(0, loud(501)), (500, loud(1))])


def recording(path: Path, rate: int = RATE, channels: int = 1) -> Pcm:
    ramp = (np.arange(rate // 2) % 200 * 40 + 100).astype(np.int16)
    data = np.stack([ramp, *[np.zeros_like(ramp)] * (channels - 1)], axis=1)
    soundfile.write(path, data, rate, subtype="PCM_16")
    return ramp


async def test_a_recording_speaks_after_the_other_sides_opening(tmp_path: Path) -> None:
    ramp = recording(tmp_path / "a.wav")
    part = WavParticipant(Side.CALLER, tmp_path / "a.wav", text="hi", cue=Cue(silence_ms=500))
    stage = Stage(part)
    greeting = np.concatenate((np.zeros(RATE, np.int16), loud(RATE)))
    await stage.run(5_000, greeting)
    audio = stage.audio()
    begin = int(np.flatnonzero(audio)[0])
    assert 2_500 <= begin / 24 <= 2_500 + 240
    assert np.array_equal(audio[begin : begin + len(ramp)], ramp)
    assert not audio[begin + len(ramp) :].any(), "it is said once"
    (label,) = stage.told("utterance")
    assert isinstance(label["start_ms"], (int, float))
    assert label["start_ms"] * 24 == begin
    assert label["source"] == "caller_intent"


async def test_a_recording_without_any_opening_speaks_in_the_end(tmp_path: Path) -> None:
    recording(tmp_path / "a.wav")
    cue = Cue(patience_ms=1_000)
    stage = Stage(WavParticipant(Side.CALLER, tmp_path / "a.wav", cue=cue))
    await stage.run(2_500)
    assert 1_000 <= np.flatnonzero(stage.audio())[0] / 24 <= 1_240
    assert stage.told("utterance") == [], "without text there is no label"


@pytest.mark.parametrize("tick_ms", [10, 137, 200])
async def test_a_recording_at_a_set_time_is_there_to_the_sample(
    tmp_path: Path, tick_ms: int
) -> None:
    ramp = recording(tmp_path / "a.wav", channels=2)
    part = WavParticipant(Side.CALLER, tmp_path / "a.wav", cue=Cue(at_ms=333))
    stage = Stage(part, tick_ms=tick_ms)
    await stage.run(1_500)
    audio = stage.audio()
    assert np.flatnonzero(audio)[0] == 333 * 24
    assert np.array_equal(audio[333 * 24 :][: len(ramp)], ramp)


@pytest.mark.parametrize(("answer_at_ms", "finished_ms"), [(2_000, 2_020), (None, 1_500 + 5_000)])
async def test_a_recording_is_finished_once_it_was_answered(
    tmp_path: Path, answer_at_ms: int | None, finished_ms: int
) -> None:
    recording(tmp_path / "a.wav")
    part = WavParticipant(Side.CALLER, tmp_path / "a.wav", cue=Cue(at_ms=1_000))
    stage = Stage(part)
    heard = None
    if answer_at_ms is not None:
        heard = np.concatenate((np.zeros(answer_at_ms * 24, np.int16), loud(RATE)))
    await part.start(stage.clock)
    part.collect()
    finished = None
    for position in range(0, 8 * RATE, stage.tick):
        sound = heard[position : position + stage.tick] if heard is not None else None
        pcm = np.zeros(stage.tick, np.int16)
        if sound is not None:
            pcm[: len(sound)] = sound
        part.hear(position, pcm)
        told = [i.type for i in part.collect() if isinstance(i, Happening)]
        if "caller.finished" in told:
            assert finished is None, "told once"
            finished = (position + stage.tick) / 24
    assert finished is not None
    assert abs(finished - finished_ms) <= 20


async def test_a_recording_is_brought_to_the_sessions_rate(tmp_path: Path) -> None:
    tone = (8_000 * np.sin(2 * np.pi * 440 * np.arange(8_000) / 8_000)).astype(np.int16)
    soundfile.write(tmp_path / "a.wav", tone, 8_000, subtype="PCM_16")
    stage = Stage(WavParticipant(Side.CALLER, tmp_path / "a.wav", cue=Cue(at_ms=0)))
    await stage.run(1_000)
    audio = stage.audio()[:RATE].astype(float)
    spectrum = np.abs(np.fft.rfft(audio))
    assert abs(int(np.argmax(spectrum)) - 440) <= 1
    assert abs(np.sqrt(np.mean(audio**2)) - 8_000 / np.sqrt(2)) < 100


def test_an_unreadable_recording_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.wav").write_bytes(b"RIFFnothing")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0, np.int16), RATE)
    for name in ("bad.wav", "empty.wav", "none.wav"):
        with pytest.raises(InputError, match=name):
            read_mono(tmp_path / name)


def test_a_float_recording_is_as_loud_as_a_whole_number_one(tmp_path: Path) -> None:
    wave = (0.5 * np.sin(np.arange(2400) * 0.05)).astype(np.float32)
    soundfile.write(tmp_path / "float.wav", wave, 24_000, subtype="FLOAT")
    samples, rate = read_mono(tmp_path / "float.wav")
    assert rate == 24_000
    assert np.abs(samples.astype(int)).max() == pytest.approx(16384, abs=2)
