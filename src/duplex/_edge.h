/* The edge detector: where speech starts and ends in one stream of int16 samples.
 *
 * Feed it samples in chunks of any size; it hands back finished segments in absolute samples, each
 * edge with its visibility deficit, and says at any moment whether speech is in progress. Everything
 * is decided per 2.5 ms frame on absolute indices in integers, so neither the chunking nor the
 * compiler nor the machine can move an edge. It must never allocate, call libm, read a clock or
 * learn of the other side. The engine drives one per side; offline passes drive one per channel.
 *
 * Three adaptive bands (below 600 Hz, to 2 kHz, above) each yield the standardised log ratio of
 * their 15 ms energy to the noise; the best band feeds a CUSUM that opens a segment, another closes
 * it after 200 ms without evidence. Edges are then placed by replaying the ring with the level that
 * the segment turned out to have: 36 dB below speech, or the noise, whichever is higher.
 *
 * Number formats: filter states Q12, energies (mean squares) Q20, logs and statistics Q16 natural,
 * band mean and variance Q24. Signed right shifts are arithmetic on every compiler we build with. */
#ifndef DUPLEX_EDGE_H
#define DUPLEX_EDGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EDGE_BANDS 3
#define EDGE_FRAMES_PER_SECOND 400
#define EDGE_MAX_FRAME 120   /* samples: 2.5 ms at 48 kHz */
#define EDGE_RING 1024       /* frames of energies kept: 2.56 s */
#define EDGE_MASK (EDGE_RING - 1)
#define EDGE_QUEUE 8         /* finished segments that may wait to be popped */
#define EDGE_SLOW 2048       /* 4 kHz samples kept to tell tone, voice and noise apart: 0.5 s */
#define EDGE_SLOW_MASK (EDGE_SLOW - 1)
#define EDGE_SLOW_PER_FRAME 10

#define EDGE_Q16(x) ((int32_t)((x) * 65536.0))
#define EDGE_Q20(x) ((int64_t)((x) * 1048576.0))
#define EDGE_Q24(x) ((int32_t)((x) * 16777216.0))
#define EDGE_HUGE ((int64_t)1 << 58)

/* Policy. A change of any of these is a change of the timing version. */
#define EDGE_LEVEL_FACTOR 16857      /* 10^-3.6 in Q26: an edge lies 36 dB below the level */
#define EDGE_CAP EDGE_Q16(6)         /* most a frame may say, either way */
#define EDGE_OPEN EDGE_Q16(16)
#define EDGE_OPEN_FRAMES 20          /* frames with evidence before opening: 50 ms */
#define EDGE_OPEN_STRONG 10
#define EDGE_CLOSE EDGE_Q16(8)
#define EDGE_HANG 80                 /* frames without evidence that close: 200 ms */
#define EDGE_SETTLE 120              /* frames after opening before the onset is final: 300 ms */
#define EDGE_REACH 504               /* frames an edge may lie in the past: 1.26 s */
#define EDGE_LEAD 80                 /* frames before the opening in which the onset is looked for */
#define EDGE_CHAIN 48                /* frames between two frames beyond doubt of one sound: 120 ms */
#define EDGE_WINDOW 6                /* frames of the sliding energy: 15 ms */
#define EDGE_FLOOR EDGE_Q20(0.05)    /* noise is never taken to be lower, LSB^2 */
#define EDGE_EPS EDGE_Q20(0.01)
#define EDGE_MEAN_LOW EDGE_Q24(-0.6)
#define EDGE_MEAN_HIGH EDGE_Q24(0.3)
#define EDGE_VAR_START EDGE_Q24(0.15)
#define EDGE_VAR_MAX EDGE_Q24(1.5)
#define EDGE_SD_LEAST 410            /* 0.1 in Q12 */

/* Deviations that count as no evidence, and evidence an end must gather, by how restless a band's
 * noise is: from a steady 0.28 nepers (white) to a restless 0.48 (traffic, other talkers). */
#define EDGE_SD_STEADY 1147          /* Q12 */
#define EDGE_SD_SLOPE 80             /* Q12 to a Q16 share over 0.2 nepers */
#define EDGE_KAPPA_OPEN EDGE_Q16(1.7)
#define EDGE_KAPPA_OPEN_MORE EDGE_Q16(0.3)
#define EDGE_KAPPA_EDGE EDGE_Q16(1.3)
#define EDGE_KAPPA_SHY EDGE_Q16(0.7) /* more where the edge stands clear of the noise */
#define EDGE_SHY_UNTIL 0             /* deficit, 0.01 dB, above which nothing stands clear */
#define EDGE_SHY_OVER 600            /* and how far below it everything does */
#define EDGE_KAPPA_RESTLESS EDGE_Q16(2.5)
#define EDGE_END 12
#define EDGE_END_MORE 8              /* more in restless noise */
#define EDGE_END_SHY 4               /* less where the edge stands clear */
#define EDGE_END_CLEAR (-1200)       /* deficit, 0.01 dB, below which noise cannot pass for an end */

/* Visibility deficits, 0.01 dB. */
#define EDGE_RESTLESS 1000
#define EDGE_RESTLESS_FROM EDGE_Q16(0.4)
#define EDGE_RESTLESS_OVER 10        /* Q16 a thousandth: up to 0.55 nepers */
#define EDGE_SHARP_FROM 600
#define EDGE_SHARP 800
#define EDGE_SHARP_START 4           /* frames after a start, and before an end, that tell */
#define EDGE_SHARP_END 8
#define EDGE_UNRELIABLE 1200
#define EDGE_CAPPED (-600)           /* and from here when the variance of the noise is beyond bounds */

/* Start-up: what is known of the noise before anything was heard. */
#define EDGE_BOOT 48                    /* frames heard before the first estimate: 120 ms */
#define EDGE_BOOT_LOUD 168              /* and when all of them are loud: 420 ms */
#define EDGE_BOOT_SKIP 8                /* frames in which the filters settle */
#define EDGE_BOOT_BLOCK 10              /* frames a block of the first estimate spans */
#define EDGE_BOOT_CEILING EDGE_Q20(10737) /* -50 dBFS: louder is not believed unless it is steady */
#define EDGE_BEGUN 3                    /* frames into a loud stream that are its beginning */
#define EDGE_DOUBT_FRAMES 480           /* how long a disbelieved start may hold a segment open */
#define EDGE_DOUBT_RATIO 32             /* most : least of a band that may still be noise: 15 dB */

