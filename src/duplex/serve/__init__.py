"""The store of runs over HTTP: read while runs are in progress, started and cancelled.

Two dialects over one library: our own below ``/api`` and the Roark shape below ``/v1``.
It formats what the layers below judged and never computes a number; a run is held by a
process of its own. ``duplex serve`` drives it.
"""
