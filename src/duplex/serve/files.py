"""The files of a run that are served: a fixed list, named by what they are and never by path.

A call's id is looked up among the run's own calls. A file that a link leads out of the
run's folder is not served, nor the sound of a call that is still going on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from starlette.responses import FileResponse

from duplex.results.stored import call_id, load_results
from duplex.serve.library import Library
from duplex.serve.refusals import Refusal
from duplex.store import Row
from duplex.verdict.gather import gather

Sound = Literal["conversation", "caller", "assistant", "noise"]
_SOUNDS: dict[Sound, str] = {
    "conversation": "conversation.wav",
    "caller": "caller_source.wav",
    "assistant": "assistant_source.wav",
    "noise": "noise.wav",
}
# The page brings its script and style with it; it is nobody's origin and reaches nothing.
_PAGE_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:; connect-src data: "
    "blob:; frame-ancestors "
)
FRAMED = {
    "content-security-policy": f"{_PAGE_POLICY}'self'",
    "x-frame-options": "SAMEORIGIN",
}
"""Headers of a page that our own pages show in a frame, where it is nobody's origin too."""


def viewer(library: Library, row: Row) -> FileResponse:
    """The run's page; raises Refusal when it has none yet."""
    path = _inside(library.place(row).path, Path("viewer.html"))
    headers = {"content-security-policy": f"{_PAGE_POLICY}'none'"}
    return FileResponse(path, media_type="text/html; charset=utf-8", headers=headers)


def results(library: Library, row: Row) -> FileResponse:
    """The run's results as they stand on disk."""
    return FileResponse(
        _inside(library.place(row).path, Path("results.json")), media_type="application/json"
    )


def sound(library: Library, row: Row, call: str, what: Sound) -> FileResponse:
    """One recording of a call that is over; the response knows ranges."""
    folder = library.place(row)
    if call not in _calls_over(library, row):
        raise Refusal(404, "call_not_found", "the run has no such call that is over")
    relative = folder.audio(call).relative_to(folder.path) / _SOUNDS[what]
    return FileResponse(_inside(folder.path, relative), media_type="audio/wav")


def _calls_over(library: Library, row: Row) -> set[str]:
    told = library.seen(row).told
    if told is not None:
        return set(told.ended)
    place = library.place(row)
    held = load_results(place.results)
    named = {case.call_id for case in gather(held).cases}
    return named | {call_id(place.path, result) for result in held.results}


def _inside(folder: Path, relative: Path) -> Path:
    """A regular file below a folder, links resolved; raises Refusal."""
    try:
        path = (folder / relative).resolve(strict=True)
        here = folder.resolve(strict=True)
    except (OSError, RuntimeError):
        raise _missing(relative) from None
    if not path.is_relative_to(here) or not path.is_file():
        raise _missing(relative)
    return path


def _missing(relative: Path) -> Refusal:
    return Refusal(404, "file_not_found", f"the run has no {relative.name}")
