/* A microphone that is less than good: band, turning away, level, offset, clipping, few bits.
 *
 * Turning away is drawn when an utterance begins and cross-faded; automatic gain is
 * settled at every 20 ms block and a straight line between. Included by _chain.h only.
 */

#define AGC_TARGET 3276.8 /* -20 dBov */
#define AGC_GATE 104.0    /* -50 dBov: quieter blocks move nothing */
#define AGC_MOST 10.0f
#define AGC_LEAST 0.1f

static void microphone_begin_block(line_microphone *m, int64_t block)
{
    float gain = m->agc_ramp.to;
    const double level = sqrt((double)m->agc_energy / (double)block);
    m->agc_energy = 0;
    m->agc_ramp.from = gain;
    if (level >= AGC_GATE) {
        float wanted = (float)(AGC_TARGET / level);
        wanted = wanted > AGC_MOST ? AGC_MOST : wanted < AGC_LEAST ? AGC_LEAST : wanted;
        gain += (wanted - gain) * (wanted < gain ? 0.3f : 0.02f);
    }
    m->agc_ramp.to = gain;
}

/* An utterance began in the block before ``at``: turn away in it, or do not. */
static void microphone_draw(line_microphone *m, int64_t at, int64_t block)
{
    const uint64_t random = draw(m->key, (uint64_t)(at / block));
    if (random > m->muffle_below || at < m->muffle_end)
        return;
    m->muffle_start = at + draw_below(draw(m->key, ~(uint64_t)(at / block)), 30 * block);
    m->muffle_end = m->muffle_start + 25 * block;
}

/* How far turned away at a sample, 0 to 1. */
static inline double muffled(const line_microphone *m, int64_t at)
{
    const int64_t in = at - m->muffle_start, out = m->muffle_end - at;
    const int64_t near = in < out ? in : out;
    if (near <= 0)
        return 0.0;
    return near >= m->muffle_fade ? 1.0 : (double)near / (double)m->muffle_fade;
}

static void microphone_muffle(line_microphone *m, double *signal, double *dull, int64_t at,
                              int64_t n)
{
    int64_t i;
    memcpy(dull, signal, (size_t)n * sizeof(double));
    cascade_run(&m->muffled, dull, n);
    if (at + n <= m->muffle_start || at >= m->muffle_end)
        return;
    for (i = 0; i < n; i++)
        signal[i] = signal[i] + muffled(m, at + i) * (dull[i] - signal[i]);
}

static void microphone_convert(const line_microphone *m, int16_t *x, int64_t n)
{
    const int32_t dc = m->dc, clip = m->clip, bits = m->lost_bits;
    int64_t i;
    if (dc == 0 && clip >= 32768 && bits == 0)
        return;
    for (i = 0; i < n; i++) {
        int32_t v = (int32_t)x[i] + dc;
        v = v > clip ? clip : v < -clip ? -clip : v;
        v = bits ? ((v + (1 << (bits - 1))) >> bits) * (1 << bits) : v;
        x[i] = hold16(v);
    }
}

/* ``signal`` and ``dull`` have room for n. */
static void microphone_run(line_microphone *m, int16_t *x, double *signal, double *dull,
                           int64_t at, int64_t n, int64_t block)
{
    int64_t i;
    if (m->band.n == 0 && m->muffle_below == 0 && !m->agc && m->gain == 1.0f) {
        microphone_convert(m, x, n);
        return;
    }
    widen(x, signal, n);
    cascade_run(&m->band, signal, n);
    if (m->muffle_below)
        microphone_muffle(m, signal, dull, at, n);
    if (m->agc) {
        for (i = 0; i < n; i++)
            signal[i] *= (double)ramp_at(&m->agc_ramp, at % block + i, block);
        /* Listens to what comes before its own gain, as the input is what it levels. */
        m->agc_energy += duplex_energy(x, n);
    }
    if (m->gain != 1.0f)
        for (i = 0; i < n; i++)
            signal[i] *= (double)m->gain;
    round_doubles(signal, x, n);
    microphone_convert(m, x, n);
}
