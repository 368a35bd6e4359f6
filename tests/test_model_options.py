"""Which models a run may be asked for, and what a model's brain makes of its replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from duplex.application.prompts import AgendaItem, Brief, caller_instructions
from duplex.errors import InputError
from duplex.local.model_brain import HttpModel, ModelCaller, ModelHost
from duplex.local.pondering import Pondering
from duplex.local.seams import Act, Delegate, Finish, Heard, Note, Ponder, Progress, Said, Say
from duplex.models.client import ModelClient, ModelError, Waited
from duplex.models.place import ModelPlace
from duplex.options import make
from duplex.protocols.model_values import Answer, Ask, Call, Message
from duplex.values import Action
from fake_models import error, in_turn, response, serving

URL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"backend_url": URL}, "without backend-model"),
        ({"brain_url": URL}, "without brain-model or simulator-brain-model"),
        ({"backend_url": "http://example.com/v1", "backend_model": "m"}, "plain text"),
        ({"brain_url": "x", "brain_model": "m"}, "brain-url 'x' is no url"),
        ({"delegation": "responses", "assistant": "gpt-live"}, "wants a backend-model"),
        ({"delegation": "responses", "assistant": "ws://127.0.0.1:9"}, "backend of its own"),
        ({"backend_model": "m", "assistant": "ws://127.0.0.1:9"}, "does its own work"),
        (
            {
                "delegation": "responses",
                "assistant": "gpt-live",
                "backend_model": "m",
                "backend_url": URL,
            },
            "runs the backend of delegation responses itself",
        ),
        ({"brain_model": "m", "assistant": "gpt-live"}, "thinks for itself"),
        ({"simulator_brain_model": "m", "caller": "gpt-live"}, "thinks for itself"),
        ({"simulator_backend_model": "m"}, "caller local has no backend"),
        ({"backend_model": "m", "backend_reasoning_effort": "much"}, "backend-reasoning-effort"),
        (
            {"assistant_endpoint": "https://example.com", "backend_model": "m"},
            "takes no backend-model",
        ),
    ],
)
def test_models_with_nothing_to_do_or_nowhere_to_be_are_refused(
    options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        make(options)


def test_a_config_file_may_name_models(tmp_path: Path) -> None:
    options = make({"backend_url": URL, "backend_model": "m", "allow_plain_http": True})
    assert options.models() == {"backend_url": URL, "backend_model": "m"}
    assert make({"delegation": "responses"}).asked_backend == "local"
    assert make({}).asked_backend is None


# -- brains -----------------------------------------------------------------


class Replies:
    """A model that gives replies in turn and remembers what it was asked."""

    def __init__(self, *replies: dict[str, object] | str | ModelError) -> None:
        self.replies = list(replies)
        self.asked: list[Ask] = []

    async def answer(self, ask: Ask) -> tuple[Answer, Sequence[Waited]]:
        self.asked.append(ask)
        reply = self.replies.pop(0)
        if isinstance(reply, ModelError):
            raise reply
        if isinstance(reply, str):
            return Answer(response_id="r", status="completed", text=reply), ()
        call = Call(call_id="c", name="speak", arguments=json.dumps(reply))
        return Answer(response_id="r", status="completed", calls=(call,)), ()

    def lines(self) -> list[str]:
        return [item.text for item in self.asked[-1].items if isinstance(item, Message)]


async def decided(acts: Sequence[Act]) -> Sequence[Act]:
    """What a brain's thought comes to."""
    (ponder,) = acts
    assert isinstance(ponder, Ponder)
    return (await ponder.task)()


BRIEF = Brief(
    goal="A table.",
    opening="I'd like a table.",
    agenda=(AgendaItem(id="name", commitment="Say the name."), AgendaItem(id="time")),
)


def caller(model: Replies) -> ModelCaller:
    return ModelCaller.from_instructions(caller_instructions(BRIEF), model, 7)


def heard(text: str) -> Heard:
    return Heard(text=text, start_ms=0, end_ms=100)


def said(say: Act, *, complete: bool = True) -> Said:
    assert isinstance(say, Say)
    return Said(text=say.text, action=say.action, items=say.items, complete=complete)


async def test_a_caller_opens_with_its_own_words_and_then_asks_its_model() -> None:
    model = Replies({"say": "It's Maya.", "done": ["name", "nonsense"], "finish": "no"})
    brain = caller(model)
    (opening,) = brain.on_heard(heard("Hello, how can I help?"))
    assert isinstance(opening, Say)
    assert (opening.text, opening.action) == ("I'd like a table.", Action.OPENING)
    assert brain.on_said(said(opening)) == []
    (say,) = await decided(brain.on_heard(heard("Under what name?")))
    assert isinstance(say, Say)
    assert say.items == ("name",)
    assert model.lines() == ["Hello, how can I help?", "I'd like a table.", "Under what name?"]
    assert "duplex-brief" not in model.asked[0].instructions
    assert list(brain.on_said(said(say))) == [Progress(item_id="name", status="completed")]


