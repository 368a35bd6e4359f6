"""A model server on loopback whose answers are given in advance, or made by a function."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from duplex.values import Json


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Json]


@dataclass(frozen=True)
class Reply:
    body: Json = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None


Script = Callable[[Asked], Reply]


class FakeModels:
    """Remembers what it was asked; ``script`` answers."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.url = ""


def in_turn(replies: Iterable[Reply]) -> Script:
    """Answer with each reply once, and with the last one ever after."""
    left = list(replies)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


def response(
    text: str = "",
    calls: Iterable[tuple[str, Json]] = (),
    *,
    name: str = "resp_1",
    status: str = "completed",
    tokens: int | None = 10,
    **more: Json,
) -> Reply:
    """A Responses object; each call is (name, arguments or raw text)."""
    output: list[Json] = []
    if text:
        part: dict[str, Json] = {"type": "output_text", "text": text, "annotations": []}
        message: dict[str, Json] = {"type": "message", "id": "m", "role": "assistant"}
        output.append({**message, "status": "completed", "content": [part]})
    for index, (function, arguments) in enumerate(calls):
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call: dict[str, Json] = {"type": "function_call", "call_id": f"{name}_c{index}"}
        output.append({**call, "name": function, "arguments": given, "status": "completed"})
    usage: Json = None
    if tokens is not None:
        usage = {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": 1},
            "output_tokens": tokens,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 2 * tokens,
        }
    body: dict[str, Json] = {"id": name, "object": "response", "status": status}
    return Reply({**body, "output": output, "usage": usage, **more})


def completion(text: str | None = None, calls: Iterable[tuple[str, Json]] = ()) -> Reply:
    """A Chat Completions object."""
    made: list[Json] = [
        {
            "id": f"c{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for index, (name, arguments) in enumerate(calls)
    ]
    message: dict[str, Json] = {"role": "assistant", "content": text}
    if made:
        message["tool_calls"] = made
    choice: dict[str, Json] = {
        "index": 0,
        "message": message,
        "finish_reason": "tool_calls" if made else "stop",
    }
    usage: dict[str, Json] = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return Reply({"id": "chat_1", "choices": [choice], "usage": usage})


def error(status: int, code: str, message: str = "no", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply({"error": {"code": code, "message": message}}, status, named)


@contextmanager
def serving(script: Script) -> Iterator[FakeModels]:
    """Serve on a free loopback port for the length of a block."""
    fake = FakeModels(script)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.path, headers, json.loads(data))
            with lock:
                fake.asked.append(asked)
                reply = fake.script(asked)
            body = reply.raw if reply.raw is not None else json.dumps(reply.body).encode()
            # A client that thinks of something else hangs up.
            with suppress(ConnectionError):
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
