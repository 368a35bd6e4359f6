"""What a model costs: the noted table, and what somebody says on the command line.

The table is data with a date (``data/prices.json``) and speaks of one provider's own
host; a price it does not have is unknown and never guessed. Prices are US dollars, by the
minute of a session or by the million tokens. It reads nothing but the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from duplex.errors import InputError
from duplex.values import Json

WANTED = "want MODEL=USD/min or MODEL=INPUT,OUTPUT[,CACHED]/1M, in US dollars"
_SPELLED = re.compile(r"([^=\s]{1,200})=([0-9.,]+)/(min|1M)")
_NUMBER = re.compile(r"[0-9]{1,7}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars: ``per_minute`` of a session, or per million (input, output, cached) tokens."""

    per_minute: float | None = None
    per_million: tuple[float, float, float] | None = None
    source: str = "option"

    def of_minutes(self, minutes: float) -> float | None:
        return None if self.per_minute is None else self.per_minute * minutes

    def of_tokens(self, inputs: int, outputs: int, cached: int) -> float | None:
        """Cached tokens are a part of the input, as providers count."""
        if self.per_million is None:
            return None
        fresh, out, kept = self.per_million
        cached = min(cached, inputs)
        return ((inputs - cached) * fresh + outputs * out + cached * kept) / 1e6

    def __str__(self) -> str:
        if self.per_minute is not None:
            return f"${self.per_minute:g}/min"
        assert self.per_million is not None
        return "/".join(f"${one:g}" for one in self.per_million[:2]) + " a million tokens in/out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of a run; what was said for it goes before what is noted."""

    said: Mapping[str, Price]

    def of(self, model: str, host: str) -> Price | None:
        """The price of a model at a host; None where nobody knows it."""
        found = self.said.get(model)
        if found is not None:
            return found
        table = noted()
        per_minute = table["per_minute"]
        assert isinstance(per_minute, dict)
        value = per_minute.get(model) if host == table["host"] else None
        if not isinstance(value, int | float):
            return None
        return Price(per_minute=float(value), source=f"noted {table['noted']}")


def parse(spelled: Iterable[str]) -> Prices:
    """Read ``--price`` options; raise InputError for one that cannot be read."""
    said: dict[str, Price] = {}
    for text in spelled:
        found = _SPELLED.fullmatch(text)
        numbers = found[2].split(",") if found else []
        good = all(_NUMBER.fullmatch(one) for one in numbers)
        if found is None or not good or len(numbers) not in _COUNTS[found[3]]:
            raise InputError(f"price {text[:80]!r} cannot be read; {WANTED}")
        if found[1] in said:
            raise InputError(f"price of {found[1]} is given twice")
        values = [float(one) for one in numbers]
        if found[3] == "min":
            said[found[1]] = Price(per_minute=values[0])
        else:
            cached = values[2] if len(values) == 3 else values[0]
            said[found[1]] = Price(per_million=(values[0], values[1], cached))
    return Prices(said=said)


_COUNTS = {"min": (1,), "1M": (2, 3)}


@cache
def noted() -> dict[str, Json]:
    """The table as it is shipped."""
    path = resources.files("duplex") / "data" / "prices.json"
    found: Json = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found
