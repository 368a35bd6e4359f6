"""The worst moments of a run as one small drawing: who spoke, and where it went wrong.

A strip for each moment: the caller above, the assistant below, the incident
shaded. Drawn from the segments of the timing block; text is escaped, nothing is
fetched, and it can be read in light and dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from duplex.exports.subject import Subject
from duplex.screen import plain
from duplex.values import Json
from duplex.verdict.case import Case
from duplex.verdict.incidents import Incident

SHOWN = 5
_WIDTH, _STRIP, _LEFT = 720, 64, 8
_AROUND_MS = 3_000.0
_COLOURS = {"caller": "#2f7ebc", "assistant": "#3a9a5b"}


def moments_svg(subject: Subject, moments: Sequence[Incident]) -> str | None:
    """Draw the first moments that have a place in the audio; None when none has."""
    cases = {case.call_id: case for case in subject.run.final}
    placed = [one for one in moments if one.start_ms is not None and one.call_id in cases]
    shown = placed[:SHOWN]
    if not shown:
        return None
    height = _STRIP * len(shown) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11" role="img">',
        "<title>Worst moments of the run</title>",
    ]
    for at, one in enumerate(shown):
        parts += _strip(one, cases[one.call_id], at * _STRIP + 4)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _strip(one: Incident, case: Case, top: int) -> Iterator[str]:
    start = one.start_ms or 0.0
    end = max(one.end_ms or start, start + 100.0)
    left, right = start - _AROUND_MS, end + _AROUND_MS
    scale = (_WIDTH - 2 * _LEFT) / (right - left)

    def x(ms: float) -> float:
        return _LEFT + (min(max(ms, left), right) - left) * scale

    label = escape(plain(f"{one.call_id} at {start / 1000:.1f} s: {one.sentence}")[:110])
    yield f'<text x="{_LEFT}" y="{top + 11}" fill="#777">{label}</text>'
    yield (
        f'<rect x="{x(start):.1f}" y="{top + 16}" width="{max(x(end) - x(start), 2):.1f}" '
        'height="38" fill="#d9534f" fill-opacity="0.22"/>'
    )
    for side, row in (("caller", 18), ("assistant", 37)):
        for begin, finish in _segments(case, side):
            if finish < left or begin > right:
                continue
            yield (
                f'<rect x="{x(begin):.1f}" y="{top + row}" '
                f'width="{max(x(finish) - x(begin), 1):.1f}" height="14" rx="2" '
                f'fill="{_COLOURS[side]}"><title>{side}</title></rect>'
            )


def _segments(case: Case, side: str) -> Iterator[tuple[float, float]]:
    timing = case.result.duplex.get("timing")
    found: Json = timing.get("segments") if isinstance(timing, dict) else None
    for segment in found if isinstance(found, list) else []:
        if isinstance(segment, dict) and segment.get("side") == side:
            begin, finish = segment.get("start_ms"), segment.get("end_ms")
            if isinstance(begin, int | float) and isinstance(finish, int | float):
                yield float(begin), float(finish)
