"""From a run's folder to its page: ``viewer.html``, whole or not at all.

Reads results.json, events and audio; writes one file. It measures nothing, and
what it cannot read it shows as missing. The runner calls :func:`build` once
when a run is over, ``duplex view`` calls :func:`command`.
"""

from __future__ import annotations

import os
import secrets
import sys
import webbrowser
from collections.abc import Iterable, Iterator
from pathlib import Path

from duplex.counting import counted
from duplex.inputs import is_file
from duplex.results import schema
from duplex.results.run import COLUMNS, headline, rows
from duplex.results.stored import home, load_results
from duplex.run_folder import RunFolder
from duplex.screen import plain
from duplex.values import Json
from duplex.viewer import page, say
from duplex.viewer.call import CallPage, call_page, selector
from duplex.viewer.reading import clean, members
from duplex.viewer.rows import timing_rows
from duplex.viewer.sound import MIME, Sound, fitting
from duplex.wavfile import write_failed

NAME = "viewer.html"
SOUND_LIMIT = 40 << 20
"""Bytes of sound in one page, which is a third larger as text; a browser holds all of it."""


def build(run_dir: str | Path, output: Path | None = None, *, limit: int = SOUND_LIMIT) -> Path:
    """Write the page of a run, ``RUN/viewer.html`` unless told otherwise; return its path.

    Sound that would exceed ``limit`` bytes is given at 16 or 8 kHz, else left out, that
    of calls that passed first.
    Raises InputError when there are no results to show.
    """
    folder = RunFolder.open(run_dir)
    run = load_results(folder.results)
    path = output if output is not None else folder.path / NAME
    _write(path, _page(home(folder.path), run, limit))
    return path


def build_call(run_dir: Path, run: schema.Run, index: int) -> Iterator[str]:
    """The page of one call of a run, in pieces; ``run`` holds it and need not be over."""
    result = run.results[index]
    summary = run.summary.model_copy(update={"total": 1})
    alone = run.model_copy(update={"results": [result], "summary": summary})
    return _page(home(run_dir), alone, SOUND_LIMIT)


def command(run: Path, output: Path | None = None, open_browser: bool = False) -> int:
    """``duplex view``: write the page, print where it is; return the exit code.

    ``run`` is a run's folder or a file in it. Raises DuplexError.
    """
    folder = run.parent if is_file(run) else run
    path = build(folder, output)
    size = path.stat().st_size / 1e6
    print(plain(f"wrote {path} ({size:.1f} MB, opens without a server)"), file=sys.stderr)
    print(path)
    if open_browser and not webbrowser.open(path.resolve().as_uri()):
        print(f"no browser was found; open {plain(str(path))} in one", file=sys.stderr)
    return 0


def _page(folder: Path, run: schema.Run, limit: int) -> Iterator[str]:
    """The page in pieces; one call's audio is held at a time."""
    yield from page.begin(clean(f"{run.run.id} · duplex"))
    given = 0
    # Calls that did not pass are the ones somebody wants to hear.
    for index in sorted(range(len(run.results)), key=lambda i: run.results[i].status == "passed"):
        call = call_page(folder, run, index)
        found = None if call.samples is None else fitting(call.samples, call.rate_hz, limit - given)
        yield page.block(f"call-{index}", call.view | _sound_note(call, found))
        if found is not None:
            given += len(found.flac)
            yield from page.sound_block(f"sound-{index}", found.flac)
    yield page.block("run", _about(run, given))
    yield page.end()


def _sound_note(call: CallPage, found: Sound | None) -> dict[str, Json]:
    if call.samples is None:
        return {"mime": None}
    if found is None:
        beside = "the page would grow too large; the sound is in the run's folder"
        return {"mime": None, "sound": beside}
    told = f"{say.plain(len(found.flac) / 1e6, 2)} MB of FLAC inside"
    if found.rate_hz < call.rate_hz:
        told += f", at {say.plain(found.rate_hz / 1e3)} kHz because all of it would be too large"
    if found.bits < 16:
        told += f", with {found.bits} bits a sample"
    return {"mime": MIME, "sound": told}


def _about(run: schema.Run, sound_bytes: int) -> dict[str, Json]:
    timing = members(run.run.duplex.get("timing"))
    return {
        "id": clean(run.run.id),
        "sentence": clean(headline(run)),
        "calls": selector(run),
        "columns": list(COLUMNS),
        "rows": [[clean(cell) for cell in row.cells()] for row in rows(run)],
        "pooled": [row.as_json() for row in timing_rows(timing)],
        "size": f"{counted(len(run.results), 'call')}, {say.plain(sound_bytes / 1e6, 1)} MB of "
        "sound inside (FLAC)",
    }


def _write(path: Path, pieces: Iterable[str]) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(3)}.tmp")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for piece in pieces:
                file.write(piece.encode("utf-8"))
        beside.replace(path)
    except OSError as error:
        raise write_failed(path, error) from error
    finally:
        beside.unlink(missing_ok=True)
