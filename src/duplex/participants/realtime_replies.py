"""Replies that come faster than they are heard: what was heard of each, what was cut.

A reply is one item of audio with its words. Its audio waits in a paced queue;
its words are told once its audio was heard, and only as far as it was. When the
other side speaks, everything that waits is forgotten, each reply that had not
been heard out is cut where it stands, and what still comes of it is dropped.
Pure: a Realtime session drives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from duplex.participants.base import Pcm, Spoken
from duplex.participants.paced_queue import PacedQueue, Stretch
from duplex.resample import Resampler
from duplex.values import Happening, Json

REMEMBERED = 1_000
"""Ids of replies and responses that are over, kept so that what comes late is known."""
OPEN_LIMIT = 500
"""Replies that may be open at once; what a flood of items adds beyond is dropped."""
WORDS_LIMIT = 20_000
"""Characters of one reply's words that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A reply that was not heard out.

    ``heard_ms`` is rounded down, so it never lies beyond what the peer sent.
    ``generated``: the peer has finished it, so that there is nothing to cancel.
    """

    item_id: str
    response_id: str
    heard_ms: int
    received_ms: int
    generated: bool


@dataclass(slots=True, kw_only=True)
class _Reply:
    response_id: str
    stretch: Stretch
    resampler: Resampler | None
    words: list[str] = field(default_factory=list)
    length: int = 0
    ended: bool = False


class Known:
    """A set of ids that forgets the oldest."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def add(self, identity: str) -> None:
        self._ids[identity] = None
        if len(self._ids) > REMEMBERED:
            del self._ids[next(iter(self._ids))]

    def __contains__(self, identity: str) -> bool:
        return identity in self._ids


