/* Whether the source speaks and how loud, learnt at the end of every 20 ms block.
 *
 * A block is loud from the RMS at which contract 2.0 calls it voiced. The active
 * level follows ITU-T P.56 method B (a two-stage envelope of 30 ms, fifteen
 * thresholds, 200 ms of hangover, 15.9 dB of margin) on sums that forget with 10 s
 * of activity and begin with 10 s at the expected level. Included by _chain.h only.
 */

#define VOICED_SQUARE 48400u /* 220 squared */
#define ENVELOPE_KEEPS 0.96721610048405 /* exp(-1 ms / 30 ms) */
#define LEVEL_KEEPS 0.99990000499983    /* exp(-1 ms / 10 s) */
#define MARGIN 38.904514499428          /* 15.9 dB as a ratio of powers */
#define HANGOVER 200

static uint64_t energy_of(const int16_t *x, int64_t n)
{
    return duplex_energy(x, n);
}

static inline void level_init(line_voice *v, double expected)
{
    int j;
    v->level = expected;
    v->fast = v->slow = 0.0;
    for (j = 0; j < 15; j++) {
        v->lengths[j] = 10000.0;
        v->squares[j] = expected * expected * 10000.0;
        v->hang[j] = HANGOVER;
    }
}

/* One millisecond is over: its mean magnitude and mean square. */
static void level_step(line_voice *v)
{
    const double n = (double)v->step;
    const double magnitude = (double)v->absolute / n, square = (double)v->square / n;
    double threshold = 1.0, before = 0.0, mean_before = 0.0;
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
    threshold = 1.0;
    for (j = 0; j < 15; j++, threshold *= 2.0) {
        const double mean = v->squares[j] / v->lengths[j];
        const double ratio = mean / (threshold * threshold);
        if (ratio < MARGIN) {
            /* At the margin between this threshold and the one below it. */
            const double part = j ? (before - MARGIN) / (before - ratio) : 1.0;
            v->level = sqrt(j ? mean_before + part * (mean - mean_before) : mean);
            break;
        }
        before = ratio;
        mean_before = mean;
    }
    v->absolute = v->square = 0;
    v->filled = 0;
}

static void voice_hear(line_voice *v, const int16_t *x, int64_t n)
{
    v->energy += energy_of(x, n);
    if (!v->follow)
        return;
    while (n > 0) {
        int64_t m = v->step - v->filled, i;
        if (m > n)
            m = n;
        for (i = 0; i < m; i++)
            v->absolute += (uint64_t)(x[i] < 0 ? -(int32_t)x[i] : x[i]);
        v->square += energy_of(x, m);
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
}
