"""Playout of one side: a ring of audio that waits, the hold, and the silence made when it is short.

Whoever owns a ring feeds it between stretches, then moves the hold at the start of
a 20 ms block, pulls, and ends the block. It plays what it was fed in order, pads
with counted silence, and moves a hold only in quiet. It allocates only when it is
opened and reads no clock; _core.pyx plays live legs with it, _line.pyx the legs that simulate a network.
"""

from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from duplex._hold cimport (
    WAIT_BINS,
    Hold,
    Mark,
    hold_arrive,
    hold_block,
    hold_excess,
    hold_knows,
    hold_play,
)

cdef extern from "_kernels.h" nogil:
    uint64_t duplex_energy(const int16_t *x, int64_t n) noexcept

cdef enum:
    # Contract 2.0: a window is voiced when its RMS reaches this many int16 steps.
    VOICED_RMS = 220
    # A low-water mark is believed when it looked at this many 20 ms blocks and saw
    # this many arrivals, so that it spans a whole period of whatever size is sent.
    LOW_WATER_BLOCKS = 50
    LOW_WATER_ARRIVALS = 2

# Where a playout ring stands. A dry ring pads; a holding one plays the hold.
cdef enum State:
    DRY = 0
    HOLDING = 1
    PLAYING = 2

cdef enum Kind:
    SEGMENT = 0
    FLOOR = 1
    HOLD_ADJUST = 2
    UNDERRUN = 3
    IDLE = 4
    DISCARD = 5
    NO_RUN = -1


# Written by the owner between two drains, read and emptied by drain.
# ``emitted`` is where the owner stood; it orders events and is not reported.
cdef struct Event:
    int64_t emitted
    int64_t start
    int64_t value
    int kind
    int side
    # Of a segment the edge detector found: how deep noise hides its edges.
    int32_t start_deficit
    int32_t end_deficit
    uint32_t flags


# Events since the last drain; what does not fit is counted as lost.
cdef struct Log:
    Event *events
    int64_t room
    int64_t n
    int64_t lost


# One side's jitter buffer. ``feed`` writes behind ``head + queued``, ``pull``
# reads at ``head``, ``flush`` empties it; never reset otherwise. The array holds
# one block more than ``capacity``, so the last block played is still there.
cdef struct Playout:
    int16_t *data
    int64_t mask
    int64_t capacity
    int64_t block        # 20 ms
    int64_t step         # 4 ms: an adaptive hold drops no less, waits no less than 1
    int side
    int64_t head
    int64_t queued
    int64_t since        # samples played since the start or the last flush
    Hold hold            # how long it makes audio wait; not at all when 0 long
    int state
    int64_t wait         # samples of hold still to play
    int64_t gap          # samples padded since the ring ran dry
    bint started         # has ever played anything
    bint in_speech       # the ring ran dry with the last 20 ms voiced
    int run_kind         # the open run of silence we made, or NO_RUN
    int64_t run_start
    int64_t run_length
    int64_t low_now      # least depth in this low-water window, and in the last
    int64_t low_before   # full one; -1 when there is none
    int64_t low_blocks   # blocks and arrivals in this window
    int64_t low_arrivals
    int64_t noticed      # of what was accepted, how much advance knew of
    # Totals, in samples.
    int64_t accepted
    int64_t played
    int64_t discarded
    int64_t idle
    int64_t underrun
    int64_t hold_added
    int64_t hold_dropped


cdef inline int64_t power_of_two(int64_t n) noexcept nogil:
    cdef int64_t size = 1
    while size < n:
        size <<= 1
    return size


cdef inline int playout_open(Playout *p, int side, int64_t capacity, int64_t block) noexcept nogil:
    """Set up an empty ring without a hold; -1 when there is no memory."""
    p.side = side
    p.capacity = capacity
    p.block = block
    p.step = block // 5
    p.mask = power_of_two(capacity + block) - 1
    p.run_kind = NO_RUN
    p.low_before = -1
    p.low_now = INT64_MAX
    p.data = <int16_t *>calloc(p.mask + 1, sizeof(int16_t))
    return 0 if p.data != NULL else -1


