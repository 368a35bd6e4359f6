"""Listening: what is played of a call, stored or growing, and that a call never waits for it."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from card_fakes import FakeCard, FakeStream
from duplex import listening
from duplex.card.device import Device, Fill, Pcm, Stream, Take, Wanted
from duplex.errors import InputError
from duplex.listening import Bystander, Which, mixed
from duplex.recording import CallRecorder
from duplex.recording.recorder import CONVERSATION
from duplex.run_folder import RunFolder
from duplex.values import Event
from stimuli import pcm, voiced

RATE = 24_000
CALLER, ASSISTANT = (pcm(voiced(1.0, pitch=hz)) for hz in (140, 210))
SILENCE = np.zeros(RATE, np.int16)


class RushedCard(FakeCard):
    """A loudspeaker twenty times as fast as time: what it played is at hand at once."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()
        self.parts: list[Pcm] = []
        self._thread: threading.Thread | None = None

    def open_input(self, wanted: Wanted, take: Take) -> Stream:
        raise AssertionError("nobody speaks")

    def open_output(self, wanted: Wanted, fill: Fill) -> Stream:
        def turn() -> None:
            while not self.over.wait(0.001):
                if not self.gone:
                    self.parts.append(fill(480, False))

        self._thread = threading.Thread(target=turn, daemon=True)
        self._thread.start()
        return FakeStream(self)

    def devices(self) -> Sequence[Device]:
        return super().devices()

    @property
    def played(self) -> Pcm:
        """Everything that was heard, without the silence around it."""
        self.over.set()
        whole = np.concatenate(self.parts) if self.parts else SILENCE[:0]
        loud = np.flatnonzero(whole)
        return whole[loud[0] : loud[-1] + 1] if len(loud) else whole[:0]


@pytest.fixture
def card() -> Iterator[RushedCard]:
    found = RushedCard()
    yield found
    found.over.set()


def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def ended(position: int) -> Event:
    return Event(seq=0, at=position, side=None, type="call.ended", fields={})


@contextmanager
def recording(folder: Path, call_id: str = "c") -> Iterator[CallRecorder]:
    with CallRecorder(folder, call_id, rate_hz=RATE) as recorder:
        yield recorder


def append(recorder: CallRecorder, caller: Pcm, assistant: Pcm) -> None:
    recorder.append(caller, assistant, caller, assistant)


def stored(folder: Path) -> Path:
    """A run with one call: the caller's second, then the assistant's."""
    with recording(folder) as recorder:
        append(recorder, CALLER, SILENCE)
        append(recorder, SILENCE, ASSISTANT)
        recorder.event(ended(2 * RATE))
    return folder


def play(run: Path, card: RushedCard, side: str = "both", begin: float = 0.0) -> None:
    code = listening.command(
        run,
        None,
        side=side,
        from_seconds=begin,
        device=None,
        driver=lambda: card,
        console=console(),
    )
    assert code == 0


def trimmed(sound: Pcm) -> Pcm:
    loud = np.flatnonzero(sound)
    return sound[loud[0] : loud[-1] + 1]


@pytest.mark.parametrize(
    ("side", "wanted"),
    [
        ("both", np.concatenate((CALLER, ASSISTANT))),
        ("caller", CALLER),
        ("assistant", ASSISTANT),
    ],
)
def test_a_stored_call_is_played_whole_or_one_side_of_it(
    tmp_path: Path, card: RushedCard, side: str, wanted: Pcm
) -> None:
    play(stored(tmp_path / "run"), card, side)
    heard = card.played
    # A card that runs dry in between gets silence there; what was said is all there, in order.
    np.testing.assert_array_equal(heard[heard != 0], wanted[wanted != 0])


