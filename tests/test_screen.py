"""What is on screen is what happened, and peers cannot write to the terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from duplex.screen import CallView, Screen, paper, plain
from duplex.values import Event, Json, Side

HOSTILE = "hi \x1b[31mred\x1b[0m [bold]x[/bold]\r\n\x07\u202eabc\ud800"


def said(side: Side, text: str) -> Event:
    fields: dict[str, Json] = {"direction": "said", "text": text, "start": 0, "end": 1}
    return Event(seq=0, at=0, side=side, type="transcript", fields=fields)


def shown(view: CallView) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    console.print(view)
    output = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(output, str)
    return output


def test_hostile_words_lose_their_controls_and_keep_their_brackets() -> None:
    assert "\x1b" not in plain(HOSTILE)
    view = CallView("t", 24_000, 90_000)
    view.on_event(said(Side.CALLER, HOSTILE))
    text = shown(view)
    assert "[bold]x[/bold]" in text
    assert "\x1b[31m" not in text
    assert "\x07" not in text


def test_pieces_of_one_speaker_join_and_speakers_alternate() -> None:
    view = CallView("t", 24_000, 90_000)
    for side, text in (
        (Side.ASSISTANT, "Good"),
        (Side.ASSISTANT, " evening."),
        (Side.CALLER, "Hi"),
    ):
        view.on_event(said(side, text))
    text = shown(view)
    assert "assistant: Good evening." in text
    assert text.index("Good evening.") < text.index("caller: Hi")


def test_the_meter_follows_who_speaks() -> None:
    view = CallView("t", 24_000, 90_000)
    loud, quiet = np.full(480, 8000, np.int16), np.zeros(480, np.int16)
    view.on_tick(480, (loud, quiet))  # the caller hears the assistant
    lines = [line for line in shown(view).splitlines() if "speaking" in line]
    assert len(lines) == 1
    assert "assistant" in lines[0]


def test_without_a_terminal_there_is_one_line_a_call() -> None:
    out = io.StringIO()
    with Screen(Console(file=out, width=120), total=2) as screen:
        screen.opened("a", "A", 24_000, 90_000)
        screen.finished("a", "passed in 41.2 s")
        screen.finished("b", "failed")
    assert out.getvalue().splitlines() == ["[1/2] a: passed in 41.2 s", "[2/2] b: failed"]


def test_a_run_taken_up_counts_on_from_what_it_had() -> None:
    out = io.StringIO()
    with Screen(Console(file=out, width=120), total=4, done=3) as screen:
        screen.finished("d", "passed")
    assert out.getvalue().splitlines() == ["[4/4] d: passed"]


def test_what_goes_to_no_terminal_is_not_broken_at_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = "runs/" + "x" * 130
    paper().print(line)
    assert capsys.readouterr().out == f"{line}\n"
