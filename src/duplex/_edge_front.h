/* The front end of the edge detector: samples in, three band energies for every 2.5 ms out.
 *
 * Two one-poles take the offset away, two more bound the low band and two the middle one. It decides
 * nothing; a frame that is full is handed on. Both sides of a call fit into the lanes of one vector,
 * so with AVX2 they are filtered together; the integers are those of the plain loop to the last bit.
 * Driven by `edge_push` and `edge_push_both`. */
#ifndef DUPLEX_EDGE_FRONT_H
#define DUPLEX_EDGE_FRONT_H

#include "_edge_state.h"
#include "_kernels.h"

/* One-pole low-pass in place; the product keeps 20 fractional bits. */
#define EDGE_LP(y, x, gain) ((y) += (((x) - (y)) * (gain)) >> 20)

/* Filter n samples, which must not pass the end of the frame. */
static inline void edge_filter(edge_t *e, const int16_t *x, int32_t n)
{
    int64_t d0 = e->dc[0], d1 = e->dc[1], l0 = e->low[0], l1 = e->low[1], m0 = e->mid[0], m1 = e->mid[1];
    const int64_t pd = e->pole_dc, pl = e->pole_low, pm = e->pole_mid;
    uint64_t low = 0, mid = 0, high = 0;
    int32_t *sums = e->below + e->pos + 1, sum = e->below[e->pos], i;
    memcpy(e->raw + EDGE_MAX_LEAP + e->pos, x, (size_t)n * sizeof *x);
    for (i = 0; i < n; i++) {
        int64_t v = (int64_t)x[i] * 4096, a, b, c;
        EDGE_LP(d0, v, pd); v -= d0;
        EDGE_LP(d1, v, pd); v -= d1;
        EDGE_LP(l0, v, pl); EDGE_LP(l1, l0, pl);
        EDGE_LP(m0, v, pm); EDGE_LP(m1, m0, pm);
        a = l1 >> 6; b = (m1 - l1) >> 6; c = (v - m1) >> 6;
        low += (uint64_t)(a * a); mid += (uint64_t)(b * b); high += (uint64_t)(c * c);
        sums[i] = sum += (int32_t)(m1 >> 12);
    }
    e->dc[0] = (int32_t)d0; e->dc[1] = (int32_t)d1;
    e->low[0] = (int32_t)l0; e->low[1] = (int32_t)l1;
    e->mid[0] = (int32_t)m0; e->mid[1] = (int32_t)m1;
    e->sum[0] += low; e->sum[1] += mid; e->sum[2] += high;
    e->pos += n;
}

#if DUPLEX_AVX2
#define EDGE_AVX2 __attribute__((target("avx2"))) static inline

/* Both sides on their way through the filters. A vector is two lanes of one side, then two of the other,
 * of 64 bits of which the low half counts. The stages work on different samples, so that none waits for
 * another: of the offset the first pole is at sample i and the second at i - 2, of the bands at i - 3
 * and i - 4. */
typedef struct {
    __m256i dc, first, second;              /* poles: both of the offset; low and middle band */
    __m256i dc_gain, gain;
    __m256i v[2];                           /* what either pole of the offset left, one step and two ago */
    __m256i w[2];                           /* what both left, in both lanes, one step and two ago */
    __m256i lower, upper, below;            /* sums: squares of low and middle band, of the high one; samples */
} edge_lanes;

EDGE_AVX2 __m256i edge_set_lanes(int32_t a, int32_t b, int32_t c, int32_t d)
{
    return _mm256_set_epi64x(d, c, b, a);
}

/* One-poles. Differences of Q12 states stay below 2^31 and their products below 2^51, so the low half
 * of the shifted product is the whole of it. */
EDGE_AVX2 __m256i edge_pole_4(__m256i y, __m256i x, __m256i gain)
{
    return _mm256_add_epi32(y, _mm256_srli_epi64(_mm256_mul_epi32(_mm256_sub_epi32(x, y), gain), 20));
}

EDGE_AVX2 __m256i edge_square_4(__m256i x)
{
    x = _mm256_srai_epi32(x, 6);
    return _mm256_mul_epi32(x, x);
}

/* Take the offset off the next sample of each side, Q12; poles of which `keep` has a bit stand still. */
#define EDGE_OFFSET(l, pair, keep) do { \
        const __m256i here = _mm256_srlv_epi64(_mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)(pair))), edge_set_lanes(0, 0, 32, 32)); \
        const __m256i in = _mm256_blend_epi32(here, _mm256_slli_si256((l)->v[1], 8), 0xcc); \
        (l)->dc = _mm256_blend_epi32(edge_pole_4((l)->dc, in, (l)->dc_gain), (l)->dc, keep); \
        (l)->v[1] = (l)->v[0]; \
        (l)->v[0] = _mm256_sub_epi32(in, (l)->dc); \
        (l)->w[1] = (l)->w[0]; \
        (l)->w[0] = _mm256_unpackhi_epi64((l)->v[0], (l)->v[0]); \
    } while (0)

/* Bound the bands of a sample at their first pole, and of the one before at their second. */
EDGE_AVX2 void edge_bound_first(edge_lanes *l) { l->first = edge_pole_4(l->first, l->w[0], l->gain); }

