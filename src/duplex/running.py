"""``duplex run``: hold the calls where a person can watch, then say what came out.

It shows and formats; numbers, verdicts and the exit code are the results'. One
Ctrl-C or SIGTERM ends calls cleanly and keeps what there is; a second Ctrl-C
leaves at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from duplex import outlets, viewer
from duplex.company import Company
from duplex.counting import counted
from duplex.errors import DuplexError, InputError
from duplex.journal import read as read_journal
from duplex.options import RunOptions
from duplex.publishing import publish
from duplex.report import run_report
from duplex.report.run_report import MOST_TOLD
from duplex.report.verdict_report import verdict_lines
from duplex.results import schema
from duplex.results.run import COLUMNS, exit_code, headline, rows
from duplex.runner import Finished, Runner
from duplex.screen import CallView, Screen, plain
from duplex.values import Event

INTERRUPTED = 130


class _Stop:
    """Set by the first signal; a second Ctrl-C ends the process."""

    def __init__(self, console: Console, company: Company | None = None) -> None:
        self.asked = False
        self._console = console
        self._company = company

    def __call__(self) -> bool:
        return self.asked

    def signalled(self, number: int, _: object) -> None:
        if self.asked and number == signal.SIGINT:
            os._exit(INTERRUPTED)
        said = None if self._company is None else self._company.interrupted()
        if said is not None:
            self._console.print(Text(said))
            return
        self.asked = True
        self._console.print(Text("stopping: calls end and keep what there is"))


class _Verbose:
    """Prints every event of a call on one line, beside the usual view."""

    def __init__(self, console: Console, view: CallView) -> None:
        self._console = console
        self._view = view
        self.on_tick = view.on_tick

    def on_event(self, event: Event) -> None:
        self._view.on_event(event)
        side = "" if event.side is None else f" {event.side.label}"
        fields = plain(str(dict(event.fields)))
        self._console.print(Text(f"{event.at:>9}{side} {event.type} {fields}"))


class _VerboseScreen:
    """A screen whose calls also print their events."""

    def __init__(self, console: Console, screen: Screen) -> None:
        self._console = console
        self._screen = screen
        self.finished = screen.finished

    def opened(self, call_id: str, title: str, rate_hz: int, limit_ms: int) -> _Verbose:
        view = self._screen.opened(call_id, title, rate_hz, limit_ms)
        return _Verbose(self._console, view)


def command(
    options: RunOptions | Path,
    *,
    console: Console,
    as_json: bool,
    verbose: bool,
    markdown: bool = False,
    company: Company | None = None,
) -> int:
    """Hold the run and print it; return the exit code. Raises DuplexError.

    ``options`` may be the folder of a run that was cut off, to take it up again.
    ``company`` is who sits beside it, at a microphone or to hear it.
    """
    if as_json and markdown:
        raise InputError("--json and --markdown exclude each other")
    stop = _Stop(console, company)
    with _signals(stop):
        finished = _held(options, console, stop, verbose, company)
    unshown = _page(finished)
    lost = None
    if as_json:
        lost = outlets.put(schema.to_json(finished.run) + "\n")
    elif markdown:
        lost = outlets.put(run_report.as_markdown(finished.run))
    if lost is not None:
        # The run is on disk whatever became of its print, and its verdict is its own.
        console.print(Text(f"{lost}; the run is whole in {finished.folder}"))
    _report(console, finished, every=verbose)
    if unshown is not None:
        raise unshown
    if finished.stopped and not _held_calls(finished.run):
        return INTERRUPTED
    return exit_code(finished.run)


def _page(finished: Finished) -> DuplexError | None:
    """Write the run's page; return why it could not be, for the run is told of all the same."""
    publish(finished.run, finished.folder)
    try:
        if finished.run.results:
            viewer.build(finished.folder)
    except DuplexError as error:
        return error
    return None


