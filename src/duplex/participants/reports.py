"""What an agent's side channel means to the call: events of the recording, bounded.

Claims become ``claim`` events with the moment they speak of, tools and states
the same events an application of ours would tell. It believes nothing: claims
stand beside what was heard, never in place of it. Synchronous; the participant
of the agent drives it.
"""

from __future__ import annotations

from duplex.participants.live_reading import Reading
from duplex.protocols.side_channel import Claim, Report, StateReport, ToolReport
from duplex.values import Json

LIMIT = 5_000
"""Reports of one call; more are counted as one fault each."""


class Reports:
    """One call's reports, told through ``reading``."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._count = 0
        self._made = 0

    def take(self, report: Report, moment: int, received_at: float | None) -> None:
        """Tell one report; ``moment`` (samples) is what it speaks of, or its receipt."""
        self._count += 1
        if self._count > LIMIT:
            text = f"more than {LIMIT} reports came over the side channel"
            self._reading.fault("agent", "too_many_reports", text)
            return
        match report:
            case Claim():
                fields: dict[str, Json] = {"kind": report.kind, "moment": moment}
                fields |= {} if report.ms is None else {"ms": report.ms}
                fields |= {} if report.text is None else {"text": report.text}
                fields["told"] = "stream" if report.at_ms is not None else "receipt"
                self._reading.tell("claim", fields, received_at)
            case _:
                self._made += 1
                for kind, told in work_events(report, f"reported_{self._made}", None):
                    self._reading.tell(kind, told, received_at)


def work_events(
    report: ToolReport | StateReport, made_id: str, delegation_id: str | None
) -> list[tuple[str, dict[str, Json]]]:
    """What a report is in events: (type, fields); ``made_id`` names a call without an id."""
    if isinstance(report, StateReport):
        return [("state", {"state": dict(report.state)})]
    call_id = report.call_id or made_id
    events: list[tuple[str, dict[str, Json]]] = []
    if report.name is not None:
        started: dict[str, Json] = {
            "call_id": call_id,
            "name": report.name,
            "arguments": dict(report.arguments),
            "delegation_id": delegation_id,
        }
        events.append(("tool.started", started))
    if report.status != "started":
        ended: dict[str, Json] = {
            "call_id": call_id,
            "status": report.status,
            "result": report.result,
            "error": report.error,
        }
        events.append(("tool.ended", ended))
    return events
