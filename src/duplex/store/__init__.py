"""Run folders found again: an index that is never the truth, and a row for each run."""

from duplex.store.index import Row, Store, find_run

__all__ = ["Row", "Store", "find_run"]
