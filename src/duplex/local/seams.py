"""What a local voice is made of: ears, a brain, a mouth.

Each is a protocol so another engine drops in. All times are milliseconds of
media time on the session's own timeline. A brain sees words only, never audio;
it decides at once, or hands over a task that does (:class:`Ponder`): thinking is
charged by declared figures either way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from duplex.clock import Clock
from duplex.values import Action, Json

Pcm = npt.NDArray[np.int16]
VOICE_RATE_HZ = 24_000
"""Rate of everything ears take and mouths give, in Hz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How one sentence is said.

    ``voice`` names the voice as on the wire (``marin``, ``cedar``, ...);
    ``pace`` multiplies the duration (1.0 normal, 1.1 slower); ``semitones``
    shifts the pitch.
    """

    voice: str
    pace: float = 1.0
    semitones: float = 0.0


class Mouth(Protocol):
    """Text to speech."""

    def speak(self, text: str, style: Style) -> AsyncIterator[Pcm]:
        """Yield int16 mono chunks at 24 kHz, a sentence or less at a time."""

    async def close(self) -> None: ...


class Ears(Protocol):
    """Speech to text, one decode per utterance."""

    async def transcribe(self, pcm: Pcm) -> str:
        """Return the words in ``pcm`` (int16 mono, 24 kHz); empty when none."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Speak ``text`` after ``pause_ms`` more of thinking.

    ``over`` lets it begin while the other side speaks (backchannel, interrupt).
    ``items`` are the agenda items whose commitment these words carry.
    """

    text: str
    action: Action = Action.SPEAK
    pause_ms: int = 0
    over: bool = False
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegate:
    """Hand the conversation so far to the application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """An agenda item changed: ``completed``, ``skipped`` or ``bypassed``."""

    item_id: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Nothing more is wanted of this call (``completed`` or ``refused``)."""

    outcome: str = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something a local voice says about itself, beside the protocol's own events.

    It travels as an ``info`` event with ``code`` ``duplex.<kind>`` and a JSON
    object as ``message``. Kinds and fields: ``utterance`` {text, action,
    start_ms, end_ms, items, complete}, ``agenda`` {item_id, status}, ``finished``
    {outcome}, ``sound`` {kind, start_ms, end_ms}, ``late`` {what, late_ms},
    ``fault`` {code, message}, ``waited`` {host, seconds, status}, ``misbehaves``
    {fault}. An utterance
    decided before the other side's last words, and begun after them, also has
    ``stale`` true and ``decided_ms``.
    """

    kind: str
    fields: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Ponder:
    """Something is being thought over: what follows is decided when the thought is due.

    The task gives what decides it then. A later thought replaces one that is not yet due.
    """

    task: asyncio.Task[Callable[[], Sequence[Act]]]


Act = Say | Delegate | Progress | Finish | Note | Ponder


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One utterance of the other side, as the ears understood it.

    ``overlapped``: it began while this voice was speaking. ``cut``: this voice
    stopped for it before its own words were finished.
    """

    text: str
    start_ms: int
    end_ms: int
    overlapped: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One ``Say`` has ended; ``complete`` is false when it was cut short."""

    text: str
    action: Action
    items: tuple[str, ...]
    complete: bool


class Brain(Protocol):
    """Decides what to say from words alone."""

    def opening(self) -> Sequence[Act]:
        """The session has begun; what this side says unasked, if anything."""

    def on_heard(self, heard: Heard) -> Sequence[Act]:
        """The other side finished an utterance."""

    def on_said(self, said: Said) -> Sequence[Act]:
        """One of this side's own utterances ended or was cut."""

    def on_commentary(self, text: str, delegation_id: str | None) -> Sequence[Act]:
        """The application gave words to pass on (or asked for an opening)."""

    def on_quiet(self, quiet_ms: int) -> Sequence[Act]:
        """Both sides have been silent this long; called once a second."""

    def on_speech(self, speech_ms: int) -> Sequence[Act]:
        """The other side has been speaking this long; called every 200 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A transcript piece on the session timeline."""

    text: str
    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceFrame:
    """What a voice did during one frame: as many samples out as came in."""

    pcm: Pcm
    said: tuple[Words, ...] = ()
    heard: tuple[Words, ...] = ()
    delegations: tuple[int, ...] = ()
    """Offsets in ms of delegations begun in this frame, one id each."""
    notes: tuple[Note, ...] = ()


class Voice(Protocol):
    """One full-duplex speaker behind one session, driven by what it hears.

    Its only clock is the audio given to :meth:`frame`; in virtual time a frame
    waits for every job due in it, on the wall clock late jobs come late.
    """

    async def begin(self, clock: Clock) -> None:
        """The session has started at session time 0."""

    async def frame(self, pcm: Pcm) -> VoiceFrame:
        """Hear the next int16 samples at 24 kHz (any length > 0) and speak as many."""

    def commentary(self, text: str, delegation_id: str | None) -> None: ...

    def thinking(self, text: str, delegation_id: str | None) -> None: ...

    def instruct(self, text: str) -> None: ...

    async def close(self) -> None:
        """Cancel every job; never raises."""
