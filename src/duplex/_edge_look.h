/* One 2.5 ms frame of the edge detector against the noise: evidence for speech, and how deep an edge lies.
 *
 * Reads the state of a side and changes none of it but the evidence a band owes its restlessness.
 * Driven by opening, closing and placing. */
#ifndef DUPLEX_EDGE_LOOK_H
#define DUPLEX_EDGE_LOOK_H

#include "_edge_state.h"

static inline int64_t edge_total(const edge_t *e, int64_t t)
{
    const int64_t *x = e->energy[t & EDGE_MASK];
    return x[0] + x[1] + x[2];
}

static inline int64_t edge_noise_total(const edge_t *e)
{
    return e->noise[0] + e->noise[1] + e->noise[2];
}

static inline int edge_silent(const edge_t *e, int64_t t) { return e->last[t & EDGE_MASK] < 0; }

static inline void edge_set_noise(edge_t *e, int b, int64_t noise)
{
    e->noise[b] = noise < EDGE_FLOOR ? EDGE_FLOOR : noise;
    e->log_noise[b] = edge_ln(e->noise[b]);
}

/* The energy that defines an edge: 36 dB below the level of the segment, or below a quarter of the
 * channel's usual level if that is more. */
static inline int64_t edge_relative(int64_t level) { return ((level >> 12) * EDGE_LEVEL_FACTOR) >> 14; }

/* Energy of a band that stands two deviations out of its noise: the least that can be seen. */
static inline int64_t edge_visible(const edge_t *e, int b)
{
    int32_t sd = (1 << 28) / e->inv_sd[b];
    int64_t gain = edge_exp((e->mean[b] >> 8) + 2 * sd) - 65536;
    return (e->noise[b] >> 8) * (gain < 3277 ? 3277 : gain) >> 8;
}

/* Ratio of two energies in hundredths of a dB. */
static inline int32_t edge_ratio(int64_t a, int64_t b)
{
    return (int32_t)((int64_t)(edge_ln(a) - edge_ln(b)) * 43429 / 6553600);
}

static inline int32_t edge_band_deficit(const edge_t *e, int b)
{
    return edge_ratio(edge_visible(e, b), edge_relative(e->level));
}

/* Follow the variances, and with them how much counts as no evidence. Edges that noise hides are
 * looked for keenly, edges that stand clear of it with care. */
static inline void edge_refresh_sd(edge_t *e)
{
    int32_t sd[EDGE_BANDS], d = INT32_MAX, shy;
    int b;
    for (b = 0; b < EDGE_BANDS; b++) {
        sd[b] = (int32_t)edge_sqrt((uint64_t)e->var[b]); /* Q24 to Q12 */
        e->inv_sd[b] = (1 << 24) / (sd[b] < EDGE_SD_LEAST ? EDGE_SD_LEAST : sd[b]);
        if (e->open) d = edge_clip(edge_band_deficit(e, b), INT32_MIN, d);
    }
    shy = edge_clip((EDGE_SHY_UNTIL - edge_clip(d, -9999, 9999)) * 64 / EDGE_SHY_OVER, 0, 64);
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t unrest = edge_clip((sd[b] - EDGE_SD_STEADY) * EDGE_SD_SLOPE, 0, 65536);
        int32_t edge = EDGE_KAPPA_EDGE + EDGE_KAPPA_SHY / 64 * shy;
        e->kappa_open[b] = EDGE_KAPPA_OPEN + (int32_t)((EDGE_KAPPA_OPEN_MORE * unrest) >> 16);
        e->kappa_edge[b] = edge + (int32_t)(((EDGE_KAPPA_RESTLESS - edge) * unrest) >> 16);
        e->end_need[b] = EDGE_Q16(EDGE_END) - EDGE_Q16(EDGE_END_SHY) / 64 * shy + (int32_t)(EDGE_END_MORE * unrest);
    }
}

