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

/* Keep where the full frame leaps first, and after which sample it leaps no more. */
static inline void edge_find_leaps(edge_t *e, int k)
{
    const int16_t *x = e->raw + EDGE_MAX_LEAP, *then = x - e->leap;
    int32_t least = (int32_t)edge_sqrt((uint64_t)(edge_noise_total(e) * EDGE_LEAP) >> 20);
    int32_t n = e->pos, i = 0, j = n - 1;
    while (i < n && x[i] - then[i] <= least && then[i] - x[i] <= least) i++;
    while (j > i && x[j] - then[j] <= least && then[j] - x[j] <= least) j--;
    e->leap_first[k] = (int16_t)(i < n ? i : EDGE_NONE);
    e->leap_last[k] = (int16_t)(i < n ? j - e->leap : EDGE_NONE);
    memmove(e->raw, e->raw + n, EDGE_MAX_LEAP * sizeof *e->raw);
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
