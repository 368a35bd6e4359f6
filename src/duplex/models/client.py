"""Asks one model of one server: Responses first, Chat Completions where that is all there is.

TLS is verified, redirects are refused, answers are bounded in size and time. A server
that asks for time gets it, and the wait is told to whoever asked; a model's failure is
an :class:`Answer` that says so or a :class:`ModelError`, never a wrong answer. It knows
nothing of calls or voices; backends, brains and judges drive it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

import httpx2

from duplex.clock import Clock, real_pause, utc_seconds, wall_seconds
from duplex.errors import DuplexError
from duplex.models.limiter import Limiter, retry_after
from duplex.models.place import ModelPlace
from duplex.models.tls import tls_problem
from duplex.protocols import chat_completions, responses
from duplex.protocols.gpt_live import Broken, clean_text, read_object
from duplex.protocols.model_values import Answer, Ask
from duplex.protocols.server_sent import EventReader
from duplex.values import Json

BODY_LIMIT = 4 << 20
"""Bytes an answer may have; a request may have as many."""
TIMEOUT_MS = 60_000
"""Longest a single request may take."""
ATTEMPTS = 6
PATIENCE_SECONDS = 120.0
"""Longest that all waits for one answer may take together."""
BUSY = frozenset({429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may be sent again."""
ABSENT = frozenset({404, 405, 501})
"""Statuses by which a server says that it has no such path."""
_FINAL = frozenset({"insufficient_quota", "billing_hard_limit_reached", "account_deactivated"})


class ModelError(DuplexError):
    """A model could not be asked; ``code`` is the server's own, or ours."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """A server asked for time, or another call's request to it had: ``seconds`` went by."""

    host: str
    seconds: float
    status: int | None


OnWait = Callable[[Waited], None]


