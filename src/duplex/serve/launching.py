"""Runs begun on request, each by a process of its own: ``duplex run`` with the same options.

A run that crashes takes no server with it, and a server that stops takes no run with it.
Options reach the process in a private file, never on its command line, and are validated
before there is a process. How many go on at once is bounded.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from duplex.clock import real_pause, wall_seconds
from duplex.errors import InputError
from duplex.inputs import read_bytes
from duplex.options import RunOptions, make
from duplex.serve.refusals import Refusal

BEGIN_SECONDS = 45.0
"""A run has its folder by then or is given up: clients wait for an answer a minute."""
_LOOK_SECONDS = 0.1
_SAID_BYTES = 1 << 20
_MARK = re.compile(r"-[0-9a-f]{8}$")


Process = subprocess.Popen[bytes]


class Launcher(Protocol):
    """Whoever begins runs."""

    async def start(self, values: Mapping[str, object]) -> str:
        """Begin a run with these options; return its id. Raises Refusal."""


class Processes:
    """Begins runs in ``runs``, at most ``limit`` at once; ``hidden`` names variables kept back."""

    def __init__(self, runs: Path, *, limit: int, hidden: frozenset[str] = frozenset()) -> None:
        self._runs = runs.absolute()
        self._limit = limit
        self._hidden = hidden
        self._going: set[asyncio.Task[None]] = set()
        self._count = 0
        # Its thread is made now: whoever makes way later does so without the runs it begins.
        self._spawner = ThreadPoolExecutor(1, "spawner")
        self._spawner.submit(int).result()

    async def start(self, values: Mapping[str, object]) -> str:
        options = checked(values)
        name = f"{_MARK.sub('', options.run_name or 'run')[:50]}-{secrets.token_hex(4)}"
        if self._count >= self._limit:
            raise Refusal(429, "too_many_runs", f"{self._limit} runs are going on; wait for one")
        self._count += 1
        private = Path(tempfile.mkdtemp(prefix="duplex-serve-"))
        try:
            config = private / "run.toml"
            config.write_text(as_toml(options, name, self._runs), encoding="utf-8")
            process = await self._spawned(config, private)
        except BaseException:
            self._leave(private)
            raise
        answered = asyncio.Event()
        keeping = asyncio.create_task(self._keep(process, private, answered))
        self._going.add(keeping)
        keeping.add_done_callback(self._going.discard)
        try:
            return await self._begun(process, name, private / "said")
        finally:
            answered.set()

    async def _spawned(self, config: Path, private: Path) -> Process:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._spawner, self._spawn, config, private)

    def _spawn(self, config: Path, private: Path) -> Process:
        kept = {name: value for name, value in os.environ.items() if name not in self._hidden}
        said = os.open(private / "said", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            return subprocess.Popen(
                (sys.executable, "-m", "duplex", "run", "--config", str(config)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=kept,
                start_new_session=True,
            )
        finally:
            os.close(said)

    async def _keep(self, process: Process, private: Path, answered: asyncio.Event) -> None:
        """Hold the run's place until its process has ended, and what it said until it is read."""
        try:
            await _over(process)
            await answered.wait()
        finally:
            self._leave(private)

    def _leave(self, private: Path) -> None:
        self._count -= 1
        shutil.rmtree(private, ignore_errors=True)

    async def _begun(self, process: Process, name: str, said: Path) -> str:
        """The run's id once its folder is there; raises Refusal when it never will be."""
        end = wall_seconds() + BEGIN_SECONDS
        while wall_seconds() < end:
            over = process.poll() is not None
            if (found := _folder(self._runs, name)) is not None:
                return found
            if over:
                raise Refusal(422, "run_refused", _sentence(said), param="options")
            await real_pause(_LOOK_SECONDS)
        process.kill()
        await _over(process)
        if (found := _folder(self._runs, name)) is not None:
            return found
        raise Refusal(503, "run_did_not_begin", f"the run did not begin in {BEGIN_SECONDS:.0f} s")


async def _over(process: Process) -> None:
    while process.poll() is None:
        await real_pause(_LOOK_SECONDS)


def checked(values: Mapping[str, object]) -> RunOptions:
    """Validate options of a request; raises Refusal."""
    if "out" in values:
        raise Refusal(422, "option_not_allowed", "out is the server's to say", param="out")
    try:
        json.dumps(dict(values), ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(422, "option_not_usable", "an option is no text", param="options") from None
    try:
        return make(dict(values))
    except InputError as error:
        raise Refusal(422, "option_not_usable", str(error), param="options") from None


def as_toml(options: RunOptions, name: str, runs: Path) -> str:
    """The options that were given as a ``duplex.toml`` for a run of this name."""
    given = options.model_dump(mode="json", include=options.model_fields_set)
    given |= {"run_name": name, "out": str(runs)}
    return "[run]\n" + "".join(
        f"{option} = {_toml(value)}\n" for option, value in given.items() if value is not None
    )


def _toml(value: object) -> str:
    """JSON is TOML for these values, but for tables, nulls and one character."""
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in value)}]"
    if isinstance(value, dict):
        told = (f"{name} = {_toml(one)}" for name, one in value.items() if one is not None)
        return f"{{{', '.join(told)}}}"
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def _folder(runs: Path, name: str) -> str | None:
    with os.scandir(runs) as entries:
        return next((one.name for one in entries if one.name.startswith(f"{name}_")), None)


def _sentence(said: Path) -> str:
    """What the process said last, as the reason why there is no run."""
    try:
        text = read_bytes(said, limit=_SAID_BYTES).decode("utf-8", "replace")
    except InputError:
        text = ""
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "the run ended at once").removeprefix("duplex: ")
