"""One leg of a call as samples hear it: effects are set, then audio passes, here or in the engine.

A Line takes plain numbers that Python has already rounded, and checks only what
would make C misbehave; ``line.py`` builds it from a condition. ``process`` and the
engine's ``advance`` run the same function. Once audio has passed, nothing may be set.
It reads no clock and no file.
"""

from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

cimport cython
cimport numpy as cnp

from duplex._counter cimport draw
from duplex._hold cimport Hold, hold_p99
from duplex._line_state cimport *
from duplex._playout cimport playout_close, playout_open, playout_open_hold, power_of_two

import os

import numpy as np

cnp.import_array()


# The kernels a line may be built with on this machine, the fastest last.
KERNELS = ("baseline", "v3") if line_run_v3_fn() != NULL else ("baseline",)

cdef enum:
    # Samples processed between two looks at what one block may be: the mask of a
    # process call has a byte for each packet that can begin in it.
    SHORTEST_PACKET = 8


def kernels_wanted(str asked=None) -> str:
    """Return the kernels to use: those asked for, else DUPLEX_KERNELS, else the fastest."""
    wanted = asked or os.environ.get("DUPLEX_KERNELS") or KERNELS[len(KERNELS) - 1]
    if wanted not in KERNELS:
        raise ValueError(f'kernels "{wanted}" are not among those of this machine: '
                         f'{", ".join(KERNELS)}')
    return wanted


def stream_key(uint64_t seed, int leg, int stream) -> int:
    """Return the key of one effect's random numbers; streams of other numbers differ in all bits."""
    return draw(draw(seed, <uint64_t>leg), <uint64_t>stream)


def round_trip(int law, cnp.ndarray pcm not None, kernels=None):
    """Return int16 ``pcm`` after G.711: ``law`` 0 is mu, 1 is A."""
    cdef str chosen = kernels_wanted(kernels)
    cdef cnp.npy_intp n = cnp.PyArray_SIZE(pcm)
    if law not in (0, 1):
        raise ValueError(f"law {law} is neither 0 (mu) nor 1 (A)")
    if cnp.PyArray_TYPE(pcm) != cnp.NPY_INT16 or not cnp.PyArray_ISCARRAY_RO(pcm):
        raise TypeError(f"pcm is {pcm.dtype}, not contiguous int16")
    made = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT16)
    cdef const int16_t *x = <const int16_t *>cnp.PyArray_DATA(pcm)
    cdef int16_t *y = <int16_t *>cnp.PyArray_DATA(made)
    if chosen == "v3":
        line_round_trip_v3(law, x, y, n)
    else:
        line_round_trip_baseline(law, x, y, n)
    return made


cdef int _check_pcm(cnp.ndarray pcm, int64_t n) except -1:
    if (cnp.PyArray_TYPE(pcm) != cnp.NPY_INT16 or cnp.PyArray_NDIM(pcm) != 1
            or not cnp.PyArray_ISCARRAY_RO(pcm) or cnp.PyArray_DIM(pcm, 0) != n):
        raise TypeError("audio must be contiguous 1-dimensional int16 of one length")
    return 0


