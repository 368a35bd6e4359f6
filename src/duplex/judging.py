"""A language model as judge: asks it as often as wanted, and counts what it answers.

It never raises for a model's failure: who cannot be asked, or answers what cannot be
used, has decided nothing, and the judgement says why. Time-outs and waits are real
time; a call is over when it is judged. The runner and ``duplex grade`` drive it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from duplex.clock import WallClock
from duplex.counting import counted
from duplex.grading.judging import (
    Cast,
    JudgeCase,
    Judgement,
    ask_of,
    ask_questions,
    decide,
    decide_answers,
    failed,
    read_answers,
    read_vote,
    unanswered,
)
from duplex.judge_options import JudgeOptions
from duplex.models.client import ModelClient, ModelError, Waited
from duplex.models.limiter import Limiter
from duplex.models.place import JUDGE, place
from duplex.models.reach import refuse_unreachable
from duplex.own_functions import load_checks
from duplex.protocols.model_values import Ask

JUDGE_TIMEOUT_MS = 120_000
"""Longest that one answer of a judge may take; a whole judgement is some hundred words."""
Read = Callable[[str, JudgeCase], Cast]
UNREACHABLE = frozenset({"unreachable", "redirect"})


class ModelJudge:
    """Judges calls with one model (see ``grading.judging.Judge``)."""

    def __init__(self, client: ModelClient, *, repetitions: int = 1) -> None:
        self._client = client
        self._repetitions = repetitions
        self._answered = False
        self._gone: Cast | None = None

    @property
    def model(self) -> str:
        return self._client.where.model

    async def open(self) -> None:
        """Raise InputError when nobody answers at its server."""
        await refuse_unreachable({JUDGE: self._client.where})
        self._client.open()

    async def close(self) -> None:
        await self._client.close()

    async def judge(self, case: JudgeCase) -> Judgement:
        if not case.assistant_turns:
            nothing = "the assistant said nothing that could be judged"
            return replace(failed(self.model, case, nothing), questions=unanswered(case, nothing))
        found = decide(self.model, case, await self._casts(ask_of(case), read_vote, case))
        if not case.questions:
            return found
        casts = await self._casts(ask_questions(case), read_answers, case)
        return replace(found, questions=decide_answers(case, casts), question_casts=tuple(casts))

    async def _casts(self, ask: Ask, read: Read, case: JudgeCase) -> Sequence[Cast]:
        """Ask side by side; the limiter keeps a host from being asked too much."""
        if not self._answered:
            # Nobody waits five times over for a server that is not there.
            first = await self._cast(ask, read, case)
            if first.code in UNREACHABLE:
                return [first]
            rest = [self._cast(ask, read, case) for _ in range(self._repetitions - 1)]
            return [first, *await asyncio.gather(*rest)]
        times = range(self._repetitions)
        return await asyncio.gather(*(self._cast(ask, read, case) for _ in times))

    async def _cast(self, ask: Ask, read: Read, case: JudgeCase) -> Cast:
        if self._gone is not None:
            return self._gone
        waits: list[Waited] = []
        try:
            answer = await self._client.answer(ask, WallClock(1000), waits.append)
        except ModelError as error:
            lost = Cast(vote=None, problem=str(error), code=error.code, waited_seconds=_sum(waits))
            if error.code in UNREACHABLE and not self._answered:
                self._gone = lost
            return lost
        self._answered = True
        if answer.status == "completed":
            cast = read(answer.text, case)
        else:
            why = f"its answer was {answer.status}: {answer.problem or 'no reason given'}"
            cast = Cast(vote=None, problem=why, code=f"response_{answer.status}", reply=answer.text)
        tokens = None if answer.tokens is None else answer.tokens.as_json()
        return replace(cast, tokens=tokens, waited_seconds=_sum(waits))


def judge_at(
    url: str | None,
    model: str,
    *,
    repetitions: int = 1,
    effort: str | None = None,
    insecure: bool = False,
    limiter: Limiter | None = None,
) -> ModelJudge:
    """Return the judge at ``url``; raises InputError for one that cannot be asked."""
    where = place(JUDGE, url, model, effort=effort, insecure=insecure)
    client = ModelClient(where, limiter, timeout_ms=JUDGE_TIMEOUT_MS)
    return ModelJudge(client, repetitions=repetitions)


def _sum(waits: Sequence[Waited]) -> float:
    return sum(one.seconds for one in waits)


class Graders:
    """The judge of a run, if one is asked, and the user's own checks."""

    def __init__(self, options: JudgeOptions, limiter: Limiter | None = None) -> None:
        """Raise InputError for a judge that cannot be asked or a check that is not there."""
        self.own = load_checks(options.check_function)
        self._limiter = limiter or Limiter()
        self._judge: ModelJudge | None = None
        if options.judged and options.judge_model is not None:
            self._judge = judge_at(
                options.judge_url,
                options.judge_model,
                repetitions=options.judge_repetitions,
                effort=options.judge_reasoning_effort,
                insecure=options.allow_plain_http,
                limiter=self._limiter,
            )

    @property
    def used(self) -> str | None:
        """What the judge has used so far, in words; None for nothing."""
        told = []
        for (host, model), one in self._limiter.meter.used.items():
            counts = f"{one.input_tokens} tokens in, {one.output_tokens} out"
            quiet = f", {one.uncounted} without a count" if one.uncounted else ""
            told.append(f"{model} at {host}: {counted(one.answers, 'answer')}, {counts}{quiet}")
        return "; ".join(told) or None

    @property
    def judges(self) -> bool:
        return self._judge is not None

    async def open(self) -> None:
        """Raise InputError when nobody answers where the judge is said to be."""
        if self._judge is not None:
            await self._judge.open()

    async def close(self) -> None:
        if self._judge is not None:
            await self._judge.close()

    async def judge(self, case: JudgeCase) -> Judgement:
        assert self._judge is not None, "no judge was asked for"
        return await self._judge.judge(case)
