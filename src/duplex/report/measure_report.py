"""A measurement for people: one sentence, checks, a ledger, what it rests on.

Pure formatting: every figure stands in the measurement or in its blocks. What
was not measured is shown as "not measured" with its reason, never as 0, and
never in green. ``measuring.py`` drives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from duplex.counting import counted, times
from duplex.intake.health import Verdict, makes_other_sound
from duplex.metrics.measurement import Measurement
from duplex.metrics.stats import P95_NEEDS, P99_NEEDS, Distribution
from duplex.metrics.timing import TimingBlock
from duplex.report import words_report
from duplex.report.figures import duration, percent, spread
from duplex.report.limits import HEADINGS as CHECKS
from duplex.report.limits import UNMEASURED, CheckRow, limits
from duplex.screen import plain
from duplex.values import Side

TIMES = ("time", "p50", "p95", "p99", "range", "mean", "95 % of it", "n", "±")
_VERDICT_STYLE = {Verdict.GOOD: "green", Verdict.USABLE: "yellow", Verdict.REFUSED: "red"}


def sentence(found: Measurement) -> str:
    """The recording in one sentence, made from its numbers."""
    block = found.timing
    if block is None:
        return f"Not measured: {found.health.refusal}."
    parts = [*_answers(found, block), *_cut_ins(found, block), *_yields(block)]
    if not parts:
        return "Nobody took a turn."
    if len(parts) > 1:
        parts = [", ".join(parts[:-1]), parts[-1]]
    text = " and ".join(parts)
    return f"The assistant {text}."


def _answers(found: Measurement, block: TimingBlock) -> Iterator[str]:
    rate, latency = block.response_rate, block.response_latency
    limit = duration(block.policy.response_deadline_ms)
    if one_sided(found) is Side.ASSISTANT:
        heard = "made sound that is no speech" if _sounds(found) else "was not heard"
        yield f"{heard}, so nothing can be said of its answers"
    elif rate.denominator:
        turns = counted(rate.denominator, "caller turn")
        text = f"answered {rate.numerator} of {turns} within {limit}"
        if latency.p50 is not None:
            text += f", {_typically(latency)}"
            late = block.ledger.late
            text += f", {counted(late, 'late reply', 'late replies')} included" if late else ""
        yield text
    elif latency.p50 is not None:
        yield f"answered {_typically(latency)}"


def _typically(latency: Distribution) -> str:
    assert latency.p50 is not None
    width = "" if latency.plus_minus is None else f" ± {duration(latency.plus_minus)}"
    if latency.n == 1:
        return f"after {duration(latency.p50)}{width} (n = 1)"
    text = f"typically after {duration(latency.p50)}{width}"
    if latency.p95 is not None and latency.n >= P95_NEEDS:
        text += f" (p95 {duration(latency.p95)})"
    return text


def _cut_ins(found: Measurement, block: TimingBlock) -> Iterator[str]:
    if one_sided(found) is None and block.talk.turns[Side.CALLER]:
        count = block.responses.mispredictions
        yield f"cut in on the caller {times(count)}" if count else "never cut in"


def _yields(block: TimingBlock) -> Iterator[str]:
    rate = block.yield_rate
    if rate.denominator:
        yield f"yielded to {rate.numerator} of {counted(rate.denominator, 'barge-in')}"


def one_sided(found: Measurement) -> Side | None:
    """The side that may be missing in a recording: no speech of its own was found.

    In a call of ours nothing can be missing: who was not heard was silent.
    """
    if found.basis.tools_known:
        return None
    silent = [side for side in Side if not found.health.sides[side].own_segments]
    return silent[0] if silent else None


def _sounds(found: Measurement) -> bool:
    """Whether the assistant is heard, and nothing of it as speech."""
    return makes_other_sound(found.health.sides[Side.ASSISTANT])


def checks(found: Measurement) -> list[CheckRow]:
    """The limits of the policy; nothing is met that was not measured."""
    if found.timing is None:
        return []
    missing = one_sided(found)
    why = "" if missing is None else f"no speech of the {missing.label} was found"
    if missing is not None and makes_other_sound(found.health.sides[missing]):
        why += ", only other sound"
    return limits(found.timing.as_json(), why)


def ledger(found: Measurement) -> list[tuple[str, str]]:
    """What became of the caller's turns, in words and counts."""
    if found.timing is None:
        return []
    counts = found.timing.ledger
    missed = str(counts.late + counts.unanswered)
    if one_sided(found) is Side.ASSISTANT:
        recorded = "if the assistant's channel was recorded at all"
        doubt = "unless its sound, which is no speech, answers" if _sounds(found) else recorded
        missed += _note(counts.attempted, doubt)
    elif counts.late:
        missed += f" ({counts.late} of them answered too late)"
    return [
        ("attempted", str(counts.attempted)),
        ("answered", str(counts.answered)),
        ("missed", missed),
        ("censored", f"{counts.censored}{_note(counts.censored, 'the recording ended first')}"),
        ("excluded", f"{counts.excluded}{_note(counts.excluded, 'the caller only closed')}"),
        ("unmeasurable", f"{found.unmeasurable}{_note(found.unmeasurable, 'no sure latency')}"),
    ]


