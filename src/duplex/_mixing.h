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

static void round_floats(const float *restrict x, int16_t *restrict y, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++)
        y[i] = round_float(x[i]);
}

static void round_doubles(const double *restrict x, int16_t *restrict y, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++)
        y[i] = round_double(x[i]);
}

static void widen(const int16_t *restrict x, double *restrict y, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++)
        y[i] = (double)x[i];
}

/* x += y, held inside int16; returns how many samples were held. */
static int64_t add_held(int16_t *restrict x, const int16_t *restrict y, int64_t n)
{
    int64_t held = 0, i;
    int32_t any = 0;
    for (i = 0; i < n; i++) {
        int32_t sum = (int32_t)x[i] + (int32_t)y[i];
        int16_t kept = hold16(sum);
        any |= sum ^ kept;
        x[i] = kept;
    }
    if (any)
        for (i = 0; i < n; i++)
            held += x[i] == 32767 || x[i] == -32768;
    return held;
}

/* y += x * gain, the gain that of sample ``at`` of its block and on. */
static void add_ramped(float *restrict y, const float *restrict x, int64_t n, const line_ramp *r,
                       int64_t at, int64_t block)
{
    const float from = r->from, slope = (r->to - r->from) / (float)block;
    int64_t i;
    if (r->from == r->to) {
        for (i = 0; i < n; i++)
            y[i] += x[i] * from;
        return;
    }
    for (i = 0; i < n; i++)
        y[i] += x[i] * (from + slope * (float)(int32_t)(at + i));
}

static void add_ramped_pcm(float *restrict y, const int16_t *restrict x, int64_t n,
                           const line_ramp *r, int64_t at, int64_t block)
{
    const float from = r->from, slope = (r->to - r->from) / (float)block;
    int64_t i;
    if (r->from == r->to) {
        for (i = 0; i < n; i++)
            y[i] += (float)x[i] * from;
        return;
    }
    for (i = 0; i < n; i++)
        y[i] += (float)x[i] * (from + slope * (float)(int32_t)(at + i));
}

static inline float ramp_at(const line_ramp *r, int64_t at, int64_t block)
{
    return r->from + (r->to - r->from) / (float)block * (float)(int32_t)at;
}
