/* Recursive filters of second order, two samples and two sections at a time.
 *
 * A section b(z)/(1 + a1 z^-1 + a2 z^-2) is multiplied above and below by its own
 * denominator's mirror image, which leaves one of z^-2 (scattered look-ahead, Parhi and
 * Messerschmitt 1989): five taps of the input and the outputs of two and four samples
 * ago. So two samples do not wait for each other, the next section has work while
 * one waits for itself, and each sample is still the same sum in the same order however
 * the signal was cut. Coefficients come from Python, as they are doubles that no
 * rounding here may touch. Included by _chain.h only.
 */

#if DUPLEX_SSE2

/* The last of a pair and the first of the next. */
#define BETWEEN(before, now) _mm_shuffle_pd(before, now, 1)

/* A section and its past as pairs of samples: odd[k] ends where even[k] begins. */
typedef struct {
    __m128d c[5], a2, a4;
    __m128d x2, x3, x4, y2, y4;
} section_pair;

static inline void section_load(section_pair *p, const line_section *s)
{
    int k;
    for (k = 0; k < 5; k++)
        p->c[k] = _mm_set1_pd(s->c[k]);
    p->a2 = _mm_set1_pd(s->a2);
    p->a4 = _mm_set1_pd(s->a4);
    p->x2 = _mm_loadu_pd(s->x + 2);
    p->x3 = _mm_loadu_pd(s->x + 1);
    p->x4 = _mm_loadu_pd(s->x);
    p->y2 = _mm_loadu_pd(s->y + 2);
    p->y4 = _mm_loadu_pd(s->y);
}

static inline void section_store(const section_pair *p, line_section *s)
{
    _mm_storeu_pd(s->x + 2, p->x2);
    _mm_storeu_pd(s->x, p->x4);
    _mm_storeu_pd(s->y + 2, p->y2);
    _mm_storeu_pd(s->y, p->y4);
}

/* Two samples of what a section makes of two. */
static inline __m128d section_step(section_pair *p, __m128d x)
{
    const __m128d x1 = BETWEEN(p->x2, x);
    __m128d y = _mm_mul_pd(p->c[0], x);
    y = _mm_add_pd(y, _mm_mul_pd(p->c[1], x1));
    y = _mm_add_pd(y, _mm_mul_pd(p->c[2], p->x2));
    y = _mm_add_pd(y, _mm_mul_pd(p->c[3], p->x3));
    y = _mm_add_pd(y, _mm_mul_pd(p->c[4], p->x4));
    y = _mm_add_pd(_mm_add_pd(y, _mm_mul_pd(p->a4, p->y4)), _mm_mul_pd(p->a2, p->y2));
    p->x3 = x1;
    p->x4 = p->x2;
    p->x2 = x;
    p->y4 = p->y2;
    p->y2 = y;
    return y;
}

#endif

/* The same of one sample. */
static inline double section_one(line_section *s, double x)
{
    double y = s->c[0] * x;
    y += s->c[1] * s->x[3];
    y += s->c[2] * s->x[2];
    y += s->c[3] * s->x[1];
    y += s->c[4] * s->x[0];
    y = (y + s->a4 * s->y[0]) + s->a2 * s->y[2];
    memmove(s->x, s->x + 1, 3 * sizeof(double));
    memmove(s->y, s->y + 1, 3 * sizeof(double));
    s->x[3] = x;
    s->y[3] = y;
    return y;
}

/* Filter n samples in place by sections one, and two unless it is NULL. */
static void sections_run(line_section *one, line_section *two, double *x, int64_t n)
{
    int64_t i = 0;
#if DUPLEX_SSE2
    section_pair a, b;
    section_load(&a, one);
    if (two == NULL)
        for (; i + 2 <= n; i += 2)
            _mm_storeu_pd(x + i, section_step(&a, _mm_loadu_pd(x + i)));
    else {
        section_load(&b, two);
        for (; i + 2 <= n; i += 2)
            _mm_storeu_pd(x + i, section_step(&b, section_step(&a, _mm_loadu_pd(x + i))));
        section_store(&b, two);
    }
    section_store(&a, one);
#endif
    for (; i < n; i++) {
        x[i] = section_one(one, x[i]);
        if (two != NULL)
            x[i] = section_one(two, x[i]);
    }
}

/* Filter a signal in place. */
static void cascade_run(line_cascade *cascade, double *signal, int64_t n)
{
    int k;
    for (k = 0; k < cascade->n; k += 2)
        sections_run(&cascade->sections[k], k + 1 < cascade->n ? &cascade->sections[k + 1] : NULL,
                     signal, n);
}
