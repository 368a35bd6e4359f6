"""The sample-counted engine: two playout rings, their lines, the mix, the detectors, the floor.

Everything is counted in samples at the session rate. ``feed`` and ``flush``
happen between advances; ``advance`` does all the work and in it there is no
Python callback, no allocation and no lock (the one exception is the webrtc
detector where ours does not decide as the installed one does). It never
reads a clock and imports nothing of ours. engine.py and detect.py drive it.

How a signal was cut into feeds, and time into ticks, must not show: work is
split at ticks, but every decision is taken at absolute sample indices.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove, memset

cimport cython
cimport numpy as cnp

from duplex._hold cimport Hold, hold_p99
from duplex._line cimport Leg, Line, leg_hear, leg_send
from duplex._playout cimport (
    DISCARD,
    FLOOR,
    HOLD_ADJUST,
    IDLE,
    SEGMENT,
    UNDERRUN,
    VOICED_RMS,
    Event,
    Log,
    Playout,
    close_run,
    log_emit,
    playout_close,
    playout_end_block,
    playout_feed,
    playout_flush,
    playout_move_hold,
    playout_notice,
    playout_open,
    playout_open_hold,
    playout_pull,
    playout_took,
    playout_whole,
)

import os
import struct

cnp.import_array()

cdef extern from "_kernels.h" nogil:
    uint64_t duplex_energy_of(int wide, const int16_t *x, int64_t n) noexcept
    int64_t duplex_mix_of(int wide, const int16_t *a, const int16_t *b, int16_t *out,
                          int64_t n) noexcept
    int64_t duplex_pass_of(int wide, const int16_t *a, const int16_t *b, int16_t *out_a,
                           int16_t *out_b, int16_t *mix, int64_t n, uint64_t *energy) noexcept
    void duplex_decimate(int wide, const int16_t *x, const int16_t *h, int taps, int factor,
                         int16_t *y, int n) noexcept
    void duplex_interleave(const int16_t *a, const int16_t *b, int16_t *out, int64_t n) noexcept
    int duplex_wide() noexcept
    const int16_t *duplex_fir_16
    const int16_t *duplex_fir_24
    const int16_t *duplex_fir_48

cdef extern from "_webrtc.h" nogil:
    enum:
        # 8 kHz samples in one 10 ms frame of the webrtc detector.
        VAD_FRAME "WEBRTC_FRAME"
    ctypedef struct webrtc_t:
        pass
    ctypedef int (*webrtc_pair_fn)(webrtc_t *, const int16_t *, webrtc_t *,
                                   const int16_t *) noexcept nogil
    void webrtc_init(webrtc_t *w) noexcept
    webrtc_pair_fn webrtc_baseline_fn() noexcept
    webrtc_pair_fn webrtc_v3_fn() noexcept

cdef extern from "_edge.h" nogil:
    enum: EDGE_LEAD
    enum: EDGE_WINDOW
    enum: EDGE_QUIET
    ctypedef struct edge_segment:
        int64_t start
        int64_t end
        int32_t start_deficit
        int32_t end_deficit
        uint32_t flags
    ctypedef struct edge_pause:
        int64_t start
        int64_t end
    ctypedef struct edge_t:
        int32_t frame
        int32_t wide
        int64_t on
        int64_t free_from
    int edge_rate_ok(int32_t rate) noexcept
    void edge_init(edge_t *e, int32_t rate) noexcept
    size_t edge_push_both(edge_t *e, edge_t *f, const int16_t *x, const int16_t *y,
                          size_t n) noexcept
    void edge_finish(edge_t *e) noexcept
    int edge_pop(edge_t *e, edge_segment *out) noexcept
    int edge_next_pause(const edge_t *e, const edge_segment *s, int64_t *at,
                        edge_pause *out) noexcept
    int edge_active(const edge_t *e, int64_t *start) noexcept
    cdef enum:
        START_MASKED "EDGE_START_MASKED"
        END_MASKED "EDGE_END_MASKED"
        START_UNRELIABLE "EDGE_START_UNRELIABLE"
        END_UNRELIABLE "EDGE_END_UNRELIABLE"

cdef enum:
    # Events held between two drains; what does not fit is counted as lost.
    EVENTS = 8192
    # Segments of one side that may wait until the other side's speech is known too.
    WAITING = 1024
    # The aggressiveness of the webrtc detector.
    VAD_MODE = 2

VOICED_RMS_THRESHOLD = VOICED_RMS
# Whether engines built from now on run the kernels for newer processors.
WIDE_KERNELS = duplex_wide() != 0 and os.environ.get("DUPLEX_KERNELS") != "baseline"

cdef enum Detectors:
    RMS = 0
    WEBRTC = 1
    EDGE = 2

SEGMENT_KIND, FLOOR_KIND = SEGMENT, FLOOR
HOLD_ADJUST_KIND, UNDERRUN_KIND, IDLE_KIND, DISCARD_KIND = HOLD_ADJUST, UNDERRUN, IDLE, DISCARD



cdef struct Run:
    int64_t start
    int64_t end


# One side's ear. ``advance`` writes it, nobody else; never reset. For webrtc the
# buffer holds one frame with ``ahead`` samples on either side of it.
cdef struct Ear:
    int16_t *buffer
    int64_t fill
    uint64_t energy
    webrtc_t *webrtc
    PyObject *fallback
    bint voiced
    int64_t opened       # start of the open segment
    # The edge detector, and what it found that the floor has not passed yet.
    edge_t *edge
    Run *waiting
    int64_t first
    int64_t n_waiting
    int64_t known        # where anything still to be found starts, at the earliest


cdef bint native_vad = False
cdef bint native_vad_tried = False


def _self_test_frames():
    """Return 120 frames of 8 kHz PCM: noise, two tones and silence, from a fixed generator."""
    seed = 1
    frames = []
    for index in range(120):
        samples = []
        level = (0, 60, 900, 9000)[index // 7 % 4]
        for k in range(VAD_FRAME):
            seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
            tone = ((k * (index % 9 + 3)) % 40 - 20) * level // 24
            samples.append(max(-32768, min(32767, tone + (seed >> 16) % (level + 1) - level // 2)))
        frames.append(struct.pack(f"<{VAD_FRAME}h", *samples))
    return frames


def webrtc_agrees(peer) -> bool:
    """Say whether our webrtc detector decides as ``peer`` does, in every build and on both sides.

    ``peer`` decides 10 ms of 8 kHz PCM as ``webrtcvad.Vad(2)`` does.
    """
    cdef const unsigned char[::1] view
    cdef int16_t frame[VAD_FRAME]
    cdef int16_t silence[VAD_FRAME]
    cdef const int16_t *heard[2]
    cdef webrtc_t detectors[4][2]
    cdef webrtc_pair_fn builds[2]
    cdef int k, side, both
    builds[0], builds[1] = webrtc_baseline_fn(), webrtc_v3_fn()
    memset(silence, 0, sizeof(silence))
    heard[0], heard[1] = frame, silence
    for k in range(4):
        webrtc_init(&detectors[k][0])
        webrtc_init(&detectors[k][1])
    for pcm in _self_test_frames():
        view = pcm
        memcpy(frame, &view[0], sizeof(frame))
        wanted = bool(peer.is_speech(pcm, 8000))
        for k in range(4):
            side = k % 2
            if builds[k // 2] == NULL:
                continue
            both = builds[k // 2](&detectors[k][0], heard[side], &detectors[k][1], heard[1 - side])
            if both != wanted << side:
                return False
    return True


def native_webrtc() -> bool:
    """Say whether our webrtc detector may stand for the installed one.

    The first call compares the decisions of both; later calls repeat the answer.
    """
    global native_vad, native_vad_tried
    if not native_vad_tried:
        import webrtcvad

        native_vad = webrtc_agrees(webrtcvad.Vad(VAD_MODE))
        native_vad_tried = True
    return native_vad


cdef int ask_python(Ear *ear, const int16_t *frame) noexcept with gil:
    """Decide one frame through the Python call; -1 when it fails."""
    try:
        pcm = (<const char *>frame)[:2 * VAD_FRAME]
        return 1 if (<object>ear.fallback).is_speech(pcm, 8000) else 0
    except Exception:
        return -1


@cython.final
cdef class Engine:
    """One call's audio: feed both sides, advance, read what each was played.

    ``rate_hz`` is the session rate, ``tick`` samples a tick, ``holds`` the two
    playout holds and ``ring`` the capacity of a ring in samples. ``detector`` is
    ``"rms"``, ``"webrtc"`` or ``"edge"``; ``native`` False forces the Python call of
    the second. The holds of sides that are ``adaptive`` follow arrival within
    ``bounds``.
    """

    cdef readonly int rate_hz
    cdef readonly int64_t tick
    cdef readonly int64_t position
    cdef readonly bint finished
    cdef Playout rings[2]
    cdef Ear ears[2]
    cdef int16_t *out[2]         # what each side says
    cdef int16_t *sent[2]        # what the other is played of it: the same without a line
    cdef Leg *legs[2]            # NULL without a line
    cdef bint lined
    cdef object lines            # keeps what legs points into
    cdef int16_t *mixture
    cdef int64_t span            # samples of the last advance
    cdef int64_t room            # most samples one advance may take
    cdef int64_t block           # 20 ms
    cdef bint holding            # either side has a hold
    cdef bint plain              # rms, and nothing is done to what both say
    # Detector: frame length, samples it must see past a frame, decided so far.
    cdef int detector
    cdef int64_t frame
    cdef int64_t ahead
    cdef int factor
    cdef int taps
    cdef const int16_t *fir
    cdef bint wide
    cdef webrtc_pair_fn pair     # NULL unless our webrtc detector hears
    cdef readonly int64_t decided
    cdef readonly int64_t settled    # the floor is known up to here
    cdef int holder
    cdef int64_t partition[4]
    cdef int64_t clipped
    cdef Log log
    cdef object peers

    def __cinit__(self, int rate_hz, int64_t tick, str detector, holds, int64_t ring,
                  bint native=True, adaptive=(False, False), bounds=(0, 0),
                  lines=(None, None)):
        cdef int side
        if rate_hz <= 0 or rate_hz % 50:
            raise ValueError(f"rate {rate_hz} Hz is not a multiple of 50")
        if tick <= 0 or ring < tick:
            raise ValueError(f"ring of {ring} samples cannot hold a tick of {tick}")
        self.rate_hz = rate_hz
        self.tick = tick
        self.block = rate_hz // 50
        self.room = ring
        self.peers = []
        self.wide = WIDE_KERNELS
        self.lines = lines
        self._set_detector(detector)
        self.log.events = <Event *>calloc(EVENTS, sizeof(Event))
        self.log.room = EVENTS
        self.mixture = <int16_t *>calloc(ring, sizeof(int16_t))
        if self.log.events == NULL or self.mixture == NULL:
            raise MemoryError
        for side in range(2):
            self._open_side(side, holds[side], ring, native)
            self._open_hold(&self.rings[side], holds[side], adaptive[side], bounds)
            self._open_line(side, lines[side], ring)
        self.holding = self.rings[0].hold.length > 0 or self.rings[1].hold.length > 0
        self.plain = self.detector == RMS and not self.holding and not self.lined

    cdef int _set_detector(self, str detector) except -1:
        if detector == "rms":
            self.detector, self.frame, self.ahead = RMS, self.block, 0
        elif detector == "webrtc":
            if self.rate_hz not in (8000, 16000, 24000, 48000):
                raise ValueError(
                    f"detector webrtc needs 8000, 16000, 24000 or 48000 Hz, got {self.rate_hz}"
                )
            self.detector, self.frame = WEBRTC, self.rate_hz // 100
            self.factor = self.rate_hz // 8000
            self.ahead = 11 * self.factor if self.factor > 1 else 0
            # A tap on every sample within `ahead`, padded to a multiple of sixteen.
            self.taps = (2 * <int>self.ahead + 16) // 16 * 16
            if self.factor == 2:
                self.fir = duplex_fir_16
            elif self.factor == 3:
                self.fir = duplex_fir_24
            elif self.factor == 6:
                self.fir = duplex_fir_48
        elif detector == "edge":
            if not edge_rate_ok(self.rate_hz):
                raise ValueError(
                    "detector edge needs a multiple of 400 Hz from 8000 to 48000 Hz, "
                    f"got {self.rate_hz}"
                )
            self.detector, self.frame = EDGE, self.rate_hz // 100
        else:
            raise ValueError(f'detector "{detector}" is not one of edge, rms, webrtc')
        return 0

    cdef int _open_side(self, int side, int64_t hold, int64_t ring, bint native) except -1:
        cdef Playout *p = &self.rings[side]
        cdef Ear *ear = &self.ears[side]
        if hold < 0 or hold > ring:
            raise ValueError(f"hold of {hold} samples is not within 0 and the ring's {ring}")
        self.out[side] = <int16_t *>calloc(ring, sizeof(int16_t))
        # Sixteen samples of slack: the padded taps reach past the last sample.
        ear.buffer = <int16_t *>calloc(self.frame + 2 * self.ahead + 16, sizeof(int16_t))
        if (playout_open(p, side, ring, self.block) < 0 or self.out[side] == NULL
                or ear.buffer == NULL):
            raise MemoryError
        if self.detector == EDGE:
            ear.edge = <edge_t *>calloc(1, sizeof(edge_t))
            ear.waiting = <Run *>calloc(WAITING, sizeof(Run))
            if ear.edge == NULL or ear.waiting == NULL:
                raise MemoryError
            edge_init(ear.edge, self.rate_hz)
            ear.edge.wide = self.wide
        if self.detector == WEBRTC:
            ear.fill = self.ahead
            if native and native_webrtc():
                ear.webrtc = <webrtc_t *>calloc(1, sizeof(webrtc_t))
                if ear.webrtc == NULL:
                    raise MemoryError
                webrtc_init(ear.webrtc)
                self.pair = webrtc_v3_fn() if self.wide else NULL
                if self.pair == NULL:
                    self.pair = webrtc_baseline_fn()
            else:
                import webrtcvad

                peer = webrtcvad.Vad(VAD_MODE)
                self.peers.append(peer)
                ear.fallback = <PyObject *>peer
        return 0

    cdef int _open_line(self, int side, Line line, int64_t ring) except -1:
        """Let what ``side`` says pass ``line`` before the other is played it."""
        self.sent[side] = self.out[side]
        if line is None:
            return 0
        if line.rate_hz != self.rate_hz or line.position:
            raise ValueError(
                f"a line of {line.rate_hz} Hz that stands at sample {line.position} cannot carry "
                f"a call of {self.rate_hz} Hz"
            )
        line.reserve(ring)
        self.sent[side] = <int16_t *>calloc(ring, sizeof(int16_t))
        if self.sent[side] == NULL:
            raise MemoryError
        self.legs[side] = &line.leg
        self.lined = True
        return 0

    cdef int _open_hold(self, Playout *p, int64_t hold, bint adaptive, bounds) except -1:
        cdef int64_t least, most
        least, most = bounds
        if adaptive and not (self.block <= least <= hold <= most <= p.capacity):
            raise ValueError(
                f"adaptive hold of {hold} samples is not within its bounds {least} to {most}, "
                f"or these not within 20 ms and the ring's {p.capacity}"
            )
        if playout_open_hold(p, self.rate_hz, hold, adaptive, least, most, self.tick) < 0:
            raise MemoryError
        return 0

    def __dealloc__(self):
        cdef int side
        for side in range(2):
            playout_close(&self.rings[side])
            if self.sent[side] != self.out[side]:
                free(self.sent[side])
            free(self.out[side])
            free(self.ears[side].buffer)
            free(self.ears[side].edge)
            free(self.ears[side].waiting)
            free(self.ears[side].webrtc)
        free(self.mixture)
        free(self.log.events)

    # ---- between advances ----

    def feed(self, int side, cnp.ndarray pcm not None) -> int:
        """Queue int16 samples said by ``side``; return how many fitted.

        Raises TypeError unless ``pcm`` is one-dimensional, contiguous, native int16.
        """
        # Not a typed memoryview: taking one costs more than all the rest of a feed.
        if (cnp.PyArray_TYPE(pcm) != cnp.NPY_INT16 or cnp.PyArray_NDIM(pcm) != 1
                or not cnp.PyArray_ISCARRAY_RO(pcm)):
            raise TypeError(
                f"pcm is {pcm.ndim}-dimensional {pcm.dtype}, not contiguous 1-dimensional int16"
            )
        return playout_feed(self._ring(side), <const int16_t *>cnp.PyArray_DATA(pcm),
                            cnp.PyArray_DIM(pcm, 0))

    def flush(self, int side) -> int:
        """Throw away what is queued from ``side``; return how many samples.

        It ends the utterance: the silence after it is idle, not an underrun.
        """
        return playout_flush(self._ring(side), &self.log, self.position)

    def advance(self, int64_t ticks) -> None:
        """Play ``ticks`` ticks; raise RuntimeError when a detector fails."""
        cdef int64_t n
        cdef int status
        if self.finished:
            raise RuntimeError("the engine is finished; nothing can be played after the end")
        if ticks < 1 or ticks > self.room // self.tick:
            raise ValueError(
                f"cannot advance {ticks} ticks of {self.tick} samples at once, "
                f"1 to {self.room // self.tick} fit the ring"
            )
        n = ticks * self.tick
        self.span = 0
        # Giving the GIL away for a few microseconds can cost a whole switch
        # interval to get it back, so only long stretches are worth it.
        if n >= self.rate_hz:
            with nogil:
                status = self._play(n)
        else:
            status = self._play(n)
        if status < 0:
            self._fail()

    def finish(self) -> None:
        """Decide the last incomplete frame and close what is open. May be called twice."""
        cdef int side
        if self.finished:
            return
        while self.decided < self.position:
            if self._decide() < 0:
                self._fail()
        if self.detector == EDGE:
            for side in range(2):
                edge_finish(self.ears[side].edge)
                self._collect(side)
                self.ears[side].known = self.position
            self._settle(self.position)
        for side in range(2):
            self._close_segment(side, self.position)
            close_run(&self.rings[side], &self.log, self.position)
        self.finished = True

    # ---- reading ----

    def heard(self, int side):
        """Return what ``side`` was played in the last advance (int16, a fresh array)."""
        self._ring(side)
        return self._copy(self.sent[1 - side])

    def spoken(self, int side):
        """Return what ``side`` said in the last advance, before its line (int16, fresh)."""
        self._ring(side)
        return self._copy(self.out[side])

    def mixed(self):
        """Return what both were played in the last advance in one channel, held inside int16."""
        return self._copy(self.mixture)

    def stereo(self):
        """Return what both were played in the last advance, shape (samples, 2), the caller first."""
        cdef cnp.npy_intp[2] shape
        shape[0], shape[1] = self.span, 2
        both = cnp.PyArray_SimpleNew(2, shape, cnp.NPY_INT16)
        duplex_interleave(self.sent[0], self.sent[1], <int16_t *>cnp.PyArray_DATA(both), self.span)
        return both

    @property
    def speaking(self) -> int:
        """Who speaks by now, as bits like a holder's: caller 1, assistant 2.

        The floor says so too, but not before it is certain: a sudden steady noise, which
        is no speech and never has the floor, may speak here for its first 1.7 s.
        """
        cdef int64_t start
        cdef int side, bits = 0
        if self.detector != EDGE or self.finished:
            return self.holder
        for side in range(2):
            bits |= (edge_active(self.ears[side].edge, &start) != EDGE_QUIET) << side
        return bits

    @property
    def pending(self) -> int:
        """How many events wait to be drained."""
        return self.log.n

    def drain(self) -> list:
        """Return the events since the last drain as (kind, side, start, value) and forget them.

        The kinds are the module's ``*_KIND``. The value is the end of a segment, the
        holder's bits of the floor (caller 1, assistant 2), samples for the others.
        """
        cdef int64_t k
        cdef Event *e
        taken = []
        for k in range(self.log.n):
            e = &self.log.events[k]
            taken.append((e.kind, e.side, e.start, e.value))
        self.log.n = 0
        return taken

    def drain_segments(self) -> list:
        """As ``drain``, but of segments only and with what is known of their edges.

        Each is (side, start, end, onset, offset, pauses); an edge is its visibility
        deficit in dB, whether noise masks it and whether it is unreliable, or None where
        the detector does not say. Pauses are (start, end) inside the segment; those of a
        segment not drained within 512 further ones are forgotten.
        """
        cdef int64_t k
        cdef Event *e
        taken = []
        for k in range(self.log.n):
            e = &self.log.events[k]
            if e.kind != SEGMENT:
                continue
            onset = offset = None
            if self.detector == EDGE:
                onset = (e.start_deficit / 100.0, (e.flags & START_MASKED) != 0,
                         (e.flags & START_UNRELIABLE) != 0)
                offset = (e.end_deficit / 100.0, (e.flags & END_MASKED) != 0,
                          (e.flags & END_UNRELIABLE) != 0)
            taken.append((e.side, e.start, e.value, onset, offset, self._pauses(e)))
        self.log.n = 0
        return taken

    cdef list _pauses(self, const Event *e):
        """What an ear did not hear inside a segment of its own."""
        cdef edge_segment segment
        cdef edge_pause pause
        cdef int64_t at = 0
        found = []
        if self.detector == EDGE:
            segment.start, segment.end = e.start, e.value
            while edge_next_pause(self.ears[e.side].edge, &segment, &at, &pause):
                found.append((pause.start, pause.end))
        return found

    def totals(self, int side) -> tuple:
        """Return (accepted, played, discarded, queued, idle, underrun, hold added, dropped)."""
        cdef Playout *p = self._ring(side)
        return (p.accepted, p.played, p.discarded, p.queued, p.idle, p.underrun,
                p.hold_added, p.hold_dropped)

    def waits(self, int side) -> tuple:
        """Return (hold, arrivals heard, sum, 99th percentile and greatest of their waits).

        An arrival is all that was fed between two advances; it waits from the advance
        that sees it until its first sample plays. Without a hold nothing is counted.
        """
        cdef Hold *h = &self._ring(side).hold
        return (h.length, h.waits, h.wait_total, hold_p99(h), h.wait_max)

    def floor(self) -> tuple:
        """Return (silence, caller only, assistant only, overlap, clipped, lost events).

        Samples of which the detector has not decided yet count with the last it has.
        """
        cdef int64_t shares[4]
        memcpy(shares, self.partition, sizeof(shares))
        shares[self.holder] += max(0, self.position - self.settled)
        return (shares[0], shares[1], shares[2], shares[3], self.clipped, self.log.lost)

    cdef Playout *_ring(self, int side) except NULL:
        if side != 0 and side != 1:
            raise ValueError(f"side {side} is neither 0 (caller) nor 1 (assistant)")
        return &self.rings[side]

    cdef object _copy(self, const int16_t *source):
        cdef cnp.npy_intp n = self.span
        copy = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT16)
        memcpy(cnp.PyArray_DATA(copy), source, self.span * sizeof(int16_t))
        return copy

    cdef int _fail(self) except -1:
        self.finished = True
        raise RuntimeError(
            f"detector webrtc refused the frame at sample {self.decided}; "
            "speech after it is not known"
        )

    # ---- inside advance: no Python below this line ----

    cdef int _play(self, int64_t n) noexcept nogil:
        """Advance ``n`` samples; -1 when a detector failed."""
        cdef int64_t done = 0, sent = 0, step, mark
        cdef int side, status = 0
        for side in range(2):
            playout_notice(&self.rings[side], self.position)
        while done < n and status == 0:
            if self.plain and sent == done:
                sent = done = self.span = self._pass(done, n)
                if done == n:
                    break
            step = min(n - done, self.decided + self.frame + self.ahead - self.position)
            step = min(step, self.block - self.position % self.block)
            mark = self.log.n
            if self.holding:
                if self.position % self.block == 0:
                    playout_move_hold(&self.rings[0], &self.log, self.position)
                    playout_move_hold(&self.rings[1], &self.log, self.position)
            for side in range(2):
                playout_pull(&self.rings[side], &self.log, self.position, self.out[side] + done,
                             step)
            self._order(mark)
            self._listen(done, step)
            self.position += step
            done += step
            if self.holding and self.position % self.block == 0:
                playout_end_block(&self.rings[0])
                playout_end_block(&self.rings[1])
            if self.position == self.decided + self.frame + self.ahead and self._decide() < 0:
                status = -1
            # No ear hears what comes of this, so it is done in blocks and not in steps.
            if self.position % self.block == 0 or done == n or status < 0:
                self._send(sent, done - sent)
                sent = self.span = done
        return status

    cdef int64_t _pass(self, int64_t done, int64_t n) noexcept nogil:
        """Play whole frames while both sides have them and nothing has to be done to them.

        It does what the steps of _play do, with one look at every sample. Returns how much of
        the ``n`` samples is done.
        """
        cdef const int16_t *caller
        cdef const int16_t *assistant
        cdef uint64_t energy[2]
        while n - done >= self.frame and self.position == self.decided:
            caller = playout_whole(&self.rings[0], self.frame)
            assistant = playout_whole(&self.rings[1], self.frame)
            if caller == NULL or assistant == NULL:
                break
            self.clipped += duplex_pass_of(self.wide, caller, assistant, self.out[0] + done,
                                           self.out[1] + done, self.mixture + done, self.frame,
                                           energy)
            playout_took(&self.rings[0], self.frame)
            playout_took(&self.rings[1], self.frame)
            self.ears[0].energy, self.ears[1].energy = energy[0], energy[1]
            self.position += self.frame
            done += self.frame
            self._decide()
        return done

    cdef void _send(self, int64_t done, int64_t n) noexcept nogil:
        """Pass both sides through their lines, tell each what its speaker was played, and mix.

        At most a block at a time. An acoustic echo hears the other side no later than
        20 ms ago, so neither leg has to be the first.
        """
        cdef int side
        if self.lined:
            for side in range(2):
                if self.legs[side] != NULL:
                    leg_send(self.legs[side], self.out[side] + done, self.sent[side] + done,
                             done, n)
            for side in range(2):
                if self.legs[side] != NULL:
                    leg_hear(self.legs[side], self.sent[1 - side] + done, n)
        self.clipped += duplex_mix_of(self.wide, self.sent[0] + done, self.sent[1] + done,
                                      self.mixture + done, n)

    # ---- the ears and the floor ----

    cdef void _listen(self, int64_t done, int64_t n) noexcept nogil:
        """Let both ears hear ``n`` samples of what their sides say."""
        cdef const int16_t *pcm
        cdef Ear *ear
        cdef int side
        if self.detector == EDGE:
            # Less than a frame of 10 ms came since the queues were emptied, so all fits.
            edge_push_both(self.ears[0].edge, self.ears[1].edge, self.out[0] + done,
                           self.out[1] + done, n)
            return
        for side in range(2):
            ear = &self.ears[side]
            pcm = self.out[side] + done
            if self.detector == RMS:
                ear.energy += duplex_energy_of(self.wide, pcm, n)
            else:
                memcpy(ear.buffer + ear.fill, pcm, n * sizeof(int16_t))
                ear.fill += n

    cdef int _voiced(self, Ear *ear, int64_t n) noexcept nogil:
        """Decide the frame whose first ``n`` samples exist; -1 on failure."""
        cdef int16_t frame[VAD_FRAME]
        cdef bint loud
        cdef int answer
        if self.detector == RMS:
            loud = ear.energy >= <uint64_t>VOICED_RMS * VOICED_RMS * <uint64_t>n
            ear.energy = 0
            return loud
        answer = ask_python(ear, self._narrow(ear, frame))
        self._next_frame(ear)
        return answer

    cdef int _voiced_both(self) noexcept nogil:
        """Decide the frame of both sides at once; bits of who speaks."""
        cdef int16_t frames[2][VAD_FRAME]
        cdef int both = self.pair(
            self.ears[0].webrtc, self._narrow(&self.ears[0], frames[0]),
            self.ears[1].webrtc, self._narrow(&self.ears[1], frames[1]))
        self._next_frame(&self.ears[0])
        self._next_frame(&self.ears[1])
        return both

    cdef const int16_t *_narrow(self, Ear *ear, int16_t *frame) noexcept nogil:
        """Return the frame at 8 kHz, in ``frame`` or where it is."""
        cdef int64_t whole = self.frame + 2 * self.ahead
        memset(ear.buffer + ear.fill, 0, (whole - ear.fill) * sizeof(int16_t))
        if self.factor == 1:
            return ear.buffer
        duplex_decimate(self.wide, ear.buffer, self.fir, self.taps, self.factor, frame, VAD_FRAME)
        return frame

    cdef void _next_frame(self, Ear *ear) noexcept nogil:
        # Before the end every fill is whole; after it what was ahead is now behind.
        memmove(ear.buffer, ear.buffer + self.frame, 2 * self.ahead * sizeof(int16_t))
        ear.fill = max(0, ear.fill - self.frame)

    cdef int _decide(self) noexcept nogil:
        """Decide the next frame of both sides, [decided, end), and move the floor."""
        cdef int64_t start = self.decided
        cdef int64_t end = min(start + self.frame, self.position)
        cdef int side, answer, both = 0, holder = 0
        if self.detector == EDGE:
            self.decided = end
            self._hear_out()
            return 0
        if self.pair != NULL:
            both = self._voiced_both()
        for side in range(2):
            if self.pair != NULL:
                answer = (both >> side) & 1
            else:
                answer = self._voiced(&self.ears[side], end - start)
            if answer < 0:
                return -1
            holder |= answer << side
        self.partition[holder] += end - start
        for side in range(2):
            if not (holder >> side) & 1:
                self._close_segment(side, start)
            elif not self.ears[side].voiced:
                self.ears[side].voiced = True
                self.ears[side].opened = start
        if holder != self.holder:
            self.holder = holder
            log_emit(&self.log, FLOOR, 0, self.position, start, holder)
        self.decided = self.settled = end
        return 0

    cdef void _close_segment(self, int side, int64_t end) noexcept nogil:
        cdef Ear *ear = &self.ears[side]
        if ear.voiced:
            ear.voiced = False
            log_emit(&self.log, SEGMENT, side, self.position, ear.opened, end)

    # ---- the floor of the edge detector, which tells of speech when it is over ----

    cdef void _hear_out(self) noexcept nogil:
        """Take what both ears have found by now, and move the floor as far as it is known."""
        cdef Ear *ear
        cdef int64_t start
        cdef int side, open
        for side in range(2):
            self._collect(side)
            ear = &self.ears[side]
            open = edge_active(ear.edge, &start)
            if open == EDGE_QUIET:
                # Where a start would be looked for, were speech to begin now.
                start = max(ear.edge.on - EDGE_LEAD, ear.edge.free_from) - EDGE_WINDOW
                ear.known = max(ear.known, min(start * ear.edge.frame, self.decided))
        self._settle(min(self.ears[0].known, self.ears[1].known))

    cdef void _collect(self, int side) noexcept nogil:
        """Report the segments an ear has finished, and keep them for the floor."""
        cdef Ear *ear = &self.ears[side]
        cdef edge_segment found
        cdef Event *e
        cdef Run *run
        while edge_pop(ear.edge, &found):
            if self.log.n < EVENTS:
                e = &self.log.events[self.log.n]
                e.start_deficit = found.start_deficit
                e.end_deficit = found.end_deficit
                e.flags = found.flags
            log_emit(&self.log, SEGMENT, side, self.position, found.start, found.end)
            if ear.n_waiting == WAITING:
                # The other side has not come to an end for minutes on end:
                # take it as not speaking so far.
                self._settle(ear.waiting[ear.first].end)
                ear.first = (ear.first + 1) % WAITING
                ear.n_waiting -= 1
            run = &ear.waiting[(ear.first + ear.n_waiting) % WAITING]
            run.start = found.start
            run.end = found.end
            ear.n_waiting += 1

    cdef void _settle(self, int64_t until) noexcept nogil:
        """Move the floor to ``until``, before which all speech of both sides is known."""
        cdef Ear *ear
        cdef Run *run
        cdef int64_t after
        cdef int side, holder
        while self.settled < until:
            holder, after = 0, until
            for side in range(2):
                ear = &self.ears[side]
                while ear.n_waiting > 0 and ear.waiting[ear.first].end <= self.settled:
                    ear.first = (ear.first + 1) % WAITING
                    ear.n_waiting -= 1
                if ear.n_waiting == 0:
                    continue
                run = &ear.waiting[ear.first]
                if run.start <= self.settled:
                    holder |= 1 << side
                    after = min(after, run.end)
                else:
                    after = min(after, run.start)
            if holder != self.holder:
                self.holder = holder
                log_emit(&self.log, FLOOR, 0, self.position, self.settled, holder)
            self.partition[holder] += after - self.settled
            self.settled = after

    cdef void _order(self, int64_t mark) noexcept nogil:
        """Put the events of one step in order of time, caller first at equal times."""
        cdef int64_t i, k
        cdef Event moving
        for i in range(mark + 1, self.log.n):
            moving = self.log.events[i]
            k = i
            while k > mark and (self.log.events[k - 1].emitted > moving.emitted or (
                    self.log.events[k - 1].emitted == moving.emitted
                    and self.log.events[k - 1].side > moving.side)):
                self.log.events[k] = self.log.events[k - 1]
                k -= 1
            self.log.events[k] = moving
