"""What a live session's messages mean to the call: audio, happenings, faults.

It takes decoded messages in order and keeps what the call will collect. It
labels utterances by the peer's own notes where it sends them, and by the gaps
in its transcript otherwise. Synchronous, without a socket or a clock; the
session drives it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from duplex.participants.base import Discarded, Incoming, Spoken
from duplex.participants.doubles import Doubles
from duplex.participants.live_words import Grouper, Piece, Run
from duplex.protocols.gpt_live import FATAL_CODES, Broken, read_object
from duplex.protocols.gpt_live_client import (
    Audio,
    Closed,
    Delegated,
    Info,
    Refusal,
    ServerMessage,
    Started,
    Transcript,
    Usage,
)
from duplex.protocols.seen_events import Repeated
from duplex.resample import Resampler
from duplex.values import Action, Happening, Json, RemoteFault, Side

NOTE_PREFIX = "duplex."
_ENDLESS = frozenset(
    {
        "backend.usage",
        "delegation.created",
        "reply.interrupted",
        "session.usage",
        "sound",
        "transcript",
        "utterance",
        "voice.late",
    }
)
"""What a peer may tell as often as it likes."""
FAULT_NAME = re.compile(r"[a-z0-9_]{1,40}")
SETTLE_MS = 1_500
"""A run of transcript is taken for an utterance this long after its end, unless a note came."""
SAME_FAULT_LIMIT = 5
"""Faults of one code told one by one; the rest are counted and told at the end."""
FAULT_CODES_LIMIT = 100
"""Codes told apart: a peer names its own, and each that it makes up would be told anew."""
OTHER_CODE = "other"
UNCOLLECTED_LIMIT = 20_000
"""Items kept for a loop that does not collect; about half an hour of audio deltas."""
TOLD_LIMIT = 200_000
"""Happenings of a peer's making that are recorded; two hours of talk have a quarter of that."""
TEXT_LIMIT = 20_000
"""Letters of one transcript that are kept."""
LETTERS_LIMIT = 4_000_000
"""Letters of all of them, ten times what is said in two hours."""


