"""The words block of a call: both sides, from its folder alone, every null with a reason."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from booking_call import booking
from duplex.errors import InputError
from duplex.metrics.english import EnglishNormaliser
from duplex.metrics.word_definitions import WORD_DEFINITIONS, WORDS_VERSION
from duplex.metrics.words import WordsBlock, pooled, words_of, words_of_audio
from duplex.recording import Recording
from duplex.values import Json, Side, Span, Utterance

RATE = 24_000
Line = tuple[Side, int, int, str, str | None]
CALLER, ASSISTANT = Side.CALLER, Side.ASSISTANT
CALL: list[Line] = [
    (ASSISTANT, 500, 1500, "How can I help you?", "how can I help you"),
    (CALLER, 2000, 5000, "A table for two on August seventh, please.", "table for 2 on August 7th"),
    (ASSISTANT, 6000, 7000, "Under which name?", "under which name?"),
    (CALLER, 8000, 9000, "Maya.", "my a"),
    (ASSISTANT, 9500, 11000, "For two on August 7, Maya?", "for two on August 7 Maya"),
    (CALLER, 12000, 13000, "Yes, Maya, for two.", "yes, Maya, for 2"),
]


def call(folder: Path, lines: list[Line], *more: dict[str, Json]) -> Recording:
    """A call's folder with ``lines`` said by one side and heard by the other's session."""
    records: list[dict[str, Json]] = [{"side": None, "type": "call.started", "rate_hz": RATE}]
    for side, start_ms, end_ms, said, heard in lines:
        span: dict[str, Json] = {"start": start_ms * 24, "end": end_ms * 24}
        records.append({"side": side.label, "type": "segment", "detector": "rms", **span})
        source = "caller_intent" if side is CALLER else "transcript"
        about: dict[str, Json] = {"text": said, "action": None, "source": source}
        records.append({"side": side.label, "type": "utterance", **about, **span})
        if heard is not None:
            records.append(transcript(side.other, "heard", heard, start_ms, end_ms))
    records += more
    text = "".join(
        json.dumps({"seq": seq, "at": seq, "received_at": None, **record}) + "\n"
        for seq, record in enumerate(records)
    )
    (folder / "events").mkdir(parents=True)
    (folder / "events" / "one.jsonl").write_text(text)
    return Recording.load(folder, "one")


def transcript(
    side: Side, direction: str, text: str, start_ms: int, end_ms: int
) -> dict[str, Json]:
    return {
        "side": side.label,
        "type": "transcript",
        "direction": direction,
        "text": text,
        "start": start_ms * 24,
        "end": end_ms * 24,
    }


def at(document: Json, pointer: str) -> Json:
    for part in pointer.split("/")[1:]:
        document = document[int(part)] if isinstance(document, list) else document[part]  # type: ignore[index]
    return document


def nulls(document: Json, pointer: str = "") -> Iterator[str]:
    if document is None:
        yield pointer
    elif isinstance(document, dict):
        for name, value in document.items():
            yield from nulls(value, f"{pointer}/{name}")


def assert_every_null_has_a_reason(document: dict[str, Json]) -> None:
    json.dumps(document, allow_nan=False)
    unknown = document["unknown"]
    assert isinstance(unknown, dict)
    assert all(reason for reason in unknown.values())
    assert set(nulls({k: v for k, v in document.items() if k != "unknown"})) == set(unknown)


def test_each_party_is_scored_by_what_its_own_session_heard(tmp_path: Path) -> None:
    document = words_of(call(tmp_path, CALL), booking()).as_json()
    ears = at(document, "/heard_by/assistant")
    assert isinstance(ears, dict)
    assert (ears["speaker"], ears["said_from"]) == ("caller", "caller_intent")
    assert ears["wer"] == {
        "rate": round(4 / 13, 6),
        "numerator": 4,
        "denominator": 13,
        "n": 13,
        "substitutions": 1,
        "deletions": 2,
        "insertions": 1,
    }
    assert at(ears, "/raw/wer/denominator") == 13
    assert at(ears, "/raw/wer/numerator") == 8
    assert at(ears, "/entity_recognition/numerator") == 4
    assert at(ears, "/entity_recognition/n") == 5
    assert (at(ears, "/entity_recall/numerator"), at(ears, "/entity_recall/n")) == (1, 1)
    assert at(document, "/heard_by/caller/wer/rate") == 0
    assert at(document, "/heard_by/caller/entity_recognition/rate") == 1
    assert_every_null_has_a_reason(document)


def test_utterances_and_entities_say_where_and_what(tmp_path: Path) -> None:
    document = words_of(call(tmp_path, CALL), booking()).as_json()
    assert at(document, "/heard_by/assistant/utterances/1") == {
        "start_ms": 8000.0,
        "end_ms": 9000.0,
        "said": "Maya.",
        "heard": "my a",
        "said_words": "maya",
        "heard_words": "my a",
        "errors": 2,
        "words": 1,
    }
    assert at(document, "/heard_by/assistant/entities/2") == {
        "names": ["guest_name"],
        "kind": "name",
        "value": "Maya",
        "start_ms": 8000.0,
        "end_ms": 9000.0,
        "said": "maya",
        "right": False,
        "again": False,
    }


def test_without_a_scenario_there_are_words_and_no_key_values(tmp_path: Path) -> None:
    document = words_of(call(tmp_path, CALL)).as_json()
    assert at(document, "/heard_by/assistant/wer/denominator") == 13
    assert at(document, "/heard_by/assistant/entity_recognition") is None
    assert_every_null_has_a_reason(document)


def test_a_session_without_a_transcript_is_unknown_and_not_deaf(tmp_path: Path) -> None:
    lines: list[Line] = [(*line[:4], None if line[0] is CALLER else line[4]) for line in CALL]
    document = words_of(call(tmp_path, lines), booking()).as_json()
    assert at(document, "/heard_by/assistant") is None
    assert "no transcript" in str(at(document, "/unknown")["/heard_by/assistant"])  # type: ignore[index,call-overload]
    assert at(document, "/heard_by/caller/wer/rate") == 0
    assert_every_null_has_a_reason(document)


def test_what_was_said_comes_from_the_session_when_nothing_is_labelled(tmp_path: Path) -> None:
    pieces = [
        transcript(CALLER, "said", " nine one", 1000, 1400),
        transcript(CALLER, "said", " nine", 1400, 1600),
        transcript(CALLER, "said", " Thanks.", 4000, 4400),
        transcript(ASSISTANT, "heard", " 919. Thanks.", 1000, 4400),
    ]
    document = words_of(call(tmp_path, [], *pieces)).as_json()
    assert at(document, "/heard_by/assistant/said_from") == "the session's transcript"
    assert at(document, "/heard_by/assistant/wer/denominator") == 2
    assert at(document, "/heard_by/assistant/wer/numerator") == 0
    assert_every_null_has_a_reason(document)


def test_words_heard_of_a_silent_side_are_added_words_without_a_rate(tmp_path: Path) -> None:
    heard = transcript(ASSISTANT, "heard", "Thanks for watching.", 1000, 2000)
    document = words_of(call(tmp_path, [], heard), booking()).as_json()
    assert at(document, "/heard_by/assistant/wer/insertions") == 3
    assert at(document, "/heard_by/assistant/wer/rate") is None
    assert at(document, "/heard_by/assistant/entity_recognition/rate") is None
    assert_every_null_has_a_reason(document)


def test_words_heard_of_a_voice_nobody_labelled_accuse_nobody(tmp_path: Path) -> None:
    voice: dict[str, Json] = {"side": "caller", "type": "segment", "start": 24000, "end": 48000}
    heard = transcript(ASSISTANT, "heard", "Hello there.", 1000, 2000)
    document = words_of(call(tmp_path, [], voice, heard)).as_json()
    assert at(document, "/heard_by/assistant/wer") is None
    assert at(document, "/heard_by/assistant/text/0/text") == "Hello there."
    assert_every_null_has_a_reason(document)


def test_missing_libraries_leave_a_block_that_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jiwer" else find(name)
    )
    block = words_of(call(tmp_path, CALL), booking())
    document = block.as_json()
    assert at(document, "/heard_by") is None
    assert "pip install jiwer" in str(document["unknown"])
    assert_every_null_has_a_reason(document)
    assert pooled([block]) == {"caller": None, "assistant": None}


# -- from the audio -----------------------------------------------------------------


def spoken(side: Side, start_ms: int, end_ms: int, text: str) -> Utterance:
    return Utterance(side=side, text=text, span=Span(start=start_ms * 24, end=end_ms * 24))


EARS = {
    CALLER: [
        spoken(CALLER, 2000, 5000, "A table for 2 on August 7th, please."),
        spoken(CALLER, 8000, 13000, "Maya. Yes, Maya, for 2."),
    ],
    ASSISTANT: [],
}


def test_what_our_ears_heard_stands_beside_what_the_sessions_heard(tmp_path: Path) -> None:
    document = words_of(call(tmp_path, CALL), booking(), {"conversation": EARS}).as_json()
    assert at(document, "/from_audio/conversation/caller/wer/numerator") == 0
    assert at(document, "/from_audio/conversation/caller/entity_recall/n") == 2
    assert at(document, "/from_audio/conversation/assistant/wer/deletions") == 14
    assert at(document, "/heard_by/assistant/wer/numerator") == 4
    assert_every_null_has_a_reason(document)


def test_a_bare_recording_has_its_words_and_no_rate() -> None:
    document = words_of_audio({"conversation": EARS}, RATE).as_json()
    assert at(document, "/from_audio/conversation/caller/text/0") == {
        "start_ms": 2000.0,
        "end_ms": 5000.0,
        "text": "A table for 2 on August 7th, please.",
    }
    assert at(document, "/from_audio/conversation/caller/wer") is None
    assert at(document, "/heard_by/caller") is None
    assert_every_null_has_a_reason(document)


def test_labels_with_text_are_what_was_said_in_a_bare_recording() -> None:
    labels = {CALLER: [spoken(CALLER, 2000, 5000, "A table for two on August seventh, please.")]}
    document = words_of_audio({"conversation": EARS}, RATE, labels).as_json()
    assert at(document, "/from_audio/conversation/caller/wer/denominator") == 8
    assert at(document, "/from_audio/conversation/caller/wer/insertions") == 5
    assert_every_null_has_a_reason(document)


# -- over calls ---------------------------------------------------------------------


def test_pooling_sums_counts_and_then_divides(tmp_path: Path) -> None:
    short: list[Line] = [(CALLER, 0, 900, "Hello.", "goodbye now")]
    blocks = [words_of(call(tmp_path / "a", CALL)), words_of(call(tmp_path / "b", short))]
    found = pooled(blocks)
    assert at(found, "/assistant/calls") == 2
    assert at(found, "/assistant/wer/numerator") == 4 + 2
    assert at(found, "/assistant/wer/denominator") == 13 + 1
    assert at(found, "/assistant/wer/rate") == round(6 / 14, 6)
    assert at(found, "/caller/calls") == 1


def test_blocks_of_different_versions_are_not_pooled(tmp_path: Path) -> None:
    block = words_of(call(tmp_path, CALL))
    other = WordsBlock(
        version="0.9", libraries=block.libraries, sessions=block.sessions, audio=block.audio
    )
    with pytest.raises(InputError, match="2 different versions"):
        pooled([block, other])


# -- drift --------------------------------------------------------------------------

_DIGESTS = {"1.0": "6462d5b52a69bf1ab74ae7b7a78835796c780c2839f9a5efb8f0f8c4d93e969a"}
_CORPUS = """21st / twenty first / 10:00 AM / ten a m / 919-696-3901 / thirty six / Type One / OK
half past seven p.m. / August the seventh, twenty twenty six / 2026-08-07 / 7/4/2026 / $20.50
Mm-hmm. / I'd like a table for two / R zero zero one / oh / one second / M-A-Y-A / colour / 3.5%
nine one nine oh / a hundred and fifth / 1.5 million / May I come at seven / quarter to one"""


def test_meanings_and_normal_forms_change_only_with_the_version() -> None:
    normal = EnglishNormaliser()
    meant = {name: [d.unit, d.sentence, d.source] for name, d in WORD_DEFINITIONS.items()}
    forms = [normal(text) for line in _CORPUS.splitlines() for text in line.split(" / ")]
    content = json.dumps([meant, forms], sort_keys=True)
    assert hashlib.sha256(content.encode()).hexdigest() == _DIGESTS[WORDS_VERSION]
