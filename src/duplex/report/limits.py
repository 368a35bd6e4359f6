"""The limits of the timing policy against what was found: check, limit, measured, n, ±.

Reads a timing block as it stands in results, so a run, a recording and an old
file are told alike. Nothing is met that was not measured; why it was not is
said. Pure formatting; the table, Markdown and the viewer drive it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from duplex.report.figures import duration, spread
from duplex.values import Json

UNMEASURED = "not measured"
HEADINGS = ("check", "limit", "measured", "n", "±", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """One limit of the timing policy and what was found; ``met`` is None if unmeasured."""

    name: str
    limit: str
    measured: str
    n: int | None
    plus_minus: str
    met: bool | None
    why: str = ""

    def cells(self) -> tuple[str, ...]:
        """The row under HEADINGS; what was not measured says why in the place of its mark."""
        mark = {True: "met", False: "not met", None: self.why}[self.met]
        n = "" if self.n is None else str(self.n)
        return self.name, self.limit, self.measured, n, self.plus_minus, mark


def limits(timing: Mapping[str, Json], why: str = "") -> list[CheckRow]:
    """Every limit of a timing block; ``why`` says why nothing in it can be trusted, if so."""
    block = _Block(timing)
    turns = block.whole("ledger", "attempted")
    return [
        _within(
            "answered",
            f"all within {duration(block.policy('response_deadline_ms'))}",
            block.counts("response_rate"),
            why or "no caller turn",
            spread(block.width("response_latency")),
            known=not why,
        ),
        _within(
            "yielded to barge-ins",
            f"all within {duration(block.policy('yield_window_ms'))}",
            block.counts("yield_rate"),
            why or "no barge-in",
            spread(block.width("time_to_yield")),
            known=not why,
        ),
        _none(
            "cut in on the caller", block.whole("eot_misprediction"), turns, why, "no caller turn"
        ),
        _none(
            "stopped for a backchannel, a sound or its echo",
            block.whole("false_yield", "numerator"),
            block.whole("false_yield", "denominator"),
            why,
            "no backchannel, sound or echo while the assistant spoke",
        ),
        _none(
            f"silences of {duration(block.policy('awkward_silence_ms'))} while a reply was owed",
            block.whole("awkward_silence", "count"),
            turns,
            why,
            "no caller turn",
        ),
    ]


class _Block:
    """A timing block read with care: what is not a number in it is not known."""

    def __init__(self, timing: Mapping[str, Json]) -> None:
        self._timing = timing

    def _at(self, *names: str) -> Json:
        value: Json = dict(self._timing)
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def whole(self, *names: str) -> int | None:
        value = self._at(*names)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def counts(self, name: str) -> tuple[int | None, int | None]:
        return self.whole(name, "numerator"), self.whole(name, "denominator")

    def width(self, name: str) -> float | None:
        value = self._at(name, "plus_minus_ms")
        return float(value) if isinstance(value, int | float) else None

    def policy(self, name: str) -> int:
        return self.whole("policy", name) or 0


def _within(
    name: str,
    limit: str,
    counts: tuple[int | None, int | None],
    why: str,
    plus_minus: str,
    *,
    known: bool,
) -> CheckRow:
    part, of = counts
    if not known or part is None or not of:
        return _unmeasured(name, limit, why)
    return CheckRow(
        name=name,
        limit=limit,
        measured=f"{part} of {of}",
        n=of,
        plus_minus=plus_minus,
        met=part == of,
    )


def _none(name: str, count: int | None, n: int | None, why: str, none: str) -> CheckRow:
    if why or count is None or not n:
        return _unmeasured(name, "none", why or none)
    return CheckRow(
        name=name, limit="none", measured=str(count), n=n, plus_minus="", met=count == 0
    )


def _unmeasured(name: str, limit: str, why: str) -> CheckRow:
    return CheckRow(
        name=name, limit=limit, measured=UNMEASURED, n=None, plus_minus="", met=None, why=why
    )
