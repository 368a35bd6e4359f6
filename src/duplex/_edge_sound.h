/* Tone, voice or noise: what a sound that holds steady is, from half a second at 4 kHz.
 *
 * It must never be what makes speech of a sound; it only tells what steady sound may be taken back.
 * Driven by the closing of a segment, by the learning of noise and by the start. */
#ifndef DUPLEX_EDGE_SOUND_H
#define DUPLEX_EDGE_SOUND_H

#include "_edge_state.h"

#define EDGE_LONGEST_LOOK 1200  /* slow samples: a beep of 120 frames */
#define EDGE_VOICE_SPAN 256     /* slow samples a look for a voice takes in: 64 ms */
#define EDGE_VOICE_LEAST 10     /* and its periods: 400 Hz */
#define EDGE_VOICE_LAG 64       /* to 62 Hz */

/* Sum of products; with AVX2 the same sum, eight at a time. */
static inline int64_t edge_dot_any(const int32_t *a, const int32_t *b, int32_t n)
{
    int64_t sum = 0;
    int32_t i;
    for (i = 0; i < n; i++) sum += (int64_t)a[i] * b[i];
    return sum;
}

#if DUPLEX_AVX2
__attribute__((target("avx2"))) static inline int64_t edge_dot_avx2(const int32_t *a, const int32_t *b, int32_t n)
{
    __m256i even = _mm256_setzero_si256(), odd = even;
    int64_t lanes[4];
    int32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(a + i)), y = _mm256_loadu_si256((const __m256i *)(b + i));
        even = _mm256_add_epi64(even, _mm256_mul_epi32(x, y));
        odd = _mm256_add_epi64(odd, _mm256_mul_epi32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(y, 32)));
    }
    _mm256_storeu_si256((__m256i *)lanes, _mm256_add_epi64(even, odd));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3] + edge_dot_any(a + i, b + i, n - i);
}
#endif

static inline int64_t edge_dot(const edge_t *e, const int32_t *a, const int32_t *b, int32_t n)
{
#if DUPLEX_AVX2
    if (e->wide) return edge_dot_avx2(a, b, n);
#endif
    (void)e;
    return edge_dot_any(a, b, n);
}

/* The n last slopes of the slow signal up to `back` before the newest, oldest first. */
static inline void edge_slopes(const edge_t *e, int32_t back, int32_t n, int32_t *d)
{
    int16_t x[EDGE_LONGEST_LOOK + 1];
    const uint32_t from = (e->slow_at - (uint32_t)(back + n + 1)) & EDGE_SLOW_MASK;
    const int32_t first = from + (uint32_t)n + 1 > EDGE_SLOW ? EDGE_SLOW - (int32_t)from : n + 1;
    int32_t i;
    memcpy(x, e->slow + from, (size_t)first * sizeof *x);
    memcpy(x + first, e->slow, (size_t)(n + 1 - first) * sizeof *x);
    for (i = 0; i < n; i++) d[i] = x[i + 1] - x[i];
}

/* Give a stretch of slopes a parabola for a window: no edge for a prediction to trip over. */
static inline void edge_taper(int32_t *d, int32_t n)
{
    int32_t i;
    if (n == EDGE_TONE_SPAN) /* the same without a division by what is not known */
        for (i = 0; i < EDGE_TONE_SPAN; i++)
            d[i] = d[i] * (i * (EDGE_TONE_SPAN - 1 - i) / (EDGE_TONE_SPAN * EDGE_TONE_SPAN / 1024)) / 16;
    else for (i = 0; i < n; i++) d[i] = d[i] * (int32_t)((int64_t)i * (n - 1 - i) * 1024 / ((int64_t)n * n)) / 16;
}

#if DUPLEX_AVX2
__attribute__((target("avx2"))) static void edge_taper_avx2(int32_t *d, int32_t n) { edge_taper(d, n); }
#endif

/* Is a stretch of n slow samples, ending `back` before the newest, one steady tone or a pair? Order-4
 * prediction leaves next to nothing of those, and their loudness stays. */
static inline int edge_is_tone(const edge_t *e, int32_t back, int32_t n)
{
    int64_t r[5], a[5] = {0}, half[2], err;
    int32_t d[EDGE_LONGEST_LOOK], i, j, shift;
    edge_slopes(e, back, n, d);
    half[0] = edge_dot(e, d, d, n / 2);
    half[1] = edge_dot(e, d + n / 2, d + n / 2, n - n / 2);
    if (2 * half[0] > 3 * half[1] || 2 * half[1] > 3 * half[0]) return 0;
#if DUPLEX_AVX2
    if (e->wide) edge_taper_avx2(d, n); else
#endif
    edge_taper(d, n);
    for (j = 0; j < 5; j++) r[j] = edge_dot(e, d, d + j, n - j);
    if (r[0] < EDGE_TONE_LEAST) return 0;
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
    int64_t here, there, cross;
    int32_t d[EDGE_VOICE_SPAN + EDGE_VOICE_LAG], *now = d + EDGE_VOICE_LAG, lag, shift;
    edge_slopes(e, 0, EDGE_VOICE_SPAN + EDGE_VOICE_LAG, d);
    here = there = edge_dot(e, now, now, EDGE_VOICE_SPAN);
    if (here == 0) return 0;
    for (lag = 1; lag <= EDGE_VOICE_LAG; lag++) {
        const int32_t *then = now - lag;
        there += (int64_t)then[0] * then[0] - (int64_t)then[EDGE_VOICE_SPAN] * then[EDGE_VOICE_SPAN];
        if (lag < EDGE_VOICE_LEAST) continue;
        cross = edge_dot(e, now, then, EDGE_VOICE_SPAN);
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
