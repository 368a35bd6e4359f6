"""Which response is under way, when to ask for one, and what to do at a barge-in.

One response at a time: a new one is asked for once none is under way and every
function call is answered. At a barge-in each reply that was not heard out is
truncated at the milliseconds heard; one of which nothing was heard is cancelled,
or taken out of the conversation where it was made already. A Realtime session
drives it; it sends through the given function and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from duplex.clock import Clock
from duplex.participants.live_reading import Reading
from duplex.participants.realtime_calls import Calls
from duplex.participants.realtime_replies import Cut, Known, Replies
from duplex.protocols.realtime_client import RealtimeCodec
from duplex.protocols.realtime_events import (
    Audio,
    AudioDone,
    FunctionCall,
    ItemBegun,
    Refusal,
    ResponseBegun,
    ResponseDone,
    SaidWords,
    ServerMessage,
)
from duplex.values import Json

_BUSY = "conversation_already_has_active_response"


class Responses:
    """One session's responses and the replies in them."""

    def __init__(
        self,
        codec: RealtimeCodec,
        reading: Reading,
        clock: Clock,
        send: Callable[[str], None],
        *,
        manual: bool,
        calls: Calls,
    ) -> None:
        self.replies = Replies(clock.rate_hz, codec.audio.rate_hz)
        self._codec = codec
        self._reading = reading
        self._clock = clock
        self._send = send
        self._manual = manual
        self._calls = calls
        self._active: str | None = None
        self._asked: str | None = None
        self._wanted = False
        self._rejected = Known()
        self._forgivable = Known()
        self._over = Known()
        self._cancelled = Known()
        self._heard_of = Known()
        self._late = 0

    # -- asking -------------------------------------------------------------

    def want(self) -> None:
        """A response is wanted as soon as there can be one."""
        self._wanted = True
        self._ask()

    def _ask(self) -> None:
        free = self._active is None and self._asked is None and not self._calls.busy
        if self._wanted and free:
            self._wanted = False
            text, self._asked = self._codec.command("response.create")
            self._send(text)

    # -- what comes ---------------------------------------------------------

    def take(self, message: ServerMessage) -> None:
        """Take a message about a response's course; others mean nothing here."""
        match message:
            case ResponseBegun():
                self._begun(message.response_id)
            case ItemBegun():
                self.replies.begun(message.item_id, message.response_id)
                self._tell_late()
            case Audio():
                at = self._clock.position
                if message.response_id in self._cancelled:
                    text = f"audio of response {message.response_id} came after it was cancelled"
                    self._reading.fault("session", "answer_after_cancel", text)
                self.replies.audio(message.item_id, message.response_id, message.pcm, at)
                self._heard_of.add(message.response_id)
                self._tell_late()
            case AudioDone():
                self.replies.audio_done(message.item_id)
            case SaidWords():
                self.replies.words(
                    message.item_id, message.response_id, message.text, whole=message.whole
                )

    def _begun(self, response_id: str) -> None:
        if response_id in self._over:
            self._tell_order(f"response {response_id} was created after its end")
            return
        if response_id in self._heard_of:
            self._tell_order(f"response {response_id} was created after its audio")
        self._active, self._asked = response_id, None

    def is_over(self, response_id: str) -> bool:
        """Whether that response has ended."""
        return response_id in self._over

    def refuses(self, call: FunctionCall) -> bool:
        """Whether a call belongs to a response that the peer has cancelled, which is told."""
        if call.response_id not in self._cancelled:
            return False
        text = f"response {call.response_id} called {call.name} after it was cancelled"
        self._reading.fault("session", "answer_after_cancel", text)
        return True

    def _tell_late(self) -> None:
        if self.replies.late > self._late:
            self._late = self.replies.late
            self._tell_order("a reply was declared, or ended, on the wrong side of its audio")

    def _tell_order(self, text: str) -> None:
        self._reading.fault("session", "reordered", text)

    def done(self, message: ResponseDone) -> None:
        """A response is over: tell its use and its failure, ask for the next if one is wanted."""
        if self.is_over(message.response_id):
            text = f"response {message.response_id} ended twice"
            self._reading.fault("session", "answer_after_cancel", text)
            return
        if message.response_id:
            self._over.add(message.response_id)
            if message.status == "cancelled":
                self._cancelled.add(message.response_id)
        if message.status == "cancelled" and message.reason == "turn_detected":
            self.interrupted(message.response_id)
        self.replies.response_done(message.response_id)
        if self._active in (None, message.response_id):
            self._active, self._asked = None, None
        if message.usage is not None:
            self._tell_usage(message)
        if message.status in ("failed", "incomplete"):
            code = message.code or message.reason or message.status
            text = message.message or f"a response ended {message.status}: {code}"
            self._reading.fault("provider", code, text)
        self._ask()

    def refused(self, refusal: Refusal) -> bool:
        """Take an error that is about a response; tell whether it was."""
        if refusal.code == _BUSY:
            # The server has begun one by itself: ours comes after it.
            self._wanted, self._asked = True, None
            return True
        if self._asked is not None and refusal.event_id in (None, self._asked):
            self._asked = None
        return refusal.event_id is not None and refusal.event_id in self._forgivable

    def _tell_usage(self, message: ResponseDone) -> None:
        usage = message.usage
        assert usage is not None
        fields: dict[str, Json] = {
            "response_id": message.response_id,
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": None,
            "output_tokens": usage.output_tokens,
            "reasoning_tokens": None,
            "total_tokens": usage.total_tokens,
        }
        self._reading.tell("backend.usage", fields, self._clock.elapsed())

    # -- barge-in -----------------------------------------------------------

    def interrupted(self, response_id: str | None = None) -> None:
        """The other side speaks: cut what it talks over.

        ``response_id`` limits that to one response, which the server has cancelled.
        """
        if response_id is not None and response_id in self._rejected:
            return
        active = self._active
        cuts = self.replies.interrupt()
        for cut in cuts:
            self._tell_cut(cut)
        if active is not None and active not in self._rejected:
            self._reject(active)
            unheard = not any(cut.heard_ms for cut in cuts if cut.response_id == active)
            if response_id is None and (self._manual or unheard):
                self._forgiven("response.cancel", {"response_id": active})
        for cut in cuts:
            if cut.heard_ms:
                self._send(self._codec.truncate(cut.item_id, cut.heard_ms)[0])
            elif cut.generated:
                self._forgiven("conversation.item.delete", {"item_id": cut.item_id})

    def _reject(self, response_id: str) -> None:
        self._rejected.add(response_id)
        self.replies.reject(response_id)

    def _forgiven(self, kind: str, fields: dict[str, Json]) -> None:
        """Send what may come too late to do anything; an error about it is no fault."""
        text, event_id = self._codec.command(kind, fields)
        self._forgivable.add(event_id)
        self._send(text)

    def _tell_cut(self, cut: Cut) -> None:
        fields: dict[str, Json] = {"heard_ms": cut.heard_ms, "received_ms": cut.received_ms}
        self._reading.tell("reply.interrupted", fields, self._clock.elapsed())
