"""What a person sees of a call and does with keys: shown, muted, hung up, stopped."""

from __future__ import annotations

import io
import os
import pty
import threading
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from card_fakes import FakeCard, seat_of
from duplex import keyboard, talking
from duplex.errors import InputError
from duplex.screen import Screen
from duplex.talking import CardOptions, Talker
from duplex.values import Event, Json, Side
from plan_runs import TREE


def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def printed(shown: Console) -> list[str]:
    text = shown.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text.splitlines()


def event(kind: str, side: Side | None, at: int, **fields: Json) -> Event:
    return Event(seq=0, at=at, side=side, type=kind, fields=fields)


def test_the_line_below_a_call_shows_the_microphone_and_what_is_wrong() -> None:
    seat = seat_of(FakeCard())
    talker = Talker(seat, console())
    seat.shown.level_dbfs = -23.4
    assert str(talker.line()).startswith("microphone  -23 dBFS   keys: ")
    seat.shown.clipped = True
    seat.playback.gaps = 2
    assert str(talker.line()).startswith("microphone  -23 dBFS, TOO LOUD, 2 gaps")
    seat.shown.shut = True
    seat.shown.warnings.append("it echoes")
    assert str(talker.line()).startswith("microphone shut")
    assert str(talker.line()).endswith("\nwarning: it echoes")


def test_the_first_ctrl_c_hangs_up_and_the_second_is_the_runs() -> None:
    seat = seat_of(FakeCard())
    talker = Talker(seat, console())
    said = talker.interrupted()
    assert said is not None
    assert said.startswith("hanging up")
    assert seat.keys.hung_up
    assert talker.interrupted() is None


def test_keys_mute_interrupt_and_hang_up() -> None:
    card = FakeCard()
    keys = seat_of(card).keys
    talking._pressed(keys, "m")
    assert keys.muted
    talking._pressed(keys, "M")
    assert not keys.muted
    talking._pressed(keys, " ")
    assert keys.interrupting
    card.advance(0.5)
    assert keys.interrupting, "a key that is held repeats within this time"
    card.advance(0.3)
    assert not keys.interrupting
    talking._pressed(keys, "x")
    assert not keys.hung_up
    talking._pressed(keys, "q")
    assert keys.hung_up


def test_without_a_terminal_each_turn_is_a_line() -> None:
    shown = console()
    talker = Talker(seat_of(FakeCard()), shown)
    watcher = talker.beside(Screen(shown, 1)).opened("c", "t", 24_000, 90_000)
    for at, direction, text in (
        (24_000, "said", "Hello, "),
        (36_000, "said", "what can I do?"),
        (72_000, "heard", "A table.\x1b[2J"),
        (96_000, "said", "Done."),
    ):
        words = event("transcript", Side.ASSISTANT, at, direction=direction, text=text)
        watcher.on_event(words)
    watcher.on_event(event("call.ended", None, 100_000))
    assert printed(shown) == [
        "   1.0 s  assistant: Hello, what can I do?",
        "   3.0 s  you, as heard: A table.[2J",
        "   4.0 s  assistant: Done.",
    ]


def test_a_warning_stands_below_the_call() -> None:
    shown = console()
    seat = seat_of(FakeCard())
    audience = Talker(seat, shown).beside(Screen(shown, 1))
    seat.shown.warnings.append("use headphones")
    audience.finished("c", "passed")
    assert printed(shown) == ["[1/1] c: passed", "warning: use headphones"]


def test_the_task_is_what_a_caller_is_told_and_never_what_is_expected() -> None:
    values: dict[str, object] = {"data": TREE / "scenarios", "scenario": ("restaurant_slot_taken",)}
    scenario, options = talking._chosen(values)
    told = "\n".join(talking._task(scenario, options))
    assert scenario.goal in told
    assert "the assistant speaks first" in told
    for item in scenario.simulation.agenda:
        assert item.commitment in told
    assert "R-0" not in told
    assert options.caller == "person"
    assert options.max_duration_seconds == 600


def test_a_call_that_names_no_scenario_has_the_usual_one_and_one_only() -> None:
    scenario, _ = talking._chosen({"data": TREE / "scenarios"})
    assert scenario.id == talking.USUAL
    with pytest.raises(InputError, match="one call, got 2 scenarios"):
        talking._chosen({"scenario": ("a", "b")})
    with pytest.raises(InputError, match="no virtual clock can make wait"):
        talking._chosen({"data": TREE / "scenarios", "clock": "virtual"})


def test_keys_are_read_from_a_terminal_one_by_one_and_it_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import termios

    ours, theirs = pty.openpty()
    monkeypatch.setattr(keyboard, "_terminal", lambda: theirs)
    before, got, enough = termios.tcgetattr(theirs), [], threading.Event()

    def told(key: str) -> None:
        got.append(key)
        if len(got) == 3:
            enough.set()

    try:
        with keyboard.pressed(told) as has_keys:
            assert has_keys
            os.write(ours, b"m q")
            assert enough.wait(10)
        assert termios.tcgetattr(theirs) == before
    finally:
        os.close(ours)
        os.close(theirs)
    assert got == ["m", " ", "q"]


def test_without_a_terminal_there_are_no_keys() -> None:
    with keyboard.pressed(lambda _: None) as has_keys:
        assert not has_keys


def test_a_card_that_cannot_be_opened_is_told_before_anything_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talking, "PortAudio", lambda: FakeCard(refuses=True))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    shown = console()
    with pytest.raises(InputError, match='device "built in" cannot be opened'):
        talking.command(
            {"data": TREE / "scenarios"},
            CardOptions(),
            console=shown,
            as_json=False,
            verbose=False,
            markdown=False,
        )
    assert printed(shown) == []


def test_a_silent_screen_has_no_line() -> None:
    shown = console()
    screen = Screen(shown, 1)
    shown.print(screen)
    assert printed(shown) == ["call 1 of 1"]
    screen.below = lambda: Text("below")
    shown.print(screen)
    assert printed(shown)[-1] == "below"
