"""What fuzzing starts from: the words of every protocol, and one good message of each kind.

Words are the text constants of the codecs' own sources, so a new event is fuzzed from the
day it is written; messages are written by the other end's codec where there is one.
"""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import numpy as np

import duplex.protocols
from duplex.protocols import gpt_live_client, gpt_live_server, realtime_client, realtime_server
from duplex.protocols import remote_work as remote
from duplex.protocols.gpt_live import AudioFormat
from duplex.protocols.gpt_live_models import Problem
from duplex.protocols.media_stream import MediaStream, StreamIds
from duplex.protocols.model_values import Answer, Call, Tokens
from duplex.protocols.realtime import RealtimeConfig
from duplex.protocols.responses_server import resource, stream_events
from duplex.protocols.server_sent import write_event
from duplex.values import Json

PCM = np.arange(480, dtype=np.int16)


@cache
def words() -> tuple[str, ...]:
    """Every text a codec compares with or writes, sorted; prose left out."""
    found: set[str] = set()
    for path in Path(duplex.protocols.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                if 0 < len(text) <= 60 and " " not in text and "\n" not in text:
                    found.add(text)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return tuple(sorted(found))


@cache
def messages() -> tuple[str, ...]:
    """Good messages of every protocol."""
    return (*_gpt_live(), *_realtime(), *_streams(), *_models())


def _gpt_live() -> list[str]:
    client = gpt_live_client.ClientCodec(AudioFormat())
    config = gpt_live_client.LiveConfig(instructions="be kind")
    ours = [client.start(config), client.append(PCM), client.text("commentary", "hello")]
    ours += [client.output("call_1", "{}"), client.go_on(), client.close()]
    server = gpt_live_server.ServerSession(session_id="sess_1", expires_at=1)
    server.receive(ours[0])
    theirs = [server.say_started(), server.say_audio(PCM), server.say_delegation(100)]
    theirs += [server.say_transcript(said=True, text=" hi", start_ms=0, end_ms=200)]
    theirs += [server.say_info("note", "text"), server.say_usage(60)]
    theirs += [server.say_error(Problem(code="invalid_value", message="no", param="type"))]
    theirs += [server.say_backend("dlg_1", event) for event in _stream()]
    theirs += [server.say_closed("close_requested", 60)]
    return ours + theirs


def _realtime() -> list[str]:
    client = realtime_client.RealtimeCodec(AudioFormat())
    ours = [client.update(RealtimeConfig(instructions="be kind")), client.append(PCM)]
    ours += [client.message("user", "hello"), client.output("call_1", "{}")]
    ours += [client.truncate("item_1", 100)[1], client.command("response.create")[1]]
    machine = realtime_server.RealtimeMachine(session_id="sess_1", model="m", expires_at=1)
    theirs = [machine.say_created(), machine.say_response()]
    item = machine.new_item(audio=True)
    theirs += [machine.say_audio(item, 0, PCM), machine.say_words(item, 0, "hi", whole=True)]
    theirs += [machine.say_speech(item, started=True, at_ms=10), machine.say_heard(item, "hi", 1)]
    theirs += [machine.say_call(item, 0, "call_1", "look", "{}"), machine.say_audio_done(item, 0)]
    theirs += [machine.say_response_done("completed", [], usage={"input_tokens": 1})]
    return ours + theirs


def _streams() -> list[str]:
    stream = MediaStream(StreamIds.drawn(7))
    sid = {"streamSid": stream.session_id}
    claim: Json = {"type": "latency", "ms": 120, "at_ms": 3, "text": "hi"}
    tool: Json = {"type": "tool", "call_id": "c", "name": "n", "arguments": {}, "status": "failed"}
    state: Json = {"type": "state", "state": {"a": 1}}
    ours = [*map(str, stream.opening()), stream.audio(PCM[:160]), stream.mark("m")]
    theirs = [json.dumps({"event": "duplex", "duplex": one, **sid}) for one in (claim, tool, state)]
    theirs += [json.dumps({"event": "clear", **sid}), *map(json.dumps, (claim, tool, state))]
    said = remote.Said(role="user", text="hi", start_ms=0)
    work = [remote.configure(), remote.forwarded(remote.transcript(said))]
    work += [remote.forwarded(remote.delegated("d", 0))]
    passed: Json = {"type": "session.commentary.append", "content": "x", "delegation_id": "d"}
    work += [json.dumps({"type": "live.send", "event": passed})]
    work += [json.dumps({"commentary": ["done"], "reports": [tool, state]})]
    return ours + theirs + work


def _models() -> list[str]:
    body: Json = {
        "model": "m",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
    }
    chat: Json = {
        "id": "c",
        "choices": [
            {
                "finish_reason": "stop",
                "message": {
                    "content": "hi",
                    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
                },
            }
        ],
        "usage": {"prompt_tokens": 1},
    }
    events = [json.dumps(event) for event in _stream()]
    sent = [write_event(event).decode() for event in _stream()[:2]]
    whole = json.dumps(resource(_answer(), {}, 1))
    return [json.dumps(body), json.dumps(chat), whole, *events, *sent]


def _answer() -> Answer:
    call = Call(call_id="call_1", name="look", arguments='{"day": 1}')
    tokens = Tokens(input_tokens=1, output_tokens=2, total_tokens=3)
    return Answer(
        response_id="resp_1", status="completed", text="yes", calls=(call,), tokens=tokens
    )


def _stream() -> list[dict[str, Json]]:
    return list(stream_events(_answer(), {"model": "m"}, 1))
