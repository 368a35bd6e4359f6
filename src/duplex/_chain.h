/* The chain of effects of one leg, in the order in which they compose.
 *
 * Compiled twice, as _chain_baseline.c and _chain_v3.c, which name the functions and
 * say what the processor has; both give the same bytes. A stretch is cut at 20 ms
 * blocks of the absolute position, at whose ends everything that is decided is
 * decided, so neither ticks nor chunks show.
 *
 * The caller's own sounds come first, as they leave the same mouth, then the room's
 * noise, the ways sound takes in the room, the microphone, the telephone and the
 * network.
 */
#include <math.h>
#include <string.h>

#if defined(_MSC_VER)
#define restrict __restrict
#endif

#include "_kernels.h"
#include "_line.h"

#include "_counter.h"
#include "_mixing.h"
#include "_white.h"
#include "_filters.h"
#include "_level.h"
#include "_noise.h"
#include "_room.h"
#include "_microphone.h"
#include "_codec.h"
#include "_telephony.h"
#include "_loss.h"

static void chain_begin_block(line_t *l)
{
    const int64_t block = l->position / l->block;
    int k;
    for (k = 0; k < l->n_sounds; k++)
        sounds_begin_block(l, &l->sounds[k], l->expected);
    for (k = 0; k < l->n_beds; k++)
        bed_begin_block(&l->beds[k], &l->voice, l->expected, block);
    if (l->microphone.on) {
        if (l->microphone.agc)
            microphone_begin_block(&l->microphone, l->block);
        if (l->voice.onset && l->microphone.muffle_below)
            microphone_draw(&l->microphone, l->position, l->block);
    }
}

/* Add to x every sound that is the caller's own, or every other one and the beds. */
static int64_t chain_bus(line_t *l, int own, int16_t *x, int16_t *noise, int64_t n)
{
    int any = own ? 0 : l->n_beds, k;
    for (k = 0; k < l->n_sounds && !any; k++)
        any = (l->sounds[k].needs_quiet != 0) == own && sounds_sound(l, &l->sounds[k], n);
    if (!any) {
        if (noise != NULL)
            memset(noise, 0, (size_t)n * sizeof(int16_t));
        return 0;
    }
    if (own || l->n_beds == 0)
        memset(l->bus, 0, (size_t)n * sizeof(float));
    for (k = 0; k < l->n_beds && !own; k++) {
        if (l->beds[k].loop == NULL)
            bed_white(&l->beds[k], l, n, k == 0);
        else
            bed_loop(&l->beds[k], l, n, k == 0);
    }
    for (k = 0; k < l->n_sounds; k++)
        if ((l->sounds[k].needs_quiet != 0) == own)
            sounds_add(l, &l->sounds[k], n);
    return bus_finish(l->bus, noise != NULL ? noise : l->mixed, x, n);
}

static void chain_part(line_t *l, int16_t *x, int16_t *noise, int64_t n)
{
    const int64_t at = l->position;
    double *const signal = l->signals[0], *const other = l->signals[1];
    if (l->n_sounds)
        l->clipped += chain_bus(l, 1, x, NULL, n);
    if (l->n_sounds || l->n_beds)
        l->clipped += chain_bus(l, 0, x, noise, n);
    else if (noise != NULL)
        memset(noise, 0, (size_t)n * sizeof(int16_t));
    if (l->echo.on)
        echo_run(&l->echo, x, at, n);
    if (l->acoustic.on)
        delay_add(&l->acoustic, x, at, n);
    if (l->reverb.on) {
        widen(x, signal, n);
        reverb_run(&l->reverb, signal, other, at, n);
        round_doubles(signal, x, n);
    }
    if (l->microphone.on)
        microphone_run(&l->microphone, x, signal, other, at, n, l->block);
    if (l->telephony.on)
        telephony_run(&l->telephony, x, signal, at, n);
    if (l->loss.model != LOSS_NONE)
        loss_run(&l->loss, l, x, at, n);
}

/* Whether any effect asks if or how loud the source speaks. */
static int chain_listens(const line_t *l)
{
    int k, asks = l->voice.follow || (l->microphone.on && l->microphone.muffle_below);
    for (k = 0; k < l->n_sounds; k++)
        asks = asks || l->sounds[k].needs_quiet;
    return asks;
}

static void CHAIN(line_run)(line_t *l, const int16_t *source, int16_t *out, int16_t *noise,
                            int64_t n)
{
    const int listens = chain_listens(l);
    while (n > 0) {
        const int64_t into = l->position % l->block;
        int64_t m = l->block - into;
        if (m > n)
            m = n;
        if (into == 0)
            chain_begin_block(l);
        if (listens)
            voice_hear(&l->voice, source, m);
        memcpy(out, source, (size_t)m * sizeof(int16_t));
        chain_part(l, out, noise, m);
        l->position += m;
        if (listens && into + m == l->block)
            voice_end_block(&l->voice, l->block);
        source += m;
        out += m;
        if (noise != NULL)
            noise += m;
        n -= m;
    }
}

/* What the speaker of this side was played, for its acoustic echo. */
static void CHAIN(line_hear)(line_t *l, const int16_t *played, int64_t n)
{
    while (n > 0 && l->acoustic.on) {
        /* No more than the delay at once, which its own repetitions need. */
        const int64_t m = n < l->block ? n : l->block;
        delay_feed(&l->acoustic, played, l->heard, m);
        l->heard += m;
        played += m;
        n -= m;
    }
}

void CHAIN(line_round_trip)(int law, const int16_t *x, int16_t *y, int64_t n)
{
    codec_round_trip(law, x, y, n);
}
