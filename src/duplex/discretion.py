"""What a run hides: its redactor, and scenarios, results and views that went through it.

Grading compares what was recorded with what was expected, so where fields are private
both carry the same marks. Nothing that leaves a run shows more than its files do: the
results it returns, the events somebody watches. The runner drives it, and whoever
grades or measures a stored run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from duplex.call import Watcher
from duplex.private_fields import PrivateFields
from duplex.redact import Redactor
from duplex.results import schema
from duplex.scenario import Question, Scenario
from duplex.scenario.model import ApplicationStart, Expected, Input, Simulation
from duplex.values import Event, Json

_PARTS = ("input", "application", "expected", "simulation_parameters")


def redactor_of(
    fields: Sequence[str], scenarios: Iterable[Scenario], secrets: Iterable[str] = ()
) -> Redactor:
    """Return what cleans a run's files; the values its scenarios hold are known beforehand.

    Marks follow the order of ``scenarios``, so a run that is graded again from the same
    scenarios in the same order gets the same marks.
    """
    redactor = Redactor(secrets, PrivateFields(fields) if fields else None)
    if fields:
        for scenario in scenarios:
            redactor.json(_data(scenario))
    return redactor


def hidden_scenario(scenario: Scenario, redactor: Redactor) -> Scenario:
    """Return a scenario to grade with: private values are the marks that files have."""
    if redactor.private is None:
        return scenario
    data = redactor.json(_data(scenario))
    assert isinstance(data, dict), "an object stays an object"
    own = scenario.simulation_parameters
    changed: dict[str, object] = {
        "input": Input.model_validate(data["input"]),
        "application": ApplicationStart.model_validate(data["application"]),
        "expected": Expected.model_validate(data["expected"]),
        "simulation_parameters": None
        if own is None
        else Simulation.model_validate(data["simulation_parameters"]),
        "duplex": scenario.duplex.model_copy(update={"questions": _hidden(scenario, redactor)}),
    }
    return scenario.model_copy(update=changed)


def _hidden(scenario: Scenario, redactor: Redactor) -> tuple[Question, ...] | None:
    """What is asked about a call, in the words that its record has."""
    asked = scenario.duplex.questions
    if asked is None:
        return None
    return tuple(
        one.model_copy(
            update={
                "question": redactor.text(one.question),
                "description": redactor.text(one.description),
            }
        )
        for one in asked
    )


def hidden_run(run: schema.Run, redactor: Redactor) -> schema.Run:
    """Return results as they may be shown."""
    return schema.Run.model_validate(redactor.json(run.model_dump(mode="json")))


def hidden_again(run: schema.Run, found: Mapping[str, Scenario]) -> dict[str, Scenario]:
    """Return scenarios to grade a stored run with: private fields have the run's own marks.

    Marks follow the order of a run's scenarios, so what comes after one that is not there
    any more is left out as well.
    """
    redaction = run.run.duplex.get("redaction")
    fields = redaction.get("fields") if isinstance(redaction, dict) else None
    names = [name for name in fields if isinstance(name, str)] if isinstance(fields, list) else []
    if not names:
        return dict(found)
    there: list[Scenario] = []
    for scenario_id in dict.fromkeys(result.scenario_id for result in run.results):
        if scenario_id not in found:
            break
        there.append(found[scenario_id])
    redactor = redactor_of(names, there)
    return {one.id: hidden_scenario(one, redactor) for one in there}


class Discreet:
    """Lets somebody watch a call and see no more of it than is written down."""

    def __init__(self, watcher: Watcher, redactor: Redactor) -> None:
        self._watcher = watcher
        self._redactor = redactor
        self.on_tick = watcher.on_tick

    def on_event(self, event: Event) -> None:
        self._watcher.on_event(replace(event, fields=self._redactor.fields(event.fields)))


def _data(scenario: Scenario) -> dict[str, Json]:
    """What a scenario holds of the application's data."""
    whole = scenario.model_dump(mode="json")
    return {name: whole[name] for name in _PARTS}
