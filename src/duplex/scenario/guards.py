"""What the public harness would refuse in a scenario and duplex accepts with a word.

Its files load here unchanged; a user's own may be simpler. Each line says where
and what; nothing here is ever an error.
"""

from __future__ import annotations

from duplex.scenario.model import Scenario


def guard_warnings(scenario: Scenario) -> list[str]:
    """Say what the public harness would refuse in ``scenario`` and duplex accepts."""
    if scenario.interaction == "single_turn":
        return _single_turn_warnings(scenario)
    return _multi_turn_warnings(scenario)


def _single_turn_warnings(scenario: Scenario) -> list[str]:
    found = _delegation_warnings(scenario)
    if scenario.simulation_parameters is not None and scenario.input.recordings:
        found.append("simulation_parameters are not used where a recording calls")
    if scenario.expected.procedure is not None:
        found.append("expected.procedure is not used in a single_turn scenario")
    if scenario.expected.golden_path.turns not in (0, 2):
        found.append("expected.golden_path of a single_turn scenario has two turns")
    return found


def _multi_turn_warnings(scenario: Scenario) -> list[str]:
    found = _delegation_warnings(scenario)
    golden, simulation = scenario.expected.golden_path, scenario.simulation_parameters
    if simulation is None:
        return [*found, "without simulation_parameters a caller knows nothing but its request"]
    if sum(item.action not in ("finish", "wait") for item in simulation.agenda) < 2:
        found.append("simulation_parameters.agenda has fewer than two substantive items")
    if not simulation.known_facts:
        found.append("simulation_parameters.known_facts is empty")
    if scenario.input.recordings:
        found.append("input.recordings are used in single_turn scenarios only")
    if golden.expected_turns < 7:
        found.append(f"expected.golden_path.turns is {golden.expected_turns}, want 7 or more")
    if golden.delegations is None:
        found.append("expected.golden_path.delegations is missing")
    elif scenario.expected.delegation == "required" and golden.delegations == 0:
        found.append("expected.golden_path.delegations is 0 though delegation is required")
    elif scenario.expected.delegation == "forbidden" and golden.delegations:
        found.append(
            f"expected.golden_path.delegations is {golden.delegations} though delegation "
            "is forbidden"
        )
    return found


def _delegation_warnings(scenario: Scenario) -> list[str]:
    expected = scenario.expected
    if expected.delegation == "forbidden" and expected.tools.required:
        return ["expected.tools.required cannot be met where delegation is forbidden"]
    return []
