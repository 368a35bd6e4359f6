"""The life cycle of delegated work, one rule at a time."""

from __future__ import annotations

from duplex.metrics.work import (
    CallEnded,
    CallStarted,
    Closed,
    Opened,
    RunEnded,
    RunStarted,
    WorkEvent,
    active_work,
)

END = 1000


def client(t: int, id_: str) -> WorkEvent:
    return Opened(t_ms=t, kind="client", id=id_)


def managed(t: int, id_: str, run: str = "") -> WorkEvent:
    return Opened(t_ms=t, kind="managed", id=id_, run=run)


def close(t: int, id_: str) -> WorkEvent:
    return Closed(t_ms=t, id=id_)


def start(t: int, run: str, id_: str = "", prev: str = "") -> WorkEvent:
    return RunStarted(t_ms=t, run=run, id=id_, prev=prev)


def stop(t: int, run: str, outcome: str = "ok") -> WorkEvent:
    assert outcome in ("ok", "failed", "incomplete")
    return RunEnded(t_ms=t, run=run, outcome=outcome)  # type: ignore[arg-type]


def call(t: int, name: str, run: str = "", id_: str = "") -> WorkEvent:
    return CallStarted(t_ms=t, call=name, run=run, id=id_)


def done(t: int, name: str, run: str = "", id_: str = "") -> WorkEvent:
    return CallEnded(t_ms=t, call=name, run=run, id=id_)


def active(*events: WorkEvent) -> list[tuple[int, int]]:
    return list(active_work(events, END))


def test_nothing_is_open_without_events() -> None:
    assert active() == []


def test_a_client_delegation_is_open_until_it_is_closed() -> None:
    assert active(client(100, "d"), close(300, "d")) == [(100, 300)]


def test_work_left_open_lasts_to_the_end() -> None:
    assert active(client(100, "d")) == [(100, END)]


def test_opening_twice_needs_one_close() -> None:
    assert active(client(100, "d"), client(200, "d"), close(300, "d")) == [(100, 300)]


def test_a_close_of_an_unknown_id_ends_nothing() -> None:
    assert active(client(100, "d"), close(200, "x"), close(250, ""), close(300, "d")) == [
        (100, 300)
    ]


def test_a_close_voids_a_later_open_of_the_same_id() -> None:
    assert active(close(100, "d"), client(200, "d")) == []
    assert active(client(50, "d"), close(100, "d"), client(200, "d")) == [(50, 100)]


def test_spans_that_touch_or_overlap_are_one() -> None:
    touching = (client(100, "a"), close(200, "a"), client(200, "b"), close(300, "b"))
    assert active(*touching) == [(100, 300)]


def test_events_are_replayed_by_time() -> None:
    assert active(close(300, "d"), client(100, "d")) == [(100, 300)]


def test_equal_times_keep_the_order_given() -> None:
    assert active(client(100, "d"), close(100, "d")) == []
    assert active(close(100, "d"), client(100, "d")) == []
    assert active(done(100, "c", "r", "d"), call(100, "c", "r", "d")) == []
    assert active(call(100, "c", "r", "d"), done(100, "c", "r", "d"), call(200, "e")) == [
        (200, END)
    ]


def test_a_close_ends_the_runs_and_calls_the_client_owns() -> None:
    events = (client(100, "d"), start(150, "r", "d"), call(160, "c", "r"), close(300, "d"))
    assert active(*events) == [(100, 300)]


def test_a_run_of_its_own_is_work() -> None:
    assert active(start(100, "r"), stop(200, "r")) == [(100, 200)]


def test_a_run_starts_once() -> None:
    assert active(start(100, "r"), stop(200, "r"), start(300, "r")) == [(100, 200)]


def test_an_end_voids_a_late_start_which_then_claims_nothing() -> None:
    assert active(stop(100, "r"), start(200, "r")) == []
    assert active(managed(50, "m"), stop(100, "r"), start(200, "r", "m")) == [(50, END)]


