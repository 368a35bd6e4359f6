"""What the paths of ``duplex measure`` stand for: calls, recordings, pairs of files.

A path is a run folder, a call's folder in it, a folder of sound files, or a
sound file; two files of one channel, one after the other, are one recording.
Nothing is measured here, and no sound is read further than its header.
``measuring.py`` drives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from duplex.errors import InputError
from duplex.inputs import entries, exists, is_file, is_folder
from duplex.intake.sound import open_sound
from duplex.recording.recorder import ASSISTANT_SOURCE, CALLER_SOURCE, CONVERSATION
from duplex.run_folder import RunFolder

_ENDINGS = ".wav .wave .flac .ogg .oga .opus .mp3 .aif .aiff .aifc .au .snd .w64 .rf64 .caf"
SOUND_ENDINGS = frozenset(_ENDINGS.split())
_BARE = "it is measured as a bare recording"


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """One recording to measure: one or two files, or a call with its events.

    ``call_id`` is set when there are events; ``files`` then are its two source
    stems, the caller's first. ``note`` says what a person should know of it.
    """

    name: str
    files: tuple[Path, ...]
    run_dir: Path | None = None
    call_id: str | None = None
    note: str | None = None


def takes(paths: Sequence[Path]) -> list[Take]:
    """What there is to measure, in order; raises InputError for a path that holds nothing."""
    found: list[Take] = []
    files: list[Path] = []
    for path in paths:
        if is_folder(path):
            found += _paired(files)
            files = []
            found += _of_folder(path)
        else:
            files.append(path)
    return found + list(_paired(files))


def _of_folder(folder: Path) -> Iterator[Take]:
    if exists(folder / CONVERSATION) or exists(folder / CALLER_SOURCE):
        yield _of_call_folder(folder)
        return
    if is_folder(folder / "events"):
        calls = RunFolder.open(folder).call_ids()
        if not calls:
            raise InputError(f"run folder {folder} holds no call yet")
        for call_id in calls:
            yield _call(folder, call_id)
        return
    sounds = [p for p in entries(folder) if p.suffix.lower() in SOUND_ENDINGS]
    if not sounds:
        raise InputError(f"{folder} holds neither a call nor a sound file")
    yield from _paired(sounds)


def _of_call_folder(folder: Path) -> Take:
    place = folder.resolve()
    run_dir = place.parent.parent
    if is_file(run_dir / "events" / f"{place.name}.jsonl"):
        return _call(run_dir, place.name)
    stems = (folder / CALLER_SOURCE, folder / ASSISTANT_SOURCE)
    if all(exists(stem) for stem in stems):
        return Take(name=str(folder), files=stems, note=f"the call's events are missing; {_BARE}")
    return _bare(folder, "the call's events and stems are missing")


def _bare(folder: Path, why: str) -> Take:
    conversation = folder / CONVERSATION
    return Take(name=str(conversation), files=(conversation,), note=f"{why}; {_BARE}")


def _call(run_dir: Path, call_id: str) -> Take:
    audio = RunFolder.open(run_dir).audio(call_id)
    stems = (audio / CALLER_SOURCE, audio / ASSISTANT_SOURCE)
    if not all(exists(stem) for stem in stems):
        return _bare(audio, "the call's stems are missing")
    return Take(name=str(audio), files=stems, run_dir=run_dir, call_id=call_id)


def _paired(files: Iterable[Path]) -> Iterator[Take]:
    """Files as they come; a file of one channel goes with the next one, if that is one too."""
    waiting: Path | None = None
    for path in files:
        if _channels(path) != 1:
            if waiting is not None:
                yield Take(name=str(waiting), files=(waiting,))
                waiting = None
            yield Take(name=str(path), files=(path,))
        elif waiting is None:
            waiting = path
        else:
            note = f"{waiting.name} and {path.name} are taken to begin at one instant"
            yield Take(name=f"{waiting} + {path}", files=(waiting, path), note=note)
            waiting = None
    if waiting is not None:
        yield Take(name=str(waiting), files=(waiting,))


def _channels(path: Path) -> int | None:
    """How many channels a file has; None when it cannot be opened, which is told later."""
    try:
        with open_sound(path) as sound:
            return sound.channels
    except InputError:
        return None
