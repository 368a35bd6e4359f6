/* The six bands of the webrtc detector and how loud each is.
 *
 * A tree of filters halves the bands: 0-4 kHz at 2 kHz, both halves again, and the
 * lowest twice more. Two sides go side by side, as the filters wait for their own
 * last sample and a processor can wait for several at once. Included by
 * _webrtc_model.h's users only.
 */
#include <string.h>

#if defined(__SSE2__) || defined(_M_X64)
#define DUPLEX_SSE2 1
#include <emmintrin.h>
#else
#define DUPLEX_SSE2 0
#endif

#define ALL_PASS_UPPER 20972 /* 0.64 in Q15 */
#define ALL_PASS_LOWER 5571  /* 0.17 in Q15 */
#define LOG_SCALE 24660      /* 160 log10(2) in Q9 */
#define LEAST_POWER 10       /* a frame of no more than this teaches nothing */

/* Rows of a band: a sample of either side, then the next of either. The two all-pass filters of
 * a split take one each. */
typedef int16_t webrtc_row[4];

enum { AFTER = 3 }; /* rows of zeros after the last */

/* The sum after a sample was let out. It wraps where the detector's does. */
static inline int32_t all_pass_next(int32_t x, int32_t next, int32_t out, int32_t coefficient)
{
    return (int32_t)((uint32_t)(x * 32768 + next * coefficient) -
                     (uint32_t)out * 2u * (uint32_t)coefficient);
}

/* Pass n rows through both filters of a split; behind them is a row of zeros, so that the sum
 * at the end is the state that stays. */
static inline void all_pass(webrtc_t *one, webrtc_t *two, int k, const webrtc_row *x, int n,
                            webrtc_row *y)
{
    int16_t *const states[4] = {&one->upper[k], &two->upper[k], &one->lower[k], &two->lower[k]};
    int i, lane;
#if DUPLEX_SSE2
    const int up = ALL_PASS_UPPER, low = ALL_PASS_LOWER;
    const __m128i fed_half = _mm_set_epi16(0, 16384, 0, 16384, 0, 16384, 0, 16384);
    const __m128i taps = _mm_set_epi32(low, low, up, up);
    const __m128i fed_next = _mm_or_si128(fed_half, _mm_slli_epi32(taps, 16));
    __m128i row = _mm_loadl_epi64((const __m128i *)x[0]);
    __m128i sums = _mm_set_epi32(*states[3], *states[2], *states[1], *states[0]);
    sums = _mm_add_epi32(_mm_slli_epi32(sums, 16),
                         _mm_madd_epi16(_mm_unpacklo_epi16(row, row), taps));
    for (i = 0; i < n; i++) {
        const __m128i next = _mm_loadl_epi64((const __m128i *)x[i + 1]);
        const __m128i pair = _mm_unpacklo_epi16(row, next);
        const __m128i fed = _mm_add_epi32(_mm_madd_epi16(pair, fed_next),
                                          _mm_madd_epi16(pair, fed_half));
        const __m128i out = _mm_srai_epi32(sums, 16), back = _mm_madd_epi16(out, taps);
        _mm_storel_epi64((__m128i *)y[i], _mm_packs_epi32(out, out));
        sums = _mm_sub_epi32(_mm_sub_epi32(fed, back), back);
        row = next;
    }
    sums = _mm_srai_epi32(sums, 16);
    sums = _mm_packs_epi32(sums, sums);
    for (lane = 0; lane < 4; lane++, sums = _mm_srli_si128(sums, 2))
        *states[lane] = (int16_t)_mm_cvtsi128_si32(sums);
#else
    for (lane = 0; lane < 4; lane++) {
        const int32_t coefficient = lane < 2 ? ALL_PASS_UPPER : ALL_PASS_LOWER;
        int32_t sum = *states[lane] * 65536 + coefficient * x[0][lane];
        for (i = 0; i < n; i++) {
            y[i][lane] = (int16_t)(sum >> 16);
            sum = all_pass_next(x[i][lane], x[i + 1][lane], sum >> 16, coefficient);
        }
        *states[lane] = (int16_t)(sum >> 16);
    }
#endif
}

