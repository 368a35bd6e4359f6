"""How many calls a run holds and what it is judged by, as far as options can be wrong.

A part of ``options.RunOptions``: samples, sweeps, retries, workers and checks. What
a sweep or a check says is read by ``sweeping.py`` and ``verdict/criteria.py``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, Strict, model_validator

from duplex.errors import InputError
from duplex.verdict import criteria


class PlanOptions(BaseModel):
    """The names are the flags' names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    samples: int = Field(default=1, ge=1, le=10_000)
    pass_rate: float = Field(default=1.0, gt=0, le=1)
    sweep: str | None = None
    small_sweep: bool = False
    check: Annotated[tuple[str, ...], Strict(False)] = ()
    silent_retries: int = Field(default=0, ge=0, le=10)
    silent_retry_backoff_seconds: float = Field(default=5.0, ge=0, le=600)
    workers: int = Field(default=1, ge=1, le=64)
    early_stop: bool = True

    @model_validator(mode="after")
    def _checks_can_be_read(self) -> PlanOptions:
        try:
            criteria.pinned(self.check)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    def unsuited(self, *, concurrency: int, limited: bool, private: bool) -> str | None:
        """Say what several processes cannot do together; None where one does it all."""
        if self.workers == 1:
            return None
        if concurrency > 1:
            return "workers: each holds one call at a time; want --concurrency 1"
        if limited or private:
            what = "max-cost-usd counts" if limited else "redact remembers"
            return f"workers: {what} in one process only; want --workers 1"
        return None
