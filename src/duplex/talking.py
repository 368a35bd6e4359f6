"""``duplex talk``: a person calls the assistant under test, by microphone and loudspeaker.

It opens the card, measures its delay if asked, shows what there is to do, and has the run
held like any other; numbers and verdict are the run's. The first Ctrl-C, or a key, hangs
up; a second ends the call as it stands. It decides nothing about a call.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.text import Text

from duplex import keyboard, running
from duplex import scenario as scenarios
from duplex.briefing import caller_brief, first_speaker
from duplex.call import Watcher
from duplex.card import kept
from duplex.card.calibration import Bench, calibrate
from duplex.card.device import Driver, Wanted, choose, wanted
from duplex.card.kept import Delay
from duplex.card.portaudio import PortAudio
from duplex.card.seat import Keys, Seat
from duplex.clock import utc_now, wall_seconds
from duplex.errors import InputError
from duplex.options import PERSON, RunOptions, make
from duplex.participants.base import Pcm
from duplex.run_results import data_path
from duplex.runner import Audience
from duplex.scenario import Scenario
from duplex.screen import plain
from duplex.values import SESSION_RATE_HZ, Event, Side

USUAL = "restaurant_booking_complete"
"""The scenario of a call for which none was named, where there is that one."""
MIN_RATE_HZ, MAX_RATE_HZ = 8_000, 192_000
KEYS = "keys: m mutes, space interrupts, q hangs up"
HEADPHONES = "wear headphones: what the loudspeaker plays the microphone hears too"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardOptions:
    """The card a person calls with."""

    input_device: str | None = None
    output_device: str | None = None
    rate_hz: int | None = None
    latency_ms: float = 60
    calibrate: bool = False
    push_to_interrupt: bool = False


def command(
    values: dict[str, object],
    card: CardOptions,
    *,
    console: Console,
    as_json: bool,
    verbose: bool,
    markdown: bool,
) -> int:
    """Hold one call with a person and print it; return the exit code. Raises DuplexError.

    ``values`` are options of a run by name.
    """
    scenario, options = _chosen(values)
    driver = PortAudio()
    rate_hz = scenario.duplex.rate_hz or SESSION_RATE_HZ
    source, sink = _wanted(driver, card, rate_hz)
    measured = _calibrated(driver, source, sink, console) if card.calibrate else None
    keys = Keys(now=wall_seconds, push_to_interrupt=card.push_to_interrupt)
    seat = Seat(source, sink, keys, wall_seconds)
    with closing(seat):
        seat.open(driver)
        seat.delay = _delay(seat, measured, console)
        for line in _task(scenario, options):
            console.print(Text(plain(line)))
        with keyboard.pressed(lambda key: _pressed(keys, key)) as has_keys:
            console.print(Text(KEYS if has_keys else "Ctrl-C hangs up", style="bold"))
            return running.command(
                options,
                console=console,
                as_json=as_json,
                verbose=verbose,
                markdown=markdown,
                company=Talker(seat, console),
            )


class Talker:
    """The company of a run whose caller is a person: what is shown, and the hanging up."""

    def __init__(self, seat: Seat, console: Console) -> None:
        self._seat = seat
        self._console = console

    @property
    def seat(self) -> Seat | None:
        return self._seat

    def beside(self, screen: Audience) -> Audience:
        return _Beside(screen, self._console, self._seat)

    def line(self) -> RenderableType | None:
        shown = self._seat.shown
        level = "" if shown.level_dbfs is None else f"{shown.level_dbfs:4.0f} dBFS"
        state = "microphone shut" if shown.shut else f"microphone {level}"
        clipped = ", TOO LOUD" if shown.clipped else ""
        lost = self._seat.playback.gaps + self._seat.playback.underruns
        gaps = f", {lost} gaps" if lost else ""
        warning = f"\nwarning: {shown.warnings[-1]}" if shown.warnings else ""
        return Text(plain(f"{state}{clipped}{gaps}   {KEYS}") + warning)

    def interrupted(self) -> str | None:
        if self._seat.keys.hung_up:
            return None
        self._seat.keys.hang_up()
        return "hanging up: the call ends when both are silent; again to end it now"


class _Beside:
    """The screen, and on no terminal a line for each thing said."""

    def __init__(self, screen: Audience, console: Console, seat: Seat) -> None:
        self._screen = screen
        self._console = console
        self._seat = seat

    def opened(self, call_id: str, title: str, rate_hz: int, limit_ms: int) -> Watcher:
        shown = self._screen.opened(call_id, title, rate_hz, limit_ms)
        return shown if self._console.is_terminal else _Lines(shown, self._console, rate_hz)

    def finished(self, call_id: str, sentence: str) -> None:
        self._screen.finished(call_id, sentence)
        for warning in self._seat.shown.warnings:
            self._console.print(Text(f"warning: {plain(warning)}"))


class _Lines:
    """Prints what was said, a turn a line, as soon as the other side speaks or it is over."""

    def __init__(self, shown: Watcher, console: Console, rate_hz: int) -> None:
        self._shown = shown
        self._console = console
        self._rate = rate_hz
        self._side: Side | None = None
        self._at = 0
        self._words = ""

    def on_tick(self, position: int, heard: tuple[Pcm, Pcm]) -> None:
        self._shown.on_tick(position, heard)

    def on_event(self, event: Event) -> None:
        self._shown.on_event(event)
        words = self._said(event)
        if words is None:
            if event.type == "call.ended":
                self._print()
            return
        side, text = words
        if side is not self._side:
            self._print()
            self._side, self._at = side, event.at
        self._words += text

    @staticmethod
    def _said(event: Event) -> tuple[Side, str] | None:
        """Whose words these are: an assistant also tells what it heard of the person."""
        if event.type != "transcript" or event.side is not Side.ASSISTANT:
            return None
        said = event.fields.get("direction") == "said"
        return Side.ASSISTANT if said else Side.CALLER, str(event.fields.get("text", ""))

    def _print(self) -> None:
        if self._side is not None and self._words.strip():
            who = "you, as heard" if self._side is Side.CALLER else "assistant"
            seconds = self._at / self._rate
            self._console.print(Text(plain(f"{seconds:6.1f} s  {who}: {self._words.strip()}")))
        self._side, self._words = None, ""


def _chosen(values: dict[str, object]) -> tuple[Scenario, RunOptions]:
    """The one scenario of the call, and the options of its run."""
    given = {"max_duration_seconds": 600.0, **values, "caller": PERSON}
    asked = make(given)
    dataset = scenarios.load(data_path(asked))
    if len(asked.scenario) > 1:
        raise InputError(f"a person holds one call, got {len(asked.scenario)} scenarios")
    ids = [one.id for one in dataset.scenarios]
    if not ids:
        raise InputError(f"data {data_path(asked)} holds no scenario")
    named = asked.scenario or ((USUAL,) if USUAL in ids else (ids[0],))
    (scenario,) = dataset.select(named)
    return scenario, make({**given, "scenario": (scenario.id,)})


def _wanted(driver: Driver, card: CardOptions, session_hz: int) -> tuple[Wanted, Wanted]:
    if card.rate_hz is not None and not MIN_RATE_HZ <= card.rate_hz <= MAX_RATE_HZ:
        raise InputError(
            f"card-rate-hz {card.rate_hz}: want a rate from {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz"
        )
    devices = driver.devices()
    source = choose(devices, card.input_device, "input")
    sink = choose(devices, card.output_device, "output")
    return (
        wanted(source, session_hz, card.rate_hz, card.latency_ms),
        wanted(sink, session_hz, card.rate_hz, card.latency_ms),
    )


def _calibrated(driver: Driver, source: Wanted, sink: Wanted, console: Console) -> Delay:
    """Measure the card's delay, tell it; raises InputError when the clicks do not come back."""
    console.print("calibrating: a few clicks; the microphone must hear the loudspeaker")
    wait = threading.Event()
    bench = Bench(
        driver=driver,
        input=source,
        output=sink,
        now=wall_seconds,
        sleep=lambda seconds: void(wait.wait(seconds)),
    )
    found = calibrate(bench)
    console.print(
        f"calibrated: {found.delay_ms:.1f} ± {found.plus_minus_ms:.1f} ms from output to input "
        f"({found.found} of {found.played} clicks, heard at {found.level_db:.0f} dB)"
    )
    return Delay(
        delay_ms=found.delay_ms,
        plus_minus_ms=found.plus_minus_ms,
        source="loopback",
        at=utc_now(),
        level_db=found.level_db,
        clicks=found.found,
        played=found.played,
    )


