/* From numbers to int16 and back: rounding, holding, adding, gains that move in a line.
 *
 * Rounding adds and takes away a constant that leaves no room for a fraction, so it
 * is to the nearest and to even at a half wherever floats are IEEE's; no compiler
 * may reorder it, as the build forbids unsafe arithmetic. Included by _chain.h only.
 */

#define ROUND_FLOAT 12582912.0f        /* 1.5 * 2^23: for |x| < 2^22 */
#define ROUND_DOUBLE 6755399441055744.0 /* 1.5 * 2^52 */

static inline int16_t hold16(int32_t v)
{
    return (int16_t)(v > 32767 ? 32767 : v < -32768 ? -32768 : v);
}

static inline float hold_float(float v)
{
    v = v > 32767.0f ? 32767.0f : v;
    return v < -32768.0f ? -32768.0f : v;
}

static inline int16_t round_float(float v)
{
    return (int16_t)(int32_t)((hold_float(v) + ROUND_FLOAT) - ROUND_FLOAT);
}

static inline int16_t round_double(double v)
{
    v = v > 32767.0 ? 32767.0 : v;
    v = v < -32768.0 ? -32768.0 : v;
    return (int16_t)(int32_t)((v + ROUND_DOUBLE) - ROUND_DOUBLE);
}

static void round_doubles(const double *restrict x, int16_t *restrict y, int64_t n)
{
    int64_t i = 0;
#if defined(LINE_WIDE)
    for (; i + 8 <= n; i += 8) {
        const __m128i low = _mm256_cvtpd_epi32(_mm256_loadu_pd(x + i));
        const __m128i high = _mm256_cvtpd_epi32(_mm256_loadu_pd(x + i + 4));
        _mm_storeu_si128((__m128i *)(y + i), _mm_packs_epi32(low, high));
    }
#elif DUPLEX_SSE2
    for (; i + 4 <= n; i += 4) {
        const __m128i low = _mm_cvtpd_epi32(_mm_loadu_pd(x + i));
        const __m128i high = _mm_cvtpd_epi32(_mm_loadu_pd(x + i + 2));
        const __m128i four = _mm_unpacklo_epi64(low, high);
        _mm_storel_epi64((__m128i *)(y + i), _mm_packs_epi32(four, four));
    }
#endif
    for (; i < n; i++)
        y[i] = round_double(x[i]);
}

static void widen(const int16_t *restrict x, double *restrict y, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++)
        y[i] = (double)x[i];
}

/* How many samples changed when they were held: two bits each in ``same`` are not set. */
static inline int64_t held_of(uint32_t same)
{
    int64_t held = 0;
    for (same = ~same; same; same >>= 2)
        held += same & 1;
    return held;
}

/* noise = bus, rounded; x += noise, held inside int16; returns how many samples were held. */
static int64_t bus_finish(const float *restrict bus, int16_t *restrict noise, int16_t *restrict x,
                          int64_t n)
{
    int64_t held = 0, i = 0;
    /* The processor rounds to even by default, as round_float does. */
#if defined(LINE_WIDE)
    for (; i + 16 <= n; i += 16) {
        const __m256i low = _mm256_cvtps_epi32(_mm256_loadu_ps(bus + i));
        const __m256i high = _mm256_cvtps_epi32(_mm256_loadu_ps(bus + i + 8));
        /* Packs within halves, so the two middle quarters change places. */
        const __m256i y = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);
        const __m256i before = _mm256_loadu_si256((const __m256i *)(x + i));
        const __m256i sum = _mm256_adds_epi16(before, y);
        const __m256i same = _mm256_cmpeq_epi16(sum, _mm256_add_epi16(before, y));
        const uint32_t bits = (uint32_t)_mm256_movemask_epi8(same);
        if (bits != 0xffffffffu)
            held += held_of(bits);
        _mm256_storeu_si256((__m256i *)(noise + i), y);
        _mm256_storeu_si256((__m256i *)(x + i), sum);
    }
#endif
#if DUPLEX_SSE2
    for (; i + 8 <= n; i += 8) {
        const __m128i low = _mm_cvtps_epi32(_mm_loadu_ps(bus + i));
        const __m128i high = _mm_cvtps_epi32(_mm_loadu_ps(bus + i + 4));
        const __m128i y = _mm_packs_epi32(low, high);
        const __m128i before = _mm_loadu_si128((const __m128i *)(x + i));
        const __m128i sum = _mm_adds_epi16(before, y);
        const __m128i same = _mm_cmpeq_epi16(sum, _mm_add_epi16(before, y));
        const uint32_t bits = (uint32_t)_mm_movemask_epi8(same) | 0xffff0000u;
        if (bits != 0xffffffffu)
            held += held_of(bits);
        _mm_storeu_si128((__m128i *)(noise + i), y);
        _mm_storeu_si128((__m128i *)(x + i), sum);
    }
#endif
    for (; i < n; i++) {
        int32_t sum;
        noise[i] = round_float(bus[i]);
        sum = (int32_t)x[i] + noise[i];
        x[i] = hold16(sum);
        held += sum != x[i];
    }
    return held;
}

/* y += x * gain, or y = x * gain for the first; the gain is that of sample ``at`` of its
 * block and on. */
static void add_floats(float *restrict y, const float *restrict x, int64_t n,
                       const line_ramp *r, int64_t at, int64_t block, int first)
{
    const float from = r->from, slope = (r->to - r->from) / (float)block;
    int64_t i;
    if (first && r->from == r->to)
        for (i = 0; i < n; i++)
            y[i] = x[i] * from;
    else if (first)
        for (i = 0; i < n; i++)
            y[i] = x[i] * (from + slope * (float)(int32_t)(at + i));
    else
        for (i = 0; i < n; i++)
            y[i] += x[i] * (from + slope * (float)(int32_t)(at + i));
}

static void add_pcm(float *restrict y, const int16_t *restrict x, int64_t n,
                    const line_ramp *r, int64_t at, int64_t block, int first)
{
    const float from = r->from, slope = (r->to - r->from) / (float)block;
    int64_t i;
    if (first && r->from == r->to)
        for (i = 0; i < n; i++)
            y[i] = (float)x[i] * from;
    else if (first)
        for (i = 0; i < n; i++)
            y[i] = (float)x[i] * (from + slope * (float)(int32_t)(at + i));
    else
        for (i = 0; i < n; i++)
            y[i] += (float)x[i] * (from + slope * (float)(int32_t)(at + i));
}

static inline float ramp_at(const line_ramp *r, int64_t at, int64_t block)
{
    return r->from + (r->to - r->from) / (float)block * (float)(int32_t)at;
}
