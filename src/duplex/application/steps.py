"""Working through a procedure: its arguments, its stops, and what is said of results.

Pure helpers over an application's declaration; what runs the tools is elsewhere
(``backend.py`` for the local backend, ``local/rule_model.py`` behind the Responses API).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duplex.application.dialogue import Tracker
from duplex.application.model import Step
from duplex.application.slots import Slot, spoken
from duplex.application.template import fill
from duplex.values import Json

BROKE = "something went wrong here"
"""What is said of a tool that broke; its error is for whoever reads the events."""


def said_first(tracker: Tracker) -> str:
    """Return what must be said before the errand can be worked on, "" if nothing."""
    desk, values = tracker.desk, tracker.details()
    errand = tracker.errand or desk.errands[0]
    refused = tracker.not_allowed()
    if refused is not None:
        return fill(refused.refusal, desk.said(values))
    missing = tracker.missing()
    if missing:
        return ask_for([desk.slot(name) for name in missing[:2]])
    if tracker.undecided:
        return errand.ask
    if errand.confirm and not tracker.confirmed:
        return fill(errand.confirm, desk.said(values))
    return ""


def arguments_of(step: Step, known: Mapping[str, Json]) -> dict[str, Json]:
    """Return the step's arguments; parameters whose value is not known are left out."""
    return {
        parameter: known[source]
        for parameter, source in step.arguments.items()
        if known.get(source) is not None
    }


def holds(when: Mapping[str, Json], result: Json) -> bool:
    """Whether a result has all these values."""
    return isinstance(result, dict) and all(result.get(k) == v for k, v in when.items())


def ask_for(slots: Sequence[Slot]) -> str:
    """Return the question for details that are still missing."""
    if len(slots) == 1 and slots[0].questions:
        return f"I still need one thing. {slots[0].questions[0]}"
    return f"Could I have {' and '.join(slot.label for slot in slots)} again, please?"


def say_results(
    step: Step, result: Mapping[str, Json], slots: Sequence[Slot], said: Mapping[str, str]
) -> dict[str, str]:
    """Return a result's fields as they are spoken, beside what is ``said`` already."""
    kinds = {slot.name: slot.type for slot in slots}
    out = {}
    for name, value in result.items():
        kind = step.spoken_as.get(name) or kinds.get(name, "text")
        if name in step.spoken_as or name not in said:
            out[name] = spoken(kind, value)
    return out