/* Halve a band: n rows to as many samples of low and of high, and zeros after them. */
static inline void webrtc_split(webrtc_t *one, webrtc_t *two, int k, const webrtc_row *x, int n,
                                webrtc_row *low, webrtc_row *high)
{
    webrtc_row y[WEBRTC_FRAME / 2 + 1];
    int i;
    all_pass(one, two, k, x, n, y);
    memset(y[n], 0, sizeof y[n]);
    for (i = 0; i < (n + 1) / 2; i++) {
#if DUPLEX_SSE2
        const __m128i both = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)y[2 * i]),
                                               _MM_SHUFFLE(3, 1, 2, 0));
        const __m128i odd = _mm_unpackhi_epi64(both, both);
        _mm_storel_epi64((__m128i *)low[i], _mm_add_epi16(both, odd));
        _mm_storel_epi64((__m128i *)high[i], _mm_sub_epi16(both, odd));
#else
        int lane;
        for (lane = 0; lane < 4; lane++) {
            const int16_t *const from = y[2 * i + (lane >> 1)] + (lane & 1);
            low[i][lane] = (int16_t)(from[0] + from[2]);
            high[i][lane] = (int16_t)(from[0] - from[2]);
        }
#endif
    }
    memset(low[i], 0, AFTER * sizeof *low);
    memset(high[i], 0, AFTER * sizeof *high);
}

/* Without what lies below 80 Hz, of a band of 250 Hz. */
static inline void webrtc_high_pass(int16_t *state, int16_t *x, int n)
{
    int i;
    for (i = 0; i < n; i++) {
        int32_t sum = 6631 * x[i] - 13262 * state[0] + 6631 * state[1];
        state[1] = state[0];
        state[0] = x[i];
        sum += 7756 * state[2] - 5620 * state[3];
        state[3] = state[2];
        state[2] = (int16_t)(sum >> 14);
        x[i] = state[2];
    }
}

static inline int leading_zeros(uint32_t v)
{
#if defined(__GNUC__)
    return v ? __builtin_clz(v) : 32;
#else
    int n = 32;
    for (; v; v >>= 1)
        n--;
    return n;
#endif
}

/* Both sides' samples of a band, n rows of two each, and zeros up to a multiple of eight. */
static inline void take_apart(const webrtc_row *rows, int n, int16_t *x, int16_t *y)
{
    int i;
#if DUPLEX_SSE2
    for (i = 0; i < n; i += 4, x += 8, y += 8) {
        const __m128i low = _mm_loadu_si128((const __m128i *)rows[i]);
        const __m128i high = _mm_loadu_si128((const __m128i *)rows[i + 2]);
        _mm_storeu_si128((__m128i *)x,
                         _mm_packs_epi32(_mm_srai_epi32(_mm_slli_epi32(low, 16), 16),
                                         _mm_srai_epi32(_mm_slli_epi32(high, 16), 16)));
        _mm_storeu_si128((__m128i *)y,
                         _mm_packs_epi32(_mm_srai_epi32(low, 16), _mm_srai_epi32(high, 16)));
    }
#else
    for (i = 0; i < (n + 3) / 4 * 4; i++) {
        x[2 * i] = rows[i][0];
        x[2 * i + 1] = rows[i][2];
        y[2 * i] = rows[i][1];
        y[2 * i + 1] = rows[i][3];
    }
#endif
}

static inline void put_together(const int16_t *x, const int16_t *y, webrtc_row *rows)
{
    int i;
#if DUPLEX_SSE2
    for (i = 0; i < WEBRTC_FRAME; i += 8) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(x + i));
        const __m128i b = _mm_loadu_si128((const __m128i *)(y + i));
        _mm_storeu_si128((__m128i *)rows[i / 2], _mm_unpacklo_epi16(a, b));
        _mm_storeu_si128((__m128i *)rows[i / 2 + 2], _mm_unpackhi_epi16(a, b));
    }
#else
    for (i = 0; i < WEBRTC_FRAME; i++) {
        rows[i / 2][i % 2 * 2] = x[i];
        rows[i / 2][i % 2 * 2 + 1] = y[i];
    }
#endif
    memset(rows[WEBRTC_FRAME / 2], 0, sizeof *rows);
}

/* Energy of a band with n samples, of which those up to ``padded`` may be zeros, each
 * square shifted so that the sum fits; the shift is returned. */
