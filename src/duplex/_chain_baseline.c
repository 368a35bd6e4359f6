/* The chain of effects for any processor. */
#define CHAIN(name) name##_baseline
#define LINE_IS_WIDE 0
#include "_chain.h"

line_run_fn line_run_baseline_fn(void)
{
    return line_run_baseline;
}

line_hear_fn line_hear_baseline_fn(void)
{
    return line_hear_baseline;
}

void line_init(line_t *l, int32_t rate_hz, double expected)
{
    l->block = rate_hz / 50;
    l->expected = expected;
    l->voice.step = rate_hz / 1000;
    level_init(&l->voice, expected);
}

/* The energy of the wet answer to an impulse of 1, for as long as n samples; leaves no trace. */
double line_reverb_energy(line_reverb *r, int64_t n)
{
    double impulse[LINE_BLOCK] = {1.0}, wet[LINE_BLOCK], energy = 0.0;
    int64_t at = 0, i;
    int k;
    while (at < n) {
        const int64_t m = r->delays[0] < LINE_BLOCK ? r->delays[0] : LINE_BLOCK;
        reverb_step(r, impulse, wet, at, m);
        for (i = 0; i < m; i++)
            energy += wet[i] * wet[i];
        impulse[0] = 0.0;
        at += m;
    }
    for (k = 0; k < LINE_LINES; k++)
        memset(r->rings[k], 0, (size_t)(r->mask + 1) * sizeof(double));
    return energy;
}
