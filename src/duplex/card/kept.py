"""The delay of a card as it was last calibrated, kept for the next call of this user.

One small JSON file beside the user's other state, an entry for each pair of devices as it
was opened. What cannot be read counts as never calibrated; what cannot be written is told.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from duplex.errors import InputError
from duplex.inputs import reason

_BYTES = 1 << 20


class Delay(BaseModel):
    """How long a card takes from output to input, and how that is known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    delay_ms: float = Field(ge=-50, le=5_000)
    plus_minus_ms: float = Field(ge=0, le=5_000)
    source: str
    at: str | None = None
    """When it was calibrated, ISO 8601."""
    level_db: float | None = None
    clicks: int | None = None
    played: int | None = None


class _Book(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    cards: dict[str, Delay] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a delay is of: both devices by name, their rates and the latency asked for."""

    input: str
    output: str
    input_hz: int
    output_hz: int
    latency_ms: float

    @property
    def key(self) -> str:
        return json.dumps([self.input, self.input_hz, self.output, self.output_hz, self.latency_ms])


def state_file() -> Path:
    """Where delays are kept: ``$XDG_STATE_HOME/duplex/cards.json``."""
    named = os.environ.get("XDG_STATE_HOME", "").strip()
    return (Path(named) if named else Path.home() / ".local" / "state") / "duplex" / "cards.json"


def look_up(opened: Opened, path: Path) -> Delay | None:
    """The delay that was calibrated for these devices, if one was."""
    return _read(path).cards.get(opened.key)


def keep(opened: Opened, delay: Delay, path: Path) -> None:
    """Remember a calibration; raises InputError when it cannot be written."""
    cards = {**_read(path).cards, opened.key: delay}
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(_Book(cards=cards).model_dump_json(indent=2), encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise InputError(f"calibrate: {path} cannot be written: {reason(error)}") from None


def _read(path: Path) -> _Book:
    try:
        with path.open("rb") as file:
            return _Book.model_validate_json(file.read(_BYTES))
    except (OSError, ValidationError):
        return _Book()