EDGE_AVX2 void edge_bound_second(edge_lanes *l, int32_t *below)
{
    l->second = edge_pole_4(l->second, l->first, l->gain);
    l->lower = _mm256_add_epi64(l->lower, edge_square_4(_mm256_sub_epi32(l->second, _mm256_slli_si256(l->second, 8))));
    l->upper = _mm256_add_epi64(l->upper, edge_square_4(_mm256_sub_epi32(l->w[1], l->second)));
    l->below = _mm256_add_epi32(l->below, _mm256_srai_epi32(l->second, 12));
    _mm256_storeu_si256((__m256i *)below, l->below);
}

/* All n samples, 4 at least, of which there are pairs in Q12 and, of whatever value, two more. */
EDGE_AVX2 void edge_run_lanes(edge_lanes *state, const int32_t *pairs, int32_t (*below)[8], int32_t n)
{
    edge_lanes l = *state;
    int32_t i;
    EDGE_OFFSET(&l, pairs, 0xcc);
    EDGE_OFFSET(&l, pairs + 2, 0xcc);
    EDGE_OFFSET(&l, pairs + 4, 0);
    edge_bound_first(&l);
    EDGE_OFFSET(&l, pairs + 6, 0);
    for (i = 4; i < n; i++) {
        edge_bound_second(&l, below[i - 4]);
        edge_bound_first(&l);
        EDGE_OFFSET(&l, pairs + 2 * i, 0);
    }
    for (; i < n + 2; i++) {
        edge_bound_second(&l, below[i - 4]);
        edge_bound_first(&l);
        EDGE_OFFSET(&l, pairs + 2 * i, 0x33);
    }
    edge_bound_second(&l, below[n - 2]);
    l.w[1] = l.w[0];
    edge_bound_first(&l);
    edge_bound_second(&l, below[n - 1]);
    *state = l;
}

/* Pairs of one sample of each side, Q12; up to seven more than n. */
EDGE_AVX2 void edge_pairs(const int16_t *x, const int16_t *y, int32_t *pairs, int32_t n)
{
    int32_t i;
    for (i = 0; i < n; i += 8) {
        const __m256i a = _mm256_slli_epi32(_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(x + i))), 12);
        const __m256i b = _mm256_slli_epi32(_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(y + i))), 12);
        const __m256i low = _mm256_unpacklo_epi32(a, b), high = _mm256_unpackhi_epi32(a, b);
        _mm256_storeu_si256((__m256i *)(pairs + 2 * i), _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256((__m256i *)(pairs + 2 * i + 8), _mm256_permute2x128_si256(low, high, 0x31));
    }
}

EDGE_AVX2 void edge_load_lanes(edge_lanes *l, const edge_t *e, const edge_t *f)
{
    memset(l, 0, sizeof *l);
    l->dc_gain = edge_set_lanes(e->pole_dc, e->pole_dc, e->pole_dc, e->pole_dc);
    l->gain = edge_set_lanes(e->pole_low, e->pole_mid, e->pole_low, e->pole_mid);
    l->dc = edge_set_lanes(e->dc[0], e->dc[1], f->dc[0], f->dc[1]);
    l->first = edge_set_lanes(e->low[0], e->mid[0], f->low[0], f->mid[0]);
    l->second = edge_set_lanes(e->low[1], e->mid[1], f->low[1], f->mid[1]);
    l->below = edge_set_lanes(0, e->below[e->pos], 0, f->below[f->pos]);
}

/* Back to a side; `at` is its first lane. */
EDGE_AVX2 void edge_store_lanes(const edge_lanes *l, edge_t *e, int at)
{
    int32_t s[24];
    uint64_t sums[8];
    _mm256_storeu_si256((__m256i *)s, l->dc);
    _mm256_storeu_si256((__m256i *)(s + 8), l->first);
    _mm256_storeu_si256((__m256i *)(s + 16), l->second);
    _mm256_storeu_si256((__m256i *)sums, l->lower);
    _mm256_storeu_si256((__m256i *)(sums + 4), l->upper);
    e->dc[0] = s[2 * at]; e->dc[1] = s[2 * at + 2];
    e->low[0] = s[2 * at + 8]; e->mid[0] = s[2 * at + 10];
    e->low[1] = s[2 * at + 16]; e->mid[1] = s[2 * at + 18];
    e->sum[0] += sums[at]; e->sum[1] += sums[at + 1]; e->sum[2] += sums[at + 5];
}

/* Both sides at once; of a whole frame only the sums that are asked for are kept. */
EDGE_AVX2 void edge_filter_both(edge_t *e, edge_t *f, const int16_t *x, const int16_t *y, int32_t n)
{
    int32_t pairs[2 * EDGE_MAX_FRAME + 16], below[EDGE_MAX_FRAME][8], i;
    int32_t *s = e->below + e->pos + 1, *t = f->below + f->pos + 1, every = n == e->frame && e->slow_run ? e->slow_run : 1;
    edge_lanes l;
    memcpy(e->raw + EDGE_MAX_LEAP + e->pos, x, (size_t)n * sizeof *x);
    memcpy(f->raw + EDGE_MAX_LEAP + f->pos, y, (size_t)n * sizeof *y);
    edge_pairs(e->raw + EDGE_MAX_LEAP + e->pos, f->raw + EDGE_MAX_LEAP + f->pos, pairs, n + 2);
    edge_load_lanes(&l, e, f);
    edge_run_lanes(&l, pairs, below, n);
    edge_store_lanes(&l, e, 0);
    edge_store_lanes(&l, f, 2);
    for (i = every - 1; i < n; i += every) { s[i] = below[i][2]; t[i] = below[i][6]; }
    e->pos += n;
    f->pos += n;
}
#endif

#endif
