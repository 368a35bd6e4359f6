"""How long playout makes audio wait, learnt from when audio arrives.

Every arrival has an offset: the position it was seen at less the media time of
its first sample. A sender on its grid keeps one offset; jitter scatters it, the
drift of a clock moves it slowly. The hold is what an average arrival has to wait
so that the latest one of the last minutes still finds the ring unbroken. This
only counts arrivals and answers; _core.pyx drives it and moves the audio. It
never allocates, reads no clock and sees no audio.

All of it is a function of (position, first sample) of arrivals and of whole
20 ms blocks played, so neither ticks nor the cutting of feeds show.
"""

from libc.stdint cimport int64_t

cdef enum:
    # Arrivals in the mean offset, and how many it takes to be worth moving for.
    RECENT = 256
    RECENT_LEAST = 4
    # A late arrival is jitter once a later one is back; else, after this many, the
    # sender has paused or its path has changed and the mean starts anew.
    PATIENCE = 16
    # The latest arrival is remembered for twelve slots of 15 s of play.
    SLOTS = 12
    SLOT_BLOCKS = 750
    # The starting hold is forgotten over 30 s of play.
    START_BLOCKS = 1500
    # Waits are binned by whole ms for their percentile; the last bin takes the rest.
    WAIT_BINS = 4096


# The first sample of an arrival and the position at which it was seen.
cdef struct Mark:
    int64_t sample
    int64_t at


# One side's hold, part of its ring. ``hold_arrive`` and ``hold_block`` learn,
# ``hold_play`` accounts; never reset, a flush only leaves marks that are skipped.
cdef struct Hold:
    int64_t length       # what an average arrival shall wait; 0: no hold at all
    bint adaptive        # else length never changes
    int64_t block        # 20 ms
    int64_t first        # the length at the start, and its bounds
    int64_t least
    int64_t most
    int64_t recent[RECENT]
    int64_t n_recent     # arrivals in the mean, since it started
    int64_t total        # sum of what is in ``recent``
    int64_t mean
    int64_t pending      # lateness not yet known to be jitter; 0: none
    int64_t patience     # arrivals it may still wait
    int64_t late[SLOTS]  # greatest lateness per slot, and of all slots
    int64_t latest
    int64_t means[SLOTS] # the mean as each slot ended, since it started anew
    int64_t n_means
    int64_t blocks       # blocks played
    # Arrivals whose first sample still waits, and how long others did.
    Mark *marks
    int64_t marks_mask
    int64_t marks_head
    int64_t n_marks
    int64_t *bins
    int64_t rate_hz
    int64_t waits
    int64_t wait_total
    int64_t wait_max


cdef inline int64_t floor_div(int64_t a, int64_t b) noexcept nogil:
    """Divide by a positive number, rounding down whatever the sign."""
    return a // b if a >= 0 else -((b - 1 - a) // b)


cdef inline void hold_restart(Hold *h) noexcept nogil:
    """Forget where the sender's grid lies; how late it comes is kept."""
    h.n_recent = 0
    h.total = 0
    h.pending = 0
    h.n_means = 0


cdef inline void hold_average(Hold *h, int64_t offset) noexcept nogil:
    cdef int64_t k = h.n_recent % RECENT
    if h.n_recent >= RECENT:
        h.total -= h.recent[k]
    h.recent[k] = offset
    h.total += offset
    h.n_recent += 1
    h.mean = floor_div(h.total, min(h.n_recent, RECENT))


