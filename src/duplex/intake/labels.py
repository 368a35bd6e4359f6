"""Labels that people have of a recording: Audacity, RTTM, or our own JSON.

Strict in: whatever cannot be read is told with file and line, before any number
is given. Times become samples of the recording's own timeline. Labels say who
spoke when, and where known what and with which intent; they are never made up.
Measuring drives it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from duplex.errors import InputError
from duplex.inputs import read_bytes
from duplex.intake.roles import Roles, side_in
from duplex.values import Action, Side, Span, Utterance

LARGEST_BYTES = 64 << 20
_LONGEST_S = 7 * 24 * 3600.0
_SIDED = re.compile(r"\s*(caller|assistant)\s*(?::\s*|$)", re.IGNORECASE)
_ACTION = re.compile(r"\s*\[\s*([A-Za-z_ ]+?)\s*\]\s*|\s*([A-Z_]{4,})\s*$")
_SOUNDS = ("tic", "side_speech")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSound:
    """A caller sound that is not meant for the assistant: ``tic`` or ``side_speech``."""

    kind: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What is known of a recording besides its sound; empty when nobody labelled it."""

    utterances: tuple[Utterance, ...] = ()
    sounds: tuple[LabelledSound, ...] = ()
    source: str | None = None

    def of(self, side: Side) -> tuple[Utterance, ...]:
        """The utterances of one side, by start."""
        return tuple(item for item in self.utterances if item.side is side)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One label in seconds; ``name`` is how the file calls the speaker."""

    start: float
    end: float
    side: Side
    text: str = ""
    kind: str | None = None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class _Ranged(_Strict):
    start_ms: Annotated[float, Field(ge=0, le=_LONGEST_S * 1000)]
    end_ms: Annotated[float, Field(ge=0, le=_LONGEST_S * 1000)]

    @model_validator(mode="after")
    def _ordered(self) -> _Ranged:
        if self.end_ms < self.start_ms:
            raise ValueError(f"end_ms {self.end_ms:g} is before start_ms {self.start_ms:g}")
        return self


class _Said(_Ranged):
    side: Literal["caller", "assistant"]
    text: str = ""
    action: Literal["OPENING", "SPEAK", "CORRECT", "INTERRUPT", "BACKCHANNEL", "STOP"] | None = None


class _Sounded(_Ranged):
    kind: Literal["tic", "side_speech"]


class _Document(_Strict):
    utterances: list[_Said] = []
    sounds: list[_Sounded] = []


def read_labels(path: Path, rate_hz: int, roles: Roles) -> Labels:
    """Read a label file of any of the three kinds; spans are samples at ``rate_hz``.

    Raises:
        InputError: naming file, line or JSON path, and what is wrong there.
    """
    try:
        data = read_bytes(path, f"labels {path}", limit=LARGEST_BYTES)
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"labels {path} are no UTF-8 text (byte {error.start})") from error
    if text.lstrip().startswith(("{", "[")):
        entries = _from_json(text, path)
    else:
        lines = [(n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip()]
        is_rttm = any(line.split()[0] in ("SPEAKER", "SPKR-INFO") for _, line in lines)
        reader = _rttm_line if is_rttm else _audacity_line
        found = [reader(line, f"labels {path}:{number}", roles) for number, line in lines]
        entries = [entry for entry in found if entry is not None]
    return _labels(entries, rate_hz, str(path))


def _from_json(text: str, path: Path) -> list[_Entry]:
    try:
        document = _Document.model_validate(json.loads(text))
    except json.JSONDecodeError as error:
        where = f"labels {path}:{error.lineno}:{error.colno}"
        raise InputError(f"{where}: is no JSON: {error.msg.lower()}") from error
    except RecursionError as error:
        raise InputError(f"labels {path}: is nested too deeply") from error
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
        at = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ").rstrip(".")
        message = message[:1].lower() + message[1:]
        raise InputError(f"labels {path}: {at.lstrip('.') or 'the document'}: {message}") from error
    said = [
        _Entry(
            start=item.start_ms / 1000,
            end=item.end_ms / 1000,
            side=Side[item.side.upper()],
            text=item.text,
            kind=item.action,
        )
        for item in document.utterances
    ]
    return said + [
        _Entry(start=s.start_ms / 1000, end=s.end_ms / 1000, side=Side.CALLER, kind=s.kind)
        for s in document.sounds
    ]


def _audacity_line(line: str, where: str, roles: Roles) -> _Entry | None:
    """``start<TAB>end<TAB>text``; the text may begin with ``caller:`` or ``assistant:``."""
    if line.startswith("\\"):  # the frequency range of the label above
        return None
    fields = line.split("\t", 2)
    if len(fields) < 2:
        raise InputError(f"{where}: wanted start, end and text parted by tabs")
    start, end = (_seconds(field, where) for field in fields[:2])
    text = fields[2].strip() if len(fields) > 2 else ""
    sided = _SIDED.match(text)
    side = Side[sided[1].upper()] if sided else Side.CALLER
    return _entry(start, end, side, text[sided.end() :] if sided else text, where)


def _rttm_line(line: str, where: str, roles: Roles) -> _Entry | None:
    """``SPEAKER file channel start duration <NA> <NA> name …``."""
    fields = line.split()
    if fields[0] != "SPEAKER":
        return None
    if len(fields) < 8:
        raise InputError(f"{where}: wanted at least 8 fields, got {len(fields)}")
    start, length = _seconds(fields[3], where), _seconds(fields[4], where)
    side = side_in(fields[7])
    if side is None and fields[2] in ("1", "2"):
        side = roles.order[int(fields[2]) - 1]
    if side is None:
        raise InputError(
            f'{where}: speaker "{fields[7]}" on channel {fields[2]} is neither caller nor assistant'
        )
    return _entry(start, start + length, side, "", where)


def _entry(start: float, end: float, side: Side, text: str, where: str) -> _Entry:
    if end < start:
        raise InputError(f"{where}: ends at {end:g} s, before its start {start:g} s")
    if side is Side.CALLER and text.lower().replace(" ", "_") in _SOUNDS:
        return _Entry(start=start, end=end, side=side, kind=text.lower().replace(" ", "_"))
    named = _ACTION.match(text)
    action = (named[1] or named[2]).upper() if named and side is Side.CALLER else None
    if named is None or action not in Action.__members__:
        return _Entry(start=start, end=end, side=side, text=text)
    return _Entry(start=start, end=end, side=side, text=text[named.end() :], kind=action)


def _seconds(field: str, where: str) -> float:
    try:
        value = float(field.strip().replace(",", "."))
    except ValueError:
        raise InputError(f'{where}: "{field[:40]}" is no time in seconds') from None
    if not 0 <= value <= _LONGEST_S:
        raise InputError(f"{where}: a time of {value:g} s, wanted 0 to {_LONGEST_S:g} s")
    return value


def _labels(entries: Sequence[_Entry], rate_hz: int, source: str) -> Labels:
    said: list[Utterance] = []
    sounds: list[LabelledSound] = []
    for entry in entries:
        span = Span(start=round(entry.start * rate_hz), end=round(entry.end * rate_hz))
        if entry.kind in _SOUNDS:
            sounds.append(LabelledSound(kind=str(entry.kind), span=span))
            continue
        action = None if entry.kind is None or entry.side is Side.ASSISTANT else Action[entry.kind]
        said.append(
            Utterance(
                side=entry.side,
                text=entry.text.strip(),
                span=span,
                action=action,
                source="transcript" if action is None else "caller_intent",
            )
        )
    said.sort(key=lambda item: (item.span, item.side))
    return Labels(utterances=tuple(said), sounds=tuple(sounds), source=source)
