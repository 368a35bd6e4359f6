"""One calibration from start to end: plant, hold under every row, compare, tabulate.

Every conversation is planted once and held under each row of its kind, so that rows differ
by their condition alone; only one conversation is ever in memory. It decides nothing about
figures or goals. The command drives it.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from duplex.calibration import live_path, virtual_path
from duplex.calibration.clips import RATE_HZ, Speakers
from duplex.calibration.lines import through, uplink
from duplex.calibration.matching import AllFigures, pooled
from duplex.calibration.noise import Noises
from duplex.calibration.plan import Conversation, plan
from duplex.calibration.rows import (
    Route,
    Row,
    condition_rows,
    live_rows,
    sharp_rows,
    short_rows,
    speech_rows,
)
from duplex.calibration.speakers import found, talkers
from duplex.calibration.stimuli import Stimuli
from duplex.calibration.table import RowResult, Table
from duplex.calibration.virtual_path import Placement
from duplex.counting import counted
from duplex.values import Json

Say = Callable[[str], None]
FULL_TURNS, SHORT_TURNS = 500, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to calibrate; ``speech`` None lets the embedded voices speak."""

    speech: Path | None = None
    speakers: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    short: bool = False
    virtual: bool = True
    live: bool = True
    turns: int | None = None
    live_calls: int = 8
    seed: int = 7


class Campaign:
    """One calibration; :meth:`run` does it all."""

    def __init__(self, options: Options, say: Say) -> None:
        self._options = options
        self._say = say
        short = options.short
        self._turns = options.turns or (SHORT_TURNS if short else FULL_TURNS)
        self._speakers: Speakers = {}

    async def run(self) -> Table:
        options = self._options
        for name in options.conditions:
            uplink(name)  # one that does not exist is refused before anything is held
        if not options.short:
            self._say("gathering speech")
            self._speakers = await found(options.speech, options.speakers)
        rows = self._rows()
        results: dict[str, RowResult] = {}
        for group in _groups([row for row in rows if row.route is not Route.LIVE]):
            for result in await self._virtual(group):
                results[result.row.key] = result
        for row in rows:
            if row.route is Route.LIVE:
                results[row.key] = await self._live(row)
        placement = Placement()
        for result in results.values():
            if result.row.route is not Route.LIVE:
                placement.join(result.placement)
        return Table(
            rows=[results[row.key] for row in rows], placement=placement, basis=self._basis()
        )

    def _rows(self) -> list[Row]:
        noises = Noises({n: [c.samples for c in clips] for n, clips in self._speakers.items()})
        if self._options.short:
            rows = short_rows(noises)
        else:
            rows = [*sharp_rows(noises), *speech_rows(noises)]
            for name in self._options.conditions:
                rows += condition_rows(name, through(uplink(name)), uplink(name))
        if not self._options.virtual:
            rows = []
        return [*rows, *(live_rows() if self._options.live else [])]

    # -- holding ------------------------------------------------------------

    async def _virtual(self, group: Sequence[Row]) -> list[RowResult]:
        """Hold all rows of one kind, conversation by conversation."""
        figures: dict[str, list[AllFigures]] = {row.key: [] for row in group}
        placements = {row.key: Placement() for row in group}
        with tempfile.TemporaryDirectory(prefix="duplex-calibrate-") as temporary:
            for index, conversation in enumerate(self._planned(group[0])):
                self._say(
                    f"{group[0].stimuli}: conversation {index + 1}, {counted(len(group), 'row')}"
                )
                for number, row in enumerate(group):
                    folder = Path(temporary) / f"{index}-{number}"
                    folder.mkdir()
                    held = await virtual_path.hold(
                        row,
                        conversation,
                        self._random(row.key, index),
                        folder,
                        "call",
                        edges=index == 0,
                    )
                    _remove(folder)
                    figures[row.key].append(held.figures)
                    placements[row.key].join(held.placement)
        return [
            RowResult(row=row, figures=pooled(figures[row.key]), placement=placements[row.key])
            for row in group
        ]

    async def _live(self, row: Row) -> RowResult:
        conversations = list(self._planned(row))
        calls = len(conversations)
        self._say(f"live: {counted(calls, 'call')}, {min(calls, self._options.live_calls)} at once")
        placement = Placement()
        with tempfile.TemporaryDirectory(prefix="duplex-calibrate-") as temporary:
            held, failed = await live_path.hold_all(
                row,
                conversations,
                self._random(row.key, 0),
                Path(temporary),
                self._options.live_calls,
            )
        for one in held:
            placement.join(one.placement)
        figures = pooled(one.figures for one in held)
        return RowResult(row=row, figures=figures, placement=placement, failed=failed)

    def _planned(self, row: Row) -> Iterator[Conversation]:
        """Conversations of a row's kind until there are answered turns enough."""
        turns = index = 0
        while turns < self._turns:
            kind = f"{row.stimuli} {len(row.scenes)}"
            rng = self._random(kind, index)
            caller, assistant = talkers(row.stimuli, self._speakers, index)
            conversation = plan(caller, assistant, rng, row.scenes, row.turn_s)
            turns += len(conversation.truth.pairs)
            index += 1
            yield conversation

    def _random(self, what: str, index: int) -> np.random.Generator:
        return np.random.default_rng([self._options.seed, zlib.crc32(what.encode()), index])

    def _basis(self) -> dict[str, Json]:
        options = self._options
        heard = {
            name: f"{len(clips)} phrases, {sum(len(c.samples) for c in clips) / RATE_HZ:.0f} s"
            for name, clips in self._speakers.items()
        }
        source = "none" if options.short else str(options.speech or "embedded voices")
        return {
            "form": "short" if options.short else "full",
            "turns_a_row": self._turns,
            "seed": options.seed,
            "detector": "edge",
            "speech": source,
            "speakers": {**heard},
        }


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that can be held over the same conversations."""
    groups: dict[tuple[Stimuli, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.stimuli, len(row.scenes)), []).append(row)
    return list(groups.values())


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
