"""A model that is no model: it does an errand by the application's own recipe.

Behind the Responses API it lets a whole run work without any language model. It reads
the conversation it is given, calls the functions the errand's steps name, one after the
other, and answers with the recipe's sentences. It is a pure function of the request, so
it can be asked again at any point. Without a recipe in its instructions it knows the
default application's. It never invents a call, and runs nothing itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from duplex.application.base import Line
from duplex.application.dialogue import Tracker
from duplex.application.loading import load_application
from duplex.application.model import Procedure, Step
from duplex.application.model_prompts import NUDGE, RULE_MODEL, Recipe, recipe_from
from duplex.application.steps import arguments_of, holds, said_first, say_results
from duplex.application.template import fill
from duplex.protocols.gpt_live import Broken, estimate_tokens, read_object
from duplex.protocols.model_values import (
    Answer,
    Ask,
    Call,
    Item,
    Message,
    Output,
    Tokens,
)
from duplex.values import Json

UNABLE = "I'm sorry, I can't do that from here."


def answer(ask: Ask, response_id: str) -> Answer:
    """Answer one request; raises InputError for a recipe that cannot be read."""
    recipe = recipe_from(ask.instructions) or _default_recipe()
    text, calls = _Work(recipe, ask).next()
    return Answer(
        response_id=response_id,
        status="completed",
        text=text,
        calls=tuple(calls),
        tokens=_tokens(ask, text, calls),
    )


def _default_recipe() -> Recipe:
    application = load_application()
    return Recipe(desk=application.desk({}), procedures=application.procedures)


@dataclass(frozen=True, slots=True)
class _Past:
    """A call that was made, with what came of it."""

    call: Call
    result: Json
    now: bool

    @property
    def arguments(self) -> dict[str, Json]:
        found = read_object(self.call.arguments)
        return {} if isinstance(found, Broken) else found

    @property
    def failed(self) -> bool:
        return isinstance(self.result, dict) and "error" in self.result


@dataclass(slots=True)
class _Work:
    """One errand at one point of its conversation."""

    recipe: Recipe
    ask: Ask
    past: list[_Past] = field(default_factory=list)

    def next(self) -> tuple[str, list[Call]]:
        items = self.ask.whole
        self.past = _past(items)
        desk = self.recipe.desk
        tracker = Tracker(desk)
        tracker.replay(_lines(items))
        errand = tracker.errand or desk.errands[0]
        values = tracker.details()
        if first := said_first(tracker):
            return first, []
        procedure = self.recipe.procedures.get(errand.name)
        return self._run(procedure, values) if procedure is not None else (UNABLE, [])

    def _run(self, procedure: Procedure, values: Mapping[str, Json]) -> tuple[str, list[Call]]:
        before = self._done_before(procedure)
        changing = before is not None and bool(procedure.change)
        steps = procedure.change if changing else procedure.steps
        results: dict[str, Json] = dict(before.results) if before is not None and changing else {}
        said = self.recipe.desk.said(values)
        if before is not None and before.covers(values) and not any(p.now for p in self.past):
            return fill(before.say, said | before.said(self.recipe, said)), []
        now = [one for one in self.past if one.now]
        for step in steps:
            done = next((one for one in now if one.call.name == step.tool), None)
            if done is None:
                return self._call(step, {**results, **values})
            now.remove(done)
            if done.failed:
                assert isinstance(done.result, dict)
                said["error"] = str(done.result["error"])
                return fill(procedure.failed, said), []
            if isinstance(done.result, dict):
                results.update({k: v for k, v in done.result.items() if k not in values})
                said.update(say_results(step, done.result, self.recipe.desk.slots, said))
            for stop in step.stops:
                if holds(stop.when, done.result):
                    return fill(stop.say, said), []
        return fill(procedure.say_changed if changing else procedure.say, said), []

    def _done_before(self, procedure: Procedure) -> _Done | None:
        """The errand's last completed work of earlier delegations, if there is any."""
        last = procedure.steps[-1] if procedure.steps else None
        final = {step.tool: step for step in (*procedure.steps[-1:], *procedure.change[-1:])}
        made = [one for one in self.past if not one.now and not one.failed]
        ended = [one for one in made if one.call.name in final]
        if last is None or not ended:
            return None
        results: dict[str, Json] = {}
        for one in made:
            if isinstance(one.result, dict):
                results.update(one.result)
        step = final[ended[-1].call.name]
        changed = bool(procedure.change) and step is procedure.change[-1]
        say = procedure.say_changed if changed else procedure.say
        return _Done(step=step, arguments=ended[-1].arguments, results=results, say=say)

    def _call(self, step: Step, known: Mapping[str, Json]) -> tuple[str, list[Call]]:
        if step.tool not in {function.name for function in self.ask.functions}:
            return UNABLE, []
        arguments = json.dumps(arguments_of(step, known))
        seen = f"{len(self.past)}:{step.tool}:{arguments}"
        identity = f"call_{hashlib.sha256(seen.encode()).hexdigest()[:16]}"
        return "", [Call(call_id=identity, name=step.tool, arguments=arguments)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """Work of an earlier delegation: its last step, with what it was given and gave."""

    step: Step
    arguments: Mapping[str, Json]
    results: Mapping[str, Json]
    say: str

    def covers(self, values: Mapping[str, Json]) -> bool:
        """Whether that work was done with these very details."""
        asked = {
            parameter: values.get(source)
            for parameter, source in self.step.arguments.items()
            if source in values or source not in self.results
        }
        return all(self.arguments.get(name) == value for name, value in asked.items())

    def said(self, recipe: Recipe, said: Mapping[str, str]) -> dict[str, str]:
        return say_results(self.step, self.results, recipe.desk.slots, said)


def _lines(items: Sequence[Item]) -> list[Line]:
    """The conversation: what callers and the assistant said, without what we are told."""
    return [
        Line(role=item.role, text=item.text, start_ms=index)
        for index, item in enumerate(items)
        if isinstance(item, Message)
        and item.role in ("user", "assistant")
        and item.text.strip() != NUDGE
    ]


def _past(items: Sequence[Item]) -> list[_Past]:
    """Every call that was answered; ``now`` are those since the last thing anybody said."""
    said = [index for index, item in enumerate(items) if isinstance(item, Message)]
    latest = said[-1] if said else -1
    outputs = {item.call_id: item.text for item in items if isinstance(item, Output)}
    return [
        _Past(item, _result(outputs[item.call_id]), index > latest)
        for index, item in enumerate(items)
        if isinstance(item, Call) and item.call_id in outputs
    ]


def _result(text: str) -> Json:
    try:
        found: Json = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found


def _tokens(ask: Ask, text: str, calls: Sequence[Call]) -> Tokens:
    """Estimated, as no tokenizer is at hand."""
    taken = estimate_tokens(ask.instructions) + sum(
        estimate_tokens(_text_of(item)) for item in ask.whole
    )
    given = estimate_tokens(text) + sum(estimate_tokens(call.arguments) for call in calls)
    return Tokens(
        input_tokens=taken,
        cached_tokens=0,
        cache_write_tokens=0,
        output_tokens=given,
        reasoning_tokens=0,
        total_tokens=taken + given,
    )


def _text_of(item: Item) -> str:
    return item.arguments if isinstance(item, Call) else item.text


__all__ = ["RULE_MODEL", "answer"]
