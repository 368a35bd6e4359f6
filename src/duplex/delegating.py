"""What a session is told of delegation: to its client, or to a backend of its own.

From options, application and scenario alone, before any session opens. ``briefing.py``
puts it among a session's settings.
"""

from __future__ import annotations

from collections.abc import Mapping

from duplex.application.model import Application
from duplex.application.model_prompts import work_instructions
from duplex.application.workbench import Workbench
from duplex.options import RunOptions
from duplex.protocols.responses import write_function
from duplex.values import Json


def assistant_delegation(
    options: RunOptions, application: Application, state: Mapping[str, Json]
) -> dict[str, Json]:
    """What the assistant's session is told of delegation."""
    if options.delegation != "responses":
        return {"type": "client"}
    bench = Workbench(application.tools, application.state(state))
    model = options.managed_model
    backend: dict[str, Json] = {
        "model": model,
        "instructions": work_instructions(application, state, model),
        "tools": [write_function(function) for function in bench.functions],
        "parallel_tool_calls": True,
    }
    if options.backend_reasoning_effort is not None:
        backend["reasoning"] = {"effort": options.backend_reasoning_effort}
    return {"type": "responses", "responses": backend}


def caller_delegation(options: RunOptions, instructions: str) -> dict[str, Json]:
    """What a caller's own voice session is told: help from its brief, or from a model."""
    if options.simulator_backend_model is None:
        return {"type": "client"}
    backend: dict[str, Json] = {
        "model": options.simulator_backend_model,
        "instructions": f"You help the caller in this call; you have no tools.\n{instructions}",
    }
    if options.simulator_backend_reasoning_effort is not None:
        backend["reasoning"] = {"effort": options.simulator_backend_reasoning_effort}
    return {"type": "responses", "responses": backend}