@cython.final
cdef class Line:
    """One leg. ``rate_hz`` 8000 to 48000; ``expected`` is the RMS of active speech.

    ``follow`` lets gains that follow go with the speaker's measured level.
    """

    def __cinit__(self, int rate_hz, double expected, bint follow=False, str kernels=None):
        if rate_hz < 8000 or rate_hz > 48000 or rate_hz % 1000:
            raise ValueError(f"rate {rate_hz} Hz is not a multiple of 1000 from 8000 to 48000")
        self.kernels = kernels_wanted(kernels)
        self.rate_hz = rate_hz
        self.kept = []
        self.state = self.leg.state = <line_t *>calloc(1, sizeof(line_t))
        if self.state == NULL:
            raise MemoryError
        line_init(self.state, rate_hz, expected)
        self.state.voice.follow = follow
        if self.kernels == "v3":
            self.state.run = line_run_v3_fn()
            self.state.hear = line_hear_v3_fn()
        else:
            self.state.run = line_run_baseline_fn()
            self.state.hear = line_hear_baseline_fn()

    def __dealloc__(self):
        cdef int k
        if self.state == NULL:
            return
        free(self.state.echo.ring)
        free(self.state.acoustic.ring)
        free(self.state.mask)
        for k in range(LINE_LINES):
            free(self.state.reverb.rings[k])
        for k in range(self.state.n_sounds):
            free(self.state.sounds[k].clips)
            free(self.state.sounds[k].lengths)
        free(self.leg.noise)
        playout_close(&self.leg.network.playout)
        free(self.leg.network.pending)
        free(self.state)

    cdef int reserve(self, int64_t room) except -1:
        """Make room for what one stretch of ``room`` samples leaves behind."""
        cdef int64_t packet = self.state.loss.packet if self.state.loss.model else room
        if room <= self.room:
            return 0
        free(self.leg.noise)
        free(self.state.mask)
        self.leg.noise = <int16_t *>calloc(room, sizeof(int16_t))
        self.state.mask_room = room // packet + 2
        self.state.mask = <uint8_t *>calloc(self.state.mask_room, 1)
        if self.leg.noise == NULL or self.state.mask == NULL:
            self.room = 0
            raise MemoryError
        self.room = room
        return 0

    # ---- effects, before any audio ----

    cdef int _fresh(self) except -1:
        if self.state.position or self.room:
            raise ValueError("audio has passed this line; nothing can be set any more")
        return 0

    cdef const int16_t *_pcm(self, object samples) except NULL:
        """Keep int16 samples for as long as the line lives; return where they are."""
        array = np.ascontiguousarray(samples, np.int16)
        if array.ndim != 1 or len(array) == 0:
            raise ValueError("a sound needs samples, in one dimension")
        self.kept.append(array)
        return <const int16_t *>cnp.PyArray_DATA(array)

    def add_bed(self, uint64_t key, loop, double gain, drift=None, bint follows=False) -> None:
        """Add noise: white from the counter when ``loop`` is None. ``drift``: factors per 20 ms."""
        self._fresh()
        if self.state.n_beds == LINE_BEDS:
            raise ValueError(f"a line has at most {LINE_BEDS} beds")
        cdef line_bed *bed = &self.state.beds[self.state.n_beds]
        bed.on = 1
        bed.key = key
        bed.gain = gain
        bed.follows = follows
        if loop is not None:
            bed.loop = self._pcm(loop)
            bed.length = len(loop)
            bed.offset = <int64_t>(draw(key, 0) % <uint64_t>bed.length)
        if drift is not None:
            factors = np.ascontiguousarray(drift, np.float32)
            self.kept.append(factors)
            bed.drift = <const float *>cnp.PyArray_DATA(factors)
            bed.n_drift = len(factors)
        self.state.n_beds += 1

    def add_sounds(self, uint64_t key, int effect, clips, gains, at_most=(0, 0, 0),
                   int64_t every=0, bint follows=False, int needs_quiet=0) -> None:
        """Add sounds drawn from ``clips`` with one of ``gains``.

        ``at_most``: draws of 64 bits up to [k] mean at most k arrivals in 20 ms. ``every``
        spaces them evenly instead. ``needs_quiet``: blocks of 20 ms the source was quiet.
        """
        self._fresh()
        if self.state.n_sounds == LINE_SOUNDS:
            raise ValueError(f"a line has at most {LINE_SOUNDS} kinds of sounds")
        if len(clips) == 0 or len(gains) != LINE_LEVELS:
            raise ValueError(f"sounds need clips and {LINE_LEVELS} gains")
        cdef line_sounds *s = &self.state.sounds[self.state.n_sounds]
        cdef int k
        s.clips = <const int16_t **>calloc(len(clips), sizeof(void *))
        s.lengths = <int64_t *>calloc(len(clips), sizeof(int64_t))
        self.state.n_sounds += 1
        if s.clips == NULL or s.lengths == NULL:
            raise MemoryError
        s.on = 1
        s.effect = effect
        s.key = key
        for k in range(len(clips)):
            s.clips[k] = self._pcm(clips[k])
            s.lengths[k] = len(clips[k])
        s.n_clips = len(clips)
        for k in range(LINE_LEVELS):
            s.gains[k] = gains[k]
        for k in range(3):
            s.at_most[k] = at_most[k]
        s.every = every
        s.follows = follows
        s.needs_quiet = needs_quiet

    cdef int _set_delay(self, line_delay *d, int64_t delay, double gain, double decay) except -1:
        self._fresh()
        d.mask = power_of_two(delay + LINE_BLOCK) - 1
        free(d.ring)
        d.ring = <float *>calloc(d.mask + 1, sizeof(float))
        if d.ring == NULL:
            raise MemoryError
        d.delay = delay
        d.gain = gain
        d.decay = decay
        d.on = 1
        return 0

    def set_echo(self, int64_t delay, double gain, double decay) -> None:
        """Add the source's own copy after ``delay`` samples and its repetitions."""
        if delay < 1:
            raise ValueError(f"an echo after {delay} samples is none")
        self._set_delay(&self.state.echo, delay, gain, decay)

    def set_acoustic(self, int64_t delay, double gain, double decay) -> None:
        """Add what the source was played ``delay`` samples ago, 20 ms at least."""
        if delay < self.state.block:
            raise ValueError(f"acoustic echo after {delay} samples, not {self.state.block} or more")
        self._set_delay(&self.state.acoustic, delay, gain, decay)
        self.leg.acoustic = True

    def set_reverb(self, delays, gains, double direct_over_room, int64_t length) -> None:
        """Add late reverberation; ``direct_over_room`` is a ratio of energies.

        ``delays`` are eight, the shortest first; the energy is that of ``length`` samples.
        """
        cdef line_reverb *r = &self.state.reverb
        cdef int k
        cdef double energy
        self._fresh()
        r.mask = power_of_two(max(delays) + LINE_BLOCK) - 1
        for k in range(LINE_LINES):
            free(r.rings[k])
            r.rings[k] = <double *>calloc(r.mask + 1, sizeof(double))
            if r.rings[k] == NULL:
                raise MemoryError
            r.delays[k] = delays[k]
            r.gains[k] = gains[k]
        energy = line_reverb_energy(r, length)
        r.wet = (1.0 / (energy * direct_over_room)) ** 0.5
        r.on = 1

    cdef int _set_cascade(self, line_cascade *cascade, sections) except -1:
        cdef int k, j
        if len(sections) > LINE_SECTIONS:
            raise ValueError(f"a filter has at most {LINE_SECTIONS} sections")
        cascade.n = len(sections)
        for k in range(cascade.n):
            taps, two, four = sections[k]
            for j in range(5):
                cascade.sections[k].c[j] = taps[j]
            cascade.sections[k].a2 = two
            cascade.sections[k].a4 = four
        return 0

    def set_microphone(self, band, muffled=(), uint64_t key=0, uint64_t muffle_below=0,
                       double gain=1.0, bint agc=False, int dc=0, int clip=32768,
                       int bits=16) -> None:
        """Set the microphone; filters are sections of (five taps, a2, a4)."""
        cdef line_microphone *m = &self.state.microphone
        self._fresh()
        self._set_cascade(&m.band, band)
        self._set_cascade(&m.muffled, muffled)
        m.key = key
        m.muffle_below = muffle_below
        m.muffle_fade = 5 * self.state.block
        m.gain = gain
        m.agc = agc
        m.agc_ramp.to = 1.0
        m.dc = dc
        m.clip = clip
        m.lost_bits = 16 - bits
        m.on = 1

    def set_telephony(self, int factor, taps, phases, band, double gain, int law) -> None:
        """Set the telephone: ``factor`` to 8 kHz, its filter in Q15 and by phases in Q14."""
        cdef line_telephony *t = &self.state.telephony
        cdef int k, j
        self._fresh()
        if factor != 1:
            if len(taps) + 15 > LINE_TAPS or len(phases) != factor or factor > 6:
                raise ValueError(f"{len(taps)} taps for a factor of {factor} do not fit")
            for k in range(len(taps)):
                t.down[k] = taps[k]
            for k in range(factor):
                for j in range(LINE_PHASE):
                    t.up[k][j] = phases[k][j]
            self.delay += len(taps) - 1
        if law not in (0, 1):
            raise ValueError(f"law {law} is neither 0 (mu) nor 1 (A)")
        t.factor = factor
        t.span = len(taps)
        t.taps = (len(taps) + 15) // 16 * 16
        self._set_cascade(&t.band, band)
        t.gain = gain
        t.law = law
        t.on = 1

    def set_loss(self, uint64_t key, int model, int64_t packet, int64_t burst, uint64_t to_bad,
                 uint64_t to_good, uint64_t at_first, bint conceals) -> None:
        """Lose packets of ``packet`` samples; chances are thresholds of 64 bits."""
        cdef line_loss *p = &self.state.loss
        self._fresh()
        if packet < SHORTEST_PACKET:
            raise ValueError(f"a packet of {packet} samples is too short")
        p.key = key
        p.model = model
        p.packet = packet
        p.burst = burst
        p.to_bad = to_bad
        p.to_good = to_good
        p.at_first = at_first
        p.conceals = conceals
        p.least = self.rate_hz // 400
        p.most = self.rate_hz * 15 // 1000
        p.blend = self.rate_hz * 4 // 1000
        p.hold = self.rate_hz * 20 // 1000
        p.fade = self.rate_hz * 60 // 1000

    def set_network(self, uint64_t key, int64_t packet, int64_t base, jitters,
                    uint64_t reorder_below, uint64_t stall_below, int64_t stall, int64_t hold,
                    bounds) -> None:
        """Send packets over a network, into the playout of a live leg.

        ``jitters`` are 1024 equally likely delays in samples; ``hold`` is adaptive, from
        ``hold`` on and within ``bounds``.
        """
        cdef Network *w = &self.leg.network
        cdef int k
        cdef int64_t least, most, longest
        self._fresh()
        least, most = bounds
        for k in range(JITTERS):
            w.jitters[k] = jitters[k]
        longest = base + max(jitters) + stall + 3 * packet
        w.key = key
        w.packet = packet
        w.base = base
        w.reorder_below = reorder_below
        w.stall_below = stall_below
        w.stall = stall
        w.mask = power_of_two(longest + 2 * packet + LINE_BLOCK) - 1
        w.pending = <int16_t *>calloc(w.mask + 1, sizeof(int16_t))
        if (w.pending == NULL
                or playout_open(&w.playout, 0, longest + 2 * most + packet, self.state.block) < 0
                or playout_open_hold(&w.playout, self.rate_hz, hold, True, least, most,
                                     min(packet, self.state.block)) < 0):
            raise MemoryError
        w.due = 0
        network_send(w)
        w.on = True

    # ---- audio ----

    def process(self, cnp.ndarray pcm not None, cnp.ndarray played=None):
        """Return what comes out for int16 ``pcm``, as many samples; state goes on.

        ``played`` is what the speaker was played meanwhile, for an acoustic echo;
        silence when None.
        """
        cdef int64_t n = cnp.PyArray_SIZE(pcm), done = 0, m
        _check_pcm(pcm, n)
        if played is not None:
            _check_pcm(played, n)
        elif self.leg.acoustic:
            played = np.zeros(n, np.int16)
        cdef cnp.npy_intp length = n
        made = cnp.PyArray_SimpleNew(1, &length, cnp.NPY_INT16)
        cdef const int16_t *x = <const int16_t *>cnp.PyArray_DATA(pcm)
        cdef int16_t *y = <int16_t *>cnp.PyArray_DATA(made)
        cdef const int16_t *far = NULL
        self.reserve(max(n, 1))
        self.leg.span = self.state.n_mask = 0
        if self.leg.acoustic:
            far = <const int16_t *>cnp.PyArray_DATA(played)
        with nogil:
            while done < n:
                m = min(n - done, self.state.block - self.state.position % self.state.block)
                leg_send(&self.leg, x + done, y + done, done, m)
                if far != NULL:
                    leg_hear(&self.leg, far + done, m)
                done += m
        self.leg.span = n
        return made

    def noise(self):
        """Return the noise of the last process or advance as it was mixed (int16)."""
        cdef cnp.npy_intp n = self.leg.span
        copy = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_INT16)
        memcpy(cnp.PyArray_DATA(copy), self.leg.noise, n * sizeof(int16_t))
        return copy

    def mask(self):
        """Return a byte for each packet that began in the last process or advance: 1 is lost."""
        cdef cnp.npy_intp n = self.state.n_mask
        copy = cnp.PyArray_SimpleNew(1, &n, cnp.NPY_UINT8)
        memcpy(cnp.PyArray_DATA(copy), self.state.mask, n)
        return copy

    def labels(self) -> list:
        """Return the sounds that ended since the last call as (effect, clip, start, end)."""
        cdef int64_t k
        taken = []
        for k in range(self.state.n_labels):
            taken.append((self.state.labels[k].effect, self.state.labels[k].clip,
                          self.state.labels[k].start, self.state.labels[k].end))
        self.state.n_labels = 0
        return taken

    @property
    def position(self) -> int:
        """Samples that have passed."""
        return self.state.position

    @property
    def packet(self) -> int:
        """Samples in a packet of the loss model; 0 without one."""
        return self.state.loss.packet

    @property
    def clipped(self) -> int:
        """Samples held inside int16 when noise and sounds were added."""
        return self.state.clipped

    @property
    def level(self) -> float:
        """RMS of active speech as it is known by now."""
        return self.state.voice.level

    def network_totals(self) -> tuple:
        """As the engine's ``totals`` of a side, of the playout behind the network."""
        cdef Network *w = &self.leg.network
        return (w.playout.accepted, w.playout.played, w.playout.discarded, w.playout.queued,
                w.playout.idle, w.playout.underrun, w.playout.hold_added, w.playout.hold_dropped)

    def network_waits(self) -> tuple:
        """As the engine's ``waits`` of a side, of the playout behind the network."""
        cdef Hold *h = &self.leg.network.playout.hold
        if not self.leg.network.on:
            return (0, 0, 0, 0, 0)
        return (h.length, h.waits, h.wait_total, hold_p99(h), h.wait_max)
