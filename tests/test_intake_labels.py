"""Labels of a recording from Audacity, RTTM and our JSON; what is wrong is placed."""

from __future__ import annotations

from pathlib import Path

import pytest

from duplex.errors import InputError
from duplex.intake import Labels, read_labels, told
from duplex.intake.roles import ASSUMED
from duplex.values import Action, Side, Span

RATE = 1_000


def labels(tmp_path: Path, text: str | bytes) -> Labels:
    path = tmp_path / "labels.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_labels(path, RATE, ASSUMED)


def test_audacity_labels_name_the_side_or_are_the_callers(tmp_path: Path) -> None:
    found = labels(
        tmp_path,
        "0.500000\t2.000000\thello there\n\\\t100.0\t4000.0\n"
        "2,6\t4,4\tassistant: Good day\n5\t6\tCaller: bye\n7\t8\n",
    )
    assert [(u.side, u.text, u.span) for u in found.utterances] == [
        (Side.CALLER, "hello there", Span(start=500, end=2000)),
        (Side.ASSISTANT, "Good day", Span(start=2600, end=4400)),
        (Side.CALLER, "bye", Span(start=5000, end=6000)),
        (Side.CALLER, "", Span(start=7000, end=8000)),
    ]
    assert {u.source for u in found.utterances} == {"transcript"}


def test_an_action_is_the_callers_intent(tmp_path: Path) -> None:
    found = labels(
        tmp_path,
        "0\t1\tBACKCHANNEL\n1\t2\t[interrupt] wait\n2\t3\tassistant: [STOP] no\n3\t4\tOKAY",
    )
    assert [(u.action, u.text, u.source) for u in found.utterances] == [
        (Action.BACKCHANNEL, "", "caller_intent"),
        (Action.INTERRUPT, "wait", "caller_intent"),
        (None, "[STOP] no", "transcript"),
        (None, "OKAY", "transcript"),
    ]


def test_caller_sounds_are_kept_apart(tmp_path: Path) -> None:
    found = labels(tmp_path, "1\t1.2\ttic\n3\t4\tside speech\n5\t6\ttick tock\n")
    assert [(s.kind, s.span) for s in found.sounds] == [
        ("tic", Span(start=1000, end=1200)),
        ("side_speech", Span(start=3000, end=4000)),
    ]
    assert [u.text for u in found.utterances] == ["tick tock"]


RTTM = """SPEAKER call 1 0.50 1.50 <NA> <NA> spk0 <NA> <NA>
SPEAKER call 2 2.60 1.80 <NA> <NA> spk1 <NA> <NA>
SPKR-INFO call 1 <NA> <NA> <NA> unknown spk0 <NA> <NA>
SPEAKER call 1 5.00 1.00 <NA> <NA> agent <NA> <NA>
"""


def test_rttm_names_the_side_by_speaker_else_by_channel(tmp_path: Path) -> None:
    found = labels(tmp_path, RTTM)
    assert [(u.side, u.span) for u in found.utterances] == [
        (Side.CALLER, Span(start=500, end=2000)),
        (Side.ASSISTANT, Span(start=2600, end=4400)),
        (Side.ASSISTANT, Span(start=5000, end=6000)),
    ]


def test_rttm_channels_follow_the_roles(tmp_path: Path) -> None:
    (tmp_path / "a.rttm").write_text(RTTM)
    found = read_labels(tmp_path / "a.rttm", RATE, told("assistant,caller"))
    assert [u.side for u in found.utterances][:2] == [Side.ASSISTANT, Side.CALLER]


JSON = """{"utterances": [
  {"side": "caller", "start_ms": 500, "end_ms": 2000.5, "text": "hi", "action": "OPENING"},
  {"side": "assistant", "start_ms": 2600, "end_ms": 4400}],
 "sounds": [{"kind": "tic", "start_ms": 100, "end_ms": 200}]}"""


def test_our_json_says_all_of_it(tmp_path: Path) -> None:
    found = labels(tmp_path, b"\xef\xbb\xbf" + JSON.encode())
    assert [(u.side, u.text, u.action) for u in found.utterances] == [
        (Side.CALLER, "hi", Action.OPENING),
        (Side.ASSISTANT, "", None),
    ]
    assert [s.kind for s in found.sounds] == ["tic"]


def test_an_empty_file_holds_no_labels(tmp_path: Path) -> None:
    assert labels(tmp_path, "\n \n").utterances == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0\t1\ta\n2\t1\tb\n", r":2: ends at 1 s, before its start 2 s"),
        ("0\t1\ta\nx\t1\tb\n", r':2: "x" is no time in seconds'),
        ("0 1 a\n", r":1: wanted start, end and text parted by tabs"),
        ("nan\t1\ta\n", r":1: a time of nan s"),
        ("-1\t1\ta\n", r":1: a time of -1 s, wanted 0"),
        ("1e300\t2e300\ta\n", r":1: a time of 1e\+300 s"),
        ("SPEAKER a 1 0 1\n", r":1: wanted at least 8 fields, got 5"),
        ("SPEAKER a 3 0 1 <NA> <NA> bob x x\n", r':1: speaker "bob" on channel 3 is neither'),
        ('{"utterances": [}', r":1:17: is no JSON"),
        ('{"utterance": []}', r"utterance: extra inputs are not permitted"),
        ("[1]", r"the document: "),
        ('{"utterances": [{"side": "bob", "start_ms": 0, "end_ms": 1}]}', r"utterances\[0\].side"),
        (
            '{"utterances": [{"side": "caller", "start_ms": 2, "end_ms": 1}]}',
            r"utterances\[0\]: end_ms 1 is before start_ms 2",
        ),
        (
            '{"utterances": [{"side": "caller", "start_ms": NaN, "end_ms": 1}]}',
            r"utterances\[0\].start_ms",
        ),
        ("[" * 200_000, r"nested too deeply|is no JSON"),
        (b"\xff\xfe\x00", r"are no UTF-8 text"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, text: str | bytes, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        labels(tmp_path, text)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: no such file"):
        read_labels(tmp_path / "none.txt", RATE, ASSUMED)