/* Stationary sound: minimum and maximum of a 40 ms power over sub-windows of 400 ms. */
#define EDGE_SUB_FRAMES 160
#define EDGE_SUBS 8
#define EDGE_FAST_SUBS 3
#define EDGE_STEADY 12                  /* most : least that is stationary over 3.2 s */
#define EDGE_STEADY_FAST 4              /* and in every band over 1.2 s */
#define EDGE_STEADY_SLACK 64            /* frames a revoked segment may precede what revokes it: 160 ms */
#define EDGE_VOICE_HOLD 4400            /* a voice held this long is given up as noise: 11 s */
#define EDGE_TONE_FRAMES 20             /* between two looks for a tone: 50 ms */
#define EDGE_VOICE_FRAMES 40            /* between two looks for a voice: 100 ms */
#define EDGE_TONE_SPAN 512              /* slow samples a look for a tone takes in: 128 ms */
#define EDGE_TONE_LEAST ((int64_t)1 << 20)
#define EDGE_TONE_GAIN 256              /* prediction gain of a tone pair: 24 dB */
#define EDGE_TONE_LOOKS 3               /* looks in a row that make it one */

enum { EDGE_START_MASKED = 1, EDGE_END_MASKED = 2, EDGE_START_UNRELIABLE = 4, EDGE_END_UNRELIABLE = 8 };
enum { EDGE_QUIET = 0, EDGE_PROVISIONAL = 1, EDGE_SPEECH = 2 };

/* A finished segment: [start, end) in absolute samples; deficits in hundredths of a dB. */
typedef struct {
    int64_t start, end;
    int32_t start_deficit, end_deficit;
    uint32_t flags;
} edge_segment;

/* What one frame looks like against the noise as known now. */
typedef struct {
    int64_t total, excess;    /* energy of all bands; energy above noise in bands that stand out */
    int32_t log_window[EDGE_BANDS];
    int32_t opens, edges;     /* evidence for speech: to open with, and, keener, to place edges with */
    int band;                 /* that `edges` comes from */
} edge_look;

/* One side. Written only by edge_push and edge_finish; reset only by edge_init. */
typedef struct {
    int32_t frame, pole_dc, pole_low, pole_mid; /* samples a frame; pole gains Q20 */
    int32_t dc[2], low[2], mid[2];              /* filter states Q12 */
    int32_t pos, first_change, last_change, begun;
    int16_t previous;
    uint64_t sum[EDGE_BANDS];
    int32_t smooth[EDGE_MAX_FRAME];             /* this frame below 2 kHz, Q12 */
    int64_t samples, frames;                    /* taken in so far */

    int64_t energy[EDGE_RING][EDGE_BANDS];
    int16_t first[EDGE_RING], last[EDGE_RING];  /* samples that changed; last < 0: digital silence */
    int16_t slow[EDGE_SLOW];
    uint32_t slow_at;

    int64_t noise[EDGE_BANDS], power[EDGE_BANDS];
    int32_t mean[EDGE_BANDS], var[EDGE_BANDS], log_noise[EDGE_BANDS], inv_sd[EDGE_BANDS];
    int32_t kappa_open[EDGE_BANDS], kappa_edge[EDGE_BANDS], end_need[EDGE_BANDS];
    int64_t least[EDGE_BANDS], most[EDGE_BANDS];
    int64_t rumble, rumble_least, rumble_most;               /* the low band, slower */
    int64_t sub_rumble_least[EDGE_FAST_SUBS], sub_rumble_most[EDGE_FAST_SUBS];
    int64_t sub_least[EDGE_SUBS][EDGE_BANDS], sub_most[EDGE_SUBS][EDGE_BANDS];
    int64_t past_least[EDGE_BANDS], past_most[EDGE_BANDS];   /* of all sub-windows */
    int64_t near_least[EDGE_BANDS], near_most[EDGE_BANDS];   /* of the last EDGE_FAST_SUBS */
    int64_t long_least[3][EDGE_BANDS];
    int32_t sub_frames, sub_at, long_at;
    int32_t booted, doubt, heard, silent_run;
    int32_t voice, tone_run;                    /* is it a voice; looks in a row that saw a tone */
    int64_t voice_at, tone_at, tone_from;       /* frames */

    int32_t score, strong, counted;             /* opening CUSUM */
    int32_t open, settle, tail, end_band;       /* closing CUSUM */
    int64_t free_from, on, off;                 /* frames: nothing heard before; first; last */
    int64_t level, channel_level;               /* energy of this segment, and of those before */
    int64_t start;                              /* samples; provisional while settle > 0 */
    int32_t start_deficit;
    uint32_t start_flags;
    int64_t steady_from, absorbed_at;           /* frames; -1: never */
    int32_t tonal;                              /* nothing but a tone since the segment began */

    edge_segment queue[EDGE_QUEUE];
    int32_t queue_at, queue_n, revoked;
} edge_t;

/* ---- arithmetic ---- */

static inline int32_t edge_clip(int32_t v, int32_t low, int32_t high)
{
    return v < low ? low : v > high ? high : v;
}

static inline int edge_top_bit(uint64_t x)
{
#if defined(__GNUC__)
    return 63 - __builtin_clzll(x);
#else
    int n = 0;
    while (x >>= 1) n++;
    return n;
#endif
}

/* Natural log of an energy plus 0.01, Q16, error below 1e-4: leading zeros and a table of ln(1 + i/64). */
static inline int32_t edge_ln(int64_t energy)
{
    static const int32_t table[65] = {
        0, 1016, 2017, 3002, 3973, 4930, 5873, 6802, 7719, 8623, 9515, 10394, 11262, 12119, 12965,
        13800, 14624, 15438, 16242, 17037, 17821, 18597, 19364, 20121, 20870, 21611, 22343, 23067,
        23783, 24492, 25193, 25886, 26573, 27252, 27924, 28589, 29248, 29900, 30546, 31185, 31818,
        32445, 33067, 33682, 34292, 34896, 35494, 36087, 36675, 37258, 37835, 38407, 38975, 39537,
        40095, 40648, 41196, 41740, 42280, 42815, 43345, 43872, 44394, 44912, 45426};
    uint64_t x = (uint64_t)(energy + EDGE_EPS);
    int top = edge_top_bit(x);
    uint64_t m = x << (63 - top);
    uint32_t i = (uint32_t)(m >> 57) & 63u, part = (uint32_t)(m >> 41) & 65535u;
    int32_t a = table[i], b = table[i + 1];
    return a + (int32_t)(((int64_t)(b - a) * part) >> 16) + (top - 20) * 45426;
}

