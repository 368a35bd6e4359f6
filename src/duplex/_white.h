/* White noise made of counted random numbers, at a gain that is a straight line.
 *
 * A run of LINE_WHITE samples is eight lanes of two generators each, seeded from the key
 * and the run's number, so a run can be made without those before it. All of it is
 * integers up to the last conversion, which is exact. Included by _chain.h only.
 */

/* Marsaglia's xorshift of 32 bits. */
#define XORSHIFT(s) ((s) ^= (s) << 13, (s) ^= (s) >> 17, (s) ^= (s) << 5)

/* A word is two signed 16-bit numbers, and two words make four samples, eight apart: the sum
 * of all four numbers less its mean, and the three differences of two of them and the other
 * two. No two of these are correlated. Each lies within +-131070; its variance is
 * (65536^2 - 1) / 3. */
#define WHITE_MEAN -2
enum { WHITE_APART = 8, WHITE_GROUP = 4 * WHITE_APART };

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

/* The two numbers of a word added up, and the lower less the upper. */
static inline white_words white_sum(white_words s)
{
    return WHITE_OP(madd_epi16)(s, WHITE_OP(set1_epi16)(1));
}

static inline white_words white_difference(white_words s)
{
    return WHITE_OP(madd_epi16)(s, WHITE_OP(set1_epi32)((int)0xffff0001u));
}

static inline void white_lanes(uint64_t key, uint64_t run, const white_gain *gain, int slopes,
                               float *out)
{
    enum { PARTS = 8 / WHITE_LANES };
    const WHITE_FLOATS from = WHITE_OP(set1_ps)(gain->from), slope = WHITE_OP(set1_ps)(gain->slope);
    const white_words step = WHITE_OP(set1_epi32)(WHITE_APART);
    const white_words mean = WHITE_OP(set1_epi32)(WHITE_MEAN);
    const int32_t first[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    white_words a[PARTS], b[PARTS], at[PARTS];
    uint32_t seeds[2][8];
    int k, p, j;
    white_seeds(key, run, seeds[0], seeds[1]);
    for (p = 0; p < PARTS; p++) {
        a[p] = WHITE_LOAD(seeds[0] + p * WHITE_LANES);
        b[p] = WHITE_LOAD(seeds[1] + p * WHITE_LANES);
        at[p] = WHITE_OP(add_epi32)(WHITE_LOAD(first + p * WHITE_LANES),
                                    WHITE_OP(set1_epi32)(gain->at));
    }
    for (k = 0; k < LINE_WHITE; k += WHITE_GROUP)
        for (p = 0; p < PARTS; p++) {
            white_words values[4], x, y;
            a[p] = white_next(a[p]);
            b[p] = white_next(b[p]);
            x = white_sum(a[p]);
            y = white_sum(b[p]);
            values[0] = WHITE_OP(sub_epi32)(WHITE_OP(add_epi32)(x, y), mean);
            values[1] = WHITE_OP(sub_epi32)(x, y);
            x = white_difference(a[p]);
            y = white_difference(b[p]);
            values[2] = WHITE_OP(add_epi32)(x, y);
            values[3] = WHITE_OP(sub_epi32)(x, y);
            for (j = 0; j < 4; j++) {
                float *const to = out + k + j * WHITE_APART + p * WHITE_LANES;
                WHITE_FLOATS scale = from;
                if (slopes) {
                    scale = WHITE_OP(add_ps)(
                        from, WHITE_OP(mul_ps)(slope, WHITE_OP(cvtepi32_ps)(at[p])));
                    at[p] = WHITE_OP(add_epi32)(at[p], step);
                }
                WHITE_OP(storeu_ps)(to, WHITE_OP(mul_ps)(WHITE_OP(cvtepi32_ps)(values[j]), scale));
            }
        }
}

static void white_run(uint64_t key, uint64_t run, const white_gain *gain, float *out)
{
    if (gain->slope == 0.0f)
        white_lanes(key, run, gain, 0, out);
    else
        white_lanes(key, run, gain, 1, out);
}

#else

static void white_run(uint64_t key, uint64_t run, const white_gain *gain, float *out)
{
    uint32_t a[8], b[8];
    int k;
    white_seeds(key, run, a, b);
    for (k = 0; k < LINE_WHITE; k++) {
        const int lane = k % WHITE_APART, way = k / WHITE_APART % 4;
        const float scale = gain->slope == 0.0f
                                ? gain->from
                                : gain->from + gain->slope * (float)(gain->at + k);
        int32_t x, y;
        if (way == 0) {
            XORSHIFT(a[lane]);
            XORSHIFT(b[lane]);
        }
        x = way < 2 ? (int16_t)a[lane] + (int16_t)(a[lane] >> 16)
                    : (int16_t)a[lane] - (int16_t)(a[lane] >> 16);
        y = way < 2 ? (int16_t)b[lane] + (int16_t)(b[lane] >> 16)
                    : (int16_t)b[lane] - (int16_t)(b[lane] >> 16);
        out[k] = (float)(way % 2 ? x - y : x + y - (way ? 0 : WHITE_MEAN)) * scale;
    }
}

#endif
