"""The store of runs over HTTP: read while runs are in progress, started and cancelled.

Three dialects over one library: our own below ``/api``, Roark's shape below ``/v1`` and
LiveKit's below ``/v0``.
It formats what the layers below judged and never computes a number; a run is held by a
process of its own. ``duplex serve`` drives it.
"""
