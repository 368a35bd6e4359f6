"""The calibration table: what was found per row and metric, as text, JSON and Markdown.

It prints figures and verdicts that others computed; an empty cell is a figure that does not
exist, never a 0. The Markdown is a whole document, so that a table in the docs is written
by the command and by nobody else. The command drives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from duplex.calibration.goals import NOT_WIDER, Verdict, judged
from duplex.calibration.matching import AllFigures, Figures, Metric
from duplex.calibration.rows import Route, Row
from duplex.calibration.virtual_path import Placement
from duplex.counting import counted
from duplex.values import Json

VERSION = "1.0"
POOLED_NEEDS = 500
"""With fewer values a share of 99 % says nothing."""
COLUMNS = ("n", "bias", "p50", "p95", "missed", "false", "± covers", "in call", "± given")
ABOUT = {
    Metric.LATENCY: "end of a caller turn to the assistant's reply, signed, ms",
    Metric.CALLER_TURN: "caller turns found at all",
    Metric.CALLER_END: "end of a caller turn, ms",
    Metric.ASSISTANT_START: "start of an assistant turn, ms",
    Metric.YIELD: "barge-in to the assistant's silence, ms; a wrong verdict is missed or false",
    Metric.OVERLAP: "double talk of one whole call, ms",
    Metric.BACKCHANNEL: "wrong reactions to backchannels: not seen, or seen where there was none",
    Metric.TIC: "wrong reactions to coughs: not seen, or seen where there was none",
    Metric.FIRST_AUDIO: "caller's last sample delivered to first audio, by the server's clock, ms",
    Metric.OWN: "the assistant's own share of heard latency, ms",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """One row; ``failed`` live calls were left out."""

    row: Row
    figures: AllFigures
    placement: Placement
    failed: int = 0

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return judged(self.row.goals, self.figures)

    def as_json(self) -> dict[str, Json]:
        return {
            "path": self.row.route.value,
            "stimuli": self.row.stimuli.value,
            "condition": self.row.name,
            "calls": self.placement.calls,
            "failed_calls": self.failed,
            "metrics": {m.value: figures.as_json() for m, figures in self.figures.items()},
            "goals": [verdict.as_json() for verdict in self.verdicts],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Everything one calibration found; ``basis`` says what it rests on."""

    rows: Sequence[RowResult]
    placement: Placement
    basis: dict[str, Json]

    @property
    def pooled(self) -> Verdict:
        """Whether the ± of the noisy rows together is no wider than it need be."""
        together = Figures()
        for result in self.rows:
            if result.row.noisy:
                together.join(result.figures[Metric.LATENCY])
        if together.printed < POOLED_NEEDS:
            together = Figures()
        return judged((NOT_WIDER,), {Metric.LATENCY: together})[0]

    @property
    def missed(self) -> list[tuple[str, Verdict]]:
        """Goals that were not met, by row."""
        every = [(r.row.key, verdict) for r in self.rows for verdict in r.verdicts]
        every.append(("all noisy rows", self.pooled))
        return [(key, verdict) for key, verdict in every if verdict.met is False]

    @property
    def in_place(self) -> bool:
        """Whether virtual calls, if any were held, had every sample where it was planted."""
        placement = self.placement
        return not placement.calls or (placement.exact and placement.edges_agree)

    @property
    def regressed(self) -> bool:
        """Whether a goal is missed by more than is known and agreed, or audio was misplaced."""
        return not self.in_place or any(verdict.regressed for _, verdict in self.missed)

    def as_json(self) -> dict[str, Json]:
        placement = self.placement
        return {
            "calibration_version": VERSION,
            "basis": dict(self.basis),
            "rows": [result.as_json() for result in self.rows],
            "noisy_rows_pooled": self.pooled.as_json(),
            "placement": {
                "calls": placement.calls,
                "samples": placement.samples,
                "moved": placement.moved,
                "edges": placement.edges,
                "apart_samples": placement.apart,
                "exact": placement.exact,
                "edges_agree": placement.edges_agree,
            },
            "goals_missed": len(self.missed),
            "regressed": self.regressed,
        }


def as_text(table: Table) -> str:
    """One block a metric, one line a row, then placement and the verdict."""
    lines: list[str] = []
    width = max(len(result.row.key) for result in table.rows)
    for metric in _metrics(table):
        lines.append(f"{metric.value}: {ABOUT[metric]}")
        lines.append(" ".join([" " * width, *(f"{name:>8}" for name in COLUMNS), " goal"]))
        for result in _with(table, metric):
            cells = " ".join(f"{cell:>8}" for cell in _cells(result.figures[metric]))
            verdict = _verdicts(result, metric)
            lines.append(f"{result.row.key:<{width}} {cells}  {verdict}".rstrip())
        lines.append("")
    return "\n".join([*lines, *_closing(table)])