/* exp of a Q16 number of size below 8, as Q16. */
static inline int64_t edge_exp(int32_t y)
{
    int64_t s = 65536, t = 65536, r = y;
    int k = 0, i;
    while (r > 22713) { r -= 45426; k++; }
    while (r < -22713) { r += 45426; k--; }
    for (i = 1; i < 7; i++) { t = t * r / 65536 / i; s += t; }
    return k >= 0 ? s << k : s >> -k;
}

static inline uint32_t edge_sqrt(uint64_t x)
{
    uint64_t r = 0, bit = (uint64_t)1 << 40;
    while (bit > x) bit >>= 2;
    for (; bit; bit >>= 2) {
        if (x >= r + bit) { x -= r + bit; r = (r >> 1) + bit; } else r >>= 1;
    }
    return (uint32_t)r;
}

/* 1 - exp(-2 pi hz / rate) in Q20, by its series in Q30. */
static inline int32_t edge_pole(int32_t hz, int32_t rate)
{
    int64_t x = (int64_t)hz * 6746518852LL / rate, term = (int64_t)1 << 30, s = term;
    int i;
    for (i = 1; i < 24; i++) { term = -((term * (x >> 2)) / ((int64_t)1 << 28)) / i; s += term; }
    return (int32_t)((((int64_t)1 << 30) - s) >> 10);
}

/* ---- one frame against the noise ---- */

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

static inline int64_t edge_window(const edge_t *e, int64_t t, int b)
{
    int64_t w = 0;
    int j;
    for (j = 0; j < EDGE_WINDOW; j++) w += e->energy[(t - j) & EDGE_MASK][b];
    return w / EDGE_WINDOW;
}

