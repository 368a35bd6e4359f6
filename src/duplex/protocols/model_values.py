"""What is asked of a language model and what it answers, in no server's dialect.

``responses.py`` and ``chat_completions.py`` write and read these on the wire. They
are plain values: no defaults that read a clock, no I/O, nothing of one server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from duplex.values import Json

TEXT_LIMIT = 65_536
"""Characters of an answer, or of one call's arguments, that are kept; more is refused."""
CALLS_LIMIT = 32
"""Function calls that one response may make."""

UNSERVED = ("rate_limit", "insufficient_quota", "overloaded")
"""Codes, or their beginnings, by which a provider says that it had no capacity for an answer."""

Status = Literal["completed", "failed", "incomplete", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function the model may call; ``parameters`` is an object schema."""

    name: str
    description: str
    parameters: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One line of conversation; ``role`` is ``user``, ``assistant`` or ``developer``."""

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The model wants a function run; ``arguments`` is text that should be a JSON object."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a function returned, as text."""

    call_id: str
    text: str


Item = Message | Call | Output


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What an answer's text must be: one JSON object of a schema."""

    name: str
    schema: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. ``must_call`` names the one function that has to be called.

    ``previous_id`` continues an earlier response where the dialect can: then ``items``
    are only what is new, and ``history`` what a server without memory is sent as well.
    ``store`` false asks the server to keep nothing of it; None leaves that to the server.
    """

    model: str
    instructions: str = ""
    items: tuple[Item, ...] = ()
    history: tuple[Item, ...] = ()
    functions: tuple[Function, ...] = ()
    must_call: str | None = None
    effort: str | None = None
    previous_id: str | None = None
    max_output_tokens: int | None = None
    shape: Shape | None = None
    store: bool | None = None

    @property
    def whole(self) -> tuple[Item, ...]:
        """Everything said so far, for a server that keeps nothing."""
        return (*self.history, *self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What a response used; None where the server did not say."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None

    def as_json(self) -> dict[str, Json]:
        return {
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "output_tokens": self.output_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "total_tokens": self.total_tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One response that is over. Calls of one that was not ``completed`` are void.

    ``problem`` and ``code`` are why it was not, in the server's words.
    """

    response_id: str
    status: Status
    text: str = ""
    calls: tuple[Call, ...] = ()
    tokens: Tokens | None = None
    problem: str = field(default="")
    code: str = ""

    @property
    def unserved(self) -> bool:
        """Whether its provider had no capacity for it, which says nothing of the model."""
        return self.status == "failed" and self.code.startswith(UNSERVED)

    @property
    def items(self) -> tuple[Item, ...]:
        """What it adds to the conversation."""
        said = (Message(role="assistant", text=self.text),) if self.text else ()
        return (*said, *self.calls)
