"""A user's own check sees a copy, may veto, and breaks nothing but itself."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import duplex
from booking_call import BOOKED, booking, booking_call
from duplex.errors import InputError
from duplex.grading import Check, Evidence, grade
from duplex.grading.own_checks import CheckedCall, OwnCheck, checked_call, run_own
from duplex.options import make
from duplex.own_functions import load_checks
from duplex.results import schema
from duplex.results.run import exit_code, headline, rows
from duplex.values import Json, Side
from fake_engines import Parrot, speaking

EVIDENCE = Evidence.from_events(booking_call().events())


def told(run: Callable[[CheckedCall], object]) -> Check:
    call = checked_call(booking(), EVIDENCE, {"turn_taking_score": 0.5})
    (check,) = run_own([OwnCheck(name="mine", run=run)], call)
    return check


def test_a_check_sees_what_is_documented() -> None:
    seen: list[CheckedCall] = []

    def look(call: CheckedCall) -> tuple[bool, str]:
        seen.append(call)
        return True, "seen"

    assert told(look).status == "passed"
    (call,) = seen
    assert call.scenario == booking()
    assert [line.side for line in call.turns[:2]] == [Side.ASSISTANT, Side.CALLER]
    assert [tool.name for tool in call.tools] == ["check_availability", "create_reservation"]
    assert (call.initial_state, call.final_state) == ({}, BOOKED)
    assert call.timing == {"turn_taking_score": 0.5}
    assert (call.duration_ms, call.termination_reason) == (22_000, "response_completed")
    names = {field.name for field in dataclasses.fields(CheckedCall)}
    page = (Path(__file__).parents[1] / "docs" / "grading.md").read_text()
    assert all(f"`{name}`" in page for name in names)


def test_a_verdict_needs_a_boolean_and_words() -> None:
    assert told(lambda call: (False, "no  such\nluck")).reason == "no such luck"
    assert told(lambda call: (True, "")).reason == "no reason given"


async def _later(call: CheckedCall) -> tuple[bool, str]:
    return True, "too late"


def _raising(error: BaseException) -> Callable[[CheckedCall], object]:
    def run(call: CheckedCall) -> object:
        raise error

    return run


BROKEN: dict[str, tuple[Callable[[CheckedCall], object], str]] = {
    "nothing": (lambda call: None, "NoneType"),
    "a bare verdict": (lambda call: True, "bool"),
    "a number": (lambda call: (1, "one"), "tuple"),
    "no words": (lambda call: (True, None), "tuple"),
    "three things": (lambda call: (True, "a", "b"), "tuple"),
    "a coroutine": (_later, "coroutine"),
    "an error": (_raising(KeyError("x")), "KeyError"),
    "the way out": (lambda call: sys.exit("bye"), "SystemExit: bye"),
    "an endless call": (lambda call: told(lambda one: BROKEN["an endless call"][0](one)), "Recurs"),
}


@pytest.mark.parametrize(("run", "why"), BROKEN.values(), ids=BROKEN)
def test_anything_else_is_the_checks_own_fault(
    run: Callable[[CheckedCall], object], why: str
) -> None:
    check = told(run)
    assert (check.status, check.required, check.fails) == ("not_assessed", False, False)
    assert "could not tell" in check.reason
    assert why in check.reason or "returned Check" in check.reason


def test_a_person_can_still_stop_the_program() -> None:
    with pytest.raises(KeyboardInterrupt):
        told(_raising(KeyboardInterrupt()))


def test_one_check_never_sees_what_another_did() -> None:
    def spoil(call: CheckedCall) -> tuple[bool, str]:
        assert isinstance(call.final_state, dict)
        call.final_state.clear()
        return True, "spoilt"

    def look(call: CheckedCall) -> tuple[bool, str]:
        return call.final_state == BOOKED, "looked"

    call = checked_call(booking(), EVIDENCE, None)
    checks = run_own([OwnCheck(name="a", run=spoil), OwnCheck(name="b", run=look)], call)
    assert [check.status for check in checks] == ["passed", "passed"]
    assert EVIDENCE.final_state == BOOKED


def test_own_checks_stand_after_the_others_and_count_like_them() -> None:
    veto = told(lambda call: (False, "not good enough"))
    graded = grade(booking(), EVIDENCE, own=[veto])
    assert graded.checks[-1] == veto
    assert graded.failed_checks == ("check_function:mine",)
    assert graded.rationale == "not good enough"


def test_a_run_loads_checks_before_any_call(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="given twice"):
        load_checks(["a.b:c", "a.b:c"])
    with pytest.raises(InputError, match=r"check-function gone\.py: no such file"):
        duplex.run(check_function=["gone.py:x"], out=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert make({"check_function": ["m:f"]}).graders() == {"check_functions": ["m:f"]}


def test_a_run_tells_of_a_broken_check_and_does_not_pass_unseen(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "def veto(call):\n    return len(call.turns) < 3, 'they talked'\n\n"
        "def broken(call):\n    raise RuntimeError('no table')\n"
    )
    options = {"scenario": ["restaurant_booking_complete"], "clock": "virtual", "out": tmp_path}
    with speaking(Parrot()):
        broken = duplex.run(check_function=[f"{own}:broken"], **options).run
        held = duplex.run(check_function=[f"{own}:veto"], **options)
    vetoed = held.run
    assert (broken.results[0].status, exit_code(broken)) == ("passed", 1)
    assert rows(broken)[0].why == "broken could not tell: it raised RuntimeError: no table"
    assert (vetoed.results[0].status, exit_code(vetoed)) == ("failed", 1)
    assert "check_function:veto" in headline(vetoed)
    again = duplex.grade(held.folder)
    assert (again.run.results[0].status, again.code) == ("passed", 0)
    assert [verdict_of(run) for run in (vetoed, again.run)] == [False, True]


def verdict_of(run: schema.Run) -> Json:
    verdict = run.run.duplex["verdict"]
    assert isinstance(verdict, dict)
    return verdict["passed"]
