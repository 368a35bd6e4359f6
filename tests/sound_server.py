"""A real PulseAudio with two null sinks, started for the tests alone and ended after them.

``ear`` is the loudspeaker. ``mouth`` is where a person's voice is played into; its monitor
is the microphone ``room``, which also hears the loudspeaker at −20 dB, through the air.
Nothing of the machine's own sound is touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from duplex.wavfile import Pcm

NEEDED = "DUPLEX_NEEDS_SOUND"
"""Set where a sound server must be there: then nothing is skipped."""
AIR = "46%"
"""PulseAudio's cubic volume: 60·log10(0.46) = −20 dB."""
MONITOR_HZ = 24_000
_ASOUND = """
pcm.ear { type pulse device ear hint { show on description "ear" } }
pcm.room { type pulse device mouth.monitor hint { show on description "room" } }
"""
_WAIT = threading.Event()


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundServer:
    """A server that runs, and the environment in which it is the machine's."""

    env: Mapping[str, str]

    def play(self, wav: Path, sink: str = "mouth") -> None:
        """Play a file into a sink, to its end."""
        subprocess.run(["paplay", f"--device={sink}", str(wav)], env=self.env, check=True)

    @contextmanager
    def recorded(self, sink: str = "ear") -> Iterator[list[Pcm]]:
        """Record what a sink plays while the block lasts; the list holds it afterwards."""
        command = [
            "parec",
            f"--device={sink}.monitor",
            f"--rate={MONITOR_HZ}",
            "--format=s16le",
            "--channels=1",
            "--latency-msec=20",
        ]
        process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE)
        found: list[bytes] = []

        def read() -> None:
            assert process.stdout is not None
            while raw := process.stdout.read1(4096):  # type: ignore[attr-defined]
                found.append(raw)

        thread = threading.Thread(target=read)
        thread.start()
        whole: list[Pcm] = []
        try:
            yield whole
        finally:
            process.terminate()
            process.wait(5)
            thread.join(5)
            raw = b"".join(found)
            whole.append(np.frombuffer(raw[: len(raw) // 2 * 2], "<i2"))


def pause(seconds: float) -> None:
    _WAIT.wait(seconds)


def missing(reason: str) -> None:
    """Skip, or fail where a sound server was promised."""
    if os.environ.get(NEEDED):
        pytest.fail(f"{reason}, and {NEEDED} is set")
    pytest.skip(reason)


@contextmanager
def serving(folder: Path) -> Iterator[SoundServer]:
    """Start a server whose files lie in ``folder``; skip where there is none."""
    for name in ("pulseaudio", "pactl", "paplay", "parec"):
        if shutil.which(name) is None:
            missing(f"no {name} here")
    home, runtime = folder / "home", folder / "run"
    for path in (home, runtime):
        path.mkdir(mode=0o700)
    (home / ".asoundrc").write_text(_ASOUND, encoding="utf-8")
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PULSE")},
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(runtime),
        "XDG_STATE_HOME": str(folder / "state"),
        "PULSE_RUNTIME_PATH": str(runtime / "pulse"),
    }
    modules = (
        "module-native-protocol-unix",
        "module-null-sink sink_name=ear rate=48000",
        "module-null-sink sink_name=mouth rate=48000",
        "module-loopback source=ear.monitor sink=mouth latency_msec=10 adjust_time=0",
    )
    command = ["pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--disable-shm=yes"]
    command += [word for module in modules for word in ("-L", module)]
    process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)
    try:
        _await(process, env)
        (air,) = _listed("sink-inputs", env)
        subprocess.run(["pactl", "set-sink-input-volume", air, AIR], env=env, check=True)
        yield SoundServer(env=env)
    finally:
        process.terminate()
        process.wait(10)


def _await(process: subprocess.Popen[bytes], env: Mapping[str, str]) -> None:
    for _ in range(100):
        if process.poll() is not None:
            missing("no PulseAudio can be started here")
        done = subprocess.run(["pactl", "info"], env=env, capture_output=True, check=False)
        if done.returncode == 0 and _listed("sink-inputs", env):
            return
        pause(0.05)
    missing("PulseAudio does not answer")


def _listed(what: str, env: Mapping[str, str]) -> list[str]:
    done = subprocess.run(
        ["pactl", "list", "short", what], env=env, capture_output=True, check=True, text=True
    )
    return [line.split()[0] for line in done.stdout.splitlines()]