static inline edge_look edge_examine(const edge_t *e, int64_t t)
{
    edge_look k = {0, 0, {0, 0, 0}, 0, 0, 0};
    int32_t opens = INT32_MIN, edges = INT32_MIN;
    int b;
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t w = edge_window(e, t, b);
        int32_t z;
        k.log_window[b] = edge_ln(w);
        k.total += e->energy[t & EDGE_MASK][b];
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

/* ---- tone, voice or noise ---- */

static inline int32_t edge_slope(const edge_t *e, int32_t back)
{
    return (int32_t)e->slow[(e->slow_at - (uint32_t)back) & EDGE_SLOW_MASK]
         - e->slow[(e->slow_at - (uint32_t)back - 1) & EDGE_SLOW_MASK];
}

/* Is a stretch of n slow samples, ending `back` before the newest, one steady tone or a pair? Order-4
 * prediction leaves next to nothing of those, and their loudness stays. */
static inline int edge_is_tone(const edge_t *e, int32_t back, int32_t n)
{
    int64_t r[5] = {0}, a[5] = {0}, y[5] = {0}, half[2] = {0}, err;
    int32_t i, j, shift;
    for (i = 0; i < n; i++) {
        int64_t d = edge_slope(e, back + i + 1);
        half[i >= n / 2] += d * d;
        for (j = 4; j; j--) y[j] = y[j - 1];
        /* a parabola for a window: no edge for the prediction to trip over */
        y[0] = d * ((int64_t)i * (n - 1 - i) * 1024 / ((int64_t)n * n)) / 16;
        for (j = 0; j < 5; j++) r[j] += y[0] * y[j];
    }
    if (r[0] < EDGE_TONE_LEAST || 2 * half[0] > 3 * half[1] || 2 * half[1] > 3 * half[0]) return 0;
    shift = edge_top_bit((uint64_t)r[0]) - 29;
    for (j = 0; j < 5; j++) r[j] = shift > 0 ? r[j] >> shift : r[j] * ((int64_t)1 << -shift);
    err = r[0] += r[0] >> 14;
    for (i = 1; i < 5; i++) { /* Levinson, coefficients Q24 */
        int64_t acc = r[i] * (1 << 24), k, next[5];
        for (j = 1; j < i; j++) acc += a[j] * r[i - j];
        k = -(acc / err);
        for (j = 1; j < i; j++) next[j] = a[j] + k * a[i - j] / (1 << 24);
        for (j = 1; j < i; j++) a[j] = next[j];
        a[i] = k;
        err -= err * (k * k / (1 << 24)) / (1 << 24);
        if (err < r[0] / EDGE_TONE_GAIN) return 1;
    }
    return 0;
}

/* Periodic at 62 to 400 Hz over 64 ms, fine structure and all: a voice held steady. */
static inline int edge_is_voice(const edge_t *e)
{
    int64_t here = 0, there, cross;
    int lag, i, shift;
    for (i = 0; i < 256; i++) { int64_t d = edge_slope(e, i + 1); here += d * d; }
    if (here == 0) return 0;
    for (lag = 10; lag <= 64; lag++) {
        cross = there = 0;
        for (i = 0; i < 256; i++) {
            int64_t d = edge_slope(e, i + 1), p = edge_slope(e, i + 1 + lag);
            cross += d * p; there += p * p;
        }
        /* correlation of 0.7 at least; the sums reach 2^42, so the squares must be kept in range */
        shift = edge_top_bit((uint64_t)(here | there));
        shift = shift > 30 ? shift - 30 : 0;
        if (cross > 0 && 2 * (cross >> shift) * (cross >> shift) >= (here >> shift) * (there >> shift)) return 1;
    }
    return 0;
}

/* Does a voice sound now? Asked for every frame of a stationary stretch, looked at every 100 ms. */
static inline int edge_hears_voice(edge_t *e, int64_t t)
{
    if (t - e->voice_at >= EDGE_VOICE_FRAMES) {
        e->voice_at = t;
        e->voice = edge_is_voice(e) && !edge_is_tone(e, 0, EDGE_TONE_SPAN);
    }
    return e->voice;
}

/* ---- placing the edges ---- */

/* First frame of the window that ends at `at` holding half of its largest energy above noise. */
static inline int64_t edge_trim_start(const edge_t *e, int64_t at)
{
    int64_t noise = edge_noise_total(e), most = 0, u, from = at - EDGE_WINDOW + 1;
    if (from < 0) from = 0;
    for (u = from; u <= at; u++) if (edge_total(e, u) > most) most = edge_total(e, u);
    for (u = from; u <= at; u++) if (2 * (edge_total(e, u) - noise) >= most - noise) return u;
    return at;
}

/* Replay from before the opening with the level now known: the start is where the evidence began that
 * reaches the opening score, or an unbroken chain of frames beyond doubt leading up to it. */
static inline void edge_place_start(edge_t *e, int64_t t)
{
    int64_t threshold = edge_threshold(e), at = e->on, chain = -1, last_hit = -EDGE_RING, before = -1, u;
    int64_t from = e->on - EDGE_LEAD;
    int32_t s = 0, log_threshold = edge_ln(threshold);
    if (from < e->free_from) from = e->free_from;
    for (u = from; u <= t && (s < EDGE_OPEN || u <= e->on); u++) {
        edge_look k = edge_examine(e, u);
        int hit;
        int32_t l = edge_judge(e, &k, before < 0 ? k.total : before, threshold, log_threshold, &hit);
        before = k.total;
        if (hit && u >= e->on) { if (u - last_hit > EDGE_CHAIN) chain = u; last_hit = u; }
        if (s <= 0) at = u;
        s = edge_clip(s + l, 0, EDGE_OPEN);
    }
    if (chain >= 0 && chain < at && last_hit >= at - 2) at = chain;
    at = edge_trim_start(e, at);
    e->start = at * e->frame;
    /* after digital silence the sample itself is known */
    if (edge_noise_total(e) < EDGE_Q20(1) && e->first[at & EDGE_MASK] > 0) e->start += e->first[at & EDGE_MASK];
    if (e->doubt && at <= EDGE_BEGUN && !edge_silent(e, 0)) e->start = 0; /* it was under way before us */
    e->start_deficit = edge_deficit(e, edge_margin(e, at, EDGE_SHARP_START));
    e->start_flags = (e->start_deficit > 0 ? EDGE_START_MASKED : 0u)
                   | (edge_unreliable(e, e->start_deficit) ? EDGE_START_UNRELIABLE : 0u);
    e->settle = 0;
}

/* The same replay from the quiet side back into the speech: a lone burst of noise that held the
 * segment open does not gather enough to be its end. Only ever moves the end earlier. */
static inline void edge_retrace_end(edge_t *e, int64_t t)
{
    int64_t threshold = edge_threshold(e), at = t, chain = -1, last_hit = -1, u, from = t - EDGE_REACH;
    int32_t s = 0, log_threshold = edge_ln(threshold), need = e->end_need[e->end_band];
    int band = e->end_band, chain_band = band;
    if (edge_band_deficit(e, e->end_band) < EDGE_END_CLEAR) return;
    if (from < e->on) from = e->on;
    for (u = t; u >= from && s < need; u--) {
        edge_look k = edge_examine(e, u);
        int hit;
        int32_t l = edge_judge(e, &k, edge_total(e, u - 1), threshold, log_threshold, &hit);
        if (hit) { if (chain < 0 || last_hit - u > EDGE_CHAIN) { chain = u; chain_band = k.band; } last_hit = u; }
        if (s <= 0) { at = u; band = k.band; }
        s += l;
        if (s < 0) s = 0;
    }
    if (s < need) return;
    if (chain > at && last_hit <= at + 2) { at = chain; band = chain_band; }
    if (at < e->off) { e->off = at; e->end_band = band; }
}

static inline int64_t edge_part(const edge_t *e, int64_t t, int all)
{
    return all ? edge_total(e, t) : e->energy[t & EDGE_MASK][e->end_band];
}

/* Sample after the last one heard: trimmed like the start, in the band that held on when noise is near. */
static inline int64_t edge_place_end(const edge_t *e)
{
    int64_t whole = edge_noise_total(e), noise, most = 0, at = e->off, from = at - EDGE_WINDOW + 1, u;
    int all = edge_relative(e->level) > 4 * whole;
    noise = all ? whole : e->noise[e->end_band];
    if (from < 0) from = 0;
    for (u = from; u <= e->off; u++) if (edge_part(e, u, all) > most) most = edge_part(e, u, all);
    for (u = e->off; u >= from; u--) if (2 * (edge_part(e, u, all) - noise) >= most - noise) { at = u; break; }
    if (whole < EDGE_Q20(1) && e->last[at & EDGE_MASK] >= 0) return at * e->frame + e->last[at & EDGE_MASK] + 1;
    return (at + 1) * e->frame;
}

static inline void edge_publish(edge_t *e, int64_t end, uint32_t flags)
{
    edge_segment *s = &e->queue[(e->queue_at + e->queue_n) % EDGE_QUEUE];
    int64_t last = (end - 1) / e->frame;
    if (end > e->samples) end = e->samples;
    if (end <= e->start) return;
    s->start = e->start;
    s->end = end;
    s->start_deficit = e->start_deficit;
    s->end_deficit = edge_deficit(e, edge_margin(e, last - EDGE_SHARP_END + 1, EDGE_SHARP_END));
    s->flags = flags | e->start_flags | (s->end_deficit > 0 ? EDGE_END_MASKED : 0u)
             | (edge_unreliable(e, s->end_deficit) ? EDGE_END_UNRELIABLE : 0u);
    e->queue_n++;
}

/* A beep is over before a look can see it: look at it whole when it closes. */
static inline int edge_was_beep(const edge_t *e, int64_t t)
{
    int64_t n = e->off - e->on - 4;
    return n >= 16 && n <= 120 && edge_is_tone(e, (int32_t)(t - e->off + 3) * EDGE_SLOW_PER_FRAME, (int32_t)n * EDGE_SLOW_PER_FRAME);
}

/* End the segment; what turned out to be steady noise or a tone is revoked, not published. */
static inline void edge_close(edge_t *e, int64_t t)
{
    int absorbed = e->absorbed_at >= 0 && e->off <= e->absorbed_at + 8;
    if (e->tonal || edge_was_beep(e, t) || (absorbed && e->on >= e->steady_from - EDGE_STEADY_SLACK)) {
        e->revoked++;
    } else {
        if (absorbed && e->steady_from < e->off) {
            e->off = e->steady_from;
            if (e->steady_from > t - EDGE_REACH) edge_retrace_end(e, e->steady_from);
        } else if (t - e->off >= EDGE_HANG) edge_retrace_end(e, t);
        edge_publish(e, edge_place_end(e), absorbed ? EDGE_END_UNRELIABLE : 0u);
        e->channel_level = e->channel_level == 0 ? e->level : e->channel_level + (e->level - e->channel_level) * 3 / 10;
    }
    e->open = 0;
    e->score = 0;
    e->free_from = e->off + EDGE_WINDOW;
    e->on = t + 1;
    e->absorbed_at = -1;
    e->tonal = 0;
}

/* ---- opening and closing ---- */

static inline void edge_idle(edge_t *e, int64_t t, const edge_look *k)
{
    int64_t u;
    if (e->score <= 0) { e->on = t; e->counted = 0; e->strong = 0; }
    e->score = edge_clip(e->score + k->opens, 0, 3 * EDGE_OPEN);
    if (k->opens > 0) e->counted++;
    if (k->opens >= EDGE_CAP / 2) e->strong++;
    if (e->tone_run >= EDGE_TONE_LOOKS) return;
    if (t - e->on >= EDGE_REACH) { e->score = 0; return; }
    if (e->score < EDGE_OPEN || e->counted < EDGE_OPEN_FRAMES || e->strong < EDGE_OPEN_STRONG) return;
    e->open = 1;
    e->tail = 0;
    e->off = t;
    e->settle = EDGE_SETTLE;
    e->start = e->on * e->frame;
    e->absorbed_at = -1;
    e->tonal = 0;
    for (e->level = 0, u = e->on; u <= t; u++) {
        int64_t x = edge_total(e, u);
        if (x > e->level) e->level += (x - e->level) / 8;
    }
}

static inline void edge_in_speech(edge_t *e, int64_t t, const edge_look *k)
{
    int64_t threshold;
    int hit;
    e->level += k->total > e->level ? (k->total - e->level) / 8 : (k->total - e->level) / 2048;
    threshold = edge_threshold(e);
    e->tail += edge_judge(e, k, edge_total(e, t - 1), threshold, edge_ln(threshold), &hit);
    if (hit) e->tail = 1;
    if (e->tail > 0) { e->tail = 0; e->off = t; e->end_band = k->band; }
    if (e->tail < -EDGE_CLOSE) e->tail = -EDGE_CLOSE;
    if (e->settle > 0 && (--e->settle == 0 || t - e->off >= EDGE_HANG - 1)) edge_place_start(e, t);
    if (t - e->off >= EDGE_HANG) edge_close(e, t);
}

/* ---- learning the noise ---- */

static inline void edge_learn(edge_t *e, int b, int64_t energy, int32_t log_window)
{
    int64_t x = energy < 8 * e->noise[b] ? energy : 8 * e->noise[b];
    int32_t r, d;
    edge_set_noise(e, b, e->noise[b] + (x - e->noise[b]) / 256);
    r = edge_clip(log_window - e->log_noise[b], -EDGE_Q16(3), EDGE_Q16(3)) * 256;
    e->mean[b] += (r - e->mean[b]) / 512;
    d = r - e->mean[b];
    e->mean[b] = edge_clip(e->mean[b], EDGE_MEAN_LOW, EDGE_MEAN_HIGH);
    e->var[b] += (int32_t)(((((int64_t)d * d) >> 24) - e->var[b]) / 512);
    if (e->var[b] > EDGE_VAR_MAX) e->var[b] = EDGE_VAR_MAX;
}

static inline int64_t edge_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t edge_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Least and most power of a band over the last n sub-windows. */
static inline void edge_past_range(const edge_t *e, int b, int n, int64_t *least, int64_t *most)
{
    int j;
    *least = EDGE_HUGE;
    *most = 0;
    for (j = 1; j <= n; j++) {
        int i = (e->sub_at - j) & (EDGE_SUBS - 1);
        *least = edge_min(*least, e->sub_least[i][b]);
        *most = edge_max(*most, e->sub_most[i][b]);
    }
}

static inline void edge_refresh_past(edge_t *e, int b)
{
    edge_past_range(e, b, EDGE_SUBS, &e->past_least[b], &e->past_most[b]);
    edge_past_range(e, b, EDGE_FAST_SUBS, &e->near_least[b], &e->near_most[b]);
}

/* Every band steady over the last 1.2 s: a noise step, not speech. Below 600 Hz noise itself moves,
 * so there a power smoothed over 160 ms is asked. */
static inline int edge_steady_now(const edge_t *e)
{
    int64_t least = e->rumble_least, most = e->rumble_most;
    int b, j, raised = 0;
    for (j = 0; j < EDGE_FAST_SUBS; j++) {
        if (e->sub_rumble_least[j] < least) least = e->sub_rumble_least[j];
        if (e->sub_rumble_most[j] > most) most = e->sub_rumble_most[j];
    }
    if (most >= EDGE_STEADY_FAST * least && 2 * most > 3 * e->noise[0]) return 0;
    for (b = 0; b < EDGE_BANDS; b++) {
        least = edge_min(e->least[b], e->near_least[b]);
        most = edge_max(e->most[b], e->near_most[b]);
        if (b && most >= EDGE_STEADY_FAST * least && 2 * most > 3 * e->noise[b]) return 0;
        if (2 * least > 3 * e->noise[b]) raised = 1;
    }
    return raised;
}

/* Where the steady stretch that reaches back to `from` began, as far as the ring tells. */
static inline int64_t edge_steady_start(const edge_t *e, int64_t t, int64_t from)
{
    int64_t now = 0, oldest = t - (EDGE_RING - 64), u, j;
    for (j = 0; j < 48; j++) now += edge_total(e, from + 48 + j);
    for (u = from; u > oldest && u > 48; u -= 4) {
        int64_t then = 0;
        for (j = 0; j < 48; j++) then += edge_total(e, u - j);
        if (then > 4 * now || 4 * then < now) break;
    }
    return u - 24;
}

/* Take a stationary band for noise, and forget that it ever was quieter. */
static inline void edge_absorb(edge_t *e, int b, int64_t t, int64_t least, int subs)
{
    int j;
    edge_set_noise(e, b, least * 8 / 5);
    e->mean[b] = 0;
    for (j = 0; j < EDGE_SUBS; j++) e->sub_least[j][b] = edge_max(e->sub_least[j][b], least);
    edge_refresh_past(e, b);
    if (!e->open) return;
    if (e->absorbed_at < 0) {
        e->steady_from = t - subs * EDGE_SUB_FRAMES - e->sub_frames % EDGE_SUB_FRAMES;
        if (subs == EDGE_FAST_SUBS) e->steady_from = edge_steady_start(e, t, e->steady_from);
    }
    e->absorbed_at = t;
}

/* Most power of a band in 3.2 s; sub-windows not yet heard, or with digital silence, do not count. */
static inline int64_t edge_heard_most(const edge_t *e, int b)
{
    int64_t most = e->most[b];
    int j;
    for (j = 0; j < EDGE_SUBS; j++) if (e->sub_most[j][b] < EDGE_HUGE) most = edge_max(most, e->sub_most[j][b]);
    return most;
}

/* Was everything since a doubted start within 15 dB in every band: noise, if restless? */
static inline int edge_doubt_is_noise(const edge_t *e)
{
    int b;
    for (b = 0; b < EDGE_BANDS; b++)
        if (edge_heard_most(e, b) > EDGE_DOUBT_RATIO * edge_min(e->least[b], e->past_least[b])) return 0;
    return 1;
}

/* The least power of a long while is above the noise: it is the noise. A doubted start that it could
 * explain is thereby decided. */
static inline void edge_lift(edge_t *e, int b, int64_t t, int64_t least)
{
    edge_set_noise(e, b, least);
    if (!e->open || !e->doubt || e->on >= EDGE_BOOT || !edge_doubt_is_noise(e)) return;
    if (e->absorbed_at < 0) e->steady_from = 0;
    e->absorbed_at = t;
}

static inline void edge_follow_noise(edge_t *e, int64_t t, const edge_look *k)
{
    int learn = e->open ? t - e->off > EDGE_HANG / 2 && e->tail <= -EDGE_CLOSE : e->score < EDGE_OPEN / 2;
    int fast, b, j;
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t x = e->energy[t & EDGE_MASK][b];
        e->power[b] += (x - e->power[b]) / 16;
        if (e->power[b] < e->least[b]) e->least[b] = e->power[b];
        if (e->power[b] > e->most[b]) e->most[b] = e->power[b];
        if (learn) edge_learn(e, b, x, k->log_window[b]);
    }
    e->rumble += (e->energy[t & EDGE_MASK][0] - e->rumble) / 64;
    if (e->rumble < e->rumble_least) e->rumble_least = e->rumble;
    if (e->rumble > e->rumble_most) e->rumble_most = e->rumble;
    fast = edge_steady_now(e);
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t least, most, longest, near_least;
        int slow, rise, near;
        least = edge_min(e->least[b], e->past_least[b]);
        most = edge_max(e->most[b], e->past_most[b]);
        near_least = edge_min(e->least[b], e->near_least[b]);
        for (longest = least, j = 0; j < 3; j++) longest = edge_min(longest, e->long_least[j][b]);
        slow = most < EDGE_STEADY * least && 2 * least > 3 * e->noise[b];
        near = fast && 2 * near_least > 3 * e->noise[b];
        rise = longest > e->noise[b] && longest < EDGE_HUGE;
        /* a voice held steady is stationary too, and must not be taken for noise */
        if ((slow || near || rise) && e->open && t - e->on < EDGE_VOICE_HOLD && edge_hears_voice(e, t)) continue;
        if (slow) edge_absorb(e, b, t, least, EDGE_SUBS);
        else if (near) edge_absorb(e, b, t, near_least, EDGE_FAST_SUBS);
        else if (rise) edge_lift(e, b, t, longest);
        else if (least < e->noise[b] / 6 && e->sub_frames > 40) edge_set_noise(e, b, least * 6);
    }
}