class ModelClient:
    """One model; ``async with`` or :meth:`close` ends its connections."""

    def __init__(
        self,
        where: ModelPlace,
        limiter: Limiter | None = None,
        *,
        stream: bool = False,
        timeout_ms: int = TIMEOUT_MS,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.where = where
        self._limiter = limiter or Limiter()
        self._stream = stream
        self._timeout_ms = timeout_ms
        self._transport = transport
        self._http: httpx2.AsyncClient | None = None
        self._chat_only = False
        self._forgets = False
        self._shapeless = False

    async def __aenter__(self) -> Self:
        self.open()
        return self

    def open(self) -> None:
        """Make ready to ask: certificates take time to load, which no call has to spare."""
        self._client()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._http is not None:
            http, self._http = self._http, None
            await http.aclose()

    async def answer(self, ask: Ask, clock: Clock, on_wait: OnWait | None = None) -> Answer:
        """Ask and return the answer, whatever its status; raise ModelError without one."""
        ask = replace(ask, model=self.where.model, effort=ask.effort or self.where.effort)
        if self._forgets:
            ask = replace(ask, previous_id=None)
        if self._shapeless:
            ask = replace(ask, shape=None)
        request = _Asking(ask=ask, clock=clock, on_wait=on_wait)
        while True:
            reply = await self._reply(request)
            if reply.status == 200:
                self._shapeless |= request.shapeless
                answer = self._counted(self._read(reply))
                if not self._wants_time(answer, request):
                    return answer
                continue
            if not self._adapts(reply, request):
                raise self._refusal(reply)

    def _wants_time(self, answer: Answer, request: _Asking) -> bool:
        """Whether a response that was begun failed for want of capacity, and may be asked again."""
        if not answer.unserved or answer.code in _FINAL or request.failures + 1 >= ATTEMPTS:
            return False
        request.failures += 1
        request.status = 429 if answer.code.startswith("rate_limit") else 503
        self._limiter.refused(self.where.host, wall_seconds(), None)
        return True

    def _adapts(self, reply: _Reply, request: _Asking) -> bool:
        """Whether the server's refusal only says that it lacks something we can do without."""
        code = reply.code
        if reply.status in ABSENT and not self._chat_only and "model" not in code:
            if code.startswith("previous_response"):
                return self._forget(request)
            self._chat_only = True
            return True
        if reply.status in (400, 404, 422) and request.ask.previous_id is not None:
            return self._forget(request)
        if reply.status in (400, 422) and request.ask.shape is not None:
            # Told in words as well, so a server without schemas may still be asked.
            request.shapeless = True
            request.ask = replace(request.ask, shape=None)
            return True
        return False

    def _counted(self, answer: Answer) -> Answer:
        host = self.where.host.partition("://")[2].lower()
        self._limiter.meter.add(host, self.where.model, answer.tokens)
        return answer

    def _forget(self, request: _Asking) -> bool:
        """The server does not know our earlier response: send everything that was said."""
        if request.ask.previous_id is None:
            return False
        self._forgets = True
        request.ask = replace(request.ask, previous_id=None)
        return True

    def _read(self, reply: _Reply) -> Answer:
        if reply.answer is not None:
            found: Answer | Broken = reply.answer
        elif self._chat_only:
            found = chat_completions.read_answer(reply.body)
        else:
            found = responses.read_answer(reply.body)
        if isinstance(found, Broken):
            raise self._error("unreadable", f"answered what cannot be read: {found.reason}")
        return found

    # -- one request, sent until it is answered -----------------------------

    async def _reply(self, request: _Asking) -> _Reply:
        host = self.where.host
        for attempt in range(1, ATTEMPTS + 1):
            await self._leave_alone(request)
            try:
                reply = await request.clock.within(self._send(request.ask), self._timeout_ms)
            except TimeoutError:
                message = f"did not answer within {self._timeout_ms} ms"
                raise self._error("timeout", message) from None
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                passing = isinstance(error, httpx2.TransportError) and tls_problem(error) is None
                if attempt == ATTEMPTS or not passing:
                    raise self._error("unreachable", _why(error)) from None
                self._limiter.refused(host, wall_seconds(), None)
                request.status = None
                continue
            if reply.status not in BUSY or reply.code in _FINAL:
                self._limiter.served(host)
                return reply
            asked = retry_after(reply.headers, utc_seconds())
            self._limiter.refused(host, wall_seconds(), asked)
            request.status = reply.status
        return reply

    async def _leave_alone(self, request: _Asking) -> None:
        """Wait as long as the host asked for, in real time, and tell of it."""
        pause = self._limiter.wait(self.where.host, wall_seconds())
        if pause <= 0:
            return
        if request.waited + pause > PATIENCE_SECONDS:
            message = f"asked for more than {PATIENCE_SECONDS:.0f} s of waiting"
            raise self._error("rate_limited" if request.status == 429 else "busy", message)
        await real_pause(pause)
        request.waited += pause
        if request.on_wait is not None:
            waited = Waited(host=self.where.host, seconds=pause, status=request.status)
            request.on_wait(waited)

    async def _send(self, ask: Ask) -> _Reply:
        streams = self._stream and not self._chat_only
        dialect = chat_completions if self._chat_only else responses
        body = (
            chat_completions.request(ask)
            if self._chat_only
            else responses.request(ask, stream=streams)
        )
        data = json.dumps(body).encode()
        if len(data) > BODY_LIMIT:
            raise self._error("too_long", f"would be sent more than {BODY_LIMIT} bytes")
        url = self.where.url + dialect.PATH
        async with self._client().stream("POST", url, content=data) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            reply = _Reply(status=response.status_code, headers=headers)
            if "content-encoding" in headers and headers["content-encoding"] != "identity":
                raise self._error("unreadable", "compressed an answer it was asked not to")
            reading = EventReader() if _is_stream(headers) and reply.status == 200 else None
            events = responses.StreamReader()
            async for chunk in response.aiter_raw():
                reply.size += len(chunk)
                if reply.size > BODY_LIMIT:
                    raise self._error("too_long", f"answered more than {BODY_LIMIT} bytes")
                if reading is None:
                    reply.body += chunk
                elif self._over(reply, reading, events, chunk):
                    break
        if reading is not None and reply.answer is None:
            raise self._error("unreadable", "ended its stream before the response was over")
        return reply

    def _over(
        self, reply: _Reply, reading: EventReader, events: responses.StreamReader, chunk: bytes
    ) -> bool:
        for event in reading.take(chunk):
            over = event if isinstance(event, Broken) else events.take(event)
            if isinstance(over, Broken):
                raise self._error("unreadable", f"streamed what cannot be read: {over.reason}")
            if over is not None:
                reply.answer = over
                return True
        return False

    def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            headers = {
                "Accept": "application/json, text/event-stream",
                "Accept-Encoding": "identity",
                "Content-Type": "application/json",
            }
            # Servers on this machine ask for some key and take any.
            if key := self.where.key or ("local" if self.where.loopback else ""):
                headers["Authorization"] = f"Bearer {key}"
            self._http = httpx2.AsyncClient(
                headers=headers,
                timeout=self._timeout_ms / 1000,
                follow_redirects=False,
                trust_env=not self.where.loopback,
                transport=self._transport,
            )
        return self._http

    # -- what is said when it fails -----------------------------------------

    def _refusal(self, reply: _Reply) -> ModelError:
        if 300 <= reply.status < 400:
            return self._error("redirect", f"redirected ({reply.status}), which is not followed")
        said = reply.message or "no reason given"
        message = f"refused with status {reply.status}: {said}"
        code = "rate_limited" if reply.status == 429 else reply.code or str(reply.status)
        return self._error(code, message)

    def _error(self, code: str, what: str) -> ModelError:
        return ModelError(f"model {self.where.model} at {self.where.host}: it {what}", code=code)


@dataclass(slots=True)
class _Asking:
    """One answer being sought."""

    ask: Ask
    clock: Clock
    on_wait: OnWait | None
    waited: float = 0.0
    status: int | None = None
    shapeless: bool = False
    failures: int = 0


@dataclass(slots=True)
class _Reply:
    status: int
    headers: dict[str, str]
    body: bytes = b""
    size: int = 0
    answer: Answer | None = None

    @property
    def code(self) -> str:
        return self._told("code") or self._told("type")

    @property
    def message(self) -> str:
        return self._told("message")[:300]

    def _told(self, name: str) -> str:
        found = read_object(self.body)
        error: Json = found.get("error") if isinstance(found, dict) else None
        value = error.get(name) if isinstance(error, dict) else None
        return clean_text(value) if isinstance(value, str) else ""


def _is_stream(headers: dict[str, str]) -> bool:
    return headers.get("content-type", "").startswith("text/event-stream")


def _why(error: Exception) -> str:
    if (tls := tls_problem(error)) is not None:
        return f"cannot be reached: {tls}"
    if isinstance(error, httpx2.ConnectError):
        return f"cannot be reached: {' '.join(str(error).split())[:200]}"
    return f"broke the connection: {type(error).__name__}"
