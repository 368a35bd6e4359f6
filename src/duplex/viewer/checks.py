"""Checks of a call for the page: how each went, why, and the span that shows it.

Statuses and reasons are the result's. A check leads to the moments its evidence
names; where it names none, to where its subject is on the recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from duplex.grading import Evidence
from duplex.values import Json, Side
from duplex.viewer import say
from duplex.viewer.reading import clean, items, members, number, objects, pretty, text

_MOST_PLACES = 12
"""A long call has hundreds; these are shown, the timeline has them all."""
_OPEN_MS = 400
"""How much of the recording a moment is shown with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A span a check leads to."""

    name: str
    start_ms: float
    end_ms: float

    def as_json(self) -> dict[str, Json]:
        words = f"{self.name} {say.clock(self.start_ms)}"
        return {"name": words, "start": self.start_ms, "end": self.end_ms}


def checks(result: Mapping[str, Json], evidence: Evidence, duration_ms: float) -> list[Json]:
    """Every check of the assessment, in its order."""
    ours = members(result.get("duplex"))
    told = members(ours.get("checks"))
    steps = objects(ours.get("procedure"))
    finder = _Finder(evidence, steps, duration_ms)
    found: list[Json] = []
    for check in objects(members(result.get("assessment")).get("checks")):
        name = text(check.get("id")) or ""
        about = members(told.get(_key(check.get("id"))))
        shown = members(about.get("evidence"))
        places = finder.places(name, shown)
        found.append(
            {
                "id": name,
                "name": name.replace("_", " "),
                "status": text(check.get("status")) or "",
                "required": check.get("required") is True,
                "reason": text(about.get("reason")) or "",
                "evidence": pretty(dict(shown)) if shown else "",
                "places": [place.as_json() for place in places[:_MOST_PLACES]],
                "more": max(0, len(places) - _MOST_PLACES),
            }
        )
    return found


def steps(result: Mapping[str, Json]) -> list[Json]:
    """Procedure steps, with the moment each was seen."""
    found: list[Json] = []
    for step in objects(members(result.get("duplex")).get("procedure")):
        at = number(step.get("at_ms"))
        found.append(
            {
                "name": (text(step.get("id")) or "").replace("_", " "),
                "status": text(step.get("status")) or "",
                "reason": text(step.get("reason")) or "",
                "places": [] if at is None else [_moment("seen", at).as_json()],
                "more": 0,
            }
        )
    return found


class _Finder:
    """Finds where on the recording a check can be seen."""

    def __init__(
        self, evidence: Evidence, steps: list[Mapping[str, Json]], duration_ms: float
    ) -> None:
        self._evidence = evidence
        self._steps = steps
        self._duration = duration_ms

    def places(self, name: str, shown: Mapping[str, Json]) -> list[Place]:
        named = [
            *_named(shown),
            *self._calls(shown),
            *self._procedure(shown),
            *_quoted(shown),
        ]
        return named or list(self._natural(name))

    def _calls(self, shown: Mapping[str, Json]) -> Iterator[Place]:
        wanted = {call for call in items(shown.get("calls")) if isinstance(call, str)}
        for call in self._evidence.tools:
            if call.call_id in wanted:
                yield self._tool(call.name, call.started_ms, call.ended_ms)

    def _procedure(self, shown: Mapping[str, Json]) -> Iterator[Place]:
        wanted = {step for step in items(shown.get("steps")) if isinstance(step, str)}
        for step in self._steps:
            at, name = number(step.get("at_ms")), step.get("id")
            if at is not None and isinstance(name, str) and name in wanted:
                yield _moment(clean(name), at)

    def _natural(self, name: str) -> Iterator[Place]:
        """Where the subject of a check without moments of its own is to be seen."""
        if name == "conversation_completed" and self._duration:
            yield _moment("end", max(0, self._duration - _OPEN_MS))
        elif name == "assistant_responded":
            for line in self._evidence.lines(Side.ASSISTANT)[:1]:
                yield Place(name="first heard", start_ms=line.start_ms, end_ms=line.end_ms)
        elif name in ("application_state", "verified_state_change"):
            for state in self._evidence.states[1:][-1:]:
                yield _moment("state changed", state.at_ms)
        elif name == "delegation_policy":
            for one in self._evidence.delegations(Side.ASSISTANT):
                yield self._tool("delegation", one.opened_ms, one.closed_ms)
        elif name == "tool_contract":
            for call in self._evidence.tools:
                yield self._tool(call.name, call.started_ms, call.ended_ms)

    def _tool(self, name: str, start: float, end: float | None) -> Place:
        return Place(
            name=clean(name), start_ms=start, end_ms=self._duration if end is None else end
        )


def _quoted(shown: Mapping[str, Json]) -> Iterator[Place]:
    """The turns that a judge quotes, each once."""
    seen = set()
    for one in objects(shown.get("turns")):
        turn, at = number(one.get("turn")), number(one.get("start_ms"))
        if turn is not None and at is not None and turn not in seen:
            seen.add(turn)
            yield _moment(f"turn {turn:.0f}", at)


def _key(value: Json) -> str:
    """A member's name as it stands in the file."""
    return value if isinstance(value, str) else ""


def _named(shown: Mapping[str, Json]) -> Iterator[Place]:
    """Moments and spans the evidence itself names; lengths in ms are none."""
    start, end = number(shown.get("start_ms")), number(shown.get("end_ms"))
    if start is not None and end is not None:
        yield Place(name="span", start_ms=start, end_ms=end)
    for key, value in shown.items():
        at = number(value)
        if at is not None and (key.endswith(("_at_ms", "_start_ms")) or key in _MOMENTS):
            words = key.removesuffix("_ms").removesuffix("_at").removesuffix("_start")
            yield _moment(clean(words.replace("_", " ")), at)
    for span in objects(shown.get("spans")):
        start, end = number(span.get("start_ms")), number(span.get("end_ms"))
        if start is not None and end is not None:
            yield Place(name=text(span.get("name")) or "span", start_ms=start, end_ms=end)


_MOMENTS = ("at_ms", "last_tool_ms")


def _moment(name: str, at: float) -> Place:
    return Place(name=name, start_ms=at, end_ms=at + _OPEN_MS)
