"""Random numbers that are a function of a key and an index."""

from libc.stdint cimport uint64_t

cdef extern from "_counter.h" nogil:
    uint64_t draw(uint64_t key, uint64_t index) noexcept
