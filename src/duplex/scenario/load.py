"""Scenario files from disk: read, checked as a whole, ready to run.

Everything that can be wrong with a file is found here, before any session opens,
and told with file, place, what was got and what is wanted. Never changes a file,
opens a recording or guesses an id.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath

from pydantic import ValidationError

from duplex.errors import InputError
from duplex.inputs import entries, exists, is_file, is_folder, read_text
from duplex.scenario.complaints import complaints
from duplex.scenario.guards import guard_warnings
from duplex.scenario.model import Recorded, Scenario, ScenarioFile, quoted
from duplex.scenario.text import MAX_JSON_BYTES, read_json, read_yaml
from duplex.values import Json

SUFFIXES = (".json", ".yaml", ".yml")
_SHOWN = 20
_NUMBERED = re.compile(r"(.+)\.[as][0-9]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Scenarios of one file or folder, in the order they are written.

    ``sources`` maps a scenario id to its file. ``warnings`` tells what the public
    harness would refuse and duplex does not.
    """

    path: Path
    scenarios: tuple[Scenario, ...]
    sources: dict[str, Path]
    warnings: tuple[str, ...] = ()

    def select(self, ids: Sequence[str]) -> tuple[Scenario, ...]:
        """Return the scenarios named, once each, in the order asked for; all for none.

        Raise InputError for an unknown id, listing the nearest ones.
        """
        if not ids:
            return self.scenarios
        known = {scenario.id: scenario for scenario in self.scenarios}
        chosen: dict[str, Scenario] = {}
        for one in ids:
            if one not in known:
                raise InputError(f"no scenario {quoted(one)} in {self.path}{_nearest(one, known)}")
            chosen[one] = known[one]
        return tuple(chosen.values())

    def recording(self, scenario: Scenario, recorded: Recorded) -> Path:
        """Return where a recording is; raise InputError if no such file can be read."""
        place = _inside(self.sources[scenario.id], recorded.path)
        if place is None or not is_file(place):
            raise InputError(
                f"scenario {scenario.id}: recording {quoted(recorded.path)} is no file "
                f"in {self.sources[scenario.id].parent}"
            )
        return place


@dataclass(slots=True)
class Findings:
    """What reading a path brought: ``errors`` keep it from running, ``warnings`` do not."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    scenarios: list[Scenario] = field(default_factory=list)
    sources: dict[str, Path] = field(default_factory=dict)


def load(path: str | Path) -> Dataset:
    """Load a scenario file, or every one in a folder; raise InputError listing what is wrong."""
    found = inspect(path)
    if found.errors:
        shown = found.errors[:_SHOWN]
        if len(found.errors) > _SHOWN:
            shown.append(f"and {len(found.errors) - _SHOWN} more")
        raise InputError("\n".join(shown))
    return Dataset(
        path=Path(path),
        scenarios=tuple(found.scenarios),
        sources=found.sources,
        warnings=tuple(found.warnings),
    )


def validate(path: str | Path) -> list[str]:
    """Return everything that keeps ``path`` from being run, a line each; empty when nothing."""
    return inspect(path).errors


def inspect(path: str | Path) -> Findings:
    """Read ``path`` and say all that is right, doubtful and wrong with it; never raises."""
    found = Findings()
    claimed: dict[str, tuple[str, str]] = {}
    try:
        files = _files(Path(path))
    except InputError as error:
        return Findings(errors=[str(error)])
    for file in files:
        _take_file(file, found, claimed)
    if not found.scenarios and not found.errors:
        found.errors.append(f"scenario {path}: holds no scenario")
    return found


def _files(path: Path) -> list[Path]:
    if is_folder(path):
        files = [
            entry
            for entry in entries(path, f"scenario {path}")
            if entry.suffix.lower() in SUFFIXES and entry.name[0] != "." and is_file(entry)
        ]
        if not files:
            raise InputError(f"scenario {path}: holds no file ending in {', '.join(SUFFIXES)}")
        return files
    if not exists(path):
        raise InputError(f"scenario {path}: no such file{_nearest_file(path)}")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"scenario {path}: ends in {quoted(path.suffix)}, want {', '.join(SUFFIXES)}"
        )
    return [path]


def _nearest_file(path: Path) -> str:
    try:
        beside = entries(path.parent)
    except InputError:
        return ""
    names = [entry.name for entry in beside if entry.suffix.lower() in SUFFIXES]
    return _did_you_mean(path.name, names)


def _take_file(file: Path, found: Findings, claimed: dict[str, tuple[str, str]]) -> None:
    name = f"scenario {file}"
    try:
        value = _read(file, name)
    except InputError as error:
        found.errors.append(str(error))
        return
    found.errors.extend(_repeated_ids(value, name, claimed))
    try:
        document = ScenarioFile.model_validate(value)
    except ValidationError as error:
        found.errors.extend(complaints(error, name))
        return
    for index, scenario in enumerate(document.scenarios):
        where = f"{name}: scenarios[{index}]"
        found.errors.extend(_stray_recordings(file, scenario, where))
        found.warnings.extend(f"{where}: {warning}" for warning in guard_warnings(scenario))
        options = scenario.duplex.over(document.duplex)
        found.scenarios.append(scenario.model_copy(update={"duplex": options}))
        found.sources[scenario.id] = file


def _read(file: Path, name: str) -> Json:
    text = read_text(file, name, limit=MAX_JSON_BYTES)
    return read_json(text, name) if file.suffix.lower() == ".json" else read_yaml(text, name)


def _repeated_ids(value: Json, name: str, claimed: dict[str, tuple[str, str]]) -> Iterable[str]:
    """Find ids equal but for case and surrounding space, here or in an earlier file."""
    scenarios = value.get("scenarios") if isinstance(value, dict) else None
    for index, entry in enumerate(scenarios if isinstance(scenarios, list) else []):
        one = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(one, str):
            continue
        key, here = one.strip().casefold(), f"scenarios[{index}].id"
        if key in claimed:
            first_file, first = claimed[key]
            first = first if first_file == name else f"{first_file}: {first}"
            yield f"{name}: {here} {quoted(one)} repeats {first}"
        elif (numbered := _NUMBERED.fullmatch(key)) and numbered[1] in claimed:
            yield (
                f"{name}: {here} {quoted(one)} is what a sample of {quoted(numbered[1])} "
                "would be called"
            )
        claimed.setdefault(key, (name, here))


def _stray_recordings(file: Path, scenario: Scenario, where: str) -> Iterable[str]:
    for index, recorded in enumerate(scenario.input.recordings):
        if _inside(file, recorded.path) is None:
            yield (
                f"{where}.input.recordings[{index}].path {quoted(recorded.path)} leads outside "
                f"the folder of the file, want a path inside it"
            )


def _inside(file: Path, path: str) -> Path | None:
    """Resolve ``path`` beside ``file``; None when it leads, or links, anywhere else."""
    if "\0" in path or "\\" in path or path.startswith("~") or PureWindowsPath(path).drive:
        return None
    try:
        folder = file.resolve().parent
        place = (folder / path).resolve()
    except (OSError, RuntimeError):
        return None
    return place if place.is_relative_to(folder) and place != folder else None


def _nearest(one: str, known: Iterable[str]) -> str:
    names = list(known)
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(one.strip().casefold(), folded, n=3, cutoff=0.3)
    return f", nearest: {', '.join(folded[name] for name in close) or ', '.join(names[:3])}"


def _did_you_mean(got: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(got, list(names), n=1)
    return f', did you mean "{close[0]}"?' if close else ""
