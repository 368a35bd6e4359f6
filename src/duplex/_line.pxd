"""One leg's line as the engine sees it: a C struct to run, and the network behind it.

The engine calls ``leg_send`` and ``leg_hear`` inside ``advance``; everything else is for Python.
"""

from libc.stdint cimport int16_t, int64_t, uint64_t
from libc.string cimport memcpy

from duplex._counter cimport draw
from duplex._line_state cimport line_cascade, line_delay, line_t
from duplex._playout cimport (
    Log,
    Playout,
    playout_end_block,
    playout_feed,
    playout_move_hold,
    playout_notice,
    playout_pull,
)

cdef enum:
    # Jitter is drawn from as many equally likely delays.
    JITTERS = 1024


# The way packets take after the chain, and the playout of a live leg at its end.
# ``leg_send`` writes it, nobody else; never reset. Packets are taken in order, so
# one that is overtaken makes the others wait, as on any stream.
cdef struct Network:
    bint on
    uint64_t key
    int64_t packet
    int64_t base
    int64_t jitters[JITTERS]
    uint64_t reorder_below
    uint64_t stall_below
    int64_t stall
    int64_t stalled_until
    int16_t *pending     # what was sent, by position
    int64_t mask
    int64_t next         # the packet that arrives next, and when it does
    int64_t due
    int64_t position
    Playout playout
    Log log


cdef inline void network_send(Network *w) noexcept nogil:
    """Draw when packet ``next`` arrives; it was sent when its last sample was spoken."""
    cdef uint64_t k = <uint64_t>w.next
    cdef int64_t sent = (w.next + 1) * w.packet
    cdef int64_t due = sent + w.base + w.jitters[draw(w.key, 4 * k) >> 54]
    if draw(w.key, 4 * k + 1) < w.reorder_below:
        due += 2 * w.packet
    if draw(w.key, 4 * k + 2) < w.stall_below:
        w.stalled_until = max(w.stalled_until, sent + w.stall)
    w.due = max(w.due, max(due, w.stalled_until))


cdef inline void network_receive(Network *w) noexcept nogil:
    """Put every packet that is due into the ring, as one arrival."""
    cdef int64_t at, first
    while w.due <= w.position:
        at = (w.next * w.packet) & w.mask
        first = min(w.packet, w.mask + 1 - at)
        playout_feed(&w.playout, w.pending + at, first)
        if first < w.packet:
            playout_feed(&w.playout, w.pending, w.packet - first)
        w.next += 1
        network_send(w)
    playout_notice(&w.playout, w.position)


cdef inline void network_run(Network *w, int16_t *x, int64_t n) noexcept nogil:
    """Send x over the network in place: what is heard is what the ring plays."""
    cdef int64_t block = w.playout.block, at = w.position & w.mask, step
    cdef int64_t first = min(n, w.mask + 1 - at)
    memcpy(w.pending + at, x, first * sizeof(int16_t))
    memcpy(w.pending, x + first, (n - first) * sizeof(int16_t))
    while n > 0:
        if w.due <= w.position:
            network_receive(w)
        step = min(n, min(block - w.position % block, w.due - w.position))
        if w.position % block == 0:
            playout_move_hold(&w.playout, &w.log, w.position)
        playout_pull(&w.playout, &w.log, w.position, x, step)
        w.position += step
        x += step
        n -= step
        if w.position % block == 0:
            playout_end_block(&w.playout)


# One leg's effects, and what the last process or advance left to be read.
cdef struct Leg:
    line_t *state
    Network network
    int16_t *noise       # as mixed
    int64_t span
    bint acoustic


# Pass a stretch of at most 20 ms; ``done`` samples of this process or advance have passed.
cdef inline void leg_send(Leg *leg, const int16_t *source, int16_t *out, int64_t done,
                          int64_t n) noexcept nogil:
    if done == 0:
        leg.state.n_mask = 0
    leg.state.run(leg.state, source, out, leg.noise + done, n)
    if leg.network.on:
        network_run(&leg.network, out, n)
    leg.span = done + n


# Tell the leg what its speaker was played during the stretch.
cdef inline void leg_hear(Leg *leg, const int16_t *played, int64_t n) noexcept nogil:
    if leg.acoustic:
        leg.state.hear(leg.state, played, n)


cdef class Line:
    cdef Leg leg
    cdef line_t *state
    cdef readonly int rate_hz
    cdef readonly int64_t delay
    cdef readonly str kernels
    cdef int64_t room
    cdef list kept
    cdef int reserve(self, int64_t room) except -1
    cdef int _fresh(self) except -1
    cdef const int16_t *_pcm(self, object samples) except NULL
    cdef int _set_delay(self, line_delay *d, int64_t delay, double gain, double decay) except -1
    cdef int _set_cascade(self, line_cascade *cascade, sections) except -1