class Replies:
    """One session's replies, from the wire's rate to the call's."""

    def __init__(self, rate_hz: int, wire_hz: int) -> None:
        self.dropped = 0
        """Samples that came and will not be heard, since :meth:`take_dropped`."""
        self.refused = 0
        """Samples that found the queue full."""
        self.late = 0
        """Declarations and ends of replies that came on the wrong side of their audio."""
        self._rate = rate_hz
        self._wire = wire_hz
        self._queue = PacedQueue(rate_hz)
        self._open: dict[str, _Reply] = {}
        self._gone = Known()
        self._over = Known()
        self._told: list[Happening] = []

    # -- what comes ---------------------------------------------------------

    def audio(self, item_id: str, response_id: str, pcm: Pcm, arrived_at: int | None) -> None:
        """Take audio of one item at the wire's rate; that of a reply cut before is dropped."""
        reply = self._reply(item_id, response_id)
        if reply is None:
            self.dropped += len(pcm) * self._rate // self._wire
            return
        if reply.ended:
            # Its end came first; the audio is still wanted.
            self.late += 1
            other = self._rate != self._wire
            reply.resampler = Resampler(self._wire, self._rate) if other else None
        if reply.resampler is not None:
            pcm = reply.resampler.push(pcm)
        self._queued(reply, pcm, arrived_at)

    def words(self, item_id: str, response_id: str, text: str, *, whole: bool) -> None:
        """Take words of one item; they are told when its audio was heard."""
        reply = self._reply(item_id, response_id)
        if reply is None:
            return
        if whole:
            reply.words, reply.length = [], 0
        if text and reply.length + len(text) <= WORDS_LIMIT:
            reply.words.append(text)
            reply.length += len(text)

    def begun(self, item_id: str, response_id: str) -> None:
        """An item was declared; cut before its first sample, nothing of it is heard."""
        reply = self._open.get(item_id)
        if reply is not None and reply.stretch.received:
            self.late += 1
        self._reply(item_id, response_id)

    def audio_done(self, item_id: str, arrived_at: int | None = None) -> None:
        """No more audio of that item will come."""
        reply = self._open.get(item_id)
        if reply is None or reply.ended:
            return
        reply.ended = True
        if reply.resampler is not None:
            self._queued(reply, reply.resampler.finish(), arrived_at)

    def response_done(self, response_id: str) -> None:
        """The response is over, so are all its items; they are still to be heard out."""
        self._over.add(response_id)
        for item_id, reply in list(self._open.items()):
            if reply.response_id == response_id:
                self.audio_done(item_id)

    def _reply(self, item_id: str, response_id: str) -> _Reply | None:
        reply = self._open.get(item_id)
        if reply is not None or not item_id:
            return reply
        if item_id in self._gone or response_id in self._gone or len(self._open) >= OPEN_LIMIT:
            return None
        other = self._rate != self._wire
        reply = _Reply(
            response_id=response_id,
            stretch=Stretch(key=item_id),
            resampler=Resampler(self._wire, self._rate) if other else None,
        )
        self._open[item_id] = reply
        return reply

    def _queued(self, reply: _Reply, pcm: Pcm, arrived_at: int | None) -> None:
        accepted = self._queue.add(reply.stretch, pcm, arrived_at)
        if accepted < len(pcm):
            self.refused += len(pcm) - accepted
            self.dropped += len(pcm) - accepted

    # -- what is heard ------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Samples that came and were not heard yet."""
        return self._queue.waiting

    @property
    def speaking(self) -> bool:
        """Whether there is anything of a reply that has not been heard out."""
        return any(not self._is_heard_out(reply) for reply in self._open.values())

    @property
    def starved(self) -> bool:
        """Whether a reply has begun to be heard, is not over, and nothing of it waits."""
        replies = [one for one in self._open.values() if one.stretch.handed and not one.ended]
        return bool(replies) and not self._queue.waiting

    def take(self, samples: int) -> Spoken | None:
        """Hand over what is heard next, up to ``samples``."""
        spoken = self._queue.take(samples)
        self._settle()
        return spoken

    def take_told(self) -> list[Happening]:
        """Words of replies that are over since the last time."""
        told, self._told = self._told, []
        return told

    def take_dropped(self) -> int:
        dropped, self.dropped = self.dropped, 0
        return dropped

    def interrupt(self) -> list[Cut]:
        """The other side speaks: forget what waits, return the replies that are cut, in order."""
        self._settle()
        self.dropped += self._queue.flush()
        cuts = []
        for item_id, reply in self._open.items():
            self._gone.add(item_id)
            cuts.append(self._cut(item_id, reply))
            received = reply.stretch.received
            self._tell(reply, reply.stretch.handed / received if received else 0.0)
        self._open.clear()
        return cuts

    def reject(self, response_id: str) -> None:
        """Nothing more of that response is to be heard."""
        self._gone.add(response_id)

    def end(self) -> None:
        """The call is over: tell the words of what was under way, as far as it was heard."""
        self.interrupt()

    def _settle(self) -> None:
        """Be done with the replies that were heard out."""
        for item_id, reply in list(self._open.items()):
            if self._is_heard_out(reply):
                del self._open[item_id]
                self._gone.add(item_id)
                self._tell(reply, 1.0)

    def _is_heard_out(self, reply: _Reply) -> bool:
        return reply.ended and reply.stretch.waiting == 0

    def _cut(self, item_id: str, reply: _Reply) -> Cut:
        return Cut(
            item_id=item_id,
            response_id=reply.response_id,
            heard_ms=reply.stretch.handed * 1000 // self._rate,
            received_ms=reply.stretch.received * 1000 // self._rate,
            generated=reply.response_id in self._over,
        )

    # -- words --------------------------------------------------------------

    def _tell(self, reply: _Reply, share: float) -> None:
        """Tell the words of a reply that is over, in place; of a cut one the share heard."""
        text = _share("".join(reply.words).split(), share)
        start = reply.stretch.start
        if not text or start is None:
            return
        place: dict[str, Json] = {
            "text": text,
            "start_ms": start * 1000 / self._rate,
            "end_ms": (start + reply.stretch.handed) * 1000 / self._rate,
        }
        self._told.append(Happening(type="transcript", fields={"direction": "said", **place}))
        labels: dict[str, Json] = {"action": None, "source": "transcript"}
        self._told.append(Happening(type="utterance", fields={**place, **labels}))


def _share(words: Sequence[str], share: float) -> str:
    """Return the first words, by their share of the letters; a word that was begun counts."""
    total = sum(len(word) for word in words)
    spoken: list[str] = []
    length = 0
    for word in words:
        if length >= share * total:
            break
        spoken.append(word)
        length += len(word)
    return " ".join(spoken)
