/* Whether the source speaks and how loud, learnt at the end of every 20 ms block.
 *
 * A block is loud from the RMS at which contract 2.0 calls it voiced. The active
 * level is estimated after ITU-T P.56 method B (a two-stage envelope of 30 ms, fifteen
 * thresholds, 200 ms of hangover, 15.9 dB of margin) over sums that forget with 30 s
 * of activity; what gains go by begins at the expected level and follows the estimate,
 * in dB, with 10 s. Included by _chain.h only.
 */

#define VOICED_SQUARE 48400u            /* 220 squared */
#define ENVELOPE_KEEPS 0.96721610048405 /* exp(-1 ms / 30 ms) */
#define LEVEL_KEEPS 0.99996666722221    /* exp(-1 ms / 30 s) */
#define FOLLOWS 0.00199800133267        /* 1 - exp(-20 ms / 10 s) */
#define MARGIN 38.904514499428          /* 15.9 dB as a ratio of powers */
#define HANGOVER 200
#define LEAST_ACTIVE 500.0              /* ms before the estimate is believed */

static inline void level_init(line_voice *v, double expected)
{
    int j;
    v->level = expected;
    for (j = 0; j < 15; j++)
        v->hang[j] = HANGOVER;
}

/* ln x for x > 0: the exponent, and the series of the inverse hyperbolic tangent. */
static double natural_log(double x)
{
    uint64_t bits;
    int64_t exponent;
    double s, square;
    memcpy(&bits, &x, sizeof bits);
    exponent = (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFu) | (1023ull << 52);
    memcpy(&x, &bits, sizeof bits);
    s = (x - 1.0) / (x + 1.0);
    square = s * s;
    return (double)exponent * 0.69314718055994531 +
           2.0 * s * (1.0 + square * (1.0 / 3 + square * (0.2 + square * (1.0 / 7 + square / 9))));
}

/* The level at the margin above its own threshold, between two of those counted. */
static void level_estimate(line_voice *v)
{
    double threshold = 1.0, before = 0.0, mean_before = 0.0;
    int j;
    for (j = 0; j < 15 && v->lengths[j] >= LEAST_ACTIVE; j++, threshold *= 2.0) {
        const double mean = v->squares[j] / v->lengths[j];
        const double ratio = mean / (threshold * threshold);
        if (ratio < MARGIN) {
            const double part = j ? (before - MARGIN) / (before - ratio) : 1.0;
            v->estimate = sqrt(j ? mean_before + part * (mean - mean_before) : mean);
            return;
        }
        before = ratio;
        mean_before = mean;
    }
}

/* One millisecond is over: its mean magnitude and mean square. */
static void level_step(line_voice *v)
{
    const double n = (double)v->step;
    const double magnitude = (double)v->absolute / n, square = (double)v->square / n;
    double threshold = 1.0;
    int j;
    v->fast = ENVELOPE_KEEPS * v->fast + (1.0 - ENVELOPE_KEEPS) * magnitude;
    v->slow = ENVELOPE_KEEPS * v->slow + (1.0 - ENVELOPE_KEEPS) * v->fast;
    for (j = 0; j < 15; j++, threshold *= 2.0) {
        if (v->slow >= threshold)
            v->hang[j] = 0;
        else if (v->hang[j] < HANGOVER)
            v->hang[j]++;
        if (v->hang[j] < HANGOVER) {
            v->squares[j] = LEVEL_KEEPS * v->squares[j] + square;
            v->lengths[j] = LEVEL_KEEPS * v->lengths[j] + 1.0;
        }
    }
    v->absolute = v->square = 0;
    v->filled = 0;
}

/* A block is over: go a little of the way to the estimate, by a series of the exponential. */
static void level_follow(line_voice *v)
{
    double way;
    level_estimate(v);
    if (v->estimate <= 0.0)
        return;
    way = FOLLOWS * natural_log(v->estimate / v->level);
    v->level = v->level * (1.0 + way * (1.0 + way * (0.5 + way / 6.0)));
}

static void voice_hear(line_voice *v, const int16_t *x, int64_t n)
{
    v->energy += duplex_energy_of(LINE_IS_WIDE, x, n);
    if (!v->follow)
        return;
    while (n > 0) {
        int64_t m = v->step - v->filled, i;
        if (m > n)
            m = n;
        for (i = 0; i < m; i++)
            v->absolute += (uint64_t)(x[i] < 0 ? -(int32_t)x[i] : x[i]);
        v->square += duplex_energy(x, m);
        v->filled += m;
        if (v->filled == v->step)
            level_step(v);
        x += m;
        n -= m;
    }
}

/* Blocks of quiet before which a loud one begins an utterance. */
#define UTTERANCE_QUIET 15

static void voice_end_block(line_voice *v, int64_t block)
{
    const int loud = v->energy >= VOICED_SQUARE * (uint64_t)block;
    v->onset = loud && v->quiet >= UTTERANCE_QUIET;
    v->quiet = loud ? 0 : v->quiet + 1;
    v->energy = 0;
    if (v->follow)
        level_follow(v);
}
