"""The few loops that synthesised sounds need, in double, one sample after another.

Only + - * / and sqrt, in a fixed order, on numbers whose coefficients were rounded
before they came here: every machine gives the same bits. Noise is integer, from a
counter. Loops allocate nothing; each function returns one new array. ``duplex.beds``
drives it, nobody else does.
"""

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int16_t, int64_t, uint32_t, uint64_t

from duplex._counter cimport draw


cdef inline double _bell(uint64_t key, uint64_t at) noexcept nogil:
    # Four 16-bit draws summed are bell-shaped; scaled to a variance of one.
    cdef uint64_t z = draw(key, at)
    cdef int64_t total = (
        <int64_t>(z & 0xFFFF) + <int64_t>((z >> 16) & 0xFFFF)
        + <int64_t>((z >> 32) & 0xFFFF) + <int64_t>(z >> 48)
    )
    # sqrt(3) / 65536, rounded.
    return <double>(total - 131070) * 2.6428997918226276e-05


def noise(uint64_t seed, Py_ssize_t n):
    """White noise of shape (n,), float64, variance 1, within ±3.5."""
    if n < 0:
        raise ValueError(f"noise: n {n} is negative")
    out = np.empty(n)
    cdef double[::1] view = out
    cdef uint64_t key = draw(seed, 0)
    cdef Py_ssize_t i
    with nogil:
        for i in range(n):
            view[i] = _bell(key, <uint64_t>i)
    return out


def biquads(const double[::1] x not None, const double[:, ::1] sections not None,
            Py_ssize_t warm=0):
    """Filter by a cascade of (b0, b1, b2, a1, a2) with a0 = 1.

    With ``warm`` the signal is a loop: its last ``warm`` samples are heard first.
    """
    if sections.shape[1] != 5:
        raise ValueError(f"biquads: sections have {sections.shape[1]} numbers, wanted 5")
    if not 0 <= warm <= x.shape[0]:
        raise ValueError(f"biquads: warm {warm} is outside 0 to {x.shape[0]}")
    cdef Py_ssize_t n = x.shape[0], i, k
    out = np.array(x, dtype=np.float64)
    cdef double[::1] y = out
    lead = np.array(x[n - warm:], dtype=np.float64)
    cdef double[::1] w = lead
    cdef double s1, s2, value, b0, b1, b2, a1, a2
    with nogil:
        for k in range(sections.shape[0]):
            b0 = sections[k, 0]; b1 = sections[k, 1]; b2 = sections[k, 2]
            a1 = sections[k, 3]; a2 = sections[k, 4]
            s1 = 0.0
            s2 = 0.0
            for i in range(warm):
                value = b0 * w[i] + s1
                s1 = b1 * w[i] - a1 * value + s2
                s2 = b2 * w[i] - a2 * value
                w[i] = value
            for i in range(n):
                value = b0 * y[i] + s1
                s1 = b1 * y[i] - a1 * value + s2
                s2 = b2 * y[i] - a2 * value
                y[i] = value
    return out


def ramp(const double[::1] track not None, Py_ssize_t hop, bint loop=False):
    """Straight lines through a track of one value per ``hop`` samples.

    Shape (len(track) * hop,). The last stretch runs to the first value in a loop
    and stays level otherwise.
    """
    cdef Py_ssize_t m = track.shape[0], i, j, at = 0
    if hop < 1 or m < 1:
        raise ValueError(f"ramp: hop {hop} and {m} values, wanted at least 1 of each")
    out = np.empty(m * hop)
    cdef double[::1] view = out
    cdef double value, step
    with nogil:
        for i in range(m):
            value = track[i]
            if i + 1 < m:
                step = (track[i + 1] - value) / hop
            else:
                step = (track[0] - value) / hop if loop else 0.0
            for j in range(hop):
                view[at] = value + step * j
                at += 1
    return out


