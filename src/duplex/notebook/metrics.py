"""What was measured of a recording, a call, or all calls of a run, as one value.

The blocks are those of ``results.json`` and of ``duplex measure --json``; nothing is
recomputed. ``Run``, ``Call`` and ``Measured`` hand it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Self

from duplex.grading import Evidence
from duplex.metrics.measurement import Measurement
from duplex.notebook import markup
from duplex.notebook.extras import need_frames, need_plots
from duplex.report.entries import Entry, entries
from duplex.results import schema
from duplex.values import Json
from duplex.viewer import timeline
from duplex.viewer.reading import clean, members, number, objects, text
from duplex.viewer.rows import timing_rows

if TYPE_CHECKING:
    from pandas import DataFrame

    from duplex.notebook.canvas import Plot

Block = Mapping[str, Json]
HEADLINE = (
    "response_latency",
    "response_rate",
    "time_to_yield",
    "overlap_ratio",
    "awkward_silence",
    "unanswered_turns",
    "turn_taking_score",
)
"""What is shown first."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Metrics:
    """Figures with their units, n, ± and intervals, and why there is none.

    ``of`` names what was measured. ``timing``, ``contract`` and ``words`` are the blocks
    as results have them, empty where nothing was measured; ``unknown`` maps a JSON
    pointer such as ``/timing/time_to_yield`` to the reason why a value is null.
    ``calls`` holds the timing block of each call that was measured, by its id.
    """

    of: str
    timing: Block
    contract: Block
    words: Block
    unknown: Block
    calls: Mapping[str, Block]

    @property
    def latencies(self) -> dict[str, tuple[float, ...]]:
        """Every reply's latency as heard, in ms and signed, by call."""
        return {name: latencies(block) for name, block in self.calls.items()}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every single value, in the order of the blocks."""
        blocks = {"timing": self.timing, "contract": self.contract, "words": self.words}
        return tuple(
            one for name, found in blocks.items() for one in entries(name, found, self.unknown)
        )

    def to_pandas(self) -> DataFrame:
        """Return one row a value: block, metric, statistic, value, unit, n, ±, why it is empty.

        Raises:
            MissingExtra: pandas (extra ``notebook``) is not installed.
        """
        need_frames()
        from duplex.notebook.frames import of_metrics

        return of_metrics(self)

    def turns(self) -> DataFrame:
        """Return one row a turn of either side, by call and time; lengths in ms.

        Raises:
            MissingExtra: pandas (extra ``notebook``) is not installed.
        """
        need_frames()
        from duplex.notebook.frames import of_turns

        return of_turns(self.calls)

    def plot_latency(self) -> Plot:
        """Draw how many replies came within how long, with median, p95 and their intervals.

        Raises:
            MissingExtra: matplotlib (extra ``plot``) is not installed.
        """
        need_plots()
        from duplex.notebook.latency_plot import draw

        return draw(self)

    def __repr__(self) -> str:
        return f"<Metrics of {clean(self.of)}: {clean(self.basis)}>"

    def _repr_html_(self) -> str:
        return markup.block(f"Metrics of {self.of}", self.basis, figures(self))

    @property
    def basis(self) -> str:
        """By which ruler the timing was measured, in words."""
        version, detector = (
            text(self.timing.get("timing_version")),
            text(self.timing.get("detector")),
        )
        if version is None:
            return f"no timing: {self.unknown.get('/timing') or 'nothing was measured'}"
        return f"timing {version}, detector {detector or 'unnamed'}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Measured(Measurement):
    """A recording that was measured by :func:`duplex.measure`, for programs and notebooks."""

    @classmethod
    def of(cls, found: Measurement) -> Self:
        """The same measurement, able to show itself."""
        return cls(**{one.name: getattr(found, one.name) for one in fields(Measurement)})

    @property
    def metrics(self) -> Metrics:
        """Its figures, as those of a call."""
        document = self.as_json()
        block = members(document["timing"])
        return Metrics(
            of=Path(self.file).name,
            timing=block,
            contract=members(document["contract"]),
            words=members(document["words"]),
            unknown=members(document["unknown"]),
            calls={Path(self.file).name: block} if block else {},
        )

    def to_pandas(self) -> DataFrame:
        """Return one row a value; see :meth:`Metrics.to_pandas`."""
        return self.metrics.to_pandas()

    def turns(self) -> DataFrame:
        """Return one row a turn; see :meth:`Metrics.turns`."""
        return self.metrics.turns()

    def plot_timeline(self) -> Plot:
        """Draw both sides over time: voice, overlaps, each reply with its latency.

        Raises:
            MissingExtra: matplotlib (extra ``plot``) is not installed.
        """
        need_plots()
        from duplex.notebook.timeline_plot import draw

        timing = self.metrics.timing
        tracks = timeline.tracks(
            timing, timeline.voices(timing, None), Evidence(), self.duration_ms
        )
        return draw(Path(self.file).name, tracks, self.duration_ms)

    def plot_latency(self) -> Plot:
        """Draw the replies' latencies; see :meth:`Metrics.plot_latency`."""
        return self.metrics.plot_latency()

    def __repr__(self) -> str:
        told = self.health.refusal or self.metrics.basis
        return f"<Measured {clean(Path(self.file).name)}: {clean(told)}>"

    def _repr_html_(self) -> str:
        told = self.health.refusal or f"{self.health.verdict.value}; {self.metrics.basis}"
        return markup.block(Path(self.file).name, told, figures(self.metrics))


def figures(metrics: Metrics) -> str:
    """The figures people look at first as HTML, the others folded away below."""
    timing = metrics.timing
    reasons = {"unknown": timing.get("unknown")}
    asked = {name: timing[name] for name in HEADLINE if name in timing}
    rest = {name: value for name, value in timing.items() if name not in asked}
    return markup.figures(timing_rows(asked | reasons)) + markup.folded(
        "all other figures", markup.figures(timing_rows(rest | reasons))
    )


def of_result(name: str, result: schema.Result) -> Metrics:
    """The figures of one call of a run."""
    timing = members(result.duplex.get("timing"))
    words = members(result.duplex.get("words"))
    audio = members(result.metrics.audio.model_dump(mode="json"))
    return Metrics(
        of=name,
        timing=timing,
        contract=audio,
        words=words,
        unknown=_reasons(result, timing, words),
        calls={name: timing} if timing else {},
    )


def latencies(block: Block) -> tuple[float, ...]:
    """The latencies of a timing block's replies, in ms."""
    found = [number(turn.get("response_latency_ms")) for turn in objects(block.get("turns"))]
    return tuple(value for value in found if value is not None)


def _reasons(result: schema.Result, timing: Block, words: Block) -> dict[str, Json]:
    """Why values are null, by pointers into the blocks of :class:`Metrics`."""
    moved = {"/metrics/audio": "/contract", "/duplex/timing": "/timing", "/duplex/words": "/words"}
    found: dict[str, Json] = {}
    for pointer, why in members(result.duplex.get("unknown")).items():
        for before, after in moved.items():
            if pointer == before or pointer.startswith(f"{before}/"):
                found[after + pointer.removeprefix(before)] = why
    for name, block in (("/timing", timing), ("/words", words)):
        for pointer, why in members(block.get("unknown")).items():
            found[name + pointer] = why
    return found
