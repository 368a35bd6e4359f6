"""What a run may cost and has cost, from its options and what its sessions reported.

An estimate is a ceiling: every call as long as it may be. Tokens cannot be told before
they are used; what has no price is unknown, with the reason, and never a guess. With a
limit, a run whose estimate is above it is refused, and no call begins once what was
measured has reached it. Only what leaves this machine costs. The runner drives it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from duplex import prices
from duplex.errors import InputError
from duplex.models.meter import Meter, Used
from duplex.models.place import LOOPBACK, OPENAI_URL
from duplex.options import LOCAL_ENDPOINT, RunOptions
from duplex.prices import Price
from duplex.recording import Recording
from duplex.values import Event, Json, Side

_SESSIONS = ("gpt-live", "realtime")
_UNSUMMED = "what other processes use of a model is not summed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One model of a run that costs: who uses it, where it is, what is known of its price."""

    who: str
    model: str
    host: str
    side: Side | None = None
    """The side whose session it is; None for a model that is asked."""
    managed: bool = False
    """Whether it works for that side, so that the call's events have its tokens."""
    price: Price | None = None

    @property
    def session(self) -> bool:
        return self.side is not None and not self.managed

    def __str__(self) -> str:
        return f"{self.who} {self.model} at {self.host}"


@dataclass(slots=True)
class _Spent:
    """What one part has used so far."""

    seconds: float = 0.0
    unconfirmed: int = 0
    tokens: Used | None = None