def phases(const double[::1] hz not None, double rate_hz, bint closed=False):
    """Running phase of a tone of frequency ``hz[i]``, uint32 turns of 2³².

    ``closed`` stretches it a little, so that the last sample leads into the first.
    """
    cdef Py_ssize_t n = hz.shape[0], i
    out = np.empty(n, dtype=np.uint32)
    cdef uint32_t[::1] view = out
    cdef int64_t total = 0, spread = 0, turn = <int64_t>1 << 32
    cdef double scale = 4294967296.0 / rate_hz
    with nogil:
        if closed:
            for i in range(n):
                total += <int64_t>(hz[i] * scale)
            # The shorter way round to a whole number of turns.
            spread = -(total % turn)
            if 2 * spread < -turn:
                spread += turn
        total = 0
        for i in range(n):
            view[i] = <uint32_t>(total + (spread * i / n if closed else 0))
            total += <int64_t>(hz[i] * scale)
    return out


def tones(const uint32_t[::1] phase not None, const double[::1] levels not None,
          const double[::1] table not None):
    """Sum of harmonics 1, 2, … of a phase, each with its level; shape (n,).

    ``table`` is one period of a sine, a power of two long.
    """
    cdef Py_ssize_t n = phase.shape[0], size = table.shape[0], i, k
    cdef int shift = 0
    if size < 2 or size & (size - 1):
        raise ValueError(f"tones: a table of {size} values, wanted a power of two")
    while (1 << shift) < size:
        shift += 1
    cdef int drop = 32 - shift
    cdef uint32_t turn, mask = (<uint32_t>1 << drop) - 1
    cdef double part = 1.0 / (1 << drop), total, share, first
    cdef Py_ssize_t at
    out = np.empty(n)
    cdef double[::1] view = out
    with nogil:
        for i in range(n):
            total = 0.0
            for k in range(levels.shape[0]):
                turn = <uint32_t>(<uint64_t>phase[i] * <uint64_t>(k + 1))
                at = turn >> drop
                share = (turn & mask) * part
                first = table[at]
                total = total + levels[k] * (first + share * (table[(at + 1) & (size - 1)] - first))
            view[i] = total
    return out


def scatter(double[::1] out not None, const double[::1] clip not None,
            const int64_t[::1] at not None, const double[::1] gains not None):
    """Add a clip at every place, times its gain; the end of ``out`` runs on at its start."""
    cdef Py_ssize_t n = out.shape[0], i, k, place
    if at.shape[0] != gains.shape[0]:
        raise ValueError(f"scatter: {at.shape[0]} places and {gains.shape[0]} gains")
    if n < 1:
        raise ValueError("scatter: nothing to add to")
    with nogil:
        for k in range(at.shape[0]):
            place = <Py_ssize_t>(at[k] % n)
            if place < 0:
                place += n
            for i in range(clip.shape[0]):
                out[place] += gains[k] * clip[i]
                place += 1
                if place == n:
                    place = 0


def reverb(const double[::1] x not None, const int64_t[::1] combs not None,
           const double[::1] feedback not None, const int64_t[::1] allpasses not None,
           double damping, Py_ssize_t warm=0):
    """The late part of a room: parallel combs with a one-pole loss, then all-passes.

    ``combs`` and ``allpasses`` are delays in samples. ``warm`` as in :func:`biquads`.
    """
    cdef Py_ssize_t n = x.shape[0], i, k, d, at
    if not 0 <= warm <= n:
        raise ValueError(f"reverb: warm {warm} is outside 0 to {n}")
    if combs.shape[0] != feedback.shape[0]:
        raise ValueError(f"reverb: {combs.shape[0]} combs and {feedback.shape[0]} gains")
    lead = np.concatenate((np.asarray(x)[n - warm:], np.asarray(x)))
    cdef double[::1] source = lead
    total = np.zeros(warm + n)
    cdef double[::1] y = total
    cdef Py_ssize_t longest = 1
    for k in range(combs.shape[0]):
        longest = max(longest, <Py_ssize_t>combs[k])
    for k in range(allpasses.shape[0]):
        longest = max(longest, <Py_ssize_t>allpasses[k])
    store = np.zeros(longest)
    cdef double[::1] line = store
    cdef double low, value, held
    for k in range(combs.shape[0]):
        store[:] = 0
        d = combs[k]
        if d < 1:
            raise ValueError(f"reverb: a delay of {d}")
        with nogil:
            low = 0.0
            at = 0
            for i in range(warm + n):
                held = line[at]
                low = held + damping * (low - held)
                line[at] = source[i] + feedback[k] * low
                y[i] += held
                at += 1
                if at == d:
                    at = 0
    for k in range(allpasses.shape[0]):
        store[:] = 0
        d = allpasses[k]
        if d < 1:
            raise ValueError(f"reverb: a delay of {d}")
        with nogil:
            at = 0
            for i in range(warm + n):
                held = line[at]
                value = y[i] - 0.5 * held
                line[at] = value
                y[i] = held + 0.5 * value
                at += 1
                if at == d:
                    at = 0
    return total[warm:].copy()


