"""Both legs of a call: the lines a condition puts on them, and what they tell tick by tick.

It builds each line once, hands the engine both, and after a tick says what is to be
kept and what happened: sounds it added, and how far a line holds its speaker back.
It never touches audio. The call loop drives it.
"""

from __future__ import annotations

from dataclasses import dataclass

from duplex.conditions import CLEAN, Condition, PacketLoss
from duplex.line import Label, Line, build_line, labels
from duplex.recording import LegStems, LegTick
from duplex.values import Happening, Json, Side

SOUND_KINDS = {"tics": "tic", "side_speech": "side_speech", "bursts": "burst"}
"""How events call what a line adds as single sounds."""
CUT = "cut"
"""What is left of a sound that gave way to its speaker at once: nobody's opportunity."""
_SHORTEST_MS = 60
_TOLD_MS = 1
"""A change of delay smaller than this is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePlan:
    """A condition for one call; ``live`` says which speakers could not be levelled before."""

    condition: Condition = CLEAN
    seed: int = 7
    live: tuple[bool, bool] = (False, False)


def stems_of(condition: Condition) -> tuple[LegStems | None, LegStems | None]:
    """What a recorder keeps of both legs; raises nothing, a clean leg is None."""
    uplink, downlink = (
        None
        if not effects
        else LegStems(
            packet_ms=next((e.packet_ms for e in effects if isinstance(e, PacketLoss)), None)
        )
        for effects in (condition.uplink, condition.downlink)
    )
    return uplink, downlink


def kind_of(label: Label, rate_hz: int) -> str:
    """How events call a sound; what is too short to be heard as one is ``cut``."""
    long_enough = (label.end - label.start) * 1000 >= _SHORTEST_MS * rate_hz
    return SOUND_KINDS[label.effect] if long_enough else CUT


class Legs:
    """The lines of one call. Raises InputError when one cannot be had at this rate."""

    def __init__(self, plan: LinePlan, rate_hz: int) -> None:
        self._effects = (plan.condition.uplink, plan.condition.downlink)
        self._rate_hz = rate_hz
        self._told = [0, 0]
        self.lines: tuple[Line | None, Line | None] = (
            self._line(plan, Side.CALLER),
            self._line(plan, Side.ASSISTANT),
        )

    @property
    def clean(self) -> bool:
        return self.lines == (None, None)

    def tick(self) -> tuple[LegTick | None, LegTick | None]:
        """What both lines did in the tick that was advanced last."""
        uplink, downlink = (
            None if line is None else LegTick(noise=line.noise(), lost=line.mask())
            for line in self.lines
        )
        return uplink, downlink

    def happened(self, side: Side) -> list[Happening]:
        """What the line of ``side``'s speech has to tell since it was asked last."""
        line = self.lines[side]
        if line is None:
            return []
        told = self._delay(side, line)
        for label in labels(line, self._effects[side]):
            fields: dict[str, Json] = {
                "kind": kind_of(label, self._rate_hz),
                "name": label.kind,
                "start": label.start,
                "end": label.end,
            }
            told.append(Happening(type="sound", fields=fields))
        return told

    def _line(self, plan: LinePlan, side: Side) -> Line | None:
        return build_line(
            self._effects[side],
            rate_hz=self._rate_hz,
            seed=plan.seed,
            leg=int(side),
            live=plan.live[side],
        )

    def _delay(self, side: Side, line: Line) -> list[Happening]:
        """How many samples ago what comes out now was said, when that has changed."""
        accepted, played, discarded, *_ = line.network_totals()
        delay = line.delay
        if accepted or played:
            delay += line.position - played - discarded
        if abs(delay - self._told[side]) * 1000 < _TOLD_MS * self._rate_hz:
            return []
        self._told[side] = delay
        return [Happening(type="line.delay", fields={"samples": delay})]