def void(_: object) -> None:
    """Nothing, of whatever was returned."""


def _delay(seat: Seat, measured: Delay | None, console: Console) -> Delay:
    """The card's delay: measured now, kept from before, or what its drivers say."""
    path = kept.state_file()
    if measured is not None:
        kept.keep(seat.opened, measured, path)
    found = measured or kept.look_up(seat.opened, path) or seat.reported
    opened = seat.opened
    console.print(
        Text(
            plain(
                f"microphone: {opened.input} at {opened.input_hz} Hz, "
                f"loudspeaker: {opened.output} at {opened.output_hz} Hz"
            )
        )
    )
    width = f"{found.delay_ms:.1f} ± {found.plus_minus_ms:.1f} ms"
    if found.source == "reported":
        console.print(f"card's delay: {width}, as its drivers say; --calibrate measures it")
    elif measured is None:
        console.print(f"card's delay: {width}, calibrated {found.at}")
    console.print(HEADPHONES)
    return found


def _task(scenario: Scenario, options: RunOptions) -> Iterator[str]:
    """What the person is asked to do: what a caller is told, never what is expected."""
    brief = caller_brief(scenario, first_speaker(options, scenario))
    yield f"your task: {scenario.title}"
    yield f"  goal: {brief.goal}"
    who = "you speak first" if brief.first_speaker == "caller" else "the assistant speaks first"
    yield f"  {who}; begin like this: {brief.opening}"
    if brief.context:
        yield f"  before the call: {brief.context}"
    for name, value in brief.known_facts.items():
        yield f"  {name}: {value}"
    for item in brief.agenda:
        when = f" (when {item.trigger_condition})" if item.trigger_condition else ""
        yield f"  - {item.commitment}{when}"


def _pressed(keys: Keys, key: str) -> None:
    match key:
        case "m" | "M":
            keys.mute()
        case " ":
            keys.interrupt()
        case "q" | "Q":
            keys.hang_up()
