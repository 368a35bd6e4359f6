"""The side channel: what an agent tells of itself beside its audio, a JSON object each.

Claims about its own timing, the tools it ran and the state it holds. Reading is
strict and pure, and never raises on what a peer sent: a report that cannot be
used is a :class:`~duplex.protocols.gpt_live.Broken` value. ``docs/side-channel.md``
is the page for people; Twilio, PCM and Python agents all speak this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from duplex.protocols.gpt_live import Broken, clean_text
from duplex.values import Json

STAGES = ("asr_final", "first_token", "first_sentence", "first_byte")
"""Moments of a reply, in the order in which they happen."""
CLAIMS = (*STAGES, "latency")
TOOL_STATUSES = ("started", "completed", "failed")
TEXT_LIMIT = 4_000
NAME_LIMIT = 200
REPORT_LIMIT = 262_144
"""Longest message, in characters, that may carry a report."""
MS_LIMIT = 86_400_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A moment of the reply under way, or ``latency`` with ``ms``.

    ``at_ms`` is on the timeline of the audio the agent was sent; None: on receipt.
    """

    kind: str
    at_ms: float | None = None
    ms: float | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """A tool the agent ran; ``call_id`` None when it is told once, after the fact."""

    call_id: str | None
    name: str | None
    arguments: Mapping[str, Json]
    status: str
    result: Json = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReport:
    """The application's whole state."""

    state: Mapping[str, Json]


Report = Claim | ToolReport | StateReport


def read_report(value: Mapping[str, Json], length: int = 0) -> Report | Broken:
    """Read one report, which came in a message of ``length`` characters; never raises."""
    if length > REPORT_LIMIT:
        return Broken(reason=f"report of {length} characters, allowed {REPORT_LIMIT}")
    kind = value.get("type")
    if kind in CLAIMS:
        return _claim(str(kind), value)
    if kind == "tool":
        return _tool(value)
    if kind == "state":
        state = value.get("state")
        if isinstance(state, dict):
            return StateReport(state=state)
        return Broken(reason=f"state report holds {_kind(state)}, wanted an object in state")
    wanted = ", ".join((*CLAIMS, "tool", "state"))
    return Broken(reason=f"report type {_shown(kind)} is none of: {wanted}")


def _claim(kind: str, value: Mapping[str, Json]) -> Claim | Broken:
    at_ms, ms, text = value.get("at_ms"), value.get("ms"), value.get("text")
    for name, one in (("at_ms", at_ms), ("ms", ms)):
        if one is not None and _milliseconds(one) is None:
            return Broken(reason=f"{kind}.{name} is {_shown(one)}, wanted milliseconds from 0")
    if kind == "latency" and ms is None:
        return Broken(reason="latency has no ms, wanted milliseconds from 0")
    if text is not None and not isinstance(text, str):
        return Broken(reason=f"{kind}.text is {_kind(text)}, wanted text")
    return Claim(
        kind=kind,
        at_ms=_milliseconds(at_ms),
        ms=_milliseconds(ms),
        text=None if text is None else clean_text(text[:TEXT_LIMIT]),
    )


def _tool(value: Mapping[str, Json]) -> ToolReport | Broken:
    name, call_id, error = value.get("name"), value.get("call_id"), value.get("error")
    arguments, status = value.get("arguments", {}), value.get("status", "completed")
    for what, one in (("name", name), ("call_id", call_id)):
        if one is not None and not (isinstance(one, str) and 0 < len(one) <= NAME_LIMIT):
            return Broken(reason=f"tool.{what} is {_shown(one)}, wanted 1 to {NAME_LIMIT} letters")
    if not isinstance(arguments, dict):
        return Broken(reason=f"tool.arguments is {_kind(arguments)}, wanted an object")
    if status not in TOOL_STATUSES:
        return Broken(reason=f"tool.status is {_shown(status)}, wanted {', '.join(TOOL_STATUSES)}")
    if name is None and (call_id is None or status == "started"):
        return Broken(reason="tool report has no name")
    if status == "started" and call_id is None:
        return Broken(reason="tool report that says started has no call_id to end it by")
    return ToolReport(
        call_id=call_id if isinstance(call_id, str) else None,
        name=name if isinstance(name, str) else None,
        arguments=arguments,
        status=str(status),
        result=value.get("result"),
        error=None if error is None else clean_text(str(error)[:TEXT_LIMIT]),
    )


def _milliseconds(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared, never converted first: a whole number may be too large for a float.
    return float(value) if 0 <= value <= MS_LIMIT else None


def _kind(value: Json) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _shown(value: Json) -> str:
    return repr(value)[:60]
