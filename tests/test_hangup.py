"""The hang-up rule on hand-made timelines."""

from __future__ import annotations

from duplex.hangup import HangUp, Policy
from duplex.values import Happening, Side

RATE = 1000  # one sample a millisecond
POLICY = Policy(quiet_ms=600, drain_ms=1500, opening_ms=20_000, max_duration_ms=90_000)


def rule(verified: bool | None = None) -> HangUp:
    check = None if verified is None else (lambda state: verified)
    hangup = HangUp(POLICY, RATE, "assistant", check)
    for side in Side:
        hangup.segment(side, 1000, 2000)
    return hangup


def test_a_finished_caller_and_enough_silence_end_the_call() -> None:
    hangup = rule()
    hangup.floor(5000, "none")
    hangup.happening(Side.CALLER, Happening(type="caller.finished", fields={}))
    assert hangup.reason(7099) is None
    assert hangup.reason(7100) == "response_completed"


def test_silence_alone_ends_nothing() -> None:
    hangup = rule()
    hangup.floor(5000, "none")
    assert hangup.reason(80_000) is None
    assert hangup.reason(90_000) == "duration_limit"


def test_open_work_and_new_speech_put_the_end_off() -> None:
    hangup = rule()
    hangup.floor(5000, "none")
    hangup.happening(Side.CALLER, Happening(type="caller.finished", fields={}))
    created = Happening(type="delegation.created", fields={"delegation_id": "d1"})
    closed = Happening(type="delegation.closed", fields={"delegation_id": "d1", "ok": True})
    hangup.happening(Side.ASSISTANT, created)
    assert hangup.reason(30_000) is None
    hangup.happening(Side.ASSISTANT, closed)
    hangup.floor(31_000, "assistant")
    assert hangup.reason(40_000) is None
    hangup.floor(40_000, "none")
    assert hangup.reason(42_100) == "response_completed"


def test_without_the_callers_word_a_verified_state_and_a_closing_do() -> None:
    for verified, expected in ((True, "response_completed"), (False, None)):
        hangup = rule(verified)
        hangup.floor(5000, "none")
        hangup.happening(Side.ASSISTANT, Happening(type="state", fields={"state": {}}))
        said = Happening(type="utterance", fields={"text": "Great, thank you!"})
        hangup.happening(Side.CALLER, said)
        assert hangup.reason(30_000) == expected


def test_a_side_that_never_opens_is_named() -> None:
    silent = HangUp(POLICY, RATE, "assistant", None)
    assert silent.reason(19_999) is None
    assert silent.reason(20_000) == "assistant_opening"
    half = HangUp(POLICY, RATE, "caller", None)
    half.floor(500, "caller")
    assert half.reason(20_499) is None
    assert half.reason(20_500) == "assistant_opening"


def test_speech_the_floor_does_not_know_of_yet_puts_the_end_off() -> None:
    hangup = rule()
    hangup.floor(5000, "none")
    hangup.happening(Side.CALLER, Happening(type="caller.finished", fields={}))
    hangup.speaking(7000, "assistant")
    assert hangup.reason(20_000) is None
    hangup.speaking(20_200, "none")
    hangup.floor(20_000, "none")
    assert hangup.reason(22_099) is None
    assert hangup.reason(22_100) == "response_completed"


def test_a_side_that_speaks_has_opened_before_its_segment_is_over() -> None:
    hangup = HangUp(POLICY, RATE, "assistant", None)
    hangup.speaking(19_000, "assistant")
    assert hangup.reason(20_000) is None
