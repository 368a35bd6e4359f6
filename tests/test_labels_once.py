"""Each thing a caller says is labelled once, however oddly it is spoken."""

from __future__ import annotations

import json

import pytest

from duplex.participants.live_reading import Reading
from duplex.protocols.gpt_live_client import Info, Transcript
from duplex.values import Happening, Json, Side


def note(text: str, start_ms: int, end_ms: int) -> Info:
    fields: dict[str, Json] = {"text": text, "start_ms": start_ms, "end_ms": end_ms}
    return Info(code="duplex.utterance", message=json.dumps(fields | {"action": "SPEAK"}))


def said(text: str, start_ms: int, end_ms: int) -> Transcript:
    return Transcript(said=True, text=text, start_ms=start_ms, end_ms=end_ms)


def labels(reading: Reading) -> list[tuple[Json, Json]]:
    told = [item for item in reading.collect() if isinstance(item, Happening)]
    return [(t.fields["text"], t.fields["source"]) for t in told if t.type == "utterance"]


@pytest.mark.parametrize("tail", ["你好你好你好你好", "مرحبا", "🎉🎉🎉"])
@pytest.mark.parametrize("provider", ["local", "gpt-live"])
def test_a_tail_that_takes_the_mouth_long_is_no_second_utterance(tail: str, provider: str) -> None:
    """The tail's words are told only when it has ended, seconds after the others."""
    reading = Reading(Side.CALLER, provider)
    reading.take(said("A table, please.", 1_000, 2_000), None)
    for now in range(2_000, 7_000, 200):
        reading.heard_until(now)
    reading.take(said(f" {tail}", 2_000, 7_000), None)
    reading.take(note(f"A table, please. {tail}", 1_000, 7_000), None)
    reading.heard_until(12_000)
    reading.end()
    assert len(labels(reading)) == 1


def test_a_local_callers_label_is_its_own_and_never_a_guess() -> None:
    reading = Reading(Side.CALLER, "local")
    reading.take(said("A table.", 1_000, 2_000), None)
    reading.heard_until(9_000)
    assert labels(reading) == []
    reading.take(note("A table.", 1_000, 2_000), None)
    reading.end()
    assert labels(reading) == [("A table.", "caller_intent")]


def test_the_last_words_of_a_local_caller_that_was_cut_off_are_guessed() -> None:
    reading = Reading(Side.CALLER, "local")
    reading.take(said("A table.", 1_000, 2_000), None)
    reading.take(note("A table.", 1_000, 2_000), None)
    reading.take(said("For two", 5_000, 5_600), None)
    reading.end()
    assert labels(reading) == [("A table.", "caller_intent"), ("For two", "transcript")]