cdef inline void hold_late(Hold *h, int64_t lateness) noexcept nogil:
    """Remember that audio came so late; beyond the greatest hold it was a stall."""
    cdef int64_t *slot = &h.late[h.blocks // SLOT_BLOCKS % SLOTS]
    if lateness <= h.most:
        slot[0] = max(slot[0], lateness)
        h.latest = max(h.latest, lateness)


cdef inline void hold_learn(Hold *h, int64_t offset) noexcept nogil:
    """Take in the offset of one arrival."""
    cdef int64_t lateness = offset - h.mean
    if h.n_recent == 0:
        lateness = 0
    elif lateness < -h.most:
        # Earlier than any hold explains: the stream runs ahead of where it was.
        hold_restart(h)
        lateness = 0
    if h.pending > 0 and 2 * lateness <= h.pending:
        hold_late(h, h.pending)
        h.pending = 0
    if lateness > h.block:
        if h.pending == 0:
            h.patience = PATIENCE
        h.pending = max(h.pending, lateness)
    else:
        hold_late(h, lateness)
    if h.pending > 0:
        if h.patience == 0:
            hold_restart(h)
            lateness = 0
        h.patience -= 1
    if lateness <= h.most:
        hold_average(h, offset)


cdef inline void hold_arrive(Hold *h, int64_t sample, int64_t at) noexcept nogil:
    """Note that audio from ``sample`` on was first seen at position ``at``."""
    cdef Mark *mark
    if h.length == 0:
        return
    if h.n_marks <= h.marks_mask:
        mark = &h.marks[(h.marks_head + h.n_marks) & h.marks_mask]
        mark.sample = sample
        mark.at = at
        h.n_marks += 1
    if h.adaptive:
        hold_learn(h, at - sample)


cdef inline void hold_play(Hold *h, int64_t sample, int64_t n, int64_t at) noexcept nogil:
    """Account for ``n`` samples from ``sample`` on being played from ``at`` on."""
    cdef Mark *mark
    cdef int64_t wait, bin
    while h.n_marks > 0:
        mark = &h.marks[h.marks_head & h.marks_mask]
        if mark.sample >= sample + n:
            return
        # A first sample that was flushed or dropped was never heard to wait.
        if mark.sample >= sample:
            wait = at + mark.sample - sample - mark.at
            bin = (wait * 1000 + h.rate_hz - 1) // h.rate_hz
            h.bins[min(bin, WAIT_BINS - 1)] += 1
            h.waits += 1
            h.wait_total += wait
            h.wait_max = max(h.wait_max, wait)
        h.marks_head += 1
        h.n_marks -= 1


cdef inline int64_t hold_p99(const Hold *h) noexcept nogil:
    """Return the wait, up to a whole ms, that 99 in 100 did not exceed (nearest rank)."""
    cdef int64_t rank = (99 * h.waits + 99) // 100
    cdef int64_t bin = 0, below = h.bins[0]
    while below < rank and bin < WAIT_BINS - 1:
        bin += 1
        below += h.bins[bin]
    if bin == WAIT_BINS - 1:
        return h.wait_max
    return min(h.wait_max, bin * h.rate_hz // 1000)


cdef inline int64_t hold_margin(const Hold *h) noexcept nogil:
    """Return how much later than the latest arrival the next one may safely be.

    Arrivals are seen at ticks, so one that is hardly later can be seen a whole tick
    later (20 ms, and 1 for the noise of the mean). A grid that drifted by as much
    against the ticks met every such phase. A call too young to fill the slots has
    seen less and gets up to a block more.
    """
    cdef int64_t whole = SLOTS * SLOT_BLOCKS
    cdef int64_t drift = 0
    if h.n_means > 0:
        drift = h.mean - h.means[max(0, h.n_means - SLOTS) % SLOTS]
    drift = min(h.block, max(drift, -drift))
    return h.block + h.block // 20 - drift // 4 + h.block * max(0, whole - h.blocks) // whole


cdef inline void hold_block(Hold *h) noexcept nogil:
    """Count a block of play and settle the length anew."""
    cdef int64_t k, length
    h.blocks += 1
    if h.blocks % SLOT_BLOCKS == 0:
        h.means[h.n_means % SLOTS] = h.mean
        h.n_means += 1
        h.late[h.blocks // SLOT_BLOCKS % SLOTS] = 0
        h.latest = 0
        for k in range(SLOTS):
            h.latest = max(h.latest, h.late[k])
    length = h.latest + hold_margin(h)
    length = max(length, h.first * (START_BLOCKS - h.blocks) // START_BLOCKS)
    h.length = max(h.least, min(h.most, length))


cdef inline bint hold_knows(const Hold *h) noexcept nogil:
    """Whether it is known where the sender's grid lies."""
    return h.pending == 0 and h.n_recent >= RECENT_LEAST


cdef inline int64_t hold_excess(const Hold *h, int64_t offset) noexcept nogil:
    """Return by how much playing at ``offset`` waits longer than it has to."""
    return offset - h.mean - h.length
