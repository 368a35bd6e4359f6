"""A text model that looks on a call and says when it is over.

It asks when both sides are quiet, never waits for the answer, and takes one only if
nothing has been said or done since it asked. What it accepted is a ruling that new
words, caller speech or new work revoke. A model that fails takes nothing with it: the
call then ends by its verified state and closing words. It labels nothing and ends
nothing itself; the call loop drives it, and ``hangup.py`` obeys its standing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duplex.clock import Clock, WallClock
from duplex.completion.asking import Verdict, ask_about, read_verdict
from duplex.completion.seen import Seen, Task
from duplex.hangup import Situation, Standing
from duplex.models.client import ModelClient, ModelError
from duplex.protocols.model_values import Answer
from duplex.values import Event, Happening, Json, Side

Hide = Callable[[Json], Json]

LOOK_MS = 800
"""Declared media time of one look in virtual time, in ms, as of any response of a model."""
CALLER_LINES = 2
APART_MS = 500
IDLE_MS = 5_000
"""Nothing has changed, or the model failed: it is asked again only after this long."""
QUIET_MS = 600
"""A turn is finished after this much silence."""
FAILURES = 3
"""After this many failures in a row the model is not asked again in this call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Basis:
    """What an answer is about: it is stale once any of this has moved."""

    revision: int
    spoke_last: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """A look that is over: the answer's verdict, or why there is none."""

    basis: _Basis
    verdict: Verdict | None = None
    code: str = ""
    message: str = ""


class SemanticObserver:
    """Looks on one call (see ``call.Observer``)."""

    def __init__(
        self,
        task: Task,
        client: ModelClient,
        *,
        rate_hz: int,
        timeout_ms: int,
        hide: Hide = lambda record: record,
    ) -> None:
        """``hide`` takes out of the record what no model is to be shown."""
        self._seen = Seen(task, rate_hz)
        self._client = client
        self._rate = rate_hz
        self._timeout_ms = timeout_ms
        self._hide = hide
        self._clock: Clock | None = None
        self._task: asyncio.Task[None] | None = None
        self._looked: list[_Looked] = []
        self._asked_at: int | None = None
        self._asked_about: _Basis | None = None
        self._failures = 0
        self._accepted: tuple[int, _Basis] | None = None

    @property
    def standing(self) -> Standing:
        accepted = self._accepted
        return Standing(
            in_charge=self._failures == 0, accepted_at=None if accepted is None else accepted[0]
        )

    def begin(self, clock: Clock) -> None:
        self._clock = clock

    def on_event(self, event: Event) -> None:
        self._seen.take(event)

    def look(self, now: Situation) -> Sequence[Happening]:
        """Follow the call to ``now``: take answers, revoke, ask. Return what happened."""
        basis = _Basis(revision=self._seen.revision, spoke_last=now.spoke_last)
        if self._task is not None and self._task.done():
            self._task.result()
            self._task = None
        told = [self._answered(looked, now, basis) for looked in self._looked]
        self._looked.clear()
        if self._accepted is not None and _moved(self._accepted[1], basis):
            self._accepted = None
            told.append(_told("revoked"))
        if self._is_due(now, basis):
            self._ask(now, basis)
            told.append(_told("asked"))
        return told

    async def close(self) -> None:
        """Give up what is being asked; never raises."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # -- asking -------------------------------------------------------------

    def _is_due(self, now: Situation, basis: _Basis) -> bool:
        busy = self._task is not None or self._accepted is not None or now.working
        if busy or self._failures >= FAILURES or not now.spoke_last[Side.ASSISTANT]:
            return False
        if now.quiet_since is None or now.position - now.quiet_since < self._samples(QUIET_MS):
            return False
        if self._asked_at is not None:
            changed = self._asked_about != basis and not self._failures
            wait = self._samples(APART_MS if changed else IDLE_MS)
            if now.position - self._asked_at < wait:
                return False
        return self._seen.caller_lines >= CALLER_LINES

    def _ask(self, now: Situation, basis: _Basis) -> None:
        assert self._clock is not None, "a call begins before it is looked on"
        self._asked_at, self._asked_about = now.position, basis
        quiet = now.position - (now.quiet_since or 0)
        shown = self._seen.data(verified=now.verified, quiet_ms=quiet * 1000 // self._rate)
        data = self._hide(shown)
        self._task = self._clock.spawn(self._look(data, basis, self._clock))

    async def _look(self, data: Json, basis: _Basis, clock: Clock) -> None:
        began = clock.position
        looked = await self._answer(data, basis)
        if clock.virtual:
            await clock.until(began + self._samples(LOOK_MS))
        self._looked.append(looked)

    async def _answer(self, data: Json, basis: _Basis) -> _Looked:
        # A server's time is real time whatever the call's clock is: virtual time stands still.
        real = WallClock(1000)
        try:
            answer = await real.within(self._client.answer(ask_about(data), real), self._timeout_ms)
        except TimeoutError:
            why = f"no answer within {self._timeout_ms} ms, its waits for a rate limit included"
            return _Looked(basis=basis, code="timeout", message=why)
        except ModelError as error:
            return _Looked(basis=basis, code=error.code, message=str(error))
        return _read(answer, basis)

    # -- answers ------------------------------------------------------------

    def _answered(self, looked: _Looked, now: Situation, basis: _Basis) -> Happening:
        verdict = looked.verdict
        if verdict is None:
            self._failures += 1
            return _told("failed", code=looked.code, message=looked.message[:500])
        self._failures = 0
        fields: dict[str, Json] = {"outcome": verdict.outcome, "reason": verdict.reason}
        if looked.basis != basis:
            return _told("stale", **fields)
        if not verdict.over:
            return _told("unresolved", **fields)
        if now.working or now.verified is False:
            why = "work is pending" if now.working else "the state is not the expected one"
            return _told("overridden", **fields, because=why)
        self._accepted = (now.position, basis)
        return _told("accepted", **fields)

    def _samples(self, ms: int) -> int:
        return ms * self._rate // 1000


def _read(answer: Answer, basis: _Basis) -> _Looked:
    if answer.status != "completed":
        why = f"the response was {answer.status}: {answer.problem or 'no reason given'}"
        return _Looked(basis=basis, code=f"response_{answer.status}", message=why)
    verdict = read_verdict(answer.text)
    if verdict is None:
        why = f"the answer is no verdict: {answer.text[:200]!r}"
        return _Looked(basis=basis, code="unreadable", message=why)
    return _Looked(basis=basis, verdict=verdict)


def _moved(since: _Basis, basis: _Basis) -> bool:
    """Whether there is new evidence or caller speech; an assistant's voice alone is neither."""
    spoke = since.spoke_last[Side.CALLER] != basis.spoke_last[Side.CALLER]
    return spoke or since.revision != basis.revision


def _told(step: str, **fields: Json) -> Happening:
    return Happening(type="completion", fields={"step": step, **fields})
