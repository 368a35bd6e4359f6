"""The process that speaks: Piper (GPL-3) behind a pipe, run as a script of its own.

It is started by ``mouth.py`` and never imported by duplex, and it imports
nothing of duplex: requests come as JSON lines on stdin, answers leave on stdout
as a JSON line followed by as many float32 samples as it says. It ends when
stdin does, so it cannot outlive its parent. One intra-op thread, no noise: the
same text gives the same samples.

Requests: ``{"id", "text", "length_scale"}`` and ``{"cancel": id}``.
Answers: ``{"ready", "rate"}`` once, then ``{"id", "samples"}`` + samples for
each sentence, ``{"id", "end"}``, or ``{"id", "error"}``; ``{"fatal"}`` and exit.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from typing import IO, Protocol

WARM_UP = "Ready."


class _Samples(Protocol):
    def __len__(self) -> int: ...

    def tobytes(self) -> bytes: ...


class _Speak(Protocol):
    """The loaded voice: text and length scale in, float32 sentences out."""

    def __call__(self, text: str, length_scale: float) -> Iterator[_Samples]: ...


class Desk:
    """Requests as they come in, read by a thread so that cancelling overtakes."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._cancelled: set[object] = set()
        self.waiting: queue.Queue[dict[str, object]] = queue.Queue()

    def read(self) -> None:
        """Run until stdin ends, then end the process whatever it is doing."""
        for line in self._source:
            request = json.loads(line)
            if "cancel" in request:
                self._cancelled.add(request["cancel"])
            else:
                self.waiting.put(request)
        os._exit(0)

    def cancelled(self, number: object) -> bool:
        return number in self._cancelled

    def forget(self, number: object) -> None:
        self._cancelled.discard(number)


def load(model: str, config: str) -> tuple[_Speak, int]:
    """Import the engine and load the voice; return it with its sample rate."""
    import onnxruntime
    from piper import PiperVoice, SynthesisConfig
    from piper.config import PiperConfig

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Graph rewriting triples the time to load and does not speed up speaking.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model, sess_options=options, providers=["CPUExecutionProvider"]
    )
    with open(config, encoding="utf-8") as source:
        settings = PiperConfig.from_dict(json.load(source))
    voice = PiperVoice(session=session, config=settings)

    def speak(text: str, length_scale: float) -> Iterator[_Samples]:
        how = SynthesisConfig(
            length_scale=length_scale, noise_scale=0.0, noise_w_scale=0.0, normalize_audio=False
        )
        for chunk in voice.synthesize(text, how):
            yield chunk.audio_float_array

    return speak, settings.sample_rate


def answer(sink: IO[bytes], head: dict[str, object], body: bytes = b"") -> None:
    sink.write(json.dumps(head).encode() + b"\n" + body)
    sink.flush()


def serve(speak: _Speak, desk: Desk, sink: IO[bytes]) -> None:
    """Answer requests one after the other, for ever."""
    while True:
        request = desk.waiting.get()
        number = request["id"]
        try:
            if not desk.cancelled(number):
                for samples in speak(str(request["text"]), float(str(request["length_scale"]))):
                    answer(sink, {"id": number, "samples": len(samples)}, samples.tobytes())
                    if desk.cancelled(number):
                        break
            answer(sink, {"id": number, "end": True})
        except Exception as problem:
            answer(sink, {"id": number, "error": f"{type(problem).__name__}: {problem}"})
        desk.forget(number)


def main() -> None:
    # Ctrl-C is the parent's to handle; it still wants the end of a sentence.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not break the pipe's framing
    desk = Desk(sys.stdin.buffer)
    threading.Thread(target=desk.read, daemon=True).start()
    try:
        speak, rate = load(sys.argv[1], sys.argv[2])
        for _ in speak(WARM_UP, 1.0):
            pass
    except Exception as problem:
        answer(sink, {"fatal": f"{type(problem).__name__}: {problem}"})
        os._exit(1)
    answer(sink, {"ready": True, "rate": rate})
    try:
        serve(speak, desk, sink)
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