async def test_a_caller_leaves_once_its_last_words_are_out() -> None:
    brain = caller(Replies({"say": "Bye.", "done": [], "finish": "completed"}))
    brain.on_said(said(brain.on_quiet(6_000)[0]))
    (bye,) = await decided(brain.on_heard(heard("It is booked.")))
    acts = list(brain.on_said(said(bye)))
    assert acts[-1] == Finish(outcome="completed")
    assert {act.status for act in acts if isinstance(act, Progress)} == {"bypassed"}
    assert brain.on_heard(heard("Hello?")) == ()


async def test_words_that_were_cut_off_are_told_to_the_model_and_are_due_again() -> None:
    model = Replies({"say": "It's Maya.", "done": ["name"], "finish": "no"}, {"say": ""})
    brain = caller(model)
    brain.on_said(said(brain.on_quiet(6_000)[0]))
    (say,) = await decided(brain.on_heard(heard("Name?")))
    assert list(brain.on_said(said(say, complete=False))) == []
    assert list(await decided(brain.on_heard(heard("Sorry, name?")))) == []
    assert '[You were cut off while saying: "It\'s Maya."]' in model.lines()


async def test_a_caller_that_is_not_answered_gives_up() -> None:
    brain = caller(Replies({"say": ""}, {"say": ""}, {"say": ""}))
    brain.on_said(said(brain.on_quiet(6_000)[0]))
    for _ in range(3):
        assert list(await decided(brain.on_quiet(8_000))) == []
    (bye,) = brain.on_quiet(8_000)
    assert isinstance(bye, Say)
    assert list(brain.on_said(said(bye)))[-1] == Finish(outcome="refused")


async def test_a_host_hands_work_over_and_says_what_came_of_it() -> None:
    model = Replies({"say": "", "hand_over": True}, "Your table is booked.")
    host = ModelHost("Answer the telephone.", model, 7)
    say, hands = await decided(host.on_heard(heard("A table for two.")))
    assert isinstance(say, Say)
    assert hands == Delegate()
    (said_out,) = await decided(host.on_commentary("Booked for two.", "d1"))
    assert isinstance(said_out, Say)
    assert said_out.text == "Your table is booked.", "plain words of a model count as said"
    assert model.lines()[-1] == "[What came of the work you handed over: Booked for two.]"


async def test_a_model_that_fails_is_a_fault_note() -> None:
    host = ModelHost("x", Replies(ModelError("no model", code="unreachable")), 7)
    (note,) = await decided(host.on_heard(heard("hello")))
    assert note == Note(kind="fault", fields={"code": "unreachable", "message": "no model"})


async def test_new_words_replace_a_thought_that_is_not_due() -> None:
    thoughts = Pondering()

    async def never() -> None:
        await asyncio.Event().wait()

    async def first() -> object:
        await never()
        return lambda: ()

    async def second() -> object:
        return lambda: (Delegate(),)

    slow = asyncio.create_task(first())
    quick = asyncio.create_task(second())
    thoughts.begin(Ponder(slow), 100)  # type: ignore[arg-type]
    thoughts.begin(Ponder(quick), 200)  # type: ignore[arg-type]
    assert await thoughts.decided(199, True) is None, "nothing is decided before it is due"
    found = await thoughts.decided(260, True)
    assert found is not None
    assert (list(found.acts), found.late) == ([Delegate()], 60)
    assert slow.cancelled()
    assert not thoughts.busy


async def test_a_thought_that_is_not_there_is_waited_for_in_virtual_time_only() -> None:
    thoughts = Pondering()
    gate = asyncio.Event()

    async def slow() -> object:
        await gate.wait()
        return lambda: ()

    thoughts.begin(Ponder(asyncio.create_task(slow())), 0)  # type: ignore[arg-type]
    assert await thoughts.decided(10, False) is None
    asyncio.get_running_loop().call_later(0.01, gate.set)
    assert await thoughts.decided(10, True) is not None
    await thoughts.close()


async def test_live_a_long_wait_for_a_voices_model_is_a_fault_and_in_virtual_time_is_not() -> None:
    limited = error(429, "rate_limit_exceeded", retry_after_ms="1100")
    for live in (False, True):
        with serving(in_turn([limited, response("hi")])) as fake:
            async with ModelClient(ModelPlace(url=fake.url, model="m")) as client:
                model = HttpModel(client, live=live)
                if live:
                    with pytest.raises(ModelError, match="made this call wait") as refused:
                        await model.answer(Ask(model="m"))
                    assert refused.value.code == "rate_limited"
                else:
                    answer, waits = await model.answer(Ask(model="m"))
                    assert answer.text == "hi"
                    assert [one.status for one in waits] == [429]
