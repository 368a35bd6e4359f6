"""A user's own checks, found by name before any call is held.

A name is ``module:function`` or ``file.py:function``; what it names must be callable.
Loading runs the user's module, nothing else. ``grading/own_checks.py`` runs the checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

from duplex.application.loading import load_function
from duplex.errors import InputError
from duplex.grading.own_checks import CheckedCall, OwnCheck


def load_checks(names: Sequence[str]) -> tuple[OwnCheck, ...]:
    """Load the functions; raises InputError for one that is not there or named twice.

    A check is called as its function; two of one name are called as they were spelled.
    """
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(f"check-function {twice} is given twice")
    short = Counter(name.rpartition(":")[2] for name in names)
    checks = []
    for name in names:
        own = name.rpartition(":")[2]
        run = cast("Callable[[CheckedCall], object]", load_function(name, "check-function"))
        checks.append(OwnCheck(name=own if short[own] == 1 else name, run=run))
    return tuple(checks)