def as_markdown(table: Table) -> str:
    """The table as a document."""
    parts = [_HEAD, *_basis_lines(table), ""]
    for metric in _metrics(table):
        parts += [f"## `{metric.value}`", "", f"{ABOUT[metric].capitalize()}.", ""]
        parts.append("| " + " | ".join(("row", *COLUMNS, "goal")) + " |")
        parts.append("|---|" + "--:|" * len(COLUMNS) + "---|")
        for result in _with(table, metric):
            cells = " | ".join(_cells(result.figures[metric]))
            verdict = _verdicts(result, metric).replace("|", "\\|")
            parts.append(f"| {result.row.key} | {cells} | {verdict} |")
        parts.append("")
    return "\n".join([*parts, "## Verdict", "", *(f"- {line}" for line in _closing(table)), ""])


def _metrics(table: Table) -> list[Metric]:
    return [m for m in Metric if any(m in result.figures for result in table.rows)]


def _with(table: Table, metric: Metric) -> Iterable[RowResult]:
    return (r for r in table.rows if metric in r.figures and r.figures[metric].n)


def _cells(figures: Figures) -> list[str]:
    shares = (figures.covered, figures.covered_in_call)
    return [
        str(figures.n),
        *(
            _number(value, signed)
            for value, signed in (
                (figures.bias_ms, True),
                (figures.p50_ms, False),
                (figures.p95_ms, False),
            )
        ),
        str(figures.missed),
        str(figures.false_alarms),
        *("" if share is None else f"{100 * share:.1f} %" for share in shares),
        str(figures.printed) if figures.printed else "",
    ]


def _number(value: float | None, signed: bool) -> str:
    if value is None:
        return ""
    return f"{value:+.1f}" if signed else f"{value:.1f}"


def _verdicts(result: RowResult, metric: Metric) -> str:
    mine = [verdict for verdict in result.verdicts if verdict.goal.metric is metric]
    missed = [str(v.goal) for v in mine if v.met is False]
    if missed:
        return "missed: " + ", ".join(missed)
    if any(v.met is None for v in mine):
        return "not measured"
    return "met" if mine else "no goal"


def _closing(table: Table) -> list[str]:
    placement, pooled = table.placement, table.pooled
    lines = []
    if placement.samples:
        where = "every one where it was planted" if placement.exact else "MOVED OR LOST"
        lines.append(
            f"placement in virtual time: {counted(placement.calls, 'call')}, "
            f"{placement.samples} samples compared, {placement.moved} not in place: {where}"
        )
        apart = "not one to one" if placement.apart is None else f"{placement.apart} samples"
        lines.append(
            f"edges alone and in the call: {placement.edges} compared, at most {apart} apart "
            f"(60 allowed)"
        )
    if pooled.value is not None:
        lines.append(
            f"the ± of all noisy rows together covers {100 * pooled.value:.1f} % "
            f"(at most {100 * NOT_WIDER.limit:g}): {'met' if pooled.met else 'missed'}"
        )
    lines += [_live_line(result) for result in table.rows if result.row.route is Route.LIVE]
    missed = table.missed
    lines.append(f"goals missed: {len(missed)}" if missed else "every goal is met")
    lines += [f"missed by {key}: {_found(verdict)}" for key, verdict in missed]
    return lines


def _live_line(result: RowResult) -> str:
    placement = result.placement
    return (
        f"{result.row.key}: {placement.calls} calls, {result.failed} more were held badly by this "
        f"machine and left out; {placement.samples} samples of both directions compared, "
        f"{placement.moved} not found"
    )


def _found(verdict: Verdict) -> str:
    assert verdict.value is not None
    value = verdict.value * 100 if verdict.goal.figure == "covered" else verdict.value
    return f"{verdict.goal.metric} {verdict.goal}, is {value:.1f}"


def _basis_lines(table: Table) -> list[str]:
    return [f"- {name.replace('_', ' ')}: {_plain(value)}" for name, value in table.basis.items()]


def _plain(value: Json) -> str:
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} ({_plain(item)})" for name, item in value.items())
    return str(value)


_HEAD = """# The error of the ruler

Written by `duplex calibrate --markdown FILE`, never by hand; a folder of clips is given with
`--speech`. Real people speak in Debian's packages `asterisk-core-sounds-en-wav`, `-fr-wav`,
`-it-wav` and `-ru-wav` (CC BY-SA 3.0; 8 kHz, in `/usr/share/asterisk/sounds`); no recording of
anybody is part of duplex. What a row does, and its goals, is in `duplex.calibration.rows`.

Every call goes through everything: participants, engine, recording, timing block. **virtual**
is lock-step, **playout hold** has the assistant's audio come in jittering 100 ms deltas, **live**
is the wall clock and a WebSocket to a server that answers after a set delay. **sharp** is a
synthetic voice cut off within a sample; **speech** is clips cut at the first and last 5 ms above
-45 dBFS and levelled afterwards; **uncut** leaves their soft ends on, which have no one end;
noise is on the caller's channel unless said otherwise.

Errors are measured minus true. **bias** is their mean, **p50** and **p95** are of their size,
**missed** and **false** count turns, verdicts or values without a partner. **± covers** is how
often the ± of the edges held the truth (what `measure` prints for a recording), **in call** the
same with the 20 ms tick a call adds, **± given** how many had one: an edge that noise hides too
well is printed as unreliable, without a ±.
"""
