"""Which faults there are, what each takes, and reading ``--fault NAME[,key=number…]``.

A plan is one fault as it was asked for. A server's conduct is all of its plans: it
turns callers away at the door and gives each session the faults it suffers, which
act on their own. Nothing here sends anything; the local server drives it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from duplex.errors import InputError
from duplex.local.faults import answers, content, endings, timing
from duplex.local.faults.line import AFTER_MS, Fault, Gate
from duplex.participants.transport import ABNORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One number a fault takes."""

    default: float
    low: float
    high: float
    whole: bool = False

    @property
    def wanted(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One fault that can be asked for; ``make`` is None for those of the door."""

    does: str
    keys: dict[str, Key] = field(default_factory=dict)
    make: Callable[..., Fault] | None = None

    @property
    def takes(self) -> dict[str, Key]:
        return {**self.keys, **(_COMMON if self.make is not None else _AT_THE_DOOR)}


_SESSIONS = Key(default=0, low=0, high=10_000, whole=True)
_COMMON = {"after_ms": Key(default=AFTER_MS, low=0, high=600_000), "sessions": _SESSIONS}
_AT_THE_DOOR = {"sessions": _SESSIONS}
_CLOSE_CODES = frozenset({*range(1000, 1004), *range(1006, 1015), *range(3000, 5000)})

FAULTS: dict[str, Kind] = {
    "refuse": Kind(
        does="refuses the upgrade with an HTTP status",
        keys={"status": Key(default=503, low=400, high=599, whole=True)},
    ),
    "429": Kind(
        does="answers the upgrade so often with 429 and Retry-After, then lets it through",
        keys={
            "times": Key(default=2, low=1, high=1_000, whole=True),
            "retry_after": Key(default=1, low=0, high=3_600),
        },
    ),
    "delay": Kind(
        does="sends every message so much later",
        keys={"ms": Key(default=1_200, low=1, high=10_000)},
        make=timing.Delay,
    ),
    "jitter": Kind(
        does="sends messages later by up to so much, changing several times a second",
        keys={
            "ms": Key(default=1_000, low=1, high=10_000),
            "seed": Key(default=7, low=0, high=2**31, whole=True),
        },
        make=timing.Jitter,
    ),
    "stall": Kind(
        does="sends nothing for so long, then everything at once",
        keys={"seconds": Key(default=3, low=0.1, high=600)},
        make=timing.Stall,
    ),
    "drop": Kind(
        does="breaks the connection off in mid-word (1006), or closes it with a code",
        keys={"code": Key(default=ABNORMAL, low=1000, high=4999, whole=True)},
        make=endings.Drop,
    ),
    "half_close": Kind(
        does="ends its own half of the connection without a close frame",
        make=endings.HalfClose,
    ),
    "garbage": Kind(
        does="sends broken JSON, wrong types, missing fields, unknown types and binary noise",
        make=content.Garbage,
    ),
    "oversize": Kind(
        does="sends one message of so many MiB",
        keys={"mib": Key(default=5, low=1, high=64)},
        make=content.Oversize,
    ),
    "odd_bytes": Kind(
        does="cuts its audio into odd numbers of bytes",
        make=content.OddBytes,
    ),
    "duplicate": Kind(
        does="sends each of so many messages twice",
        keys={"messages": Key(default=20, low=1, high=100_000, whole=True)},
        make=content.Duplicate,
    ),
    "reorder": Kind(
        does="lets messages gather for so long, three times, and sends them last first",
        keys={"ms": Key(default=content.GATHER_MS, low=1, high=10_000)},
        make=content.Reorder,
    ),
    "lose_tool_result": Kind(
        does="never gets so many results of tools or delegated work",
        keys={"results": Key(default=1, low=1, high=1_000, whole=True)},
        make=answers.LoseToolResult,
    ),
    "answer_after_cancel": Kind(
        does="cancels a response and goes on with it all the same",
        make=answers.AnswerAfterCancel,
    ),
    "never_close": Kind(
        does="does not close when it is asked to",
        make=endings.NeverClose,
    ),
    "expire": Kind(
        does="ends the session as one whose longest time is over",
        make=endings.Expire,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One fault as it was asked for; ``sessions`` first ones suffer it, 0 means all.

    ``make`` makes it for one session; it is None for one of the door.
    """

    name: str
    options: Mapping[str, float] = field(default_factory=dict)
    sessions: int = 0
    make: Callable[[], Fault] | None = None


def parse_fault(text: str) -> Plan:
    """Read ``NAME[,key=number…]``, ``-`` and ``_`` alike; raise InputError."""
    name, *pairs = text.split(",")
    known = name.strip().replace("-", "_")
    kind = FAULTS.get(known)
    if kind is None:
        raise InputError(f"fault {name!r} is not known, wanted one of {', '.join(FAULTS)}")
    options = {key: one.default for key, one in kind.takes.items()}
    for pair in pairs:
        key, value = _read(known, pair, kind.takes)
        options[key] = value
    sessions = int(options.pop("sessions"))
    make = None if kind.make is None else partial(kind.make, **options)
    return Plan(name=known, options=options, sessions=sessions, make=make)


def _read(name: str, pair: str, takes: dict[str, Key]) -> tuple[str, float]:
    written, equals, text = pair.partition("=")
    key = written.strip().replace("-", "_")
    if not equals:
        raise InputError(f"fault {name}: {pair!r} is not key=number")
    if key not in takes:
        raise InputError(f"fault {name} takes no {written.strip()!r}, wanted {', '.join(takes)}")
    one = takes[key]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    good = one.low <= value <= one.high and (not one.whole or value == int(value))
    if good and key == "code" and value not in _CLOSE_CODES:
        raise InputError(f"fault {name}: code={text.strip()} is no close code that can be sent")
    if not good:
        raise InputError(f"fault {name}: {key}={text.strip()[:40]} is not {one.wanted}")
    return key, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """Somebody is turned away with an HTTP status, perhaps told when to come again."""

    status: int
    retry_after: float | None = None


class Conduct:
    """Everything one server does wrong."""

    def __init__(self, plans: Sequence[Plan] = ()) -> None:
        self._plans = tuple(plans)
        self._knocks = [0] * len(self._plans)
        self._sessions = 0

    def at_the_door(self) -> Turned | None:
        """Somebody knocks: turn them away, or let them in."""
        for place, plan in enumerate(self._plans):
            if plan.name not in ("refuse", "429"):
                continue
            knock, self._knocks[place] = self._knocks[place], self._knocks[place] + 1
            if plan.name == "refuse":
                if not plan.sessions or knock < plan.sessions:
                    return Turned(status=int(plan.options["status"]))
                continue
            visit, attempt = divmod(knock, int(plan.options["times"]) + 1)
            if attempt < plan.options["times"] and (not plan.sessions or visit < plan.sessions):
                return Turned(status=429, retry_after=plan.options["retry_after"])
        return None

    def session(self, *, ahead: bool = False) -> list[Fault]:
        """The faults of the next session; ``ahead``: its voice is faster than real time."""
        number, self._sessions = self._sessions, self._sessions + 1
        suffered = [
            plan.make()
            for plan in self._plans
            if plan.make is not None and (not plan.sessions or number < plan.sessions)
        ]
        if ahead and suffered:
            suffered.append(Gate(after_ms=max(fault.after_ms for fault in suffered)))
        return suffered