static inline void edge_roll_subs(edge_t *e)
{
    int b, j;
    if (++e->sub_frames % EDGE_SUB_FRAMES) return;
    j = e->sub_frames / EDGE_SUB_FRAMES % EDGE_FAST_SUBS;
    e->sub_rumble_least[j] = e->rumble_least;
    e->sub_rumble_most[j] = e->rumble_most;
    e->rumble_least = EDGE_HUGE;
    e->rumble_most = 0;
    for (b = 0; b < EDGE_BANDS; b++) {
        e->sub_least[e->sub_at][b] = e->least[b];
        e->sub_most[e->sub_at][b] = e->most[b];
        e->least[b] = EDGE_HUGE;
        e->most[b] = 0;
    }
    e->sub_at = (e->sub_at + 1) % EDGE_SUBS;
    for (b = 0; b < EDGE_BANDS; b++) edge_refresh_past(e, b);
    if (e->sub_at) return;
    for (b = 0; b < EDGE_BANDS; b++) {
        e->long_least[e->long_at][b] = EDGE_HUGE;
        for (j = 0; j < EDGE_SUBS; j++)
            if (e->sub_least[j][b] < e->long_least[e->long_at][b]) e->long_least[e->long_at][b] = e->sub_least[j][b];
    }
    e->long_at = (e->long_at + 1) % 3;
}

