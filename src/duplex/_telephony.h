/* A telephone line: down to 8 kHz, the band, the codec's steps, and up again.
 *
 * Both conversions are one linear-phase filter in integers, so a tone above 4.6 kHz is
 * gone before it can fold down and no image of the band comes back. Sample i of
 * the line takes the 8 kHz samples up to i / factor, so nothing is waited for; the
 * delay is the length of the filter less one. Included by _chain.h only.
 */

/* n samples of one phase: output m is of the LINE_PHASE samples from z[m] on. Two taps meet
 * two samples at once, so ``pairs`` has each sample with the next beside it. */
static void interpolate(const int16_t *z, const int32_t *pairs, const int16_t *h, int16_t *y,
                        int64_t n)
{
    int64_t m = 0;
    int k;
#if defined(LINE_WIDE)
    const __m256i half = _mm256_set1_epi32(1 << 13);
    for (; m < n; m += 8) {
        __m256i low = half, high = _mm256_setzero_si256();
        /* Two sums, so that one need not wait for the other. */
        for (k = 0; k < LINE_PHASE; k += 2) {
            __m256i *const sum = k & 2 ? &high : &low;
            int32_t two;
            memcpy(&two, h + k, sizeof two);
            *sum = _mm256_add_epi32(
                *sum, _mm256_madd_epi16(_mm256_loadu_si256((const __m256i *)(pairs + m + k)),
                                        _mm256_set1_epi32(two)));
        }
        low = _mm256_srai_epi32(_mm256_add_epi32(low, high), 14);
        _mm_storeu_si128((__m128i *)(y + m), _mm_packs_epi32(_mm256_castsi256_si128(low),
                                                             _mm256_extracti128_si256(low, 1)));
    }
    (void)z;
#elif DUPLEX_SSE2
    const __m128i half = _mm_set1_epi32(1 << 13);
    for (; m < n; m += 8) {
        __m128i low = half, high = half;
        for (k = 0; k < LINE_PHASE; k += 2) {
            int32_t two;
            __m128i taps;
            memcpy(&two, h + k, sizeof two);
            taps = _mm_set1_epi32(two);
            low = _mm_add_epi32(
                low, _mm_madd_epi16(_mm_loadu_si128((const __m128i *)(pairs + m + k)), taps));
            high = _mm_add_epi32(
                high, _mm_madd_epi16(_mm_loadu_si128((const __m128i *)(pairs + m + k + 4)), taps));
        }
        _mm_storeu_si128((__m128i *)(y + m), _mm_packs_epi32(_mm_srai_epi32(low, 14),
                                                             _mm_srai_epi32(high, 14)));
    }
    (void)z;
#else
    for (; m < n; m++) {
        int32_t sum = 1 << 13;
        for (k = 0; k < LINE_PHASE; k++)
            sum += (int32_t)z[m + k] * (int32_t)h[k];
        y[m] = hold16(sum >> 14);
    }
    (void)pairs;
#endif
}

static void pair_up(const int16_t *z, int32_t *pairs, int64_t n)
{
#if DUPLEX_SSE2
    int64_t i;
    for (i = 0; i < n; i += 8) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(z + i));
        const __m128i b = _mm_loadu_si128((const __m128i *)(z + i + 1));
        _mm_storeu_si128((__m128i *)(pairs + i), _mm_unpacklo_epi16(a, b));
        _mm_storeu_si128((__m128i *)(pairs + i + 4), _mm_unpackhi_epi16(a, b));
    }
#else
    (void)z;
    (void)pairs;
    (void)n;
#endif
}

/* The 8 kHz part: band, gain, codec. */
static void telephony_narrow(line_telephony *t, int16_t *z, double *signal,
                             int64_t n)
{
    const double gain = t->gain;
    int64_t i;
    widen(z, signal, n);
    cascade_run(&t->band, signal, n);
    for (i = 0; i < n; i++)
        signal[i] *= gain;
    round_doubles(signal, z, n);
    codec_round_trip(t->law, z, z, n);
}

/* Put the samples of all phases in order; phase p has every factor-th from starts[p] on. */
static void weave(const line_telephony *t, int16_t *x, const int64_t *starts, int64_t n)
{
    const int64_t factor = t->factor;
    int64_t m;
    int phase;
    if (factor == 3 && starts[0] == 0) {
        for (m = 0; 3 * m + 3 <= n; m++) {
            x[3 * m] = t->phases[0][m];
            x[3 * m + 1] = t->phases[1][m];
            x[3 * m + 2] = t->phases[2][m];
        }
        for (phase = 0; 3 * m + phase < n; phase++)
            x[3 * m + phase] = t->phases[phase][m];
        return;
    }
    for (phase = 0; phase < factor; phase++)
        for (m = 0; starts[phase] + m * factor < n; m++)
            x[starts[phase] + m * factor] = t->phases[phase][m];
}

static void telephony_run(line_telephony *t, int16_t *x, double *signal,
                          int64_t at, int64_t n)
{
    const int64_t factor = t->factor, lead = t->span - 1;
    const int64_t first = (at + factor - 1) / factor; /* group that begins at or after at */
    const int64_t groups = (at + n + factor - 1) / factor - first;
    int16_t *fresh = t->narrow + LINE_PHASE;
    int64_t starts[6]; /* where each phase begins */
    int phase;
    if (factor == 1) {
        telephony_narrow(t, x, signal, n);
        return;
    }
    memcpy(t->past + lead, x, (size_t)n * sizeof(int16_t));
    if (groups > 0) {
        duplex_decimate(LINE_IS_WIDE, t->past + (first * factor - at), t->down, t->taps,
                        (int)factor, fresh, (int)((groups + 3) / 4 * 4));
        telephony_narrow(t, fresh, signal, groups);
    }
    pair_up(t->narrow, t->pairs, LINE_PHASE + groups);
    for (phase = 0; phase < factor; phase++) {
        /* Samples i of this phase: from the first at or after ``at`` on. */
        const int64_t m0 = (at - phase + factor - 1) / factor;
        const int64_t m1 = (at + n - phase + factor - 1) / factor;
        starts[phase] = m0 * factor + phase - at;
        interpolate(t->narrow + (m0 - first) + 1, t->pairs + (m0 - first) + 1, t->up[phase],
                    t->phases[phase], m1 - m0);
    }
    weave(t, x, starts, n);
    memmove(t->past, t->past + n, (size_t)lead * sizeof(int16_t));
    if (groups > 0)
        memmove(t->narrow, t->narrow + groups, LINE_PHASE * sizeof(int16_t));
}
