/* Recursive filters of second order, four samples at a time.
 *
 * A section b(z)/(1 + a1 z^-1 + a2 z^-2) is multiplied above and below by what makes
 * its denominator one of z^-4 (scattered look-ahead, Parhi and Messerschmitt 1989):
 * nine taps of the input and the outputs of four and eight samples ago. So four
 * samples do not wait for each other, and each is still the same sum in the same
 * order however the signal was cut. Coefficients come from Python, as they are
 * doubles that no rounding here may touch. Included by _chain.h only.
 */

/* y of one sample, given the input and output that led up to it. */
static inline double section_one(const line_section *s, const double *x, double y4, double y8)
{
    double sum = s->c[0] * x[0];
    int k;
    for (k = 1; k < 9; k++)
        sum += s->c[k] * x[-k];
    return (sum + s->a8 * y8) + s->a4 * y4;
}

#if defined(__GNUC__)
typedef double four __attribute__((vector_size(32), aligned(8)));
typedef double four_in_memory __attribute__((vector_size(32), aligned(8), may_alias));

#define load_four(x) (*(const four_in_memory *)(x))
#endif

/* x and y have room for eight samples before them. */
static void section_run(line_section *s, double *x, double *y, int64_t n)
{
    int64_t i = 0;
    int k;
    for (k = 0; k < 8; k++) {
        x[k - 8] = s->x[k];
        y[k - 8] = s->y[k];
    }
#if defined(__GNUC__)
    {
        four y8 = load_four(y - 8), y4 = load_four(y - 4);
        const double c0 = s->c[0], c1 = s->c[1], c2 = s->c[2], c3 = s->c[3], c4 = s->c[4];
        const double c5 = s->c[5], c6 = s->c[6], c7 = s->c[7], c8 = s->c[8];
        const double a4 = s->a4, a8 = s->a8;
        for (; i + 4 <= n; i += 4) {
            four sum = c0 * load_four(x + i);
            sum += c1 * load_four(x + i - 1);
            sum += c2 * load_four(x + i - 2);
            sum += c3 * load_four(x + i - 3);
            sum += c4 * load_four(x + i - 4);
            sum += c5 * load_four(x + i - 5);
            sum += c6 * load_four(x + i - 6);
            sum += c7 * load_four(x + i - 7);
            sum += c8 * load_four(x + i - 8);
            sum = (sum + a8 * y8) + a4 * y4;
            *(four_in_memory *)(y + i) = sum;
            y8 = y4;
            y4 = sum;
        }
    }
#endif
    for (; i < n; i++)
        y[i] = section_one(s, x + i, y[i - 4], y[i - 8]);
    for (k = 0; k < 8; k++) {
        s->x[k] = x[n + k - 8];
        s->y[k] = y[n + k - 8];
    }
}

/* Filter ``signal`` of at most LINE_BLOCK samples by way of ``other``; return where the result
 * is. Both have room for eight samples before them. */
static double *cascade_run(line_cascade *cascade, double *signal, double *other, int64_t n)
{
    int k;
    for (k = 0; k < cascade->n; k++) {
        double *const filtered = other;
        section_run(&cascade->sections[k], signal, other, n);
        other = signal;
        signal = filtered;
    }
    return signal;
}
