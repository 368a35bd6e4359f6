/* Inner loops of the core: energy, saturating mix and decimation.
 *
 * Nothing here allocates, nothing touches Python, and every result is an integer
 * that does not depend on how a signal was cut into calls. Driven by _core.pyx and
 * by the audio conditions of _chain.h.
 */
#ifndef DUPLEX_KERNELS_H
#define DUPLEX_KERNELS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_fir.h"

#if defined(__SSE2__) || defined(_M_X64)
#define DUPLEX_SSE2 1
#include <emmintrin.h>
#else
#define DUPLEX_SSE2 0
#endif

#if DUPLEX_SSE2 && (defined(__GNUC__) || defined(__clang__))
#define DUPLEX_AVX2 1
#include <immintrin.h>
#else
#define DUPLEX_AVX2 0
#endif

/* Sum of squares. An int32 cannot hold 20 ms of full scale, so the pairs that
 * the multiply-add gives (at most 2^31, unsigned) are widened before they meet. */
static inline uint64_t duplex_energy(const int16_t *x, int64_t n)
{
    uint64_t sum = 0;
    int64_t i = 0;
#if DUPLEX_SSE2
    const __m128i zero = _mm_setzero_si128();
    __m128i low = zero, high = zero;
    uint64_t lanes[2];
    for (; i + 8 <= n; i += 8) {
        __m128i v = _mm_loadu_si128((const __m128i *)(x + i));
        __m128i pairs = _mm_madd_epi16(v, v);
        low = _mm_add_epi64(low, _mm_unpacklo_epi32(pairs, zero));
        high = _mm_add_epi64(high, _mm_unpackhi_epi32(pairs, zero));
    }
    _mm_storeu_si128((__m128i *)lanes, _mm_add_epi64(low, high));
    sum = lanes[0] + lanes[1];
#endif
    for (; i < n; i++)
        sum += (uint64_t)((int32_t)x[i] * (int32_t)x[i]);
    return sum;
}

/* out = a + b held inside int16; returns how many samples were held. */
static inline int64_t duplex_mix(const int16_t *a, const int16_t *b, int16_t *out, int64_t n)
{
    int64_t clipped = 0, i = 0;
#if DUPLEX_SSE2
    for (; i + 8 <= n; i += 8) {
        __m128i va = _mm_loadu_si128((const __m128i *)(a + i));
        __m128i vb = _mm_loadu_si128((const __m128i *)(b + i));
        __m128i held = _mm_adds_epi16(va, vb);
        int same = _mm_movemask_epi8(_mm_cmpeq_epi16(held, _mm_add_epi16(va, vb)));
        _mm_storeu_si128((__m128i *)(out + i), held);
        if (same != 0xffff) {
            int k;
            for (k = 0; k < 16; k += 2)
                clipped += !((same >> k) & 1);
        }
    }
#endif
    for (; i < n; i++) {
        int32_t sum = (int32_t)a[i] + (int32_t)b[i];
        int32_t held = sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum;
        clipped += held != sum;
        out[i] = (int16_t)held;
    }
    return clipped;
}

#if DUPLEX_SSE2
/* The four lanes of each argument added up, one argument a lane. */
static inline __m128i duplex_sums(__m128i a, __m128i b, __m128i c, __m128i d)
{
    a = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    c = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    return _mm_add_epi32(_mm_unpacklo_epi64(a, c), _mm_unpackhi_epi64(a, c));
}

/* Four sums in Q15, rounded and held inside int16. */
static inline void duplex_store_q15(int16_t *y, __m128i sums)
{
    sums = _mm_srai_epi32(_mm_add_epi32(sums, _mm_set1_epi32(1 << 14)), 15);
    _mm_storel_epi64((__m128i *)y, _mm_packs_epi32(sums, sums));
}
#endif

/* out = a[0] b[0] a[1] b[1] ... */
static inline void duplex_interleave(const int16_t *a, const int16_t *b, int16_t *out, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++) {
        out[2 * i] = a[i];
        out[2 * i + 1] = b[i];
    }
}

static inline int16_t duplex_q15(int32_t sum)
{
    sum = (sum + (1 << 14)) >> 15;
    return (int16_t)(sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum);
}

/* n outputs at 1/factor of the input rate; output m is centred on the tap that
 * meets x[m * factor + ahead]. taps is a multiple of sixteen (zero padded), n of
 * four: four outputs share each load of the taps and one transposed sum. Both
 * builds add the same int32 products, so they give the same bytes. */