cdef inline int playout_open_hold(Playout *p, int rate_hz, int64_t hold, bint adaptive,
                                  int64_t least, int64_t most, int64_t tick) noexcept nogil:
    """Let the ring make audio wait; arrivals are ``tick`` samples apart or more."""
    cdef Hold *h = &p.hold
    h.length = h.first = hold
    h.adaptive = adaptive
    h.least = least
    h.most = most
    h.block = p.block
    h.rate_hz = rate_hz
    # One mark an arrival, for as long as a sample can wait.
    h.marks_mask = power_of_two((p.capacity + max(hold, most)) // tick + 2) - 1
    h.marks = <Mark *>calloc(h.marks_mask + 1, sizeof(Mark))
    h.bins = <int64_t *>calloc(WAIT_BINS, sizeof(int64_t))
    return 0 if h.marks != NULL and h.bins != NULL else -1


cdef inline void playout_close(Playout *p) noexcept nogil:
    free(p.hold.marks)
    free(p.hold.bins)
    free(p.data)


# ---- events ----

cdef inline void log_emit(Log *log, int kind, int side, int64_t emitted, int64_t start,
                          int64_t value) noexcept nogil:
    cdef Event *e
    if log.n == log.room:
        log.lost += 1
        return
    e = &log.events[log.n]
    e.kind = kind
    e.side = side
    e.emitted = emitted
    e.start = start
    e.value = value
    log.n += 1


cdef inline void close_run(Playout *p, Log *log, int64_t at) noexcept nogil:
    if p.run_kind != NO_RUN:
        log_emit(log, p.run_kind, p.side, at, p.run_start, p.run_length)
        p.run_kind = NO_RUN


cdef inline void extend_run(Playout *p, Log *log, int kind, int64_t at, int64_t n) noexcept nogil:
    if p.run_kind != kind:
        close_run(p, log, at)
        p.run_kind = kind
        p.run_start = at
        p.run_length = 0
    p.run_length += n


# ---- between stretches ----

cdef inline int64_t playout_feed(Playout *p, const int16_t *source, int64_t n) noexcept nogil:
    """Queue up to ``n`` samples; return how many fitted."""
    cdef int64_t at = (p.head + p.queued) & p.mask
    cdef int64_t first
    n = min(n, p.capacity - p.queued)
    first = min(n, p.mask + 1 - at)
    memcpy(p.data + at, source, first * sizeof(int16_t))
    if n > first:
        memcpy(p.data, source + first, (n - first) * sizeof(int16_t))
    p.queued += n
    p.accepted += n
    return n


cdef inline int64_t playout_flush(Playout *p, Log *log, int64_t position) noexcept nogil:
    """Throw away what is queued; return how many samples."""
    cdef int64_t n = p.queued
    if p.state == HOLDING:
        close_run(p, log, position)
    if p.state != DRY:
        p.state = DRY
        p.gap = 0
        p.low_before = -1
    p.in_speech = False
    p.since = 0
    p.wait = 0
    p.head += n
    p.queued = 0
    p.discarded += n
    if n:
        log_emit(log, DISCARD, p.side, position, position, n)
    return n


cdef inline void playout_notice(Playout *p, int64_t position) noexcept nogil:
    """Count an arrival: all that was fed since the last one came at once."""
    if p.accepted != p.noticed:
        hold_arrive(&p.hold, p.noticed, position)
        p.noticed = p.accepted
        p.low_arrivals += 1


# ---- playing ----

cdef inline bint is_loud(Playout *p, int64_t index, int64_t n) noexcept nogil:
    cdef int64_t at = index & p.mask
    cdef int64_t first = min(n, p.mask + 1 - at)
    cdef uint64_t energy = duplex_energy(p.data + at, first)
    energy += duplex_energy(p.data, n - first)
    return energy >= <uint64_t>VOICED_RMS * VOICED_RMS * <uint64_t>p.block


cdef inline bint voiced_before(Playout *p) noexcept nogil:
    """Whether the last 20 ms played were voiced; what was never played is silence."""
    cdef int64_t n = min(p.block, p.since)
    return is_loud(p, p.head - n, n)


cdef inline void new_window(Playout *p) noexcept nogil:
    p.low_now = INT64_MAX
    p.low_blocks = 0
    p.low_arrivals = 0


cdef inline void playout_start(Playout *p, Log *log, int64_t at) noexcept nogil:
    close_run(p, log, at)
    p.state = PLAYING
    p.started = True
    p.low_before = -1
    new_window(p)


cdef inline void playout_resume(Playout *p, Log *log, int64_t at) noexcept nogil:
    """Audio came to a dry ring: play on at once in speech, else hold."""
    cdef int64_t wait = 0
    if p.hold.length > 0 and not (p.in_speech and p.gap <= 10 * p.block):
        # A sender that kept its pace brings as much as the gap took; then
        # only what is lacking is held. One that paused is held in full.
        if not p.started or p.queued < p.gap:
            wait = p.hold.length
        elif hold_knows(&p.hold):
            wait = max(0, -hold_excess(&p.hold, at - p.head))
        else:
            wait = max(0, p.hold.length - p.queued)
    if wait > 0:
        p.state = HOLDING
        p.wait = wait
    else:
        playout_start(p, log, at)


cdef inline int64_t playout_pad(Playout *p, Log *log, int64_t at, int64_t n) noexcept nogil:
    """Count up to ``n`` samples of padding as underrun or idle; return how many."""
    cdef int64_t speech_gap = 10 * p.block
    if p.state == PLAYING:
        p.state = DRY
        p.gap = 0
        p.in_speech = voiced_before(p)
        p.low_before = -1
    # A silence beyond 200 ms is the end of speech to any listener.
    if p.in_speech and p.gap < speech_gap:
        n = min(n, speech_gap - p.gap)
        extend_run(p, log, UNDERRUN, at, n)
        p.underrun += n
    else:
        extend_run(p, log, IDLE, at, n)
        p.idle += n
    p.gap += n
    return n


cdef inline void playout_took(Playout *p, int64_t n) noexcept nogil:
    """Count ``n`` samples as played that somebody copied from where they lay."""
    p.head += n
    p.queued -= n
    p.played += n
    p.since += n


cdef inline void copy_out(Playout *p, int16_t *out, int64_t n) noexcept nogil:
    cdef int64_t at = p.head & p.mask
    cdef int64_t first = min(n, p.mask + 1 - at)
    memcpy(out, p.data + at, first * sizeof(int16_t))
    if n > first:
        memcpy(out + first, p.data, (n - first) * sizeof(int16_t))
    playout_took(p, n)


cdef inline const int16_t *playout_whole(const Playout *p, int64_t n) noexcept nogil:
    """Where the next ``n`` samples lie in one piece, NULL when they do not or are not all queued."""
    cdef int64_t at = p.head & p.mask
    if p.state != PLAYING or p.queued < n or at + n > p.mask + 1 or p.hold.n_marks > 0:
        return NULL
    return p.data + at


cdef inline void playout_pull(Playout *p, Log *log, int64_t at, int16_t *out,
                              int64_t n) noexcept nogil:
    """Fill ``out`` with what comes next: hold, queued audio or padding."""
    cdef int64_t take
    while n > 0:
        if p.state == DRY and p.queued > 0:
            playout_resume(p, log, at)
        if p.state == HOLDING and p.wait == 0:
            playout_start(p, log, at)
        if p.state == HOLDING:
            take = min(n, p.wait)
            memset(out, 0, take * sizeof(int16_t))
            extend_run(p, log, HOLD_ADJUST, at, take)
            p.hold_added += take
            p.wait -= take
        elif p.queued > 0:
            take = min(n, p.queued)
            hold_play(&p.hold, p.head, take, at)
            copy_out(p, out, take)
        else:
            take = playout_pad(p, log, at, n)
            memset(out, 0, take * sizeof(int16_t))
        out += take
        at += take
        n -= take


# ---- the hold: how deep the ring stands, silence taken out of it or put in ----

cdef inline void playout_end_block(Playout *p) noexcept nogil:
    """Learn at the end of a block of play, before anything new can arrive."""
    if p.state != PLAYING or p.hold.length == 0:
        return
    if p.hold.adaptive:
        hold_block(&p.hold)
        return
    p.low_now = min(p.low_now, p.queued)
    p.low_blocks += 1
    if p.low_blocks >= LOW_WATER_BLOCKS and p.low_arrivals >= LOW_WATER_ARRIVALS:
        p.low_before = p.low_now
        new_window(p)


cdef inline void drop_quiet(Playout *p, Log *log, int64_t position, int64_t excess,
                            int64_t least) noexcept nogil:
    """Drop quiet audio, up to a block at a time, while ``least`` or more is too much.

    What is dropped has a quiet block on either side, so no edge of speech is
    touched and at least 40 ms of every pause remain.
    """
    cdef int64_t dropped = 0, n = min(excess, p.block)
    if excess < least or voiced_before(p):
        return
    while (n >= least
           and p.queued >= p.block + n
           and not is_loud(p, p.head, p.block)
           and not is_loud(p, p.head + n, p.block)):
        p.head += n
        p.queued -= n
        dropped += n
        n = min(excess - dropped, p.block)
    if dropped:
        p.low_before -= dropped
        if p.low_now != INT64_MAX:
            p.low_now -= dropped
        p.discarded += dropped
        p.hold_dropped += dropped
        log_emit(log, HOLD_ADJUST, p.side, position, position, -dropped)


cdef inline void insert_quiet(Playout *p, int64_t lack) noexcept nogil:
    """Let playout wait for what the ring lacks, between two quiet blocks."""
    if voiced_before(p):
        return
    if p.queued < p.block or is_loud(p, p.head, p.block):
        return
    p.state = HOLDING
    p.wait = lack


cdef inline void playout_move_hold(Playout *p, Log *log, int64_t position) noexcept nogil:
    """At the start of a block, drop what the ring holds too much or wait for what it lacks.

    A fixed hold only drops whole blocks, when the ring never fell to it. An
    adaptive one knows from arrival how far off it is, and waits sooner than it
    drops: running dry costs more than a few ms.
    """
    cdef int64_t excess
    if p.state != PLAYING:
        return
    if not p.hold.adaptive:
        if p.low_before >= 0:
            drop_quiet(p, log, position, min(p.low_before, p.low_now) - p.hold.length, p.block)
    elif hold_knows(&p.hold):
        excess = hold_excess(&p.hold, position - p.head)
        if excess >= p.step:
            drop_quiet(p, log, position, excess, p.step)
        elif excess <= -(p.step // 4):
            insert_quiet(p, -excess)