class Spending:
    """The cost of one run."""

    def __init__(self, options: RunOptions, calls: int, meter: Meter) -> None:
        table = prices.parse(options.price)
        self.limit = options.max_cost_usd
        self.parts = tuple(_priced(part, table) for part in parts(options))
        self._calls = calls
        self._attempts = options.silent_retries + 1
        self._workers = options.workers
        self._minutes = options.max_duration_seconds / 60
        self._meter = meter
        self._spent = {part: _Spent() for part in self.parts}
        self._held = 0

    # -- before the first call ----------------------------------------------

    @property
    def estimated(self) -> float | None:
        """A ceiling in US dollars; None when a part of it is unknown."""
        return _sum([self._ceiling(part) for part in self.parts])

    def refuse(self) -> None:
        """Raise InputError when the run may not begin under its limit."""
        if self.limit is None or not self.parts:
            return
        for part in self.parts:
            if part.price is None:
                raise InputError(
                    f"max-cost-usd: nobody knows what {part} costs; give --price "
                    f"{part.model}=USD/min, or {part.model}=INPUT,OUTPUT/1M"
                )
        least = sum(self._ceiling(part) or 0.0 for part in self.parts)
        if round(least, 9) > self.limit:
            raise InputError(
                f"max-cost-usd {self.limit:g}: the run may cost ${least:.2f}, {self._counted()}; "
                "want fewer or shorter calls, or a higher limit"
            )

    def lines(self) -> Iterator[str]:
        """Say what the run may cost; nothing for one that costs nothing."""
        if not self.parts:
            return
        known = sum(self._ceiling(part) or 0.0 for part in self.parts)
        limit = "" if self.limit is None else f", limit ${self.limit:.2f}"
        yield f"cost: at most ${known:.2f} for what can be told beforehand{limit}"
        for part in self.parts:
            ceiling = self._ceiling(part)
            if ceiling is not None:
                yield f"  {part}: {self._counted()} at {part.price}, ${ceiling:.2f}"
            else:
                yield f"  {part}: {_why(part)}"

    def _counted(self) -> str:
        calls = f"{self._calls} call{'s' * (self._calls != 1)}"
        times = f", each up to {self._attempts} times," if self._attempts > 1 else ""
        return f"{calls}{times} of at most {self._minutes:g} min"

    def _ceiling(self, part: Part) -> float | None:
        if part.price is None:
            return None
        return part.price.of_minutes(self._calls * self._attempts * self._minutes)

    def _unsummed(self, part: Part) -> bool:
        """Whether other processes ask a model whose tokens no call's events have."""
        return self._workers > 1 and part.side is None and not _by_minute(part)

    # -- while calls are held -----------------------------------------------

    def held(self, recording: Recording) -> None:
        """Count what a call's sessions reported."""
        self._held += 1
        for part in self.parts:
            spent = self._spent[part]
            if part.side is None:
                spent.seconds += recording.duration / recording.rate_hz
            elif part.session:
                self._count_session(part.side, recording, spent)
            if part.side is not None and (part.managed or not _by_minute(part)):
                spent.tokens = _tokens(recording.events, part.side, spent.tokens)

    def _count_session(self, side: Side, recording: Recording, spent: _Spent) -> None:
        told = recording.session(side)
        if told.session_id is None and told.seconds is None:
            return
        lasted = math.ceil(recording.duration / recording.rate_hz)
        spent.unconfirmed += not told.final
        spent.seconds += max(told.seconds or 0.0, 0.0 if told.final else lasted)

    @property
    def exhausted(self) -> bool:
        """Whether what was measured has reached the limit."""
        return self.limit is not None and bool(self.parts) and round(self.measured, 9) >= self.limit

    @property
    def measured(self) -> float:
        """US dollars that were measured, parts that nobody could measure left out."""
        return sum(self._used(part)[0] or 0.0 for part in self.parts)

    @property
    def why_stopped(self) -> str:
        return f"the run has used ${self.measured:.4f}, which reaches its limit of ${self.limit:g}"

    def _used(self, part: Part) -> tuple[float | None, str | None]:
        """Dollars a part has used, and why they are unknown."""
        price, spent = part.price, self._spent[part]
        if price is None:
            return None, _why(part)
        if price.per_minute is not None:
            return price.of_minutes(spent.seconds / 60), None
        if self._unsummed(part):
            return None, _UNSUMMED
        tokens = spent.tokens
        if part.side is None:
            tokens = self._meter.used.get((part.host, part.model))
        if tokens is None:
            return (0.0, None) if not self._held else (None, "no tokens were reported")
        if tokens.uncounted:
            return None, f"{tokens.uncounted} of {tokens.answers} answers told no tokens"
        cost = price.of_tokens(tokens.input_tokens, tokens.output_tokens, tokens.cached_tokens)
        return cost, None

    # -- what a run says of it ----------------------------------------------

    def as_json(self) -> dict[str, Json]:
        """``run.duplex.cost``."""
        estimated = [self._ceiling(part) for part in self.parts]
        used = [self._used(part) for part in self.parts]
        table = prices.noted()
        return {
            "currency": "USD",
            "limit_usd": self.limit,
            "prices_noted": table["noted"],
            "estimated_usd": _rounded(_sum(estimated)),
            "used_usd": _rounded(_sum([cost for cost, _ in used])),
            "measured_usd": _rounded(self.measured),
            "parts": [
                self._part_json(part, ceiling, cost, why)
                for part, ceiling, (cost, why) in zip(self.parts, estimated, used, strict=True)
            ],
        }

    def _part_json(
        self, part: Part, ceiling: float | None, cost: float | None, why: str | None
    ) -> dict[str, Json]:
        spent = self._spent[part]
        tokens = spent.tokens
        if part.side is None:
            tokens = self._meter.used.get((part.host, part.model))
        counted: Json = None
        if tokens is not None:
            counted = {
                "input": tokens.input_tokens,
                "cached": tokens.cached_tokens,
                "output": tokens.output_tokens,
            }
        unknown: dict[str, Json] = {}
        if ceiling is None:
            unknown["estimated_usd"] = _why(part)
        if cost is None:
            unknown["used_usd"] = why or "nothing was measured"
        return {
            "who": part.who,
            "model": part.model,
            "host": part.host,
            "price": None if part.price is None else str(part.price),
            "price_source": None if part.price is None else part.price.source,
            "estimated_usd": _rounded(ceiling),
            "used_usd": _rounded(cost),
            "seconds": round(spent.seconds, 3) if part.session else None,
            "unconfirmed_sessions": spent.unconfirmed if part.session else None,
            "tokens": counted,
            "unknown": unknown,
        }