class Reading:
    """One session's incoming side."""

    def __init__(
        self,
        side: Side,
        provider: str,
        resampler: Resampler | None = None,
        doubles: Doubles | None = None,
    ) -> None:
        """``provider`` ``local`` labels its callers itself: nothing is guessed beside its notes."""
        self.pieces: list[Piece] = []
        self._side = side
        self._provider = provider
        self._resampler = resampler
        self._doubles = doubles
        self._newest_ms: dict[bool, int] = {}
        self._odd = False
        self._items: list[Incoming] = []
        self._lost = 0
        self._told = 0
        self._letters = 0
        self._untold = 0
        self._faults: Counter[tuple[str, str]] = Counter()
        self._grouper = Grouper()
        self._notes_seen = provider == "local" and side is Side.CALLER
        self._labelled_ms = 0.0
        self._guessed_ms = 0.0

    def collect(self) -> list[Incoming]:
        items, self._items = self._items, []
        return items

    def take(
        self, message: ServerMessage, received_at: float | None, arrived_at: int | None = None
    ) -> None:
        """Take one message of a started session; ``arrived_at`` is the clock's position."""
        match message:
            case Audio():
                self._audio(message, received_at, arrived_at)
            case Transcript():
                self._transcript(message, received_at)
            case Info():
                self._note(message, received_at)
            case Delegated():
                fields: dict[str, Json] = {
                    "delegation_id": message.delegation_id,
                    "target": message.target,
                }
                self.tell("delegation.created", fields, received_at)
            case Usage():
                self.tell(
                    "session.usage", {"seconds": message.seconds, "final": False}, received_at
                )
            case Closed():
                if message.seconds is not None:
                    usage: dict[str, Json] = {"seconds": message.seconds, "final": True}
                    self.tell("session.usage", usage, received_at)
                self.tell("session.closed", {"reason": message.reason}, received_at)
            case Started(updated=False):
                self.tell(
                    "session.started",
                    {
                        "session_id": message.session_id,
                        "model": message.model,
                        "voice": message.voice,
                        "provider": self._provider,
                    },
                    received_at,
                )
            case Refusal():
                fatal = message.code in FATAL_CODES
                self.fault("session", message.code, message.message, fatal=fatal)
            case Repeated():
                self.repeated(message.type)
            case Broken():
                self.fault("session", message.code, message.reason)

    def tell(self, kind: str, fields: Mapping[str, Json], received_at: float | None = None) -> None:
        """Tell one happening; of what a peer can tell without end, only so much."""
        if kind in _ENDLESS:
            self._told += 1
            text = fields.get("text")
            if isinstance(text, str):
                self._letters += min(len(text), TEXT_LIMIT)
                fields = {**fields, "text": text[:TEXT_LIMIT]} if len(text) > TEXT_LIMIT else fields
            if self._told > TOLD_LIMIT or self._letters > LETTERS_LIMIT:
                self._untold += 1
                return
        self._keep(Happening(type=kind, fields=fields, received_at=received_at))

    def fault(self, stage: str, code: str, message: str, *, fatal: bool = False) -> None:
        """Tell a fault; many of one code are counted instead."""
        known = (stage, code) in self._faults or len(self._faults) < FAULT_CODES_LIMIT
        code = code if known or fatal else OTHER_CODE
        self._faults[stage, code] += 1
        if fatal or self._faults[stage, code] <= SAME_FAULT_LIMIT:
            self._keep(self._fault(stage, code, message, fatal=fatal))

    def repeated(self, kind: str) -> None:
        """The peer sent one event twice; once is taken."""
        self.fault("session", "duplicate_event", f"{kind} came twice, once was taken")

    def odd_bytes(self) -> None:
        """Audio is cut into pieces that hold no whole samples; told once."""
        if not self._odd:
            self._odd = True
            text = "audio came in odd numbers of bytes and was joined"
            self.fault("transport", "odd_bytes", text)

    def misbehaves(self, fault: Json) -> None:
        """The local server says itself what it does wrong; it excuses nobody."""
        if isinstance(fault, str) and FAULT_NAME.fullmatch(fault):
            text = f"the server says that it misbehaves on purpose: {fault}"
            self.fault("session", fault, text)

    def heard_until(self, now_ms: float) -> None:
        """Session time has come to ``now_ms``: label what nothing can join any more."""
        self._label(self._grouper.ended_by(now_ms - SETTLE_MS))

    def end(self) -> None:
        """The session is over: label what is open, tell what was only counted."""
        self._label(self._unlabelled(self._grouper.flush()), guess=True)
        for (stage, code), count in self._faults.items():
            if count > SAME_FAULT_LIMIT:
                more = f"{count - SAME_FAULT_LIMIT} more of the kind"
                self._items.append(self._fault(stage, code, more, fatal=False))
        if self._lost:
            message = f"{self._lost} items came while nobody collected them"
            self._items.append(self._fault("transport", "overflow", message, fatal=False))
        if self._untold:
            message = f"{self._untold} happenings beyond what a session may tell were not recorded"
            self._items.append(self._fault("transport", "too_many_events", message, fatal=False))
        self._faults.clear()
        self._lost = self._untold = 0

    # -- one kind each ------------------------------------------------------

    def _audio(self, message: Audio, received_at: float | None, arrived_at: int | None) -> None:
        doubles = self._doubles
        if doubles is not None and doubles.is_double(message.pcm, arrived_at):
            self._keep(Discarded(samples=doubles.samples(message.pcm)))
            self.repeated("a piece of audio")
            return
        pcm = self._resampler.push(message.pcm) if self._resampler else message.pcm
        if len(pcm):
            self._keep(Spoken(pcm=pcm, received_at=received_at, arrived_at=arrived_at))

    def _transcript(self, message: Transcript, received_at: float | None) -> None:
        newest = self._newest_ms.get(message.said, 0)
        if message.start_ms < newest:
            text = f"a transcript of {message.start_ms} ms came after one of {newest} ms"
            self.fault("session", "reordered", text)
        self._newest_ms[message.said] = max(newest, message.start_ms)
        text = message.text[:TEXT_LIMIT]
        fields: dict[str, Json] = {
            "direction": "said" if message.said else "heard",
            "text": text,
            "start_ms": message.start_ms,
            "end_ms": message.end_ms,
        }
        self.tell("transcript", fields, received_at)
        if self._untold:
            return
        start_ms, end_ms = message.start_ms, message.end_ms
        self.pieces.append(Piece(said=message.said, text=text, start_ms=start_ms, end_ms=end_ms))
        if message.said:
            self._label(self._grouper.add(text, start_ms, end_ms))

    def _unlabelled(self, runs: list[Run]) -> list[Run]:
        """A voice that was cut off says nothing of its last words, so they are guessed."""
        return [run for run in runs if run.start_ms >= self._labelled_ms]

    def _label(self, runs: list[Run], *, guess: bool = False) -> None:
        if self._notes_seen and not guess:
            return
        for run in runs:
            self._guessed_ms = run.end_ms
            fields: dict[str, Json] = {
                "text": run.text,
                "start_ms": run.start_ms,
                "end_ms": run.end_ms,
                "action": None,
                "source": "transcript",
            }
            self.tell("utterance", fields)

    def _note(self, message: Info, received_at: float | None) -> None:
        """Take a local voice's note; any other notice needs no answer."""
        if not message.code.startswith(NOTE_PREFIX):
            return
        fields = read_object(message.message)
        if isinstance(fields, Broken):
            self.fault("session", "unreadable", f"{message.code}: {fields.reason}")
            return
        caller = self._side is Side.CALLER
        match message.code.removeprefix(NOTE_PREFIX):
            case "utterance":
                self._notes_seen = True
                self._utterance(fields, received_at)
            case "agenda" if caller:
                self.tell("agenda", _only(fields, "item_id", "status"), received_at)
            case "finished" if caller:
                self.tell("caller.finished", _only(fields, "outcome"), received_at)
            case "sound" if caller:
                self.tell("sound", _only(fields, "kind", "start_ms", "end_ms"), received_at)
            case "late":
                self.tell("voice.late", _only(fields, "what", "late_ms"), received_at)
            case "misbehaves":
                self.misbehaves(fields.get("fault"))
            case "waited" if self._provider == "local":
                self.tell("backend.waited", _only(fields, "host", "seconds", "status"), received_at)
            case "fault" if self._provider == "local":
                # Only our own voices are believed: an agent must not excuse itself.
                stage = "caller_simulation" if caller else "backend"
                code, text = str(fields.get("code")), str(fields.get("message"))
                self.fault(stage, code, text, fatal=True)

    def _utterance(self, note: Mapping[str, Json], received_at: float | None) -> None:
        """Label what the voice says it said; only a caller's intent is an action."""
        caller = self._side is Side.CALLER
        start, end = note.get("start_ms"), note.get("end_ms")
        if isinstance(start, (int, float)) and start < self._guessed_ms:
            return  # a first note that came later than the guess at its words
        self._labelled_ms = max(self._labelled_ms, end if isinstance(end, (int, float)) else 0)
        action = note.get("action")
        known = caller and action in tuple(Action)
        fields: dict[str, Json] = {
            **_only(note, "text", "start_ms", "end_ms"),
            "action": action if known else None,
            "source": "caller_intent" if caller else "transcript",
        }
        if caller and note.get("stale") is True:
            fields |= _only(note, "stale", "decided_ms")
        self.tell("utterance", fields, received_at)

    def _fault(self, stage: str, code: str, message: str, *, fatal: bool) -> RemoteFault:
        return RemoteFault(side=self._side, stage=stage, code=code, message=message, fatal=fatal)

    def _keep(self, item: Incoming) -> None:
        if len(self._items) < UNCOLLECTED_LIMIT:
            self._items.append(item)
        else:
            self._lost += 1


def _only(fields: Mapping[str, Json], *names: str) -> dict[str, Json]:
    return {name: fields.get(name) for name in names}
