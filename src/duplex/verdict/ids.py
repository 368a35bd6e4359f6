"""Stable ids for what the interchange shapes want a UUID for.

Version 5 UUIDs (RFC 9562) below one namespace: the same run, call or check has
the same id on every machine, and none is ever drawn at random.
"""

from __future__ import annotations

import uuid

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://pypi.org/project/duplex-voice/")


def stable_id(kind: str, *parts: str) -> str:
    """The UUID of a thing by its kind and its own names, as text."""
    return str(uuid.uuid5(_NAMESPACE, "\0".join((kind, *parts))))


def check_id(check: str) -> str:
    """The UUID of a check or metric, the same in every run."""
    return stable_id("metric", check)
