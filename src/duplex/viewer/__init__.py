"""The viewer: one page per run, with the sound inside, that opens anywhere.

It formats what was recorded and measured. It must never compute a metric,
fetch anything or let what a peer said become markup. The runner and
``duplex view`` drive it.
"""

from duplex.viewer.build import build, command

__all__ = ["build", "command"]
