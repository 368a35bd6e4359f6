"""The ends of a call that speak Realtime, from options and scenario.

The assistant's functions are the application's tools; a caller has none. Either is
reached at the endpoint of the run, or is the embedded voice behind the same
protocol (``--endpoint local``). ``ends.py`` drives it.
"""

from __future__ import annotations

from duplex.application.model import Application
from duplex.application.prompts import OPENING_COMMENTARY
from duplex.application.workbench import Workbench
from duplex.briefing import assistant_config, caller_brief, caller_config
from duplex.options import LOCAL_ENDPOINT, RunOptions
from duplex.participants.door import Door
from duplex.participants.realtime import RealtimeSession
from duplex.participants.transport import Connect
from duplex.protocols.realtime import RealtimeConfig
from duplex.scenario import Scenario
from duplex.values import Side


def realtime_assistant(
    options: RunOptions,
    application: Application,
    scenario: Scenario,
    connect: Connect,
    *,
    first: str,
    seed: int,
    door: Door | None = None,
) -> RealtimeSession:
    """Build the assistant under test."""
    told = assistant_config(options, application, scenario)
    state = application.state(scenario.application.initial_state)
    bench = Workbench(application.tools, state, seed=seed)
    opening = options.assistant_opening_prompt or OPENING_COMMENTARY
    return RealtimeSession(
        side=Side.ASSISTANT,
        connect=connect,
        config=RealtimeConfig(
            model=options.assistant_model,
            voice=told.voice,
            instructions=told.instructions,
            tools=bench.functions,
            turn_detection=options.turn_detection,
            encoding=options.audio_format,
        ),
        lock_step=options.endpoint == LOCAL_ENDPOINT,
        opening=opening if first == "assistant" else None,
        functions=bench,
        door=door,
    )


def realtime_caller(
    options: RunOptions,
    scenario: Scenario,
    connect: Connect,
    *,
    first: str,
    door: Door | None = None,
) -> RealtimeSession:
    """Build a caller."""
    told = caller_config(options, scenario, first)
    opening = f"Begin the call now. Say: {caller_brief(scenario, first).opening}"
    return RealtimeSession(
        side=Side.CALLER,
        connect=connect,
        config=RealtimeConfig(
            model=options.caller_model,
            voice=told.voice,
            instructions=told.instructions,
            turn_detection=options.turn_detection,
            encoding=options.audio_format,
        ),
        lock_step=options.endpoint == LOCAL_ENDPOINT,
        opening=opening if first == "caller" else None,
        door=door,
    )