/* Keep the energies of a frame, and of the window that ends with it. */
static inline void edge_keep(edge_t *e, int64_t t, const int64_t *energy)
{
    const int64_t *gone = e->energy[(t - EDGE_WINDOW) & EDGE_MASK];
    const int k = (int)(t & EDGE_MASK);
    int b;
    for (b = 0; b < EDGE_BANDS; b++) {
        e->recent[b] += energy[b] - gone[b];
        e->energy[k][b] = energy[b];
        e->window[k][b] = e->recent[b] / EDGE_WINDOW;
        e->log_window[k][b] = edge_ln(e->window[k][b]);
    }
}

static inline edge_look edge_examine(const edge_t *e, int64_t t)
{
    const int at = (int)(t & EDGE_MASK);
    edge_look k = {0, 0, e->log_window[at], 0, 0, 0};
    int32_t opens = INT32_MIN, edges = INT32_MIN;
    int b;
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t w = e->window[at][b];
        int32_t z;
        k.total += e->energy[at][b];
        z = k.log_window[b] - e->log_noise[b] - (e->mean[b] >> 8);
        z = (int32_t)(((int64_t)z * e->inv_sd[b]) >> 12);
        if (z > 0 && w > e->noise[b]) k.excess += w - e->noise[b];
        if (z - e->kappa_open[b] > opens) opens = z - e->kappa_open[b];
        if (z - e->kappa_edge[b] > edges) { edges = z - e->kappa_edge[b]; k.band = b; }
    }
    k.opens = edge_clip(opens, -EDGE_CAP, EDGE_CAP);
    k.edges = edge_clip(edges, -EDGE_CAP, EDGE_CAP);
    return k;
}

static inline int64_t edge_threshold(const edge_t *e)
{
    int64_t usual = e->channel_level / 4;
    return edge_relative(e->level > usual ? e->level : usual);
}

/* Evidence for speech of this segment's level; *hit when the frame is speech beyond doubt. `other` is
 * the energy of the frame beside it. */
static inline int32_t edge_judge(const edge_t *e, const edge_look *k, int64_t other, int64_t threshold,
                                 int32_t log_threshold, int *hit)
{
    int32_t q = edge_clip(2 * (edge_ln(k->excess) - log_threshold), -EDGE_CAP, EDGE_CAP);
    *hit = k->opens >= EDGE_CAP
        && (k->excess > threshold || (k->total + other) / 2 - edge_noise_total(e) > threshold);
    return k->edges < q ? k->edges : q;
}

/* How far the sound beside an edge, frames [from, from + n), stands out of what can be seen. */
static inline int32_t edge_margin(const edge_t *e, int64_t from, int n)
{
    int32_t best = INT32_MIN;
    int b, j;
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t s = 0;
        int32_t m;
        for (j = 0; j < n; j++) s += e->energy[(from + j) & EDGE_MASK][b];
        s = s / n - e->noise[b];
        m = edge_ratio(s > 0 ? s : 0, edge_visible(e, b));
        if (m > best) best = m;
    }
    return best;
}

/* The visibility deficit: how far the weakest tail that could be seen lies above the level that
 * defines an edge. More when the noise is restless, for its bursts hide edges that its mean would
 * show; less when the sound beside the edge stands well out, for it then stopped at once. */
static inline int32_t edge_deficit(const edge_t *e, int32_t margin)
{
    int32_t d = edge_band_deficit(e, 0), sd = 0, restless;
    int b;
    for (b = 0; b < EDGE_BANDS; b++) {
        d = edge_clip(edge_band_deficit(e, b), INT32_MIN, d);
        sd = edge_clip((1 << 28) / e->inv_sd[b], sd, INT32_MAX);
    }
    restless = edge_clip((sd - EDGE_RESTLESS_FROM) / EDGE_RESTLESS_OVER, 0, 1000);
    return d + EDGE_RESTLESS * restless / 1000 - edge_clip((margin - EDGE_SHARP_FROM) * 3 / 5, 0, EDGE_SHARP);
}

/* No number of ms is worth printing: the edge lies too deep in noise, or the noise is itself speech. */
static inline int edge_unreliable(const edge_t *e, int32_t deficit)
{
    return deficit > EDGE_UNRELIABLE
        || (deficit > EDGE_CAPPED && (e->var[0] >= EDGE_VAR_MAX || e->var[1] >= EDGE_VAR_MAX || e->var[2] >= EDGE_VAR_MAX));
}

#endif
