"""``POST /v1/responses`` of the local server: the rule model behind the official API.

Whole or streamed, with functions and ``previous_response_id``, so that a client of the
API can be tried without a key. The same door as for sessions: a bearer token, and no
browser. It keeps a bounded number of responses and runs no function itself.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from duplex.clock import utc_seconds
from duplex.errors import InputError
from duplex.local import rule_model
from duplex.local.admission import stranger
from duplex.local.http_desk import Answered, Head, refused
from duplex.protocols.gpt_live import Broken, read_object
from duplex.protocols.gpt_live_models import Problem
from duplex.protocols.model_values import Answer
from duplex.protocols.responses import PATH
from duplex.protocols.responses_server import (
    Memory,
    Wanted,
    read_request,
    resource,
    stream_events,
)
from duplex.protocols.server_sent import write_event

Admits = Callable[[str], bool]
"""Whether an ``Authorization`` header opens the door."""
_WHOSE = ("origin", "host")
log = logging.getLogger(__name__)


class ResponsesDesk:
    """Answers HTTP requests of one server; others than its own path are declined."""

    def __init__(self, prefix: str, admits: Admits, *, bound: str = "127.0.0.1") -> None:
        """``bound`` is the address that the server listens at."""
        self._bound = bound
        self._path = prefix + PATH
        self._admits = admits
        self._memory = Memory()

    def admit(self, head: Head) -> Answered | None:
        """Refuse a request by its head; None to read on."""
        origins, hosts = ([head.headers[name]] if name in head.headers else [] for name in _WHOSE)
        found = stranger(self._bound, origins, hosts)
        if found is not None:
            return refused(403, found.code, found.message)
        path = urlsplit(head.target).path.rstrip("/")
        if path != self._path:
            message = "only primary websocket sessions are served here, not webrtc or calls"
            return refused(400, "unsupported_transport", message)
        if not self._admits(head.headers.get("authorization", "")):
            return refused(401, "invalid_api_key", "the bearer token is missing or wrong")
        if head.method != "POST":
            return refused(405, "method_not_allowed", f"{head.method} is not served here")
        return None

    def respond(self, head: Head, body: bytes) -> Answered:
        """Answer one request that was admitted; never raises."""
        found = read_object(body)
        if isinstance(found, Broken):
            return refused(400, "invalid_json", found.reason)
        wanted = read_request(found, self._memory)
        if isinstance(wanted, Problem):
            missing = wanted.code == "previous_response_not_found"
            return refused(404 if missing else 400, wanted.code, wanted.message, wanted.param)
        try:
            answer = rule_model.answer(wanted.ask, f"resp_{secrets.token_hex(12)}")
        except InputError as error:
            return refused(400, "invalid_value", str(error), "instructions")
        except Exception:
            log.exception("no response to a request")
            return refused(500, "server_error", "the rule model failed")
        if wanted.store:
            self._memory.keep(answer.response_id, (*wanted.ask.whole, *answer.items))
        return _written(wanted, answer)


def _written(wanted: Wanted, answer: Answer) -> Answered:
    now = int(utc_seconds())
    if not wanted.stream:
        body = json.dumps(resource(answer, wanted.echo, now)).encode()
        return Answered(status=200, body=(body,))
    events = (write_event(event) for event in stream_events(answer, wanted.echo, now))
    return Answered(status=200, content_type="text/event-stream", body=events)