def test_it_begins_where_it_was_asked_to(tmp_path: Path, card: RushedCard) -> None:
    play(stored(tmp_path / "run"), card, begin=1.5)
    heard, rest = card.played, ASSISTANT[RATE // 2 :]
    np.testing.assert_array_equal(heard[heard != 0], rest[rest != 0])


def test_a_growing_call_is_followed_to_its_end(
    tmp_path: Path, card: RushedCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    monkeypatch.setattr(listening, "is_running", lambda _: True)
    with recording(run) as recorder:
        append(recorder, CALLER, SILENCE)
        recorder.flush()
        follower = threading.Thread(target=play, args=(run, card))
        follower.start()
        threading.Event().wait(0.6)
        append(recorder, SILENCE, ASSISTANT)
        recorder.event(ended(2 * RATE))
    follower.join(10)
    assert not follower.is_alive()
    heard, whole = card.played, np.concatenate((CALLER, ASSISTANT))
    np.testing.assert_array_equal(heard[heard != 0], whole[whole != 0])


def test_a_call_whose_run_was_killed_is_played_as_far_as_it_goes(
    tmp_path: Path, card: RushedCard
) -> None:
    run = tmp_path / "run"
    with recording(run) as recorder:
        append(recorder, CALLER, SILENCE)
    play(run, card)
    heard = card.played
    np.testing.assert_array_equal(heard[heard != 0], CALLER[CALLER != 0])


def test_the_newest_call_of_a_run_in_progress_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stored(tmp_path / "run")
    threading.Event().wait(0.02)
    with recording(run, "a_later") as recorder:
        append(recorder, CALLER, SILENCE)
    assert listening._call(RunFolder.open(run), None) == "a_later", "the first by name"
    monkeypatch.setattr(listening, "is_running", lambda _: True)
    assert listening._call(RunFolder.open(run), None) == "a_later"
    assert listening._call(RunFolder.open(run), "c") == "c"


def test_a_device_that_vanishes_is_told(tmp_path: Path, card: RushedCard) -> None:
    run = stored(tmp_path / "run")
    card.gone = True
    with pytest.raises(InputError, match="the output device is gone after"):
        play(run, card)


@pytest.mark.parametrize("begin", [2.0, 1e300, float("inf")])
def test_a_place_behind_the_end_is_refused(tmp_path: Path, card: RushedCard, begin: float) -> None:
    with pytest.raises(InputError, match=r"call c is 2\.0 s long"):
        play(stored(tmp_path / "run"), card, begin=begin)


def test_a_call_without_sound_is_told_as_that(tmp_path: Path, card: RushedCard) -> None:
    with recording(tmp_path / "run"):
        pass
    with pytest.raises(InputError, match="call c: its recording holds no sound"):
        play(tmp_path / "run", card)


def test_a_link_out_of_the_run_is_not_followed(tmp_path: Path, card: RushedCard) -> None:
    path = RunFolder.open(stored(tmp_path / "run")).audio("c") / CONVERSATION
    path.rename(tmp_path / "elsewhere.wav")
    path.symlink_to(tmp_path / "elsewhere.wav")
    with pytest.raises(InputError, match="leads out of the run's folder"):
        play(tmp_path / "run", card)


def test_a_run_goes_on_when_its_listeners_device_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    card = FakeCard()
    silenced = Bystander(card, None)
    card.gone = True
    assert silenced.close() == "listening: the output device is gone, the rest was not played"

    def refuse(*_: object) -> Stream:
        raise InputError("no output device")

    refused = Bystander(FakeCard(), None)
    monkeypatch.setattr(FakeCard, "open_output", refuse)
    refused.begins("one", RATE // 3)
    assert refused.line() is None
    assert refused.close() == "listening: no output device"


def test_both_voices_stay_inside_the_range() -> None:
    loud = np.full(4, 30_000, np.int16)
    assert mixed(loud, loud, Which.BOTH).tolist() == [32_767] * 4
    assert mixed(loud, -loud, Which.CALLER).tolist() == [30_000] * 4


def test_a_bystander_hears_one_call_at_a_time_and_keeps_none_waiting() -> None:
    card = FakeCard()
    bystander = Bystander(card, None)
    bystander.begins("one", RATE)
    bystander.begins("two", RATE)
    tick = np.full(480, 1_000, np.int16)
    # Nothing is played meanwhile: the call goes on, and what finds no room is dropped.
    for _ in range(100):
        bystander.hears("one", (tick, tick))
        bystander.hears("two", (tick, tick))
    assert bystander.close() == "listening fell behind: 980 ms were not played"
    bystander.ends("one")
    bystander.begins("two", RATE)
    assert "two" in str(bystander.line())
