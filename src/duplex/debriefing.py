"""``duplex debrief RUN``: what a run means, printed, and reworded by a model if one is named.

The debrief is written from the numbers; a model that cannot be asked, or changes a
figure, changes nothing, and that is said on stderr.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from duplex.clock import WallClock
from duplex.counting import counted
from duplex.debrief import Debrief
from duplex.debrief.rewording import INSTRUCTIONS, read_answer, reword, schema, texts_of
from duplex.errors import InputError
from duplex.exporting import opened
from duplex.exports.roark_debrief import debrief_json
from duplex.exports.subject import Subject
from duplex.exports.summary import summary
from duplex.models.client import ModelClient, ModelError
from duplex.models.place import place
from duplex.protocols.model_values import Ask, Message, Shape
from duplex.screen import plain

_TIMEOUT_MS = 120_000


def command(
    run: Path,
    *,
    runs: Path,
    compare_to: Path | None,
    model: str | None,
    model_url: str | None,
    allow_plain_http: bool,
    as_json: bool,
    console: Console,
) -> None:
    """Print the debrief. Raises InputError for a run that is not over or has no graded call."""
    subject = opened(run, runs=runs, compare_to=compare_to)
    if subject.debrief is None:
        why = "is not over" if subject.verdict is None else "has no call that was graded"
        raise InputError(f"run {subject.run.run_id} {why}, so there is nothing to debrief")
    if model is not None:
        found, said = asyncio.run(_reworded(subject.debrief, model, model_url, allow_plain_http))
        subject = replace(subject, debrief=found)
        console.print(Text(plain(said)))
    elif model_url is not None:
        raise InputError("model-url is given without model, want both")
    print(_as_json(subject) if as_json else summary(subject), end="")


def _as_json(subject: Subject) -> str:
    assert subject.debrief is not None, "a debrief is printed"
    made = subject.run.ended_at or subject.run.created_at
    report = debrief_json(subject.debrief, subject.run.run_id, made)
    return json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


async def _reworded(
    debrief: Debrief, model: str, url: str | None, insecure: bool
) -> tuple[Debrief, str]:
    """The debrief in the model's words as far as they hold, and what became of them."""
    client = ModelClient(place("model-url", url, model, insecure=insecure), timeout_ms=_TIMEOUT_MS)
    ask = Ask(
        model=model,
        instructions=INSTRUCTIONS,
        items=(Message(role="user", text=json.dumps(texts_of(debrief), ensure_ascii=False)),),
        shape=Shape(name="debrief", schema=schema(debrief)),
    )
    client.open()
    try:
        answer = await client.answer(ask, WallClock(1000), lambda _: None)
    except ModelError as error:
        return debrief, f"{model} could not reword it ({error}); these are our own words"
    finally:
        await client.close()
    offered = read_answer(answer.text) if answer.status == "completed" else None
    if offered is None:
        return debrief, f"{model} gave no usable answer; these are our own words"
    found = reword(debrief, offered)
    told = f"{counted(found.taken, 'text')} in the words of {model}"
    if found.kept:
        key, why = next(iter(found.kept.items()))
        told += f", {len(found.kept)} kept as they were ({key}: {why})"
    return found.debrief, told
