"""The folder of one run: where things lie, and how whole files get there.

Folders are made 0700 and files 0600. JSON is strict and appears at once or not
at all (written beside its place, then renamed). It knows no schema: what goes
into ``results.json`` is decided above. The runner drives it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path

from duplex.clock import utc_now
from duplex.errors import InputError
from duplex.inputs import entries, exists, is_folder
from duplex.redact import Redactor
from duplex.values import Json
from duplex.wavfile import write_failed

_LONGEST_NAME = 100
_DEVICE = re.compile(r"(CON|PRN|AUX|NUL|COM[0-9]|LPT[0-9])(\.|$)", re.IGNORECASE)


class RunFolder:
    """A run's folder; every path it gives lies inside it."""

    def __init__(
        self, path: Path, *, secrets: Iterable[str] = (), redactor: Redactor | None = None
    ) -> None:
        """``redactor`` takes the place of one that knows ``secrets`` only."""
        self.path = path
        self.redactor = redactor or Redactor(secrets)

    @classmethod
    def create(
        cls,
        out: str | Path,
        *,
        live: bool,
        name: str | None = None,
        secrets: Iterable[str] = (),
        redactor: Redactor | None = None,
        furnish: Callable[[Path], None] | None = None,
    ) -> RunFolder:
        """Make ``out/{name or "run"}_{live|offline}_{UTC}_{short id}`` and its parents.

        ``furnish`` puts into it what must be there from the first moment on: the folder
        appears under its name only afterwards.
        """
        stamp = utc_now()[:19].replace("-", "").replace(":", "").replace("T", "_")
        kind = "live" if live else "offline"
        made = f"{safe_name(name or 'run')}_{kind}_{stamp}_{_short_id()}"
        path = Path(out) / made
        beside = path if furnish is None else path.with_name(f".{made}.tmp")
        make_private(beside)
        if furnish is not None:
            furnish(beside)
            try:
                beside.rename(path)
            except OSError as error:
                raise write_failed(path, error) from error
        return cls(path, secrets=secrets, redactor=redactor)

    @classmethod
    def open(cls, path: str | Path, *, redactor: Redactor | None = None) -> RunFolder:
        """Take a folder that exists; raises InputError when it does not."""
        if not is_folder(Path(path)):
            raise InputError(f"run folder {path} is no folder")
        return cls(Path(path), redactor=redactor)

    @property
    def id(self) -> str:
        """The run's id is the folder's name."""
        return self.path.resolve().name

    @property
    def results(self) -> Path:
        return self.path / "results.json"

    def audio(self, call_id: str) -> Path:
        """Folder of one call's audio; it may not exist yet."""
        return self.path / "audio" / safe_name(call_id)

    def events(self, call_id: str) -> Path:
        return self.path / "events" / f"{safe_name(call_id)}.jsonl"

    def transcript(self, call_id: str) -> Path:
        return self.path / "transcripts" / f"{safe_name(call_id)}.json"

    def relative(self, path: Path) -> str:
        """``path`` as it stands in results.json: relative to the folder, with ``/``."""
        return path.relative_to(self.path).as_posix()

    def call_ids(self) -> list[str]:
        """Ids of the calls that have events here, sorted."""
        files = entries(self.path / "events")
        return [file.stem for file in files if file.suffix == ".jsonl"]

    def set_aside(self, call_id: str) -> None:
        """Move what a call that was cut off left into ``interrupted/``, never over anything."""
        place = self.path / "interrupted" / f"{safe_name(call_id)}-{_short_id()}"
        for path in (self.audio(call_id), self.events(call_id), self.transcript(call_id)):
            if not exists(path):
                continue
            make_private(place)
            try:
                path.rename(place / path.name)
            except OSError as error:
                raise write_failed(path, error) from error

    def write_json(self, path: Path, value: object) -> None:
        """Put strict JSON at ``path`` whole or not at all; secrets are hidden.

        NaN and infinities become null, lone surrogates U+FFFD.
        """
        clean: Json = self.redactor.json(value)
        text = json.dumps(clean, allow_nan=False, ensure_ascii=False, indent=2)
        self._write(path, text + "\n")

    def write_text(self, path: Path, text: str) -> None:
        """Put a text at ``path`` whole or not at all; secrets are hidden."""
        self._write(path, self.redactor.text(text))

    def _write(self, path: Path, text: str) -> None:
        make_private(path.parent)
        beside = path.with_name(f".{path.name}.{_short_id()}.tmp")
        try:
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                f.write(text.encode("utf-8"))
                f.flush()
                os.fsync(f.fileno())
            beside.replace(path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise write_failed(path, error) from error


def make_private(path: Path) -> None:
    """Make a folder and its missing parents, mode 0700; existing ones are left alone."""
    missing = []
    wanted = path
    try:
        while not exists(path):
            missing.append(path)
            path = path.parent
        if not is_folder(path):
            raise InputError(f"{path} is a file, wanted a folder")
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise write_failed(wanted, error) from error


def safe_name(text: str) -> str:
    """A file name for an id: itself when harmless, else cleaned with a short hash.

    Different ids never share a name, also where the file system ignores case
    of what was cleaned; no name starts or ends with a dot, leads out of its folder
    or is a device's on some system.
    """
    clean = re.sub(r"[^A-Za-z0-9._-]", "_", text).strip(".")[:_LONGEST_NAME]
    if clean == text and clean and not _DEVICE.match(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    # A device is named by what stands before the first dot, whatever follows.
    lead = "id_" if _DEVICE.match(clean) or not clean else ""
    return f"{lead}{clean[: _LONGEST_NAME - 12]}-{digest}"


def _short_id() -> str:
    return secrets.token_hex(3)