/* 100 ms of digital silence: there is no noise, and what came before it says nothing. Shorter holes
 * are lost packets and change nothing. */
static inline void edge_hear_nothing(edge_t *e)
{
    int b;
    for (b = 0; b < EDGE_BANDS; b++) {
        e->least[b] = EDGE_FLOOR;
        e->most[b] = EDGE_HUGE;
        e->power[b] = 0;
        e->rumble = 0;
        e->rumble_least = 0;
        e->rumble_most = EDGE_HUGE;
        edge_set_noise(e, b, e->noise[b] + (EDGE_FLOOR - e->noise[b]) / 20);
    }
}

/* A start too loud to be believed as noise held a segment open for 1.2 s: let the least power since
 * the start stand for the noise. */
static inline void edge_resolve_doubt(edge_t *e)
{
    int b, j;
    if (!e->doubt) return;
    if (e->booted && (!e->open || e->on >= EDGE_BOOT) && e->sub_frames > EDGE_BOOT) e->doubt = 0;
    if (!e->doubt || e->sub_frames != EDGE_DOUBT_FRAMES) return;
    for (b = 0; b < EDGE_BANDS; b++) for (j = 0; j < 3; j++) e->long_least[j][b] = EDGE_HUGE;
}

/* Did the sound just stop: the last 5 ms a quarter of the 60 ms before them? */
static inline int edge_fell(const edge_t *e, int64_t t)
{
    int64_t before = 0;
    int j;
    for (j = 2; j < 26; j++) before += edge_total(e, t - j) / 24;
    return 4 * (edge_total(e, t) + edge_total(e, t - 1)) / 2 < before;
}

/* A tone is certain while a segment is open: the segment is revoked if it was nothing else, else it
 * ends where the tone began. The sound goes on, so the opening score is left full. */