static void duplex_decimate_baseline(const int16_t *x, const int16_t *h, int taps, int factor,
                                     int16_t *y, int n)
{
    int m, j;
    for (m = 0; m < n; m += 4) {
        const int16_t *in = x + (int64_t)m * factor;
#if DUPLEX_SSE2
        __m128i a = _mm_setzero_si128(), b = a, c = a, d = a;
        for (j = 0; j < taps; j += 8) {
            const __m128i tap = _mm_loadu_si128((const __m128i *)(h + j));
            const int16_t *at = in + j;
            a = _mm_add_epi32(a, _mm_madd_epi16(tap, _mm_loadu_si128((const __m128i *)at)));
            at += factor;
            b = _mm_add_epi32(b, _mm_madd_epi16(tap, _mm_loadu_si128((const __m128i *)at)));
            at += factor;
            c = _mm_add_epi32(c, _mm_madd_epi16(tap, _mm_loadu_si128((const __m128i *)at)));
            at += factor;
            d = _mm_add_epi32(d, _mm_madd_epi16(tap, _mm_loadu_si128((const __m128i *)at)));
        }
        duplex_store_q15(y + m, duplex_sums(a, b, c, d));
#else
        int k;
        for (k = 0; k < 4; k++) {
            int32_t sum = 0;
            for (j = 0; j < taps; j++)
                sum += (int32_t)in[k * factor + j] * (int32_t)h[j];
            y[m + k] = duplex_q15(sum);
        }
#endif
    }
}

#if DUPLEX_AVX2
__attribute__((target("avx2"))) static inline __m128i duplex_half(__m256i v)
{
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

__attribute__((target("avx2"))) static void
duplex_decimate_avx2(const int16_t *x, const int16_t *h, int taps, int factor, int16_t *y, int n)
{
    int m, j;
    for (m = 0; m < n; m += 4) {
        const int16_t *in = x + (int64_t)m * factor;
        __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
        for (j = 0; j < taps; j += 16) {
            const __m256i tap = _mm256_loadu_si256((const __m256i *)(h + j));
            const int16_t *at = in + j;
            a = _mm256_add_epi32(a, _mm256_madd_epi16(tap, _mm256_loadu_si256((const __m256i *)at)));
            at += factor;
            b = _mm256_add_epi32(b, _mm256_madd_epi16(tap, _mm256_loadu_si256((const __m256i *)at)));
            at += factor;
            c = _mm256_add_epi32(c, _mm256_madd_epi16(tap, _mm256_loadu_si256((const __m256i *)at)));
            at += factor;
            d = _mm256_add_epi32(d, _mm256_madd_epi16(tap, _mm256_loadu_si256((const __m256i *)at)));
        }
        duplex_store_q15(y + m, duplex_sums(duplex_half(a), duplex_half(b), duplex_half(c),
                                            duplex_half(d)));
    }
}
#endif

#if DUPLEX_AVX2
__attribute__((target("avx2"))) static inline uint64_t duplex_energy_avx2(const int16_t *x, int64_t n)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i low = zero, high = zero;
    uint64_t lanes[4];
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(x + i));
        const __m256i pairs = _mm256_madd_epi16(v, v);
        low = _mm256_add_epi64(low, _mm256_unpacklo_epi32(pairs, zero));
        high = _mm256_add_epi64(high, _mm256_unpackhi_epi32(pairs, zero));
    }
    _mm256_storeu_si256((__m256i *)lanes, _mm256_add_epi64(low, high));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3] + duplex_energy(x + i, n - i);
}

__attribute__((target("avx2"))) static inline int64_t
duplex_mix_avx2(const int16_t *a, const int16_t *b, int16_t *out, int64_t n)
{
    __m256i differ = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i va = _mm256_loadu_si256((const __m256i *)(a + i));
        const __m256i vb = _mm256_loadu_si256((const __m256i *)(b + i));
        const __m256i held = _mm256_adds_epi16(va, vb);
        differ = _mm256_or_si256(differ, _mm256_xor_si256(held, _mm256_add_epi16(va, vb)));
        _mm256_storeu_si256((__m256i *)(out + i), held);
    }
    /* Clipping is rare: only then is it counted, by doing the stretch again. */
    if (!_mm256_testz_si256(differ, differ))
        i = 0;
    return duplex_mix(a + i, b + i, out + i, n - i);
}
#endif

