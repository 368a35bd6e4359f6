"""A run that was cut off, read back: what it was asked, and what it has already.

Nothing is trusted that is not whole: a call counts as held when its own result can
be read, options only when nothing in them had to be hidden. The runner drives it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from duplex.errors import InputError
from duplex.inputs import is_file, is_folder, read_text
from duplex.journal import Journal, Opening
from duplex.journal import read as read_journal
from duplex.options import RunOptions
from duplex.redact import Redactor
from duplex.results import schema
from duplex.run_folder import RunFolder
from duplex.run_results import Listed, is_final, was_stopped
from duplex.scenario import Scenario
from duplex.values import Json

_PATHS = ("out", "ears_model", "mouth_model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Options as a journal may keep them; ``whole``: nothing of them had to be hidden."""

    options: dict[str, Json]
    whole: bool


def kept_options(options: RunOptions, data: Path, redactor: Redactor) -> Kept:
    """The options that were given, places made absolute, secrets hidden."""
    given = options.model_dump(mode="json", include=options.model_fields_set)
    given["data"] = str(data.absolute())
    for name in _PATHS:
        if isinstance(given.get(name), str):
            given[name] = str(Path(given[name]).absolute())
    if options.caller_is_wav:
        given["caller"] = str(Path(options.caller).absolute())
    clean = redactor.json(given)
    assert isinstance(clean, dict), "an object stays an object"
    return Kept(options=clean, whole=clean == given)


def digest(scenario: Scenario) -> str:
    """SHA-256 of what a scenario says."""
    return hashlib.sha256(scenario.model_dump_json().encode()).hexdigest()


def take_up(folder: Path) -> Opening:
    """How a run began. Raises InputError when it cannot be taken up again."""
    if not is_folder(folder):
        raise InputError(f"run {folder} is no folder")
    opening = read_journal(folder).opening
    if not opening.resumable:
        raise InputError(
            f"run {folder}: its options held a secret, which was not kept; hold it anew"
        )
    return opening


def adopt(folder: RunFolder, journal: Journal, listed: Listed) -> None:
    """List what a run that is taken up has already; set aside what was cut off."""
    told = journal.told
    for planned in listed.plan.calls:
        for entry in told.attempts(planned.id):
            result = stored_result(folder, entry.call)
            if result is None:
                raise InputError(
                    f"run {folder.path}: the result of {entry.call} is gone or damaged"
                )
            listed.add(planned, entry.attempt, result)
        attempt = len(told.attempts(planned.id)) + 1
        call_id = planned.attempt_id(attempt)
        if call_id not in told.began:
            continue
        result = stored_result(folder, call_id)
        if result is None or was_stopped(result):
            folder.set_aside(call_id)
            continue
        journal.ended(planned.id, attempt, call_id, final=is_final(result))
        listed.add(planned, attempt, result)


def stored_result(folder: RunFolder, call_id: str) -> schema.Result | None:
    """The result in a call's own folder; None when it is not there or not whole."""
    path = folder.audio(call_id) / "conversation.result.json"
    if not is_file(path):
        return None
    try:
        return schema.Result.model_validate_json(read_text(path))
    except ValueError:
        return None
