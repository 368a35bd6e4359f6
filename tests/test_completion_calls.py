"""Whole calls that a model, or verified state and closing words, bring to their end.

The caller is one that cannot say when it is finished, as a real voice model; both
sides say planted sounds at planted times, in virtual time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import duplex
from duplex.call import Call, CallEnd, CallPlan
from duplex.clock import VirtualClock
from duplex.completion.observer import SemanticObserver
from duplex.completion.seen import Task
from duplex.grading import Evidence
from duplex.hangup import Policy
from duplex.metrics.from_recording import timeline_of
from duplex.models.client import ModelClient
from duplex.models.place import ModelPlace
from duplex.participants.base import Incoming, Pcm
from duplex.participants.scripted import Scripted
from duplex.recording import CallRecorder, Recording
from duplex.results.completion import completion_of
from duplex.values import Happening, Json, Side, Span, Utterance
from fake_engines import Parrot, speaking
from fake_models import Asked, Reply, error, response, serving
from stimuli import pcm, speechlike
from test_completion import verdict

RATE = 24_000
MS = RATE // 1000
BOOKED: dict[str, Json] = {"booked": True}
OPEN: dict[str, Json] = {"booked": False}
BOOKING = "restaurant_booking_complete"

Line = tuple[int, int, str]
"""Start and length in ms, and the words."""
CALLER: tuple[Line, ...] = (
    (2_000, 1_000, "A table, please."),
    (5_000, 1_000, "At seven."),
)
ASSISTANT: tuple[Line, ...] = (
    (400, 1_000, "How can I help?"),
    (3_600, 1_000, "At what time?"),
    (7_000, 1_500, "It is booked."),
)


class Speaker(Scripted):
    """Says lines at their times, tells their words after them, and happenings at theirs."""

    def __init__(
        self, side: Side, lines: Sequence[Line], told: Sequence[tuple[int, Happening]] = ()
    ) -> None:
        pieces = [
            (start * MS, pcm(speechlike(length / 1000, index + 10 * side)))
            for index, (start, length, _) in enumerate(lines)
        ]
        labels = [
            Utterance(side=side, text=text, span=Span(start=start * MS, end=(start + length) * MS))
            for start, length, text in lines
        ]
        never: Pcm = np.zeros(1, np.int16)
        super().__init__(side, [*pieces, (10**9, never)], labels)
        self._later = sorted(told, key=lambda item: item[0])

    def collect(self) -> Sequence[Incoming]:
        due = [one for at, one in self._later if at * MS <= self._now]
        self._later = self._later[len(due) :]
        return [*super().collect(), *due]


def happening(kind: str, **fields: Json) -> Happening:
    return Happening(type=kind, fields=fields)


def state(at_ms: int, value: Json) -> tuple[int, Happening]:
    return at_ms, happening("state", state=value)


WORK: tuple[tuple[int, Happening], ...] = (state(0, OPEN), state(6_500, BOOKED))


@dataclass
class Held:
    """One call, as it was recorded."""

    end: CallEnd
    recording: Recording
    asked: list[Asked] = field(default_factory=list)

    @property
    def ended_ms(self) -> float:
        return self.end.position / MS

    @property
    def completion(self) -> dict[str, Json]:
        return completion_of(self.recording.events)

    def counts(self) -> dict[str, int]:
        observer = self.completion["observer"]
        assert isinstance(observer, dict)
        return {name: n for name, n in observer.items() if isinstance(n, int) and n}

    @property
    def actions(self) -> list[str]:
        return [label.action for label in timeline_of(self.recording).caller_turns]


async def held(
    folder: Path,
    script: Callable[[Asked], Reply] | None,
    *,
    caller: Sequence[Line] = CALLER,
    assistant: Sequence[Line] = ASSISTANT,
    work: Sequence[tuple[int, Happening]] = WORK,
    own: Sequence[tuple[int, Happening]] = (),
    seconds: int = 30,
    timeout_ms: int = 5_000,
) -> Held:
    """Hold a call to its end; ``script`` answers for the observer, None is without one."""
    with serving(script or (lambda asked: error(500, "nobody"))) as fake:
        clock = VirtualClock(RATE)
        client = ModelClient(ModelPlace(url=fake.url, model="watcher"))
        client.open()
        task = Task(goal="A table.", expected_state=BOOKED)
        observer = SemanticObserver(task, client, rate_hz=RATE, timeout_ms=timeout_ms)
        recorder = CallRecorder(folder, "c", rate_hz=RATE)
        call = Call(
            CallPlan(
                call_id="c",
                scenario_id="c",
                policy=Policy(max_duration_ms=seconds * 1000),
            ),
            caller=Speaker(Side.CALLER, caller, own),
            assistant=Speaker(Side.ASSISTANT, assistant, work),
            clock=clock,
            recorder=recorder,
            verified=lambda found: found == BOOKED,
            observer=None if script is None else observer,
        )
        end = await call.hold()
        await client.close()
        return Held(end=end, recording=Recording.load(folder, "c"), asked=fake.asked)


# -- with an observer -------------------------------------------------------------


async def test_an_accepted_ruling_drains_and_ends_the_call(tmp_path: Path) -> None:
    call = await held(tmp_path, lambda asked: verdict())
    assert call.end.reason == "response_completed"
    assert call.completion["decided_by"] == "observer"
    assert call.completion["policy"] == "semantic_conversation_observer"
    assert call.counts()["accepted"] == 1
    observer = call.completion["observer"]
    assert isinstance(observer, dict)
    steps = observer["steps"]
    assert isinstance(steps, list)
    last = steps[-1]
    assert isinstance(last, dict)
    # Speech ends at 8.5 s, a turn 600 ms later, a look takes 800 ms, the drain 1 500 ms.
    assert isinstance(last["at_ms"], int)
    assert last["at_ms"] == pytest.approx(8_500 + 600 + 800, abs=150)
    assert call.ended_ms == pytest.approx(last["at_ms"] + 1_500, abs=21)


async def test_a_verdict_before_the_state_is_verified_ends_nothing(tmp_path: Path) -> None:
    call = await held(tmp_path, lambda asked: verdict(), work=WORK[:1], seconds=20)
    assert call.end.reason == "duration_limit"
    assert call.completion["decided_by"] == "nobody"
    assert call.counts()["overridden"] >= 2
    assert "accepted" not in call.counts()


async def test_pending_work_holds_the_call_open_whatever_the_model_says(tmp_path: Path) -> None:
    opened = (6_600, happening("delegation.created", delegation_id="d", target="client"))
    closed = (14_000, happening("delegation.closed", delegation_id="d", ok=True))
    call = await held(tmp_path, lambda asked: verdict(), work=(*WORK, opened, closed))
    assert call.end.reason == "response_completed"
    assert call.ended_ms > 14_000 + 1_500


@pytest.mark.parametrize("second", ["Could it be by the window?", "Thank you, goodbye."])
async def test_words_of_the_caller_in_the_drain_revoke_it(tmp_path: Path, second: str) -> None:
    late = (10_600, 1_000, second)
    reply = (13_000, 1_000, "It is.")
    call = await held(
        tmp_path,
        lambda asked: verdict(),
        caller=(*CALLER, late),
        assistant=(*ASSISTANT, reply),
    )
    assert call.counts()["revoked"] >= 1
    assert call.end.reason == "response_completed"
    assert call.ended_ms > 14_000 + 2_100
    assert call.actions == ["OPENING", "SPEAK", "SPEAK"]


async def test_the_last_real_request_is_never_relabelled(tmp_path: Path) -> None:
    """Whoever ends the call, a request that nobody answered stays one, and is missed."""
    request = (9_000, 1_500, "Thanks, and could you also send me the address? Goodbye.")
    for name, script in (("observer", lambda asked: verdict()), ("words", None)):
        call = await held(tmp_path / name, script, caller=(*CALLER, request), seconds=20)
        assert call.actions == ["OPENING", "SPEAK", "SPEAK"], name
        evidence = Evidence.from_recording(call.recording)
        last = evidence.lines(Side.CALLER)[-1]
        assert last.action == "SPEAK", name
        if script is None:
            assert call.end.reason == "duration_limit", "a request does not close a call"


async def test_slow_or_fast_the_model_makes_the_same_call(tmp_path: Path) -> None:
    heard = []
    for name, seconds in (("fast", 0.0), ("slow", 0.1)):

        def script(asked: Asked, seconds: float = seconds) -> Reply:
            time.sleep(seconds)
            return verdict()

        call = await held(tmp_path / name, script)
        events = [event for event in call.recording.events if event.type != "late"]
        heard.append(([(e.at, e.type, dict(e.fields)) for e in events], call.end.position))
    assert heard[0] == heard[1], "virtual time stands still while a model thinks"


# -- without one, or with one that fails ------------------------------------------

GOODBYE: Line = (9_500, 1_200, "Perfect, thank you. Goodbye.")


async def test_without_a_model_verified_state_and_closing_words_end_it(tmp_path: Path) -> None:
    call = await held(tmp_path, None, caller=(*CALLER, GOODBYE))
    assert call.end.reason == "response_completed"
    assert call.completion["policy"] == "verified_state_and_closing"
    assert call.completion["decided_by"] == "verified_state_and_closing"
    assert call.ended_ms == pytest.approx(10_700 + 2_100, abs=100)
    assert call.actions == ["OPENING", "SPEAK", "STOP"]
    assert [line.action for line in Evidence.from_recording(call.recording).lines(Side.CALLER)] == [
        "OPENING",
        "SPEAK",
        "STOP",
    ]


@pytest.mark.parametrize(
    "script",
    [
        lambda asked: error(401, "invalid_api_key"),
        lambda asked: error(429, "rate_limit_exceeded", retry_after="60"),
        lambda asked: response("no idea"),
    ],
    ids=["refused", "rate limit", "unreadable"],
)
async def test_a_model_that_fails_costs_nothing_but_itself(
    tmp_path: Path, script: Callable[[Asked], Reply]
) -> None:
    call = await held(tmp_path, script, caller=(*CALLER, GOODBYE), timeout_ms=100)
    assert call.end.reason == "response_completed"
    assert call.end.fault is None
    assert call.completion["policy"] == "verified_state_and_closing"
    assert call.completion["decided_by"] == "verified_state_and_closing"
    assert call.counts()["failed"] >= 1
    assert call.recording.faults == ()


async def test_where_no_state_is_told_a_farewell_must_do(tmp_path: Path) -> None:
    thanks = (9_500, 1_200, "Great, thank you.")
    for name, line, reason in (
        ("bye", GOODBYE, "response_completed"),
        ("thanks", thanks, "duration_limit"),
    ):
        call = await held(tmp_path / name, None, caller=(*CALLER, line), work=(), seconds=16)
        assert call.end.reason == reason


async def test_a_thankful_yes_to_a_question_closes_nothing(tmp_path: Path) -> None:
    asks = (9_200, 1_000, "Shall I send you the address?")
    yes = (10_800, 800, "Yes, thank you.")
    call = await held(
        tmp_path, None, caller=(*CALLER, yes), assistant=(*ASSISTANT, asks), seconds=16
    )
    assert call.end.reason == "duration_limit"


async def test_a_caller_that_says_it_is_finished_is_believed(tmp_path: Path) -> None:
    own = ((9_000, happening("caller.finished", outcome="completed")),)
    call = await held(tmp_path, lambda asked: verdict("unresolved", False), own=own)
    assert call.end.reason == "response_completed"
    assert call.completion["decided_by"] == "caller"


# -- by options -------------------------------------------------------------------


@pytest.fixture
def parrot() -> Iterator[Parrot]:
    with speaking(Parrot()) as made:
        yield made


def test_a_run_says_what_ended_its_calls(tmp_path: Path, parrot: Parrot) -> None:
    with serving(lambda asked: verdict("unresolved", False)) as fake:
        finished = duplex.run(
            scenario=[BOOKING],
            clock="virtual",
            out=tmp_path,
            completion_url=fake.url,
            completion_model="watcher",
            completion_timeout_seconds=5.0,
        )
        asked = fake.asked
    (result,) = finished.run.results
    assert result.status == "passed", result.assessment
    configuration = finished.run.run.configuration
    assert (configuration.semantic_drain, configuration.completion_model) == (True, "watcher")
    assert configuration.completion_timeout_seconds == 5.0
    assert result.observability.completion.policy == "semantic_conversation_observer"
    block = result.duplex["completion"]
    assert isinstance(block, dict)
    assert block["decided_by"] == "caller"
    assert asked
    text = json.dumps(asked[-1].body)
    assert "Maya" in text, "goal and turns are shown"
    assert finished.run.run.duplex["models"] == {
        "completion_url": fake.url,
        "completion_model": "watcher",
    }


def test_without_semantic_drain_the_model_is_never_asked(tmp_path: Path, parrot: Parrot) -> None:
    with serving(lambda asked: verdict()) as fake:
        finished = duplex.run(
            scenario=[BOOKING],
            clock="virtual",
            out=tmp_path,
            completion_url=fake.url,
            completion_model="watcher",
            semantic_drain=False,
        )
        assert fake.asked == []
    (result,) = finished.run.results
    assert result.observability.completion.policy == "verified_state_and_closing"
    assert finished.run.run.configuration.completion_model is None


def test_private_fields_are_hidden_from_who_looks_on(tmp_path: Path, parrot: Parrot) -> None:
    with serving(lambda asked: verdict("unresolved", False)) as fake:
        duplex.run(
            scenario=[BOOKING],
            clock="virtual",
            out=tmp_path,
            redact=["guest_name"],
            completion_url=fake.url,
            completion_model="watcher",
        )
        shown = [json.dumps(asked.body) for asked in fake.asked]
    assert shown
    assert not any("Maya" in one for one in shown)
    assert any("party_size" in one for one in shown)
