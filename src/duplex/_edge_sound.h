/* Tone, voice or noise: what a sound that holds steady is, from half a second at 4 kHz.
 *
 * It must never be what makes speech of a sound; it only tells what steady sound may be taken back.
 * Driven by the closing of a segment, by the learning of noise and by the start. */
#ifndef DUPLEX_EDGE_SOUND_H
#define DUPLEX_EDGE_SOUND_H

#include "_edge_state.h"

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

#endif
