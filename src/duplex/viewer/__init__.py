"""The viewer: one page per run, with the sound inside, that opens anywhere.

It formats what was recorded and measured. It must never compute a metric,
fetch anything or let what a peer said become markup. The runner and
``duplex view`` drive it, ``duplex serve`` for one call.
"""

from duplex.viewer.build import build, build_call, command

__all__ = ["build", "build_call", "command"]
