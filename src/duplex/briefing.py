"""What each party of a call is told: the settings of its session, from options and scenario.

The caller is given its own side of the scenario and never what is expected; the
assistant is given the application and never the caller's side; who looks on is given
both, and speaks to neither. All are known before any session opens. ``ends.py`` opens
sessions with them, ``preflight.py`` looks beforehand whether a session would take them.
"""

from __future__ import annotations

from duplex.application.model import Application
from duplex.application.prompts import (
    AgendaItem,
    Brief,
    Persona,
    assistant_instructions,
    caller_instructions,
)
from duplex.completion.seen import Task
from duplex.delegating import assistant_delegation, caller_delegation
from duplex.options import RunOptions
from duplex.protocols.gpt_live_client import LiveConfig
from duplex.scenario import PersonaLevels, Scenario


def first_speaker(options: RunOptions, scenario: Scenario) -> str:
    """Who speaks first: the option, else the scenario, else the assistant."""
    return options.first_speaker or scenario.duplex.first_speaker or "assistant"


def caller_config(options: RunOptions, scenario: Scenario, first: str) -> LiveConfig:
    """The session settings of a caller that is a voice."""
    instructions = caller_instructions(caller_brief(scenario, first))
    return LiveConfig(
        model=options.simulator_model if options.caller == "gpt-live" else options.model,
        voice=options.simulator_voice or scenario.persona.voice,
        instructions=instructions,
        delegation=caller_delegation(options, instructions),
    )


def assistant_config(
    options: RunOptions, application: Application, scenario: Scenario
) -> LiveConfig:
    """The session settings of the assistant."""
    context = scenario.input.context
    extra = [context.summary] if context is not None else []
    state = scenario.application.initial_state
    return LiveConfig(
        model=options.model,
        voice=options.voice,
        instructions=assistant_instructions(application, state, extra),
        delegation=assistant_delegation(options, application, state),
    )


def caller_brief(scenario: Scenario, first: str) -> Brief:
    """What the caller is told: never what is expected."""
    persona = scenario.persona
    levels = scenario.duplex.persona or PersonaLevels()
    context = scenario.input.context
    return Brief(
        goal=scenario.goal,
        opening=scenario.input.text,
        known_facts=dict(scenario.simulation.known_facts),
        agenda=tuple(
            AgendaItem(
                id=item.id,
                action=item.action,
                commitment=item.commitment,
                trigger_condition=item.trigger_condition,
                completion_condition=item.completion_condition,
                facts=item.facts,
                response_hint=item.response_hint,
                after=item.after,
                required=item.required,
            )
            for item in scenario.simulation.agenda
        ),
        persona=Persona(
            description=persona.description,
            speech_instructions=persona.speech_instructions,
            verbosity=persona.verbosity,
            interrupt_tendency=persona.interrupt_tendency,
            backchannel_tendency=persona.backchannel_tendency,
            backchannels=tuple(persona.backchannels),
            pace=levels.pace or "normal",
            emotion=levels.emotion or "neutral",
            disfluency=levels.disfluency or "off",
            clarity=levels.clarity or "clear",
            memory=levels.memory or "good",
        ),
        context=context.summary if context is not None else "",
        first_speaker=first,
    )


def observed_task(scenario: Scenario) -> Task:
    """What whoever says that a call is over is told of it."""
    return Task(
        goal=scenario.goal,
        objectives=tuple(
            {
                "id": item.id,
                "commitment": item.commitment,
                "completion_condition": item.completion_condition,
                "required": item.required,
            }
            for item in scenario.simulation.agenda
        ),
        expected_state=dict(scenario.expected.state),
    )