def speak(const double[:, ::1] plan not None, const double[:, ::1] poles not None,
          Py_ssize_t hop, double rate_hz, double open_share, double tilt, double rough,
          uint64_t seed):
    """A voice by source and filter: pulses and breath through moving resonances.

    ``plan`` holds per hop: voicing, breath, hiss (levels) and pitch in Hz. ``poles``
    holds per hop (a1, a2) of each resonance of the cascade, and last those of the
    hiss. All of them move in straight lines. ``open_share`` is the open part of a
    glottal period, ``tilt`` a one-pole low-pass of the pulses, ``rough`` the share
    by which periods and their heights vary. Returns shape (hops * hop,).
    """
    cdef Py_ssize_t hops = plan.shape[0], m = poles.shape[1] // 2, h, j, k, at = 0, nxt
    if plan.shape[1] != 4 or poles.shape[0] != hops or poles.shape[1] % 2 or m < 1 or m > 8:
        raise ValueError("speak: plan is (hops, 4), poles (hops, 2 * resonances), up to 8")
    if hop < 8 or hop % 8 or not 0 < open_share < 1:
        raise ValueError(f"speak: hop {hop}, wanted a multiple of 8; open share {open_share}")
    out = np.zeros(hops * hop)
    cdef double[::1] view = out
    cdef double[4] now
    cdef double[4] step
    cdef double[16] c
    cdef double[16] cstep
    cdef double[16] state
    cdef double[8] gain
    cdef uint64_t key = draw(seed, 1)
    cdef uint64_t pulse = 0
    cdef double phase = 0.0, inc, t, glottal, soft = 0.0, height = 1.0, stretch = 1.0
    cdef double value, y, hiss, far, per_sample = 1.0 / rate_hz, widen = 1.0 / open_share
    cdef double unit = 1.0 / hop, eighth = 8.0 / hop
    for k in range(16):
        state[k] = 0.0
    with nogil:
        for h in range(hops):
            nxt = h + 1 if h + 1 < hops else h
            for k in range(4):
                now[k] = plan[h, k]
                step[k] = (plan[nxt, k] - now[k]) * unit
            for k in range(2 * m):
                c[k] = poles[h, k]
                cstep[k] = (poles[nxt, k] - c[k]) * eighth
            for j in range(hop):
                # Levels and pitch move every sample, resonances every eighth.
                if j % 8 == 0:
                    for k in range(m):
                        gain[k] = 1.0 + c[2 * k] + c[2 * k + 1]
                inc = now[3] * stretch * per_sample
                phase += inc
                if phase >= 1.0:
                    phase -= 1.0
                    pulse += 1
                    stretch = 1.0 + rough * 0.3 * _bell(key, 2 * pulse)
                    height = 1.0 + rough * _bell(key, 2 * pulse + 1)
                    if stretch < 0.5:
                        stretch = 0.5
                # The flow's derivative 2t − 3t² of the open part; it drops from −1 to 0
                # when the folds close, and that step is rounded off over two samples.
                t = phase * widen
                glottal = t * (2.0 - 3.0 * t) if t < 1.0 else 0.0
                far = phase - open_share
                if -inc < far < inc:
                    t = far / inc
                    if t >= 0.0:
                        glottal = glottal - 0.5 * (1.0 - t) * (1.0 - t)
                    else:
                        glottal = glottal + 0.5 * (1.0 + t) * (1.0 + t)
                soft = soft + tilt * (glottal * height - soft)
                hiss = _bell(key, (<uint64_t>1 << 32) + <uint64_t>at)
                # Breath rides on the open phase while there is voice.
                value = now[0] * soft + now[1] * hiss * (1.0 if phase < open_share else 0.4)
                for k in range(m - 1):
                    y = gain[k] * value - c[2 * k] * state[2 * k] - c[2 * k + 1] * state[2 * k + 1]
                    state[2 * k + 1] = state[2 * k]
                    state[2 * k] = y
                    value = y
                k = m - 1
                y = now[2] * hiss - c[2 * k] * state[2 * k] - c[2 * k + 1] * state[2 * k + 1]
                # A zero at 0 Hz keeps the hiss out of the bass.
                view[at] = value + y - state[2 * k + 1]
                state[2 * k + 1] = state[2 * k]
                state[2 * k] = y
                at += 1
                for k in range(4):
                    now[k] += step[k]
                if j % 8 == 7:
                    for k in range(2 * m):
                        c[k] += cstep[k]
    return out