#if DUPLEX_AVX2
/* One side's sixteen samples copied, and their squares added to two sums each. */
#define DUPLEX_TAKE(v, out, low, high)                                                             \
    do {                                                                                           \
        const __m256i pairs = _mm256_madd_epi16(v, v);                                             \
        _mm256_storeu_si256((__m256i *)(out), v);                                                  \
        low = _mm256_add_epi64(low, _mm256_unpacklo_epi32(pairs, zero));                           \
        high = _mm256_add_epi64(high, _mm256_unpackhi_epi32(pairs, zero));                         \
    } while (0)

__attribute__((target("avx2"))) static inline uint64_t duplex_lanes(__m256i low, __m256i high)
{
    uint64_t lanes[4];
    _mm256_storeu_si256((__m256i *)lanes, _mm256_add_epi64(low, high));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

__attribute__((target("avx2"))) static int64_t
duplex_pass_avx2(const int16_t *a, const int16_t *b, int16_t *out_a, int16_t *out_b, int16_t *mix,
                 int64_t n, uint64_t *energy)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i low_a = zero, high_a = zero, low_b = zero, high_b = zero, differ = zero;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256i va = _mm256_loadu_si256((const __m256i *)(a + i));
        const __m256i vb = _mm256_loadu_si256((const __m256i *)(b + i));
        const __m256i held = _mm256_adds_epi16(va, vb);
        DUPLEX_TAKE(va, out_a + i, low_a, high_a);
        DUPLEX_TAKE(vb, out_b + i, low_b, high_b);
        differ = _mm256_or_si256(differ, _mm256_xor_si256(held, _mm256_add_epi16(va, vb)));
        _mm256_storeu_si256((__m256i *)(mix + i), held);
    }
    memcpy(out_a + i, a + i, (size_t)(n - i) * sizeof(int16_t));
    memcpy(out_b + i, b + i, (size_t)(n - i) * sizeof(int16_t));
    energy[0] = duplex_lanes(low_a, high_a) + duplex_energy(a + i, n - i);
    energy[1] = duplex_lanes(low_b, high_b) + duplex_energy(b + i, n - i);
    if (!_mm256_testz_si256(differ, differ))
        i = 0;
    return duplex_mix(a + i, b + i, mix + i, n - i);
}
#undef DUPLEX_TAKE
#endif

/* Whether the wide build of a kernel may run on this processor. */
static inline int duplex_wide(void)
{
#if DUPLEX_AVX2
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") != 0;
#else
    return 0;
#endif
}

static inline void duplex_decimate(int wide, const int16_t *x, const int16_t *h, int taps,
                                   int factor, int16_t *y, int n)
{
#if DUPLEX_AVX2
    if (wide) {
        duplex_decimate_avx2(x, h, taps, factor, y, n);
        return;
    }
#endif
    (void)wide;
    duplex_decimate_baseline(x, h, taps, factor, y, n);
}

static inline uint64_t duplex_energy_of(int wide, const int16_t *x, int64_t n)
{
#if DUPLEX_AVX2
    if (wide)
        return duplex_energy_avx2(x, n);
#endif
    (void)wide;
    return duplex_energy(x, n);
}

static inline int64_t duplex_mix_of(int wide, const int16_t *a, const int16_t *b, int16_t *out,
                                    int64_t n)
{
#if DUPLEX_AVX2
    if (wide)
        return duplex_mix_avx2(a, b, out, n);
#endif
    (void)wide;
    return duplex_mix(a, b, out, n);
}

/* Both sides passed on as they are: copied, mixed, and the energy of each, all in one go.
 * The outputs overlap neither each other nor the inputs; returns what duplex_mix does. */
static inline int64_t duplex_pass_of(int wide, const int16_t *a, const int16_t *b, int16_t *out_a,
                                     int16_t *out_b, int16_t *mix, int64_t n, uint64_t *energy)
{
#if DUPLEX_AVX2
    if (wide)
        return duplex_pass_avx2(a, b, out_a, out_b, mix, n, energy);
#endif
    (void)wide;
    memcpy(out_a, a, (size_t)n * sizeof(int16_t));
    memcpy(out_b, b, (size_t)n * sizeof(int16_t));
    energy[0] = duplex_energy(a, n);
    energy[1] = duplex_energy(b, n);
    return duplex_mix(a, b, mix, n);
}

#endif
