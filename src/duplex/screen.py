"""What a person sees while calls run, and a line per call where nobody looks.

It only shows events it is handed. Everything a peer said is stripped of control
characters and printed as plain text, so it can neither move the cursor nor be
taken for markup.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from duplex.participants.base import Pcm
from duplex.values import Event, Side

_COLOURS = {Side.CALLER: "cyan", Side.ASSISTANT: "green"}
_METER_WIDTH = 20
_LINES = 12
_PAPER = 200


def plain(text: str) -> str:
    """Drop control, format and surrogate characters; newlines become spaces."""
    kept = []
    for char in text:
        if char.isspace():
            kept.append(" ")
        elif char.isprintable():
            kept.append(char)
    return "".join(kept)


def paper() -> Console:
    """stdout for tables: a terminal's width, else wide enough that no cell is broken."""
    width = None if sys.stdout.isatty() else _PAPER
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


class CallView:
    """The state of one call on screen: meters, transcript, clock."""

    def __init__(self, title: str, rate_hz: int, limit_ms: int) -> None:
        self._title = plain(title)
        self._rate = rate_hz
        self._limit_ms = limit_ms
        self._position = 0
        self._levels = [0.0, 0.0]
        self._lines: list[tuple[Side | None, str]] = []

    def on_event(self, event: Event) -> None:
        text = self._line(event)
        if text is None:
            return
        if event.type == "transcript" and self._lines and self._lines[-1][0] is event.side:
            side, before = self._lines[-1]
            self._lines[-1] = (side, before + text)
        else:
            self._lines.append((event.side if event.type == "transcript" else None, text.strip()))
        del self._lines[:-200]

    def on_tick(self, position: int, heard: tuple[Pcm, Pcm]) -> None:
        self._position = position
        # What the caller hears is the assistant speaking, and the other way round.
        for side in Side:
            pcm = heard[side.other].astype(np.float64)
            level = float(np.sqrt(np.mean(pcm * pcm))) if pcm.size else 0.0
            self._levels[side] = max(level, self._levels[side] * 0.8)

    def __rich__(self) -> RenderableType:
        meters = Table.grid(padding=(0, 1))
        for side in Side:
            bar = Text(self._bar(self._levels[side]), style=_COLOURS[side])
            state = "speaking" if self._levels[side] >= 220 else ""
            meters.add_row(Text(f"{side.label:<9}", style="bold"), bar, Text(state))
        seconds, limit = self._position / self._rate, self._limit_ms / 1000
        talk = [self._as_text(side, line) for side, line in self._lines[-_LINES:]]
        title = Text(f"{self._title}  {seconds:5.1f} s of at most {limit:.0f} s")
        return Panel(Group(meters, Text(""), *talk), title=title, title_align="left")

    def _line(self, event: Event) -> str | None:
        fields = event.fields
        if event.type == "transcript" and fields.get("direction") == "said":
            return plain(str(fields.get("text", "")))
        if event.type == "tool.ended":
            return plain(f"tool {fields.get('name') or fields.get('call_id')}: {fields['status']}")
        if event.type == "fault":
            return plain(f"fault ({fields.get('stage')}): {fields.get('message')}")
        return None

    @staticmethod
    def _as_text(side: Side | None, line: str) -> Text:
        if side is None:
            return Text(f"  · {line}", style="dim")
        return Text.assemble((f"{side.label}: ", f"bold {_COLOURS[side]}"), line.strip())

    @staticmethod
    def _bar(level: float) -> str:
        decibels = 20 * np.log10(max(level, 1.0) / 32768)
        filled = int(np.clip((decibels + 60) / 50, 0, 1) * _METER_WIDTH)
        return "█" * filled + "·" * (_METER_WIDTH - filled)


class Screen:
    """Shows a run on stderr: live on a terminal, a line per finished call elsewhere."""

    def __init__(self, console: Console, total: int, done: int = 0) -> None:
        self._console = console
        self._total = total
        self._done = done
        self._views: dict[str, CallView] = {}
        self.below: Callable[[], RenderableType | None] = lambda: None
        """What is shown below the calls, if anything."""
        self._live = Live(self, console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Screen:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def opened(self, call_id: str, title: str, rate_hz: int, limit_ms: int) -> CallView:
        view = CallView(title, rate_hz, limit_ms)
        self._views[call_id] = view
        return view

    def finished(self, call_id: str, sentence: str) -> None:
        self._views.pop(call_id, None)
        self._done += 1
        line = Text(f"[{self._done}/{self._total}] {plain(call_id)}: {plain(sentence)}")
        self._console.print(line)

    def __rich__(self) -> RenderableType:
        progress = Text(f"call {min(self._done + 1, self._total)} of {self._total}", style="bold")
        below = self.below()
        return Group(progress, *self._views.values(), *(() if below is None else (below,)))
