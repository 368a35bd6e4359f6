"""Which runs a list shows: what each filter means, and whether a run fits.

It reads no folder and prints nothing; the command line and ``duplex serve`` ask it
with the same names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, get_args

from duplex.clock import utc_seconds
from duplex.errors import InputError

if TYPE_CHECKING:
    from duplex.store import Row

Status = Literal[
    "running", "interrupted", "completed", "failed", "timed_out", "cancelled", "damaged"
]
STATUSES: tuple[str, ...] = get_args(Status)
WINDOW_DAYS = 45
MEANS = {
    "since": f"First day [{WINDOW_DAYS} days before the end].",
    "until": "Day it ends before [now].",
    "status": f"{', '.join(STATUSES)}.",
    "agent": "Only this assistant's runs.",
    "scenario": "Only runs of this scenario.",
    "failed": "Only failed verdicts.",
    "limit": "Show at most so many.",
}
"""What each filter means, for help and for the API's description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a list shows: half open in time, every filter that is given must fit."""

    since: str | None = None
    until: str | None = None
    status: str | None = None
    agent: str | None = None
    scenario: str | None = None
    failed: bool = False
    limit: int = 50

    def fits(self, row: Row) -> bool:
        """Whether a run fits, its time left aside."""
        return (
            (self.status is None or row.status == self.status)
            and (self.agent is None or row.agent == self.agent)
            and (self.scenario is None or self.scenario in row.scenarios)
            and (not self.failed or row.passed is False)
        )


def fitting(rows: Iterable[Row], filters: Filters, *, now: datetime | None = None) -> list[Row]:
    """Those of these rows that fit, in their order.

    Raises InputError for a wrong window and for a status there is none of.
    """
    if filters.status is not None and filters.status not in STATUSES:
        raise InputError(f'status "{filters.status}" is none of: {", ".join(STATUSES)}')
    start, end = _window(filters, now or datetime.fromtimestamp(utc_seconds(), UTC))
    found = []
    for row in rows:
        made = _made(row)
        if (made is None or start <= made < end) and filters.fits(row):
            found.append(row)
    return found[: filters.limit]


def _window(filters: Filters, now: datetime) -> tuple[datetime, datetime]:
    end = _moment(filters.until, "until") or now + timedelta(days=1)
    try:
        start = _moment(filters.since, "since") or end - timedelta(days=WINDOW_DAYS)
    except OverflowError:
        raise InputError(f'until "{filters.until}" is too early for a window before it') from None
    if start >= end:
        raise InputError(f"the window ends ({end:%Y-%m-%d}) before it begins ({start:%Y-%m-%d})")
    return start, end


def _made(row: Row) -> datetime | None:
    try:
        made = datetime.fromisoformat(row.created_at.replace("Z", "+00:00"))
    except ValueError:
        return None
    return made if made.tzinfo else made.replace(tzinfo=UTC)


def _moment(text: str | None, name: str) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f'{name} "{text}" is no date, want for example 2026-08-01 or 2026-08-01T12:00'
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
