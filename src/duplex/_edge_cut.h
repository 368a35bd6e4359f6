/* Edges cut off by the sample: a sound that begins, or is gone, from one sample to the next.
 *
 * A sample leaps when it lies further from the one a millisecond before than noise goes. What the
 * filters smear over frames, and ring on for, does not leap, so a cut is known to the sample. It
 * must never act on a noise that is only assumed, nor place an edge where sound that can be seen lies
 * beyond the cut: such an edge is soft, and stays where the bands put it. Driven by the front end and
 * by placing. */
#ifndef DUPLEX_EDGE_CUT_H
#define DUPLEX_EDGE_CUT_H

#include "_edge_look.h"
#include "_kernels.h"

/* Bits of 16 samples: which lie further than `least`, below 32767, from those of y. */
static inline unsigned edge_apart(const int16_t *x, const int16_t *y, int32_t least)
{
#if DUPLEX_SSE2
    const __m128i limit = _mm_set1_epi16((int16_t)least);
    const __m128i a = _mm_loadu_si128((const __m128i *)x), b = _mm_loadu_si128((const __m128i *)(x + 8));
    const __m128i c = _mm_loadu_si128((const __m128i *)y), d = _mm_loadu_si128((const __m128i *)(y + 8));
    const __m128i low = _mm_or_si128(_mm_cmpgt_epi16(_mm_subs_epi16(a, c), limit), _mm_cmpgt_epi16(_mm_subs_epi16(c, a), limit));
    const __m128i high = _mm_or_si128(_mm_cmpgt_epi16(_mm_subs_epi16(b, d), limit), _mm_cmpgt_epi16(_mm_subs_epi16(d, b), limit));
    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(low, high));
#else
    unsigned bits = 0;
    int j;
    for (j = 0; j < 16; j++) bits |= (unsigned)(x[j] - y[j] > least || y[j] - x[j] > least) << j;
    return bits;
#endif
}

/* First and last of the n samples of this frame that lie further than `least` from those `back` before;
 * *first is n when there is none. Reads up to 15 samples more than n. */
static inline void edge_span(const edge_t *e, int32_t back, int32_t least, int32_t n, int32_t *first, int32_t *last)
{
    const int16_t *x = e->raw + EDGE_MAX_LEAP, *y = x - back;
    int32_t at = 0, end = (n - 1) & ~15;
    unsigned tail = 0xffffu >> (15 - ((n - 1) & 15)), bits = 0;
    *first = n;
    *last = -1;
    if (least >= INT16_MAX) {
        for (at = 0; at < n; at++)
            if (x[at] - y[at] > least || y[at] - x[at] > least) { if (*first == n) *first = at; *last = at; }
        return;
    }
    for (; at <= end && !bits; at += 16) bits = edge_apart(x + at, y + at, least) & (at == end ? tail : 0xffffu);
    if (!bits) return;
    *first = at - 16 + edge_low_bit(bits);
    for (bits = 0; !bits; end -= 16, tail = 0xffffu) bits = edge_apart(x + end, y + end, least) & tail;
    *last = end + 16 + edge_top_bit(bits);
}

/* Keep which samples of the frame that ends differ from the one before. */
static inline void edge_find_changes(edge_t *e, int k)
{
    int32_t first, last;
    edge_span(e, 1, 0, e->pos, &first, &last);
    e->first[k] = (int16_t)(last < 0 ? -1 : first);
    e->last[k] = (int16_t)last;
}

/* Keep where the full frame leaps first, and after which sample it leaps no more. */
static inline void edge_find_leaps(edge_t *e, int k)
{
    int32_t least = (int32_t)edge_sqrt((uint64_t)(edge_noise_total(e) * EDGE_LEAP) >> 20), first, last;
    edge_span(e, e->leap, least, e->pos, &first, &last);
    e->leap_first[k] = (int16_t)(last >= 0 ? first : EDGE_NONE);
    e->leap_last[k] = (int16_t)(last >= 0 ? last - e->leap : EDGE_NONE);
    memmove(e->raw, e->raw + e->pos, EDGE_MAX_LEAP * sizeof *e->raw);
}

/* Does every band, over frames [from, to], stay within `limit` / 16 of what can be seen? */
static inline int edge_unseen(const edge_t *e, int64_t from, int64_t to, int limit)
{
    int b;
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t sum = 0, u;
        for (u = from; u <= to; u++) sum += e->energy[u & EDGE_MASK][b] - e->noise[b];
        if (to >= from && sum * 16 > limit * edge_visible(e, b) * (to - from + 1)) return 0;
    }
    return 1;
}

/* First sample of a sound found to begin in frame *at, which moves to the frame of the cut. */
static inline int64_t edge_cut_start(const edge_t *e, int64_t *at, int64_t t)
{
    int64_t noise = edge_noise_total(e), until = edge_min(*at + EDGE_CUT_START, t - 1), u = *at, loud;
    while (u < until && e->leap_first[u & EDGE_MASK] == EDGE_NONE) u++;
    if (e->doubt || u >= until) return *at * e->frame;
    loud = edge_max(edge_total(e, u), edge_total(e, u + 1)) - noise;
    if (loud < (u == *at ? EDGE_CUT_HERE : EDGE_CUT_LOUD) * noise) return *at * e->frame;
    if (!edge_unseen(e, *at, u - 1, EDGE_CUT_UNSEEN)) return *at * e->frame;
    *at = u;
    return u * e->frame + e->leap_first[u & EDGE_MASK];
}

/* Sample after the last of a sound found to end in frame `at`, at sample `end`. Beyond the cut there may
 * be what the filters ring on with: for 20 ms at most, and far below the sound itself. */
static inline int64_t edge_cut_end(const edge_t *e, int64_t at, int64_t end)
{
    int64_t noise = edge_noise_total(e), from = edge_max(at - EDGE_CUT_END, 1), u = at, rest = 0, loud, v;
    while (u > from && e->leap_last[u & EDGE_MASK] == EDGE_NONE) u--;
    if (e->doubt || noise < EDGE_Q20(1) || u <= from) return end;
    loud = edge_max(edge_total(e, u), edge_total(e, u - 1)) - noise;
    for (v = u + 2; v <= at; v++) rest += edge_total(e, v) - noise;
    if (loud < EDGE_CUT_LOUD * noise || (at > u && loud * (at - u - 1) < EDGE_CUT_RING * rest)) return end;
    if (at - u > EDGE_CUT_RINGS && !edge_unseen(e, u + 6, at, EDGE_CUT_END_UNSEEN)) return end;
    return edge_min(end, u * e->frame + e->leap_last[u & EDGE_MASK] + 1);
}

#endif