def test_a_managed_delegation_waits_for_a_run_of_its_id() -> None:
    waiting = (managed(100, "m"), start(200, "x", "other"), stop(300, "x"))
    assert active(*waiting) == [(100, END)]
    assert active(*waiting, start(400, "r", "m"), stop(500, "r")) == [(100, 500)]


def test_an_ownerless_run_claims_the_only_one_waiting() -> None:
    assert active(managed(100, "m"), start(200, "r"), stop(300, "r")) == [(100, 300)]


def test_an_ownerless_run_claims_nothing_when_two_wait() -> None:
    events = (managed(100, "m"), managed(110, "n"), start(200, "r"), stop(300, "r"))
    assert active(*events) == [(100, END)]
    assert active(*events, start(400, "q", "m"), stop(500, "q")) == [(100, END)]
    both = (start(400, "q", "m"), stop(500, "q"), start(600, "p", "n"), stop(700, "p"))
    assert active(*events, *both) == [(100, 700)]


def test_an_absent_id_is_no_match_for_an_absent_owner() -> None:
    events = (managed(100, ""), managed(110, "m"), start(200, "r"), stop(300, "r"))
    assert active(*events, start(400, "q", "m"), stop(500, "q")) == [(100, END)]


def test_a_run_that_claims_a_delegation_is_owned_by_it() -> None:
    events = (managed(100, "m"), start(200, "r"), stop(300, "r"), done(310, "c", "r"))
    assert active(*events, start(400, "q", "m"), stop(500, "q")) == [(100, 300), (310, 500)]


def test_an_ownerless_run_claims_nothing_beside_an_open_run() -> None:
    events = (start(50, "a"), managed(100, "m"), start(200, "r"), stop(300, "r"), stop(310, "a"))
    assert active(*events) == [(50, END)]


def test_a_managed_delegation_that_names_its_run_opens_it_at_once() -> None:
    assert active(managed(100, "m", "r"), start(200, "r"), stop(300, "r")) == [(100, 300)]


def test_a_managed_delegation_adopts_a_run_already_open() -> None:
    events = (start(100, "r"), managed(150, "m", "r"), stop(200, "r"), done(250, "c", "r"))
    assert active(*events) == [(100, 200), (250, END)]
    assert active(*events, start(300, "q", "m"), stop(400, "q")) == [(100, 200), (250, 400)]


def test_a_run_end_leaves_its_calls_open() -> None:
    events = (start(100, "r", "x"), call(150, "c", "r"), stop(200, "r"), done(300, "c", "r"))
    assert active(*events) == [(100, 300)]


def test_a_failed_run_takes_its_calls_and_its_follow_up_along() -> None:
    for outcome in ("failed", "incomplete"):
        events = (start(100, "r"), call(150, "c", "r"), stop(200, "r", outcome))
        assert active(*events) == [(100, 200)]
        owed = (start(100, "r"), done(150, "c", "r"), stop(200, "r", outcome))
        assert active(*owed) == [(100, 200)]
        again = (start(100, "r"), stop(120, "r"), done(150, "c", "r"), stop(200, "r", outcome))
        assert active(*again) == [(100, 120), (150, 200)]


def test_a_failed_run_starts_no_calls_and_owes_nothing_later() -> None:
    events = (start(100, "r"), stop(200, "r", "failed"), call(300, "c", "r"), done(400, "c", "r"))
    assert active(*events) == [(100, 200)]


def test_a_failed_run_leaves_other_runs_calls_alone() -> None:
    events = (start(100, "r", "x"), call(150, "c", "q", "x"), stop(200, "r", "failed"))
    assert active(*events, done(300, "c", "q", "x")) == [(100, 300)]


def test_calls_of_one_name_in_two_runs_are_two_calls() -> None:
    events = (
        call(100, "c", "r", "x"),
        call(150, "c", "q", "x"),
        done(200, "c", "r", "x"),
        done(300, "c", "q", "x"),
    )
    assert active(*events) == [(100, 300)]


