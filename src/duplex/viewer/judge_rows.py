"""What a judge decided, as a panel: verdict, scores and flags, each with its reasoning and quotes.

Rows come from ``results[].duplex.judge`` as they stand; nothing is computed here. A
judge's words are shown as words, whatever they say. A call nobody judged has no panel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from duplex.values import Json
from duplex.viewer import say
from duplex.viewer.reading import clean, items, members, number, objects, text
from duplex.viewer.rows import Row, not_known

_FIGURES = {
    "overall_score": ("overall score", "/overall_score"),
    "conversation_progression": ("conversation progression", "/conversation_progression"),
    "conciseness": ("conciseness", "/conciseness"),
}
_UNASKED = "the judge did not decide"


def judge_rows(judge: Json, unknown: Json) -> list[Row]:
    """Every decision, those about the whole call first."""
    found = members(judge)
    if not found:
        return []
    problem = text(found.get("problem"))
    rows = [not_known("judgement", problem)] if problem else [*_rows(found, members(unknown))]
    asked = objects(found.get("questions"))
    return [
        *rows,
        *(_ruling(text(one.get("question")) or "question", one, "answer") for one in asked),
    ]


def judge_note(judge: Json) -> str:
    """Who judged, and how often."""
    found = members(judge)
    model, asked = text(found.get("model")) or "a model", number(found.get("repetitions"))
    usable = number(found.get("usable_votes"))
    if asked is None or usable is None:
        return model
    return f"{model} · {usable:.0f} of {asked:.0f} answers"


def _rows(judge: Mapping[str, Json], unknown: Mapping[str, Json]) -> Iterator[Row]:
    yield _ruling("outcome", members(judge.get("outcome")), "verdict")
    for key, (name, at) in _FIGURES.items():
        value = number(judge.get(key))
        why = text(unknown.get(f"/duplex/judge{at}")) or _UNASKED
        yield not_known(name, why) if value is None else Row(name=name, value=say.plain(value))
    for one in objects(judge.get("requirements")):
        yield _ruling(text(one.get("text")) or "requirement", one, "verdict")
    for group, key in (("dimensions", "score"), ("flags", "present")):
        for name, ruling in members(judge.get(group)).items():
            yield _ruling(clean(name).replace("_", " "), members(ruling), key)
    for points, name in (("going_well", "went well"), ("to_improve", "to improve")):
        for point in objects(judge.get(points)):
            yield Row(name=name, value=text(point.get("text")) or "", details=_quotes(point))


def _ruling(name: str, ruling: Mapping[str, Json], key: str) -> Row:
    value = ruling.get(key)
    if value is None:
        return not_known(name, text(ruling.get("why")) or _UNASKED)
    reasoning = text(ruling.get("reasoning"))
    details = (*([reasoning] if reasoning else []), *_quotes(ruling))
    return Row(name=name, value=_shown(value), details=details)


def _shown(value: Json) -> str:
    if isinstance(value, bool):
        return "present" if value else "absent"
    found = number(value)
    return say.plain(found) if found is not None else (text(value) or "").replace("_", " ")


def _quotes(ruling: Mapping[str, Json]) -> tuple[str, ...]:
    """Each quote with where it was said."""
    told = []
    for one in items(ruling.get("evidence")):
        quoted = members(one)
        at = number(quoted.get("start_ms"))
        where = f"turn {say.whole(quoted.get('turn'))}, {text(quoted.get('who')) or 'somebody'}"
        when = "" if at is None else f" at {say.clock(at)}"
        told.append(f"{where}{when}: “{text(quoted.get('quote')) or ''}”")
    return tuple(told)
