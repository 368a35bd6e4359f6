"""What would go wrong in a call and can be told before any session opens.

A scenario is laid beside the application it is held with and the options of the
run: the state the application starts from, and the settings each session would
be asked for, checked as a session would. It opens nothing and changes nothing.
``runner.py`` refuses what it finds; ``duplex scenario validate`` prints it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from duplex import scenario as scenarios
from duplex.application.loading import load_application
from duplex.application.model import Application
from duplex.application.state import state_doubts, state_problems
from duplex.briefing import assistant_config, caller_config, first_speaker
from duplex.errors import InputError
from duplex.options import RunOptions, make
from duplex.protocols.gpt_live import VOICES, AudioFormat
from duplex.protocols.gpt_live_client import LiveConfig
from duplex.protocols.gpt_live_models import Problem, check
from duplex.scenario import Dataset, Findings, Scenario
from duplex.values import Json
from duplex.verdict import criteria

_SHOWN = 20


def refuse(
    dataset: Dataset, chosen: Sequence[Scenario], application: Application, options: RunOptions
) -> None:
    """Raise InputError listing what keeps the chosen scenarios from being held."""
    found = problems(dataset, chosen, application, options)
    if found:
        shown = found[:_SHOWN]
        if len(found) > _SHOWN:
            shown.append(f"and {len(found) - _SHOWN} more")
        raise InputError("\n".join(shown))


def validate(path: Path, application: str) -> Findings:
    """Check a scenario file or folder whole, with the application it is meant for."""
    options = make({"application": application, "data": path})
    found = scenarios.inspect(path)
    loaded = load_application(application)
    dataset = Dataset(path=path, scenarios=tuple(found.scenarios), sources=found.sources)
    found.errors += problems(dataset, dataset.scenarios, loaded, options)
    for scenario in dataset.scenarios:
        at = f"{place(dataset, scenario)}.application.initial_state"
        found.warnings += state_doubts(loaded, scenario.application.initial_state, at)
    return found


def problems(
    dataset: Dataset, chosen: Sequence[Scenario], application: Application, options: RunOptions
) -> list[str]:
    """Everything that keeps the chosen scenarios from being held, each told once."""
    found: list[str] = []
    for scenario in chosen:
        where = place(dataset, scenario)
        found += _unreadable(scenario.duplex.checks or (), f"{where}.duplex.checks")
        state = scenario.application.initial_state
        wrong = state_problems(application, state, f"{where}.application.initial_state")
        found += wrong or _refusals(where, scenario, application, options)
    return list(dict.fromkeys(found))


def _unreadable(checks: Sequence[str], where: str) -> Iterator[str]:
    """Say which checks name what does not exist, or compare what cannot be compared."""
    for at, text in enumerate(checks):
        try:
            criteria.refuse_unheard(criteria.read_check(text))
        except InputError as error:
            yield f"{where}[{at}]: {error}"


def place(dataset: Dataset, scenario: Scenario) -> str:
    """Where a scenario stands: its file, and its number there."""
    source = dataset.sources[scenario.id]
    beside = [one.id for one in dataset.scenarios if dataset.sources[one.id] == source]
    return f"scenario {source}: scenarios[{beside.index(scenario.id)}]"


def _refusals(
    where: str, scenario: Scenario, application: Application, options: RunOptions
) -> Iterator[str]:
    """Say what either session would refuse; of one elsewhere only its server knows."""
    if options.caller == "scripted" and not scenario.duplex.script:
        yield f"{where}.duplex.script is empty, want the lines that --caller scripted says"
    session = options.agent.hosted and options.agent.kind != "realtime"
    if session and (options.endpoint is None or options.assistant == "local"):
        config = assistant_config(options, application, scenario)
        yield from _refused(config, where, "assistant", "voice", "model")
    speaks = options.caller in ("local", "scripted") or (
        options.caller == "gpt-live" and not options.endpoint
    )
    if speaks:
        config = caller_config(options, scenario, first_speaker(options, scenario))
        own = options.simulator_voice is None
        voice = f"{where}.simulation_parameters.persona.voice" if own else "simulator-voice"
        model = "simulator-model" if options.caller == "gpt-live" else "model"
        yield from _refused(config, where, "caller", voice, model)


def _refused(config: LiveConfig, where: str, who: str, voice: str, model: str) -> Iterator[str]:
    start: dict[str, Json] = {"type": "session.start"}
    start["session"] = config.as_json(AudioFormat(rate_hz=24_000))
    problem = check("session.start", start)
    if not isinstance(problem, Problem):
        return
    said = problem.message.partition(": ")[2] or problem.message
    match problem.param:
        case "session.audio.output.voice":
            listed = "" if VOICES[0] in said else f"; want one of {', '.join(VOICES)}"
            yield f'{_option(voice)} "{config.voice}": {said}{listed}'
        case "session.model":
            yield f'{_option(model)} "{config.model}": {said}'
        case "session.instructions":
            yield f"{where}: what the {who} would be told is {said}"
        case _:
            yield f"{where}: the {who}'s session would be refused: {problem.message}"


def _option(name: str) -> str:
    return name if " " in name else f"option {name}"
