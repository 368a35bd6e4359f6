"""The mouth: Piper in a child process, spoken to over a pipe.

Any number of voices share one child, which answers in order; a request that is
given up is taken back. The child ends with its parent (its stdin closes). If
it dies while idle or speaking it is started again once; a second death in a
row is an error that says so. Nothing here imports GPL code.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import cast

import numpy as np

from duplex.application.words import spoken_number
from duplex.errors import DuplexError, InputError
from duplex.local.seams import Pcm, Style
from duplex.local.timbre import Floats, finish, recipe
from duplex.local.weights import MOUTH_MODULES, Model, require, verify
from duplex.values import Json

CHILD = Path(__file__).with_name("mouth_child.py")
CLOSE_SECONDS = 2.0
TEXT_LIMIT = 2_000
"""Characters in one request; a sentence is far shorter."""

_Answer = Floats | DuplexError | None
"""A sentence, a failure, or the end."""


class _ChildGone(DuplexError):
    """The child ended while a request was open."""


class PiperMouth:
    """Text to speech for any number of voices (see ``seams.Mouth``)."""

    def __init__(self, command: tuple[str, ...]) -> None:
        """``command`` starts a process that speaks the pipe protocol of the child."""
        self._command = command
        self._child: _Child | None = None
        self._starting = asyncio.Lock()
        self._deaths = 0
        self._closed = False

    @classmethod
    async def open(cls, model: Model) -> PiperMouth:
        """Start the child and check its model meanwhile; raise MissingExtra or InputError."""
        require(MOUTH_MODULES, "the embedded voices")
        mouth = cls(child_command(model))
        jobs = await asyncio.gather(
            asyncio.to_thread(verify, model), mouth.start(), return_exceptions=True
        )
        if problems := [job for job in jobs if isinstance(job, BaseException)]:
            await mouth.close()
            raise problems[0]
        return mouth

    async def start(self) -> _Child:
        """Return the living child, starting it if need be."""
        async with self._starting:
            if self._closed:
                raise DuplexError("the voice process is closed")
            if self._child is None or self._child.gone:
                self._child = await _Child.start(self._command)
            return self._child

    async def speak(self, text: str, style: Style) -> AsyncIterator[Pcm]:
        """Yield int16 chunks at 24 kHz, one per sentence; raise DuplexError on failure."""
        how = recipe(style)
        text = speakable(text)
        while True:
            begun = False
            try:
                child = await self.start()
                asked = child.ask(text, how.length_scale)
                async with contextlib.aclosing(asked) as sentences:
                    async for samples in sentences:
                        begun = True
                        yield finish(samples, child.rate_hz, how)
                self._deaths = 0
                return
            except _ChildGone:
                self._deaths += 1
                if begun or self._deaths > 1 or self._closed:
                    raise

    @property
    def pid(self) -> int | None:
        """Process id of the living child, for whoever watches over processes."""
        return None if self._child is None or self._child.gone else self._child.pid

    async def close(self) -> None:
        """End the child; waits for it, bounded in time."""
        self._closed = True
        if self._child is not None:
            await self._child.close()


def child_command(model: Model) -> tuple[str, ...]:
    # -P: the script's own folder must not shadow the modules Piper imports.
    files = (str(model.path("weights")), str(model.path("config")))
    return (sys.executable, "-P", str(CHILD), *files)


_CODE = re.compile(r"\b([A-Z]{1,3})-(\d{2,8})\b")


def speakable(text: str) -> str:
    """Return ``text`` without what the engine would take for commands or choke on.

    The figures of a reference such as ``R-204`` are spoken one by one, as people do.
    """
    plain = "".join(letter for letter in text if letter.isprintable())
    plain = _CODE.sub(_one_by_one, plain)
    return plain.replace("[[", "[").replace("]]", "]")[:TEXT_LIMIT]


def _one_by_one(code: re.Match[str]) -> str:
    return " ".join([*code[1], *(spoken_number(int(figure)) for figure in code[2])])


class _Child:
    """One process and the requests open on it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._open: dict[int, asyncio.Queue[_Answer]] = {}
        self._next = 0
        self._reader: asyncio.Task[None] | None = None
        self.rate_hz = 0
        self.gone = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @classmethod
    async def start(cls, command: tuple[str, ...]) -> _Child:
        """Start the process and wait until its model is loaded."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        child = cls(process)
        try:
            head = await child._head()
        except BaseException:
            await child.close()
            raise
        if "fatal" in head:
            await child.close()
            raise InputError(f"the voice model cannot be used: {head['fatal']}")
        child.rate_hz = cast(int, head["rate"])
        child._reader = asyncio.create_task(child._read(), name="mouth reader")
        return child

    async def ask(self, text: str, length_scale: float) -> AsyncGenerator[Floats, None]:
        """Request ``text`` and yield its sentences; taken back when given up."""
        number, self._next = self._next, self._next + 1
        answers: asyncio.Queue[_Answer] = asyncio.Queue()
        self._open[number] = answers
        finished = False
        try:
            self._send({"id": number, "text": text, "length_scale": length_scale})
            if self.gone:
                raise self._death()
            while (answer := await answers.get()) is not None:
                if isinstance(answer, DuplexError):
                    finished = True
                    raise answer
                yield answer
            finished = True
        finally:
            self._open.pop(number, None)
            if not finished:
                self._send({"cancel": number})

    def _send(self, request: dict[str, Json]) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        if not self.gone and not stdin.is_closing():
            stdin.write(json.dumps(request).encode() + b"\n")

    async def _head(self) -> dict[str, Json]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise self._death(await self._process.wait())
        return cast(dict[str, Json], json.loads(line))

    async def _read(self) -> None:
        """Hand answers to whoever asked until the process ends; drop those given up."""
        assert self._process.stdout is not None
        problem: DuplexError
        try:
            while True:
                head = await self._head()
                samples = cast(int, head.get("samples", 0))
                body = await self._process.stdout.readexactly(4 * samples)
                answers = self._open.get(cast(int, head["id"]))
                if answers is None:
                    continue
                if "error" in head:
                    answers.put_nowait(DuplexError(f"the voice process failed: {head['error']}"))
                elif "end" in head:
                    answers.put_nowait(None)
                else:
                    answers.put_nowait(np.frombuffer(body, np.float32))
        except _ChildGone as gone:
            problem = gone
        except (asyncio.IncompleteReadError, ValueError, KeyError):
            problem = self._death()
        self.gone = True
        for answers in self._open.values():
            answers.put_nowait(problem)

    def _death(self, code: int | None = None) -> _ChildGone:
        how = "" if code is None else f" with {'signal' if code < 0 else 'code'} {abs(code)}"
        return _ChildGone(f"the voice process ended{how} while it was needed")

    async def close(self) -> None:
        self.gone = True
        assert self._process.stdin is not None
        self._process.stdin.close()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        try:
            await asyncio.wait_for(self._process.wait(), CLOSE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        for answers in self._open.values():
            answers.put_nowait(DuplexError("the voice process is closed"))
