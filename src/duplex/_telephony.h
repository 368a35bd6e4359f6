/* A telephone line: down to 8 kHz, the band, the codec's steps, and up again.
 *
 * Both conversions are one linear-phase filter in integers, so a tone above 4.6 kHz is
 * gone before it can fold down and no image of the band comes back. Sample i of
 * the line takes the 8 kHz samples up to i / factor, so nothing is waited for; the
 * delay is the length of the filter less one. Included by _chain.h only.
 */

static inline int32_t phase_scalar(const int16_t *z, const int16_t *h)
{
    int32_t sum = 0;
    int k;
    for (k = 0; k < LINE_PHASE; k++)
        sum += (int32_t)z[k] * (int32_t)h[k];
    return sum;
}

static inline int16_t from_q14(int32_t sum)
{
    return hold16((sum + (1 << 13)) >> 14);
}

/* n samples of one phase, ``factor`` apart: output m is of z[m] to z[m + LINE_PHASE - 1]. */
static void interpolate(const int16_t *z, const int16_t *h, int factor, int16_t *y, int64_t n)
{
    int64_t m = 0;
#if defined(LINE_WIDE)
    for (; m + 8 <= n; m += 8) {
        __m256i low = _mm256_setzero_si256(), high = low;
        int32_t sums[8];
        int k;
        for (k = 0; k < LINE_PHASE; k += 2) {
            const __m128i a = _mm_loadu_si128((const __m128i *)(z + m + k));
            const __m128i b = _mm_loadu_si128((const __m128i *)(z + m + k + 1));
            const __m256i pairs =
                _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
            int32_t two;
            memcpy(&two, h + k, sizeof two);
            if (k & 2)
                high = _mm256_add_epi32(high, _mm256_madd_epi16(pairs, _mm256_set1_epi32(two)));
            else
                low = _mm256_add_epi32(low, _mm256_madd_epi16(pairs, _mm256_set1_epi32(two)));
        }
        _mm256_storeu_si256((__m256i *)sums, _mm256_add_epi32(low, high));
        for (k = 0; k < 8; k++)
            y[(m + k) * factor] = from_q14(sums[k]);
    }
#elif DUPLEX_SSE2
    for (; m + 8 <= n; m += 8) {
        __m128i low = _mm_setzero_si128(), high = low;
        int32_t sums[8];
        int k;
        for (k = 0; k < LINE_PHASE; k += 2) {
            const __m128i a = _mm_loadu_si128((const __m128i *)(z + m + k));
            const __m128i b = _mm_loadu_si128((const __m128i *)(z + m + k + 1));
            __m128i tap;
            int32_t two;
            memcpy(&two, h + k, sizeof two);
            tap = _mm_set1_epi32(two);
            low = _mm_add_epi32(low, _mm_madd_epi16(_mm_unpacklo_epi16(a, b), tap));
            high = _mm_add_epi32(high, _mm_madd_epi16(_mm_unpackhi_epi16(a, b), tap));
        }
        _mm_storeu_si128((__m128i *)sums, low);
        _mm_storeu_si128((__m128i *)(sums + 4), high);
        for (k = 0; k < 8; k++)
            y[(m + k) * factor] = from_q14(sums[k]);
    }
#endif
    for (; m < n; m++)
        y[m * factor] = from_q14(phase_scalar(z + m, h));
}

static void codec_steps(const int16_t *steps, const int16_t *x, int16_t *y, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++)
        y[i] = steps[(x[i] >> 2) + 8192];
}

/* The 8 kHz part: band, gain, codec. */
static void telephony_narrow(line_telephony *t, int16_t *z, int64_t n)
{
    double signal[LINE_BLOCK];
    const double gain = t->gain;
    int64_t i;
    widen(z, signal, n);
    cascade_run(&t->band, signal, n);
    for (i = 0; i < n; i++)
        signal[i] *= gain;
    round_doubles(signal, z, n);
    codec_steps(t->steps, z, z, n);
}

static void telephony_run(line_telephony *t, int16_t *x, int64_t at, int64_t n)
{
    const int64_t factor = t->factor, lead = t->span - 1;
    const int64_t first = (at + factor - 1) / factor; /* group that begins at or after at */
    const int64_t groups = (at + n + factor - 1) / factor - first;
    int16_t *fresh = t->narrow + LINE_PHASE;
    int phase;
    if (factor == 1) {
        telephony_narrow(t, x, n);
        return;
    }
    memcpy(t->past + lead, x, (size_t)n * sizeof(int16_t));
    if (groups > 0) {
        duplex_decimate(LINE_IS_WIDE, t->past + (first * factor - at), t->down, t->taps,
                        (int)factor, fresh, (int)((groups + 3) / 4 * 4));
        telephony_narrow(t, fresh, groups);
    }
    for (phase = 0; phase < factor; phase++) {
        /* Samples i of this phase: from the first at or after ``at`` on. */
        const int64_t m0 = (at - phase + factor - 1) / factor;
        const int64_t m1 = (at + n - phase + factor - 1) / factor;
        if (m1 > m0)
            interpolate(t->narrow + (m0 - first) + 1, t->up[phase], (int)factor,
                        x + (m0 * factor + phase - at), m1 - m0);
    }
    memmove(t->past, t->past + n, (size_t)lead * sizeof(int16_t));
    if (groups > 0)
        memmove(t->narrow, t->narrow + groups, LINE_PHASE * sizeof(int16_t));
}
