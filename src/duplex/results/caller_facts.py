"""A caller that said what it knows to be otherwise, and an agent that did as it was told.

Looked for in calls that failed, and told only where nothing else explains it: the
caller said another value than the one it knows, never the right one, nobody had
offered it that value, and a tool ran with it. Names are left out, because they are
misspelt by whoever wrote them down. Pure; ``build.py`` drives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from duplex.application.prompts import Scalar
from duplex.application.slots import spoken
from duplex.grading import Evidence
from duplex.local.facts import FIRST, LIMITS, SECOND, Fact, facts_of
from duplex.results.outcome import Failing
from duplex.scenario import Scenario
from duplex.values import Json, Side

REASON = "caller_contradicted_facts"
"""``validity.reason`` of such a call."""
_KINDS = ("date", "time", "count", "phone", "code")
_OPEN = ("accept_alternative", "flexible")
"""Facts by which a caller may take what it did not ask for."""


def contradicted(scenario: Scenario, evidence: Evidence) -> Failing | None:
    """Why the caller is to blame for a call that failed; None where nothing shows it."""
    known = scenario.simulation.known_facts
    if any(known.get(name) for name in _OPEN):
        return None
    figures = _figures(known)
    for fact in _fixed(facts_of(known)):
        wrong = _said_wrong(fact, evidence)
        if wrong is None or (fact.kind == "count" and wrong in figures):
            continue
        if any(_holds(fact, wrong, one) for one in _done(evidence)):
            said, knows = spoken(fact.kind, wrong), spoken(fact.kind, fact.value)
            return Failing(
                stage="caller_simulation",
                message=f"the caller said {said} for {fact.key} and knows {knows}, "
                "and the assistant did as it was told",
            )
    return None


def _fixed(facts: Mapping[str, Fact]) -> Iterator[Fact]:
    """Facts that have one value only: none the caller began with, would take or goes up to."""
    for key, fact in facts.items():
        others = (f"{prefix}_{key}" for prefix in (*FIRST, *SECOND, *LIMITS))
        prefixed = key.startswith(tuple(f"{prefix}_" for prefix in (*FIRST, *SECOND, *LIMITS)))
        if fact.kind in _KINDS and not prefixed and not any(one in facts for one in others):
            yield fact


def _figures(known: Mapping[str, Scalar]) -> frozenset[int]:
    """Bare numbers that a saying of another fact may hold: hours and days."""
    found: set[int] = set()
    for fact in facts_of(known).values():
        parts = [int(part) for part in re.findall(r"[0-9]+", str(fact.value))]
        found.update(part % 12 or 12 for part in parts if fact.kind == "time")
        found.update(parts if fact.kind in ("time", "date", "code") else ())
    return frozenset(found)


def _said_wrong(fact: Fact, evidence: Evidence) -> Scalar | None:
    """The other value that the caller brought up; None if it ever said the right one."""
    found: Scalar | None = None
    for line in evidence.lines(Side.CALLER):
        values = fact.values_in(line.text)
        if any(fact.same(value) for value in values):
            return None
        offered = [
            one
            for heard in evidence.lines(Side.ASSISTANT)
            if heard.start_ms < line.start_ms
            for one in fact.values_in(heard.text)
        ]
        # Two values in one line are a choice, or belong to something else.
        if len(values) == 1 and values[0] not in offered:
            found = values[0]
    return found


def _done(evidence: Evidence) -> Iterator[Json]:
    """What completed tools were given."""
    for call in evidence.tools:
        if call.completed:
            yield dict(call.arguments)


def _holds(fact: Fact, wrong: Scalar, given: Json) -> bool:
    """Whether the wrong value stands in what a tool was given, and the right one does not."""
    values = [value for value in _leaves(given) if _same_kind(fact.value, value)]
    return wrong in values and not any(fact.same(value) for value in values)


def _leaves(value: Json) -> Iterator[Scalar]:
    if isinstance(value, dict):
        for child in value.values():
            yield from _leaves(child)
    elif isinstance(value, list):
        for child in value:
            yield from _leaves(child)
    elif value is not None:
        yield value


def _same_kind(known: Scalar, value: Scalar) -> bool:
    numbers = (int, float)
    if isinstance(known, bool) or isinstance(value, bool):
        return False
    return isinstance(known, numbers) == isinstance(value, numbers)
