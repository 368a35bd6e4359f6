"""Counts in words: one of a thing, several of it.

Wherever a person reads a count that may be one, it is written by these; they know no thing.
"""

from __future__ import annotations


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """``1 barge-in``, ``2 barge-ins``; ``nouns`` where an s is not enough."""
    return f"{count} {noun if count == 1 else nouns or f'{noun}s'}"


def times(count: int) -> str:
    """``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