static inline void edge_end_in_tone(edge_t *e, int64_t t)
{
    int64_t on = e->on;
    e->tonal = on >= e->tone_from - EDGE_TONE_FRAMES - 8;
    if (!e->tonal) on = e->tone_from;
    if (e->off > e->tone_from) e->off = e->tone_from;
    if (e->settle > 0) edge_place_start(e, t);
    edge_close(e, t);
    e->on = on;
    e->score = 3 * EDGE_OPEN;
    e->counted = e->strong = EDGE_OPEN_FRAMES;
}

/* A steady tone or pair of tones is no speech: it can neither be a segment nor hold one open. While it
 * lasts nothing opens; should it turn into something else without a pause it was a steady voice after
 * all, and the segment starts where the tone did. */
static inline void edge_hush_tone(edge_t *e, int64_t t, const edge_look *k)
{
    int held = e->tone_run >= EDGE_TONE_LOOKS;
    if (held) e->free_from = t;
    if (!e->open && e->score <= 0) { e->tone_run = 0; return; }
    if (t - e->tone_at < EDGE_TONE_FRAMES) return;
    e->tone_at = t;
    if (!edge_is_tone(e, 0, EDGE_TONE_SPAN)) {
        e->tone_run = 0;
        if (held && (t - e->on >= EDGE_REACH || k->opens <= 0 || edge_fell(e, t))) e->score = 0;
        return;
    }
    if (++e->tone_run == 1) e->tone_from = t - EDGE_TONE_SPAN / EDGE_SLOW_PER_FRAME;
    if (e->tone_run >= EDGE_TONE_LOOKS && e->open) edge_end_in_tone(e, t);
}

static inline void edge_step(edge_t *e, int64_t t)
{
    edge_look k = edge_examine(e, t);
    int silent = edge_silent(e, t);
    e->silent_run = silent ? e->silent_run + 1 : 0;
    edge_hush_tone(e, t, &k);
    if (!e->open) edge_idle(e, t, &k);
    if (e->open) edge_in_speech(e, t, &k);
    if (e->silent_run >= 40) edge_hear_nothing(e);
    edge_resolve_doubt(e);
    if (!silent) edge_follow_noise(e, t, &k);
    edge_roll_subs(e);
    if (t % 8 == 0) edge_refresh_sd(e);
}

/* ---- start-up ---- */

/* Is everything heard so far one steady noise: 40 ms powers of each band within 6 dB? */
static inline int edge_boot_steady(const edge_t *e)
{
    int64_t t;
    int b, j;
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t least = EDGE_HUGE, most = 0;
        for (t = EDGE_BOOT_SKIP + 16; t <= e->frames; t++) {
            int64_t s = 0;
            for (j = 1; j <= 16; j++) s += e->energy[t - j][b];
            if (s < least) least = s;
            if (s > most) most = s;
        }
        if (most > (b ? 4 : 8) * least) return 0;
    }
    return !edge_is_voice(e) || edge_is_tone(e, 0, EDGE_TONE_SPAN);
}

/* First estimate: the blocks no louder than twice the quietest, capped unless steady. */
static inline void edge_first_noise(edge_t *e)
{
    int64_t block[EDGE_BOOT_LOUD / EDGE_BOOT_BLOCK + 1][EDGE_BANDS] = {{0}}, noise[EDGE_BANDS] = {0}, quietest = EDGE_HUGE, sum, t;
    int b, i, n = 0, c = 0, used = 0;
    for (t = EDGE_BOOT_SKIP; t < e->frames && n < EDGE_BOOT_LOUD / EDGE_BOOT_BLOCK; t++) {
        if (edge_silent(e, t)) continue;
        for (b = 0; b < EDGE_BANDS; b++) block[n][b] += e->energy[t][b] / EDGE_BOOT_BLOCK;
        if (++c == EDGE_BOOT_BLOCK) { c = 0; n++; }
    }
    for (i = 0; i < n; i++) { sum = block[i][0] + block[i][1] + block[i][2]; if (sum < quietest) quietest = sum; }
    for (i = 0; i < n; i++) {
        if (block[i][0] + block[i][1] + block[i][2] > 2 * quietest) continue;
        used++;
        for (b = 0; b < EDGE_BANDS; b++) noise[b] += block[i][b];
    }
    if (!used) return;
    for (b = 0; b < EDGE_BANDS; b++) noise[b] /= used;
    sum = noise[0] + noise[1] + noise[2];
    if (sum > EDGE_BOOT_CEILING && !(e->heard >= EDGE_BOOT_LOUD && edge_boot_steady(e))) {
        int64_t over = sum / (EDGE_BOOT_CEILING >> 8);
        for (b = 0; b < EDGE_BANDS; b++) noise[b] = (noise[b] / over) << 8;
        e->doubt = 1;
    }
    for (b = 0; b < EDGE_BANDS; b++) { edge_set_noise(e, b, noise[b]); e->power[b] = e->noise[b]; }
    e->rumble = e->noise[0];
}

/* Take the first estimate, then live through what was heard with it. */
static inline void edge_boot(edge_t *e)
{
    int64_t t;
    e->booted = 1;
    if (e->silent_run < 20) edge_first_noise(e);
    e->silent_run = 0;
    for (t = 0; t < e->frames; t++) edge_step(e, t);
}

static inline int edge_boot_due(edge_t *e, int64_t t)
{
    int64_t recent = 0;
    int j;
    if (edge_silent(e, t)) e->silent_run++; else { e->silent_run = 0; e->heard++; }
    if (e->silent_run >= 20 || e->heard >= EDGE_BOOT_LOUD || t >= EDGE_REACH) return 1;
    if (e->heard < EDGE_BOOT) return 0;
    for (j = 0; j < 20; j++) recent += edge_total(e, t - j) / 20;
    return recent < EDGE_BOOT_CEILING;
}

/* ---- front end ---- */

static inline void edge_decimate(edge_t *e, int silent)
{
    int i, j;
    for (i = 0; i < EDGE_SLOW_PER_FRAME; i++) {
        int from = i * e->pos / EDGE_SLOW_PER_FRAME, to = (i + 1) * e->pos / EDGE_SLOW_PER_FRAME;
        int32_t s = 0;
        for (j = from; j < to && !silent; j++) s += e->smooth[j] >> 12;
        e->slow[e->slow_at++ & EDGE_SLOW_MASK] = (int16_t)(to > from ? edge_clip(s / (to - from), -32768, 32767) : 0);
    }
}

