"""A figure that shows itself in a notebook and is saved as the same bytes every time.

Needs matplotlib, and no display: it is drawn by Agg, apart from pyplot and whatever
style a notebook has set. Words are never read as formulas. It knows no results.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from duplex.errors import InputError
from duplex.viewer.reading import clean

CALLER, ASSISTANT, BOTH = "#2159d6", "#b45309", "#a21caf"
GOOD, BAD, INK, MUTED, RULE = "#15803d", "#b91c1c", "#1e1c19", "#67625a", "#e3dfd6"
SERIES = ("#2159d6", "#b45309", "#0f766e", "#a21caf", "#4d7c0f", "#be123c", "#475569", "#a16207")
"""Colours of things drawn over one another; their marks differ too."""
FORMATS = ("png", "svg", "pdf")
_DPI = 130
_LONGEST = 72


class Plot(Figure):
    """A matplotlib figure; :meth:`save` writes it to a file."""

    def save(self, path: str | Path) -> Path:
        """Write it as the path's ending says, png, svg or pdf; return the path.

        Raises:
            InputError: the ending is none of these, or the file cannot be written.
        """
        place = Path(path)
        kind = place.suffix.lower().lstrip(".")
        if kind not in FORMATS:
            raise InputError(f'plot {place}: ends in "{place.suffix}", wanted .png, .svg or .pdf')
        content = self._bytes(kind)
        try:
            place.write_bytes(content)
        except OSError as error:
            raise InputError(f"plot {place} cannot be written: {error.strerror}") from None
        return place

    def _bytes(self, kind: str) -> bytes:
        # Neither the moment nor the version of what drew it belongs into the file.
        unsaid = {"png": ("Software",), "svg": ("Date", "Creator"), "pdf": ("CreationDate",)}
        out = io.BytesIO()
        with looks():
            self.savefig(out, format=kind, dpi=_DPI, metadata=dict.fromkeys(unsaid[kind]))
        return out.getvalue()

    def _repr_png_(self) -> bytes:
        return self._bytes("png")


def sheet(width: float, height: float) -> Plot:
    """An empty figure of so many inches."""
    figure = Plot(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@contextmanager
def looks() -> Iterator[None]:
    """Draw as duplex does, whatever style is set outside."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "text.parse_math": False,
                "text.usetex": False,
                "font.family": ["DejaVu Sans"],
                "font.size": 9.0,
                "text.color": INK,
                "axes.labelcolor": INK,
                "axes.edgecolor": MUTED,
                "axes.titlesize": 10.0,
                "axes.titlelocation": "left",
                "axes.titleweight": "bold",
                "axes.spines.top": False,
                "axes.spines.right": False,
                "xtick.color": MUTED,
                "ytick.color": MUTED,
                "xtick.labelcolor": INK,
                "ytick.labelcolor": INK,
                "legend.frameon": False,
                "figure.facecolor": "white",
                "axes.facecolor": "white",
                "savefig.facecolor": "white",
                "svg.hashsalt": "duplex",
            }
        )
        yield


def short(text: str, longest: int = _LONGEST) -> str:
    """A name as one harmless line that fits."""
    told = clean(text)
    return told if len(told) <= longest else f"{told[: longest - 1]}…"
