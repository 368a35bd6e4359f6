"""pandas and matplotlib, looked for when they are first wanted.

Says in one sentence what is missing and how to get it; loads nothing by itself.
"""

from __future__ import annotations

from importlib.util import find_spec

from duplex.errors import MissingExtra


def need(package: str, extra: str, what: str) -> None:
    """Raise MissingExtra unless ``package`` is installed."""
    if find_spec(package) is None:
        raise MissingExtra(
            f"{what} needs the extra {extra} ({package} is missing): "
            f"pip install 'duplex-voice[{extra}]'"
        )


def need_frames() -> None:
    """Raise MissingExtra unless data frames can be made."""
    need("pandas", "notebook", "a data frame")


def need_plots() -> None:
    """Raise MissingExtra unless plots can be drawn."""
    need("matplotlib", "plot", "a plot")
