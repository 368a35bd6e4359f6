"""What a sound card did to a call with a person, in lines for people; nothing for other calls.

It formats what ``duplex.card`` of a result says and computes no number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from duplex.results import schema
from duplex.results.stored import member
from duplex.values import Json

_LOST = ("overruns", "underruns", "recoveries", "gaps")


def card_lines(run: schema.Run) -> tuple[str, ...]:
    """One line on delays and one on what was lost and heard back, a call."""
    cards = [member(result.duplex, "card") for result in run.results]
    return tuple(line for card in cards if card for line in _lines(card))


def _lines(card: Mapping[str, Json]) -> Iterator[str]:
    delay, trip = member(card, "delay"), member(card, "round_trip_ms")
    how = "measured by clicks" if delay.get("source") == "loopback" else "as its drivers say"
    line = f"card: {_ms(delay.get('ms'), delay.get('plus_minus_ms'))} out to in, {how}"
    if trip:
        line += f"; {_ms(trip.get('ms'), trip.get('plus_minus_ms'))} from the assistant to you"
    waited, reaction = member(card, "heard_latency"), member(card, "reaction")
    if waited.get("n"):
        line += f"; you waited {_ms(waited.get('p50'), waited.get('plus_minus_ms'))} (median)"
    if reaction.get("n"):
        line += f", answered after {_ms(reaction.get('p50'), reaction.get('plus_minus_ms'))}"
    yield line
    told = [f"{card.get(name)} {name}" for name in _LOST if card.get(name)]
    gap, echo = card.get("gap_ms"), member(card, "echo")
    lost = f"{', '.join(told)} ({gap} ms not played)" if told else "nothing lost"
    heard = "no echo"
    if echo:
        level, late = echo.get("level_db"), echo.get("delay_ms")
        reached = "reached the call" if echo.get("reached_call") else "kept out"
        heard = f"echo at {_number(level)} dB, {_number(late)} ms later, {reached}"
    yield f"card: {lost}; {heard}"


def _ms(value: Json, plus_minus: Json) -> str:
    return f"{_number(value)} ± {_number(plus_minus)} ms"


def _number(value: Json) -> str:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return "unknown" if not known else f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"  # type: ignore[arg-type]
