/* Echo and reverberation: delays, some of which feed themselves.
 *
 * Within a stretch no longer than the shortest delay nothing waits for anything in
 * the same stretch, so samples are done side by side; each is the same sum wherever
 * the stretch began. Included by _chain.h only.
 */

/* What a delay gives at position ``at`` is added to x; what is fed there is ``fed``. */
static void delay_add(const line_delay *d, int16_t *x, int64_t at, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++) {
        const float copy = d->ring[(at + i - d->delay) & d->mask];
        x[i] = round_float((float)x[i] + copy * d->gain);
    }
}

static void delay_feed(line_delay *d, const int16_t *fed, int64_t at, int64_t n)
{
    int64_t i;
    for (i = 0; i < n; i++)
        d->ring[(at + i) & d->mask] =
            (float)fed[i] + d->decay * d->ring[(at + i - d->delay) & d->mask];
}

/* The speaker's own copy: read, then fed with what came in, at most a delay at a time. */
static void echo_run(line_delay *d, int16_t *x, int64_t at, int64_t n)
{
    int16_t came[LINE_BLOCK];
    while (n > 0) {
        const int64_t m = n < d->delay ? n : d->delay;
        memcpy(came, x, (size_t)m * sizeof(int16_t));
        delay_add(d, x, at, m);
        delay_feed(d, came, at, m);
        x += m;
        at += m;
        n -= m;
    }
}

/* Eight delays through a Householder reflection (Jot and Chaigne 1991); ``wet`` holds the sum. */
static void reverb_step(line_reverb *r, const double *x, double *wet, int64_t at, int64_t n)
{
    double out[LINE_LINES][LINE_BLOCK];
    int64_t i;
    int k;
    for (k = 0; k < LINE_LINES; k++)
        for (i = 0; i < n; i++)
            out[k][i] = r->rings[k][(at + i - r->delays[k]) & r->mask];
    for (i = 0; i < n; i++) {
        wet[i] = ((out[0][i] - out[1][i]) + (out[2][i] - out[3][i])) +
                 ((out[4][i] - out[5][i]) + (out[6][i] - out[7][i]));
    }
    for (i = 0; i < n; i++) {
        const double sum = ((out[0][i] + out[1][i]) + (out[2][i] + out[3][i])) +
                           ((out[4][i] + out[5][i]) + (out[6][i] + out[7][i]));
        for (k = 0; k < LINE_LINES; k++)
            r->rings[k][(at + i) & r->mask] = r->gains[k] * (out[k][i] - 0.25 * sum) + x[i];
    }
}

static void reverb_run(line_reverb *r, double *signal, double *wet, int64_t at, int64_t n)
{
    int64_t i, done = 0;
    while (done < n) {
        const int64_t m = n - done < r->delays[0] ? n - done : r->delays[0];
        reverb_step(r, signal + done, wet + done, at + done, m);
        done += m;
    }
    for (i = 0; i < n; i++)
        signal[i] = signal[i] + r->wet * wet[i];
}
