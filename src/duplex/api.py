"""The command's verbs as functions, for programs, notebooks and tests.

They take what the flags take, raise :class:`~duplex.errors.DuplexError` where the
command would exit 2, and print nothing.
"""

from __future__ import annotations

import asyncio

from duplex import viewer
from duplex.notebook.runs import Run
from duplex.options import make
from duplex.publishing import publish
from duplex.runner import Runner


def run(**options: object) -> Run:
    """Hold calls and return the results and their folder, its viewer.html included.

    ``options`` are the fields of :class:`~duplex.options.RunOptions`, named as the
    flags of ``duplex run``: ``run(scenario=["restaurant_booking_complete"],
    clock="virtual", seed=8)``. Must not be called inside a running event loop;
    there, await ``Runner(options).run()``.

    Raises:
        InputError: an option, a scenario or an application cannot be used.
        MissingExtra: local voices are asked for and not installed.
    """
    finished = asyncio.run(Runner(make(options)).run())
    viewer.build(finished.folder)
    publish(finished.run, finished.folder)
    return Run.of(finished)
