/* White noise made of counted random numbers, at a gain that is a straight line.
 *
 * A run of LINE_WHITE samples is eight lanes of two generators each, seeded from the key
 * and the run's number, so a run can be made without those before it. All of it is
 * integers up to the last conversion, which is exact. Included by _chain.h only.
 */

/* Marsaglia's xorshift of 32 bits. */
#define XORSHIFT(s) ((s) ^= (s) << 13, (s) ^= (s) >> 17, (s) ^= (s) << 5)

/* Each sample is the sum of four 16-bit numbers less its mean, so it lies within +-131070
 * and its variance is (65536^2 - 1) / 3. */
#define WHITE_MEAN 131070

static inline void white_seeds(uint64_t key, uint64_t run, uint32_t *a, uint32_t *b)
{
    int lane;
    for (lane = 0; lane < 8; lane++) {
        const uint64_t seed = draw(key, run * 8 + (uint64_t)lane);
        a[lane] = (uint32_t)seed | 1u;
        b[lane] = (uint32_t)(seed >> 32) | 1u;
    }
}

/* A gain from + slope * (at + k); a slope of 0 leaves it out. */
typedef struct {
    float from, slope;
    int32_t at;
} white_gain;

#if defined(LINE_WIDE)

typedef __m256i white_words;
enum { WHITE_LANES = 8 };
#define WHITE_OP(name) _mm256_##name
#define WHITE_XOR _mm256_xor_si256
#define WHITE_FLOATS __m256
#define WHITE_LOAD(p) _mm256_loadu_si256((const __m256i *)(p))

#elif DUPLEX_SSE2

typedef __m128i white_words;
enum { WHITE_LANES = 4 };
#define WHITE_OP(name) _mm_##name
#define WHITE_XOR _mm_xor_si128
#define WHITE_FLOATS __m128
#define WHITE_LOAD(p) _mm_loadu_si128((const __m128i *)(p))

#endif

#if DUPLEX_SSE2

static inline white_words white_next(white_words s)
{
    s = WHITE_XOR(s, WHITE_OP(slli_epi32)(s, 13));
    s = WHITE_XOR(s, WHITE_OP(srli_epi32)(s, 17));
    return WHITE_XOR(s, WHITE_OP(slli_epi32)(s, 5));
}

/* Halves as signed numbers are each 32768 less, 2 more than the mean of four in all. */
static inline WHITE_FLOATS white_value(white_words a, white_words b)
{
    const white_words sign = WHITE_OP(set1_epi32)((int)0x80008000u), one = WHITE_OP(set1_epi16)(1);
    white_words sum = WHITE_OP(madd_epi16)(WHITE_XOR(a, sign), one);
    sum = WHITE_OP(add_epi32)(sum, WHITE_OP(madd_epi16)(WHITE_XOR(b, sign), one));
    return WHITE_OP(cvtepi32_ps)(WHITE_OP(add_epi32)(sum, WHITE_OP(set1_epi32)(2)));
}

static void white_run(uint64_t key, uint64_t run, const white_gain *gain, float *out)
{
    enum { PARTS = 8 / WHITE_LANES };
    const WHITE_FLOATS from = WHITE_OP(set1_ps)(gain->from), slope = WHITE_OP(set1_ps)(gain->slope);
    const white_words step = WHITE_OP(set1_epi32)(8);
    const int32_t first[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    white_words a[PARTS], b[PARTS], at[PARTS];
    uint32_t seeds[2][8];
    int k, p;
    white_seeds(key, run, seeds[0], seeds[1]);
    for (p = 0; p < PARTS; p++) {
        a[p] = WHITE_LOAD(seeds[0] + p * WHITE_LANES);
        b[p] = WHITE_LOAD(seeds[1] + p * WHITE_LANES);
        at[p] = WHITE_OP(add_epi32)(WHITE_LOAD(first + p * WHITE_LANES),
                                    WHITE_OP(set1_epi32)(gain->at));
    }
    if (gain->slope == 0.0f) {
        for (k = 0; k < LINE_WHITE; k += 8)
            for (p = 0; p < PARTS; p++) {
                a[p] = white_next(a[p]);
                b[p] = white_next(b[p]);
                WHITE_OP(storeu_ps)(out + k + p * WHITE_LANES,
                                    WHITE_OP(mul_ps)(white_value(a[p], b[p]), from));
            }
        return;
    }
    for (k = 0; k < LINE_WHITE; k += 8)
        for (p = 0; p < PARTS; p++) {
            const WHITE_FLOATS rise = WHITE_OP(mul_ps)(slope, WHITE_OP(cvtepi32_ps)(at[p]));
            a[p] = white_next(a[p]);
            b[p] = white_next(b[p]);
            at[p] = WHITE_OP(add_epi32)(at[p], step);
            WHITE_OP(storeu_ps)(out + k + p * WHITE_LANES,
                                WHITE_OP(mul_ps)(white_value(a[p], b[p]),
                                                 WHITE_OP(add_ps)(from, rise)));
        }
}

#else

static void white_run(uint64_t key, uint64_t run, const white_gain *gain, float *out)
{
    uint32_t a[8], b[8];
    int k;
    white_seeds(key, run, a, b);
    for (k = 0; k < LINE_WHITE; k++) {
        uint32_t *const x = &a[k & 7], *const y = &b[k & 7];
        const float scale = gain->slope == 0.0f
                                ? gain->from
                                : gain->from + gain->slope * (float)(gain->at + k);
        XORSHIFT(*x);
        XORSHIFT(*y);
        out[k] = (float)((int32_t)((*x & 0xffffu) + (*x >> 16) + (*y & 0xffffu) + (*y >> 16)) -
                         WHITE_MEAN) * scale;
    }
}

#endif
