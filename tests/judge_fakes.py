"""Judges for tests: replies made from what a judge was asked, whole or bent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from duplex.grading.judging.rubric import DIMENSIONS, FLAGS
from duplex.values import Json
from fake_models import Asked, Reply, completion, response

Answer = dict[str, Json]
Bend = Callable[[Answer], None]


def shown(asked: Asked) -> tuple[dict[str, Json], dict[str, Json]]:
    """What a judge was sent: what the call was about, and its record."""
    if asked.path.endswith("/chat/completions"):
        messages = asked.body["messages"]
        assert isinstance(messages, list)
        texts = [_member(one, "content") for one in messages[1:]]
    else:
        items = asked.body["input"]
        assert isinstance(items, list)
        texts = [_member(_first(_member(one, "content")), "text") for one in items]
    wanted, record = (json.loads(str(text)[str(text).index("{") :]) for text in texts)
    return wanted, record


def _member(value: Json, name: str) -> Json:
    assert isinstance(value, dict)
    return value[name]


def _first(value: Json) -> Json:
    assert isinstance(value, list)
    return value[0]


def turns(record: Mapping[str, Json]) -> list[dict[str, Json]]:
    found = record["conversation"]
    assert isinstance(found, list)
    return [one for one in found if isinstance(one, dict)]


def quote(record: Mapping[str, Json]) -> Json:
    """Words of the assistant that were really said."""
    said = [one for one in turns(record) if one["who"] == "assistant"] or turns(record)
    return [{"turn": said[-1]["turn"], "quote": said[-1]["text"]}]


def praise(wanted: Mapping[str, Json], record: Mapping[str, Json]) -> Answer:
    """A whole answer that finds nothing wrong."""
    evidence = quote(record)
    reason: dict[str, Json] = {"reasoning": "As it should be.", "evidence": evidence}
    requirements = wanted["requirements"]
    assert isinstance(requirements, list)
    dimensions: dict[str, Json] = {name: {**reason, "score": 1} for name in DIMENSIONS}
    dimensions["task_understanding"] = {**reason, "verdict": "pass", "score": 1}
    return {
        "dimensions": dimensions,
        "requirements": [
            {"number": number, **reason, "verdict": "met"}
            for number in range(1, len(requirements) + 1)
        ],
        "conciseness": [
            {"turn": one["turn"], "score": 1} for one in turns(record) if one["who"] == "assistant"
        ],
        "flags": {
            name: {"reasoning": "Nothing of it.", "evidence": [], "present": False}
            for name in FLAGS
        },
        "going_well": [{"text": "It confirms what was booked.", "evidence": evidence}],
        "to_improve": [],
    }


def replying(bend: Bend | None = None) -> Callable[[Asked], Reply]:
    """A judge that praises every call, unless ``bend`` changes its answer."""

    def script(asked: Asked) -> Reply:
        answer = praise(*shown(asked))
        if bend is not None:
            bend(answer)
        text = json.dumps(answer)
        return completion(text) if asked.path.endswith("/chat/completions") else response(text)

    return script


def part(answer: Mapping[str, Json], *path: str | int) -> dict[str, Json]:
    """The object at a place in an answer."""
    found: Json = dict(answer)
    for step in path:
        assert isinstance(found, dict | list)
        found = found[step]  # type: ignore[index]
    assert isinstance(found, dict)
    return found