def energies(const double[::1] x not None, Py_ssize_t hop):
    """Sum of squares of every ``hop`` samples, added one after another."""
    cdef Py_ssize_t m = x.shape[0] // hop if hop > 0 else 0, i, j, at = 0
    if hop < 1:
        raise ValueError(f"energies: hop {hop}")
    out = np.empty(m)
    cdef double[::1] view = out
    cdef double total
    with nogil:
        for i in range(m):
            total = 0.0
            for j in range(hop):
                total = total + x[at] * x[at]
                at += 1
            view[i] = total
    return out


def mean_square(const double[::1] x not None):
    """Mean of the squares, added one after another; 0 of nothing."""
    cdef double total = 0.0
    cdef Py_ssize_t i, n = x.shape[0]
    with nogil:
        for i in range(n):
            total = total + x[i] * x[i]
    return total / n if n else 0.0


def resampled(const double[::1] x not None, Py_ssize_t n, const double[::1] kernel not None,
              Py_ssize_t per_zero, double band, bint loop):
    """``n`` samples that span what ``x`` spans, by a windowed sinc.

    ``kernel`` is one half of it, ``per_zero`` values from zero crossing to zero
    crossing; ``band`` ≤ 1 is the share of x's band that is kept. A loop is joined
    at its ends; otherwise there is silence around ``x``.
    """
    cdef Py_ssize_t length = x.shape[0], i, j, first, last, at, cell, cells = kernel.shape[0] - 1
    if n < 0 or length < 1 or per_zero < 1 or not 0 < band <= 1:
        raise ValueError(f"resampled: {length} to {n} samples, band {band}")
    out = np.empty(n)
    cdef double[::1] view = out
    cdef double reach = cells / (per_zero * band), scale = per_zero * band
    cdef double centre, total, far
    with nogil:
        for i in range(n):
            # i * length fits: lengths are below 2³¹ here. One rounding, none added up.
            centre = (<double>(<int64_t>i * <int64_t>length)) / n
            first = <Py_ssize_t>(centre - reach + 1 + length) - length
            last = <Py_ssize_t>(centre + reach)
            total = 0.0
            for j in range(first, last + 1):
                far = (j - centre) * scale
                if far < 0:
                    far = -far
                cell = <Py_ssize_t>far
                if cell >= cells:
                    continue
                at = j
                if loop:
                    while at < 0:
                        at += length
                    while at >= length:
                        at -= length
                elif at < 0 or at >= length:
                    continue
                far = far - cell
                total = total + x[at] * (kernel[cell] + far * (kernel[cell + 1] - kernel[cell]))
            view[i] = total * band
    return out


def rounded(const double[::1] x not None, double gain):
    """int16 of x times gain, to the nearest, ties away from zero, held at full scale."""
    cdef Py_ssize_t i, n = x.shape[0]
    out = np.empty(n, dtype=np.int16)
    cdef int16_t[::1] view = out
    cdef double value
    with nogil:
        for i in range(n):
            value = x[i] * gain
            value = value + 0.5 if value >= 0 else value - 0.5
            if value > 32767.0:
                value = 32767.0
            elif value < -32768.0:
                value = -32768.0
            view[i] = <int16_t><int64_t>value
    return out


def limited(const double[::1] x not None, double ceiling):
    """Peaks bent towards ±ceiling, what lies well below it left as it is."""
    if not ceiling > 0:
        raise ValueError(f"limited: ceiling {ceiling}, wanted more than 0")
    cdef Py_ssize_t i, n = x.shape[0]
    out = np.empty(n)
    cdef double[::1] view = out
    cdef double share
    with nogil:
        for i in range(n):
            share = x[i] / ceiling
            share = share * share
            view[i] = x[i] / sqrt(sqrt(1.0 + share * share))
    return out