def parts(options: RunOptions) -> Iterator[Part]:
    """Every model of a run that is asked over a network and not on this machine."""
    for part in (*_sessions(options), *_models(options)):
        if part.host.rpartition(":")[0].strip("[]") not in LOOPBACK and part.host not in LOOPBACK:
            yield part


def _sessions(options: RunOptions) -> Iterator[Part]:
    base = options.endpoint or os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL
    host = _host(base)
    ends = (
        (Side.CALLER, options.caller, options.caller_model),
        (Side.ASSISTANT, options.agent.kind, options.assistant_model),
    )
    for side, kind, model in ends:
        if kind not in _SESSIONS or (kind == "realtime" and options.endpoint == LOCAL_ENDPOINT):
            continue
        yield Part(who=f"{side.label} session", model=model, host=host, side=side)
        backend = options.simulator_backend_model
        if side is Side.ASSISTANT:
            responses = kind == "gpt-live" and options.delegation == "responses"
            backend = options.backend_model if responses else None
        if backend is not None:
            who = f"{side.label} backend"
            yield Part(who=who, model=backend, host=host, side=side, managed=True)


def _models(options: RunOptions) -> Iterator[Part]:
    own = os.environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL
    local_backend = options.agent.kind == "local" and options.backend_url is not None
    asked: Sequence[tuple[str, str | None, str | None]] = (
        (
            "backend",
            options.backend_model if options.own_backend or local_backend else None,
            options.backend_url,
        ),
        ("assistant brain", options.brain_model, options.brain_url),
        ("caller brain", options.simulator_brain_model, options.brain_url),
        (
            "completion observer",
            options.completion_model if options.observed else None,
            options.completion_url,
        ),
        ("judge", options.judge_model if options.judged else None, options.judge_url),
    )
    seen: set[tuple[str, str]] = set()
    for who, model, url in asked:
        if model is None:
            continue
        host = _host(url or own)
        # One meter a model: two uses of it are one part.
        if who == "backend":
            yield Part(who=who, model=model, host=host, side=Side.ASSISTANT, managed=True)
        elif (host, model) not in seen:
            seen.add((host, model))
            yield Part(who=who, model=model, host=host)


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def _priced(part: Part, table: prices.Prices) -> Part:
    price = table.of(part.model, part.host.partition(":")[0])
    return Part(
        who=part.who,
        model=part.model,
        host=part.host,
        side=part.side,
        managed=part.managed,
        price=price,
    )


def _by_minute(part: Part) -> bool:
    return part.price is not None and part.price.per_minute is not None


def _why(part: Part) -> str:
    if part.price is None:
        return "its price is not known (--price says it)"
    return f"at {part.price}; how many it will be cannot be told beforehand"


def _tokens(events: Sequence[Event], side: Side, before: Used | None) -> Used | None:
    """Add the tokens that a side's session reported; each response once."""
    found = before
    told: dict[Json, Event] = {}
    for number, event in enumerate(events):
        if event.type == "backend.usage" and event.side is side:
            told[event.fields.get("response_id") or number] = event
    for event in told.values():
        found = found or Used()
        counts = [event.fields.get(f"{name}_tokens") for name in ("input", "output", "cached")]
        inputs, outputs, cached = (one if isinstance(one, int) else None for one in counts)
        found.answers += 1
        if inputs is None or outputs is None:
            found.uncounted += 1
            continue
        found.input_tokens += inputs
        found.output_tokens += outputs
        found.cached_tokens += cached or 0
    return found


def _sum(costs: Sequence[float | None]) -> float | None:
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 6)