static inline void edge_end_frame(edge_t *e)
{
    int64_t t = e->frames;
    int k = (int)(t & EDGE_MASK), silent = e->last_change < 0, b;
    edge_decimate(e, silent);
    if (silent) { /* let nothing ring on into digital silence */
        e->dc[1] /= 2; e->low[0] /= 2; e->low[1] /= 2; e->mid[0] /= 2; e->mid[1] /= 2;
        e->dc[0] = (int32_t)e->previous * 4096;
    }
    for (b = 0; b < EDGE_BANDS; b++) {
        e->energy[k][b] = silent ? 0 : (int64_t)((e->sum[b] << 8) / (uint32_t)e->pos);
        e->sum[b] = 0;
    }
    e->first[k] = (int16_t)e->first_change;
    e->last[k] = (int16_t)e->last_change;
    e->first_change = e->last_change = -1;
    e->pos = 0;
    e->frames = t + 1;
    if (e->booted) edge_step(e, t);
    else if (edge_boot_due(e, t)) edge_boot(e);
}

/* One-pole low-pass in place; the product keeps 20 fractional bits. */
#define EDGE_LP(y, x, gain) ((y) += (int32_t)(((int64_t)((x) - (y)) * (gain)) >> 20))

static inline void edge_filter(edge_t *e, const int16_t *x, int32_t n)
{
    int32_t d0 = e->dc[0], d1 = e->dc[1], l0 = e->low[0], l1 = e->low[1], m0 = e->mid[0], m1 = e->mid[1], i;
    const int64_t pd = e->pole_dc, pl = e->pole_low, pm = e->pole_mid;
    uint64_t low = 0, mid = 0, high = 0;
    int32_t first = e->first_change, last = e->last_change;
    int16_t previous = e->previous;
    for (i = e->pos; n--; i++) {
        int16_t s = *x++;
        int32_t v = (int32_t)s * 4096;
        int64_t a, b, c;
        if (s != previous) { if (first < 0) first = i; last = i; previous = s; }
        EDGE_LP(d0, v, pd); v -= d0;
        EDGE_LP(d1, v, pd); v -= d1;
        EDGE_LP(l0, v, pl); EDGE_LP(l1, l0, pl);
        EDGE_LP(m0, v, pm); EDGE_LP(m1, m0, pm);
        a = l1 >> 6; b = (m1 - l1) >> 6; c = (v - m1) >> 6;
        low += (uint64_t)(a * a); mid += (uint64_t)(b * b); high += (uint64_t)(c * c);
        e->smooth[i] = m1;
    }
    e->dc[0] = d0; e->dc[1] = d1; e->low[0] = l0; e->low[1] = l1; e->mid[0] = m0; e->mid[1] = m1;
    e->sum[0] += low; e->sum[1] += mid; e->sum[2] += high;
    e->first_change = first; e->last_change = last;
    e->pos = i;
    e->previous = previous;
}

/* ---- interface ---- */

/* Is this a rate the detector works at? */
static inline int edge_rate_ok(int32_t rate)
{
    return rate >= 8000 && rate <= EDGE_MAX_FRAME * EDGE_FRAMES_PER_SECOND && rate % EDGE_FRAMES_PER_SECOND == 0;
}

static inline void edge_init(edge_t *e, int32_t rate)
{
    int b, j;
    memset(e, 0, sizeof *e);
    e->frame = rate / EDGE_FRAMES_PER_SECOND;
    e->pole_dc = edge_pole(60, rate);
    e->pole_low = edge_pole(600, rate);
    e->pole_mid = edge_pole(2000, rate);
    e->first_change = e->last_change = -1;
    e->absorbed_at = -1;
    e->tone_at = e->voice_at = -EDGE_RING;
    for (b = 0; b < EDGE_BANDS; b++) {
        edge_set_noise(e, b, EDGE_FLOOR);
        e->var[b] = EDGE_VAR_START;
        e->least[b] = EDGE_HUGE;
        for (j = 0; j < EDGE_SUBS; j++) e->sub_least[j][b] = e->sub_most[j][b] = EDGE_HUGE;
        edge_refresh_past(e, b);
    }
    e->rumble_least = EDGE_HUGE;
    for (j = 0; j < EDGE_FAST_SUBS; j++) e->sub_rumble_least[j] = e->sub_rumble_most[j] = EDGE_HUGE;
    edge_refresh_sd(e);
}

/* Take in samples; returns how many were taken, fewer than n only when the queue is full: pop, go on. */
static inline size_t edge_push(edge_t *e, const int16_t *x, size_t n)
{
    size_t done = 0;
    if (!e->begun && n) { e->begun = 1; e->dc[0] = (int32_t)x[0] * 4096; }
    while (done < n && e->queue_n < EDGE_QUEUE) {
        int32_t take = e->frame - e->pos;
        if ((size_t)take > n - done) take = (int32_t)(n - done);
        edge_filter(e, x + done, take);
        done += (size_t)take;
        e->samples += take;
        if (e->pos == e->frame) edge_end_frame(e);
    }
    return done;
}

/* One frame of nothing after the last sample. */
static inline void edge_pad(edge_t *e)
{
    int k = (int)(e->frames & EDGE_MASK), b;
    for (b = 0; b < EDGE_BANDS; b++) e->energy[k][b] = 0;
    e->first[k] = e->last[k] = -1;
    edge_step(e, e->frames++);
}

/* End of the stream: the part frame counts, an open segment ends. Pop first; push nothing after. */
static inline void edge_finish(edge_t *e)
{
    int i;
    if (e->pos > 0) edge_end_frame(e);
    if (!e->booted && e->frames > 0) edge_boot(e);
    for (i = 0; i < EDGE_HANG + EDGE_WINDOW && (i < EDGE_WINDOW || e->open); i++) edge_pad(e);
}

static inline int edge_pop(edge_t *e, edge_segment *out)
{
    if (e->queue_n == 0) return 0;
    *out = e->queue[e->queue_at];
    e->queue_at = (e->queue_at + 1) % EDGE_QUEUE;
    e->queue_n--;
    return 1;
}

/* Is speech in progress, as of the last full frame; *start is where it began, final for EDGE_SPEECH. */
static inline int edge_active(const edge_t *e, int64_t *start)
{
    if (!e->open) return EDGE_QUIET;
    *start = e->start;
    return e->settle > 0 ? EDGE_PROVISIONAL : EDGE_SPEECH;
}

#endif