static inline uint32_t band_energy(const int16_t *x, int n, int padded, int *shift)
{
    int16_t most = -1;
    int32_t sum = 0;
    int i, room, zeros;
    for (i = 0; i < padded; i++) {
        const int16_t magnitude = x[i] > 0 ? x[i] : (int16_t)-x[i];
        most = magnitude > most ? magnitude : most;
    }
    room = 32 - leading_zeros((uint32_t)n);
    zeros = leading_zeros((uint32_t)(most * most)) - 1;
    *shift = most == 0 || zeros > room ? 0 : room - zeros;
    if (*shift == 0)
        for (i = 0; i < padded; i++)
            sum += (int32_t)x[i] * x[i];
    else
        for (i = 0; i < padded; i++)
            sum += ((int32_t)x[i] * x[i]) >> *shift;
    return (uint32_t)sum;
}

/* Ten times the logarithm of a band's energy in Q4, with the band's offset; adds to the
 * frame's power until that is enough. */
static inline int16_t band_level(const int16_t *x, int n, int padded, int offset, int *power)
{
    int shift, normal;
    int16_t level, mantissa;
    uint32_t energy = band_energy(x, n, padded, &shift);
    if (energy == 0)
        return (int16_t)offset;
    normal = 17 - leading_zeros(energy);
    shift += normal;
    energy = normal < 0 ? energy << -normal : energy >> normal;
    mantissa = (int16_t)(14336 + ((energy & 0x3FFF) >> 4));
    level = (int16_t)(((LOG_SCALE * mantissa) >> 19) + ((shift * LOG_SCALE) >> 9));
    if (*power <= LEAST_POWER)
        *power += shift >= 0 ? LEAST_POWER + 1 : (int)(energy >> -shift);
    return (int16_t)((level < 0 ? 0 : level) + offset);
}

/* Levels of one band of both sides, whose n samples were taken apart. */
static inline void band_levels(const webrtc_row *rows, int n, int offset, int16_t *one,
                               int16_t *two, int *powers)
{
    int16_t x[24], y[24];
    const int padded = (n + 7) / 8 * 8;
    take_apart(rows, (n + 1) / 2, x, y);
    *one = band_level(x, n, padded, offset, &powers[0]);
    *two = band_level(y, n, padded, offset, &powers[1]);
}

/* The same of the lowest band, without what lies below 80 Hz. */
static inline void lowest_levels(webrtc_t *one, webrtc_t *two, const webrtc_row *rows,
                                 int16_t *a, int16_t *b, int *powers)
{
    int16_t x[8], y[8];
    take_apart(rows, 3, x, y);
    webrtc_high_pass(one->high_pass, x, 5);
    webrtc_high_pass(two->high_pass, y, 5);
    *a = band_level(x, 5, 5, 368, &powers[0]);
    *b = band_level(y, 5, 5, 368, &powers[1]);
}

/* The levels of both sides; powers[k] is above LEAST_POWER when there is something to hear. */
static void webrtc_features(webrtc_t *one, const int16_t *x, webrtc_t *two, const int16_t *y,
                            int16_t (*levels)[WEBRTC_MODEL], int *powers)
{
    webrtc_row whole[40 + AFTER], halves[2][20 + AFTER], quarters[4][10 + AFTER];
    webrtc_row eighths[2][5 + AFTER], lowest[2][3 + AFTER];
    int16_t *const a = levels[0], *const b = levels[1];
    int k;
    put_together(x, y, whole);
    webrtc_split(one, two, 0, whole, 40, halves[0], halves[1]);
    webrtc_split(one, two, 1, halves[1], 20, quarters[2], quarters[3]);
    webrtc_split(one, two, 2, halves[0], 20, quarters[0], quarters[1]);
    webrtc_split(one, two, 3, quarters[0], 10, eighths[0], eighths[1]);
    webrtc_split(one, two, 4, eighths[0], 5, lowest[0], lowest[1]);
    powers[0] = powers[1] = 0;
    band_levels(quarters[3], 20, 176, &a[5], &b[5], powers);
    band_levels(quarters[2], 20, 176, &a[4], &b[4], powers);
    band_levels(quarters[1], 20, 176, &a[3], &b[3], powers);
    band_levels(eighths[1], 10, 272, &a[2], &b[2], powers);
    band_levels(lowest[1], 5, 368, &a[1], &b[1], powers);
    lowest_levels(one, two, lowest[0], &a[0], &b[0], powers);
    for (k = 0; k < 2; k++)
        memcpy(levels[k] + WEBRTC_ROW, levels[k], WEBRTC_ROW * sizeof **levels);
}