def test_a_call_ended_before_it_starts_never_opens() -> None:
    assert active(done(100, "c", "r", "x"), call(200, "c", "r", "x")) == []


def test_an_ownerless_call_owes_a_follow_up_even_without_a_start() -> None:
    assert active(done(100, "c")) == [(100, END)]
    assert active(done(100, "")) == []
    assert active(call(100, ""), done(200, "")) == [(100, END)]


def test_calls_for_clients_and_unknown_owners_owe_nothing() -> None:
    assert active(client(50, "d"), done(100, "c", "", "d"), close(200, "d")) == [(50, 200)]
    assert active(start(50, "r", "x"), stop(80, "r"), done(100, "c", "r")) == [(50, 80)]


def owing(owner: str = "") -> tuple[WorkEvent, ...]:
    """Run r has ended and its call, over at 300, owes a follow-up."""
    opened = (managed(100, owner, "r"),) if owner else ()
    return (*opened, start(100, "r"), call(150, "c", "r"), stop(200, "r"), done(300, "c", "r"))


def test_a_run_that_names_the_run_before_pays_its_follow_up() -> None:
    assert active(*owing(), start(400, "q", "", "r"), stop(500, "q")) == [(100, 500)]
    assert active(*owing("m"), start(400, "q", "", "r"), stop(500, "q")) == [(100, 500)]


def test_a_run_of_the_same_managed_owner_pays_the_follow_up() -> None:
    assert active(*owing("m"), start(400, "q", "m"), stop(500, "q")) == [(100, 500)]
    assert active(*owing("m"), start(400, "q", "n"), stop(500, "q")) == [(100, END)]


def test_an_ownerless_run_pays_the_only_thing_open() -> None:
    assert active(*owing(), start(400, "q"), stop(500, "q")) == [(100, 500)]
    assert active(*owing("m"), start(400, "q"), stop(500, "q")) == [(100, 500)]


def test_an_ownerless_run_pays_nothing_beside_other_work() -> None:
    beside = (client(350, "d"), start(400, "q"), stop(500, "q"), close(600, "d"))
    assert active(*owing(), *beside) == [(100, END)]


def test_an_ownerless_run_that_names_another_run_pays_nothing() -> None:
    assert active(*owing(), start(400, "q", "", "z"), stop(500, "q")) == [(100, END)]


def test_a_run_already_followed_up_owes_nothing() -> None:
    events = (*owing(), start(400, "q", "", "r"), stop(500, "q"), done(600, "late", "r"))
    assert active(*events) == [(100, 500)]
    same = (*owing("m"), start(400, "q", "m"), stop(500, "q"), done(600, "late", "r"))
    assert active(*same) == [(100, 500)]


def test_calls_without_a_run_owe_a_follow_up_for_each_owner() -> None:
    events = (managed(50, "m", "r"), managed(60, "n", "s"), stop(70, "r"), stop(80, "s"))
    owed = (*events, done(100, "a", "", "m"), done(110, "b", "", "n"))
    assert active(*owed, start(200, "x", "n"), stop(300, "x")) == [(50, 80), (100, END)]


def test_follow_ups_of_two_runs_are_owed_separately() -> None:
    both = (*owing(), done(320, "e", "s"), start(400, "q", "", "r"), stop(500, "q"))
    assert active(*both) == [(100, END)]
    assert active(*both, start(600, "t", "", "s"), stop(700, "t")) == [(100, 700)]


def test_a_close_ends_follow_ups_owed_under_its_id() -> None:
    assert active(*owing("m"), close(400, "m")) == [(100, 400)]


def test_absent_run_ids_never_void_each_other() -> None:
    events = (start(100, ""), stop(200, ""), start(300, ""), stop(400, ""))
    assert active(*events) == [(100, 200), (300, 400)]


def test_work_beyond_the_end_is_cut_there() -> None:
    late_end = (start(100, "r"), stop(5000, "r", "incomplete"))
    assert active(*late_end) == [(100, END)]