def _held(
    options: RunOptions | Path,
    console: Console,
    stop: _Stop,
    verbose: bool,
    company: Company | None,
) -> Finished:
    if isinstance(options, Path):
        runner = Runner.taking_up(options, stop=stop)
        done = len({one.case for one in read_journal(options).ended.values() if one.final})
    else:
        seat = None if company is None else company.seat
        runner, done = Runner(options, stop=stop, seat=seat), 0
    runner.announce = lambda line: console.print(Text(plain(line)))
    screen = Screen(console, len(runner.plan.calls), done)
    runner.audience = _VerboseScreen(console, screen) if verbose else screen
    if company is not None:
        screen.below = company.line
        runner.audience = company.beside(runner.audience)
    with screen:
        return asyncio.run(runner.run())


@contextmanager
def _signals(stop: _Stop) -> Iterator[None]:
    before = {number: signal.signal(number, stop.signalled) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# A terminal that is closed hangs up; Windows has no such signal.
_SIGNALS = (signal.SIGINT, signal.SIGTERM) + ((signal.SIGHUP,) if sys.platform != "win32" else ())


def _held_calls(run: schema.Run) -> list[schema.Result]:
    return [result for result in run.results if result.duplex.get("outcome") != "not_run"]


def _report(console: Console, finished: Finished, *, every: bool) -> None:
    """One sentence, a table, where the files are, and what to do next."""
    run = finished.run
    held = _held_calls(run)
    if not held:
        console.print(Text(f"no call was held; results: {finished.folder / 'results.json'}"))
        return
    console.print(Text(plain(headline(run)), style="bold"))
    for line in table(run, every=every):
        console.print(Text(plain(line)))
    for line in (*verdict_lines(run), *run_report.short(run)):
        console.print(Text(plain(line)))
    speed = run.run.duplex.get("speed")
    if isinstance(speed, dict) and speed.get("call") is not None:
        console.print(
            Text(f"speed: {speed['call']}× real time, {speed['with_start_up']}× with start-up")
        )
    console.print(Text(f"results: {finished.folder / 'results.json'}"))
    listen = finished.folder / str(held[0].artifacts.conversation_audio)
    console.print(Text(f"recording: {listen}"))
    console.print(Text(f"viewer: {finished.folder / 'viewer.html'}"))
    console.print(Text(f"next: {_next(finished, held)}"))


def table(run: schema.Run, *, every: bool) -> Iterator[str]:
    """The calls under each other, and below them why those went wrong that did.

    Never cut to the width of a terminal: a name or a reason that is cut says nothing. Of
    many calls only those that did not pass are shown, and not too many of these, unless
    ``every`` one is wanted.
    """
    *names, _ = COLUMNS
    wanted = found = rows(run)
    if not every and len(found) > MOST_TOLD:
        wanted = tuple(row for row in found if row.status != "passed")[:MOST_TOLD]
    called = [row.cells() for row in wanted]
    lines = [tuple(names), *(cells[:-1] for cells in called)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(names))]
    for line in lines if called else ():
        yield "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
    for cells in called:
        if cells[-1]:
            yield f"{cells[0]}: {cells[-1]}"
    if len(wanted) < len(found):
        passed = sum(row.status == "passed" for row in found)
        more = len(found) - passed - len(wanted)
        others = f" and {more} more that did not" if more else ""
        yield f"not shown: {counted(passed, 'call')} that passed{others}; --verbose shows every one"


def _next(finished: Finished, held: Sequence[schema.Result]) -> str:
    """The next command to try: what was said in the first call that went wrong, or the page."""
    for result in held:
        if result.error is not None and result.error.stage == "platform_late":
            return (
                "hold it where less else runs: this machine did not keep up with the wall clock; "
                "parties without a socket of their own can be called with --clock virtual"
            )
        transcript = result.artifacts.conversation_transcript
        if result.status != "passed" and transcript is not None:
            return f"cat {_shown(finished.folder / transcript)}"
    return f"duplex view {_shown(finished.folder)} --browser"


def _shown(path: Path) -> str:
    text = str(path)
    return f"'{text}'" if any(char in text for char in " '\"$") else text