def basis(found: Measurement) -> list[tuple[str, str]]:
    """What the numbers rest on."""
    rests = found.basis
    heard = f"{rests.detector}, heard at {rests.rate_hz} Hz"
    if rests.witness is not None:
        shares = [share for share in rests.agreement if share is not None]
        heard += f"; {rests.witness} agrees in {percent(min(shares))} of the time" if shares else ""
    unsure = found.timing is not None and found.timing.response_latency.plus_minus is None
    return [
        ("clock", rests.clock),
        ("origin", rests.origin),
        ("detector", heard),
        ("error of an edge", "not stated by this detector" if unsure else "per value, as ±"),
        ("channels", rests.channels),
        ("caller's audio", rests.caller_audio),
        ("labels", rests.labels or "none: backchannels are inferred"),
        ("tools", "from the events" if rests.tools_known else "unknown to a recording"),
    ]


def as_text(found: Measurement) -> RenderableType:
    """All of it, to be printed on a console of any width."""
    parts: list[RenderableType] = [
        Text(f"{plain(found.file)}  {found.duration_ms / 1000:.1f} s", style="bold"),
        Text(sentence(found)),
        _health(found),
    ]
    if found.timing is not None:
        parts += [
            Text(""),
            _checks_table(checks(found)),
            Text(""),
            *_latencies(found.timing),
            Text(""),
            _pairs("ledger", ledger(found)),
            *([] if found.words is None else [Text(""), *words_report.as_text(found.words)]),
            Text(""),
        ]
    return Group(*parts, _pairs("basis", basis(found)))


def _health(found: Measurement) -> Text:
    health = found.health
    text = Text("input ")
    text.append(health.verdict.value, style=_VERDICT_STYLE[health.verdict])
    said = [reason.text for reason in health.reasons] + list(health.notes)
    text.append("".join(f"\n  - {plain(line)}" for line in said))
    return text


def _checks_table(rows: Sequence[CheckRow]) -> Table:
    table = _table(*CHECKS)
    for row in rows:
        style = {True: "green", False: "red", None: "dim"}[row.met]
        *told, mark = row.cells()
        table.add_row(*told, Text(mark, style=style))
    return table


def times_measured(block: TimingBlock) -> tuple[list[tuple[str, ...]], list[str]]:
    """The times that were measured as rows of TIMES, and why the others were not."""
    named = (
        ("heard reply latency", block.response_latency),
        ("time to yield", block.time_to_yield),
        ("relay's share of it", block.relay.total),
    )
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    few = False
    for name, found in named:
        if found.p50 is None or found.mean is None or found.min is None or found.max is None:
            notes.append(f"{name}: {UNMEASURED}, {found.reason}")
            continue
        few |= found.n < P99_NEEDS
        row = (
            name,
            duration(found.p50),
            _percentile(found.p95, found.n < P95_NEEDS),
            _percentile(found.p99, found.n < P99_NEEDS),
            f"{duration(found.min)} … {duration(found.max)}",
            duration(found.mean),
            "" if found.ci95 is None else " … ".join(duration(value) for value in found.ci95),
            str(found.n),
            spread(found.plus_minus),
        )
        rows.append(row)
    if few:
        notes.insert(0, f"* fewer than {P95_NEEDS} (p95) or {P99_NEEDS} (p99) values")
    return rows, notes


def _latencies(block: TimingBlock) -> Iterator[RenderableType]:
    rows, notes = times_measured(block)
    if rows:
        table = _table(*TIMES)
        for row in rows:
            table.add_row(*row)
        yield table
    for note in notes:
        yield Text(note, style="dim")


def _percentile(value: float | None, few: bool) -> str:
    return "" if value is None else f"{duration(value)}{'*' if few else ''}"


def _pairs(title: str, rows: Sequence[tuple[str, str]]) -> Table:
    table = _table(title, "")
    for name, value in rows:
        table.add_row(name, Text(plain(value)))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _note(count: int, text: str) -> str:
    return f" ({text})" if count else ""
