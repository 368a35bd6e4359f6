"""Results as a run left them: the file read back, and where its calls' files lie.

Reading only. A results file may be of another kind, version or maker, and a
call may have left no events; both are said in one sentence. The viewer and
``remeasure`` drive it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from duplex import scenario as scenarios
from duplex.clock import utc_now
from duplex.errors import DuplexError, InputError
from duplex.inputs import exists, is_file, read_text
from duplex.metrics.transcript import one_line
from duplex.redact import Redactor
from duplex.results import schema
from duplex.run_folder import RunFolder, safe_name
from duplex.scenario import Scenario
from duplex.values import Json

REMEASURED = "remeasured"
"""Folder inside a run's that holds what was measured again, a folder each."""
GRADED = "graded"
"""The same for what was graded again."""


def load_results(path: Path) -> schema.Run:
    """Read a results file; raises InputError when there is none of schema 2.0."""
    if not exists(path):
        raise InputError(f"run folder {path.parent} has no results.json")
    content = read_text(path, f"results {path}")
    try:
        return schema.read_run(content)
    except DuplexError as error:
        # A file of another kind can be wrong in hundreds of places; the first one tells it.
        told = Redactor().text(" ".join(str(error).split("\n")[:3]))
        raise InputError(f"results {path}: {one_line(told)[:300]}") from error


def new_place(folder: RunFolder, kind: str, name: str | None) -> Path:
    """Where results made of a run's go; nothing that is there is ever written over."""
    if name is not None and safe_name(name) != name:
        raise InputError(f'name "{name}" is no file name of letters, digits, ".", "_" and "-"')
    stamp = utc_now()[:23].replace("-", "").replace(":", "").replace("T", "_").replace(".", "_")
    place = folder.path / kind / (name or stamp)
    if exists(place):
        raise InputError(f"{place} exists already, choose another --name")
    return place


def home(folder: Path) -> Path:
    """The run's folder that holds events and audio: the one above for one made of it."""
    place = folder.resolve()
    return place.parent.parent if place.parent.name in (REMEASURED, GRADED) else folder


def call_id(folder: Path, result: schema.Result) -> str:
    """The call's id as its files have it: told by where its audio is, else by its scenario."""
    for path in (result.artifacts.conversation_audio, result.artifacts.conversation_transcript):
        parts = PurePosixPath(path).parts if path is not None else ()
        if len(parts) == 3 and parts[0] == "audio" and safe_name(parts[1]) == parts[1]:
            return parts[1]
    sample = result.duplex.get("sample")
    name = result.scenario_id
    sampled = f"{name}.s{sample}" if isinstance(sample, int) else name
    return sampled if is_file(RunFolder(folder).events(sampled)) else name


def scenarios_of(run: schema.Run) -> dict[str, Scenario]:
    """The run's scenarios by id, where their files are still there; only words want them."""
    try:
        return {one.id: one for one in scenarios.load(run.run.dataset).scenarios}
    except DuplexError:
        return {}


def member(document: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """An object's member that is an object; empty for anything else."""
    value = document.get(name)
    return value if isinstance(value, dict) else {}
