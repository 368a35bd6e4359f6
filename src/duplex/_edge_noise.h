/* The noise of one side: followed while nothing is said, and found again after a step.
 *
 * Steady sound becomes noise, a voice held steady does not. It must never open or close a segment;
 * it leaves a mark by which closing takes one back. Driven by `edge_step`. */
#ifndef DUPLEX_EDGE_NOISE_H
#define DUPLEX_EDGE_NOISE_H

#include "_edge_look.h"
#include "_edge_sound.h"

static inline void edge_learn(edge_t *e, int b, int64_t energy, int32_t log_window)
{
    int64_t x = energy < 8 * e->noise[b] ? energy : 8 * e->noise[b];
    int32_t r, d;
    edge_set_noise(e, b, e->noise[b] + (x - e->noise[b]) / 256);
    r = edge_clip(log_window - e->log_noise[b], -EDGE_Q16(3), EDGE_Q16(3)) * 256;
    e->mean[b] += (r - e->mean[b]) / 512;
    d = r - e->mean[b];
    e->mean[b] = edge_clip(e->mean[b], EDGE_MEAN_LOW, EDGE_MEAN_HIGH);
    e->var[b] += (int32_t)(((((int64_t)d * d) >> 24) - e->var[b]) / 512);
    if (e->var[b] > EDGE_VAR_MAX) e->var[b] = EDGE_VAR_MAX;
}


/* Least and most power of a band over the last n sub-windows. */
static inline void edge_past_range(const edge_t *e, int b, int n, int64_t *least, int64_t *most)
{
    int j;
    *least = EDGE_HUGE;
    *most = 0;
    for (j = 1; j <= n; j++) {
        int i = (e->sub_at - j) & (EDGE_SUBS - 1);
        *least = edge_min(*least, e->sub_least[i][b]);
        *most = edge_max(*most, e->sub_most[i][b]);
    }
}

static inline void edge_refresh_past(edge_t *e, int b)
{
    edge_past_range(e, b, EDGE_SUBS, &e->past_least[b], &e->past_most[b]);
    edge_past_range(e, b, EDGE_FAST_SUBS, &e->near_least[b], &e->near_most[b]);
}

/* Every band steady over the last 1.6 s: a noise step, not speech. Below 600 Hz noise itself moves,
 * so there a power smoothed over 160 ms is asked. */
static inline int edge_steady_now(const edge_t *e)
{
    int64_t least = edge_min(e->rumble_least, e->near_rumble_least), most = edge_max(e->rumble_most, e->near_rumble_most);
    int b, raised = 0;
    if (most >= EDGE_STEADY_FAST * least && 2 * most > 3 * e->noise[0]) return 0;
    for (b = 0; b < EDGE_BANDS; b++) {
        least = edge_min(e->least[b], e->near_least[b]);
        most = edge_max(e->most[b], e->near_most[b]);
        if (b && most >= EDGE_STEADY_FAST * least && 2 * most > 3 * e->noise[b]) return 0;
        if (2 * least > 3 * e->noise[b]) raised = 1;
    }
    return raised;
}

/* Where the steady stretch that reaches back to `from` began, as far as the ring tells. */
static inline int64_t edge_steady_start(const edge_t *e, int64_t t, int64_t from)
{
    int64_t now = 0, oldest = t - (EDGE_RING - 64), u, j;
    for (j = 0; j < 48; j++) now += edge_total(e, from + 48 + j);
    for (u = from; u > oldest && u > 48; u -= 4) {
        int64_t then = 0;
        for (j = 0; j < 48; j++) then += edge_total(e, u - j);
        if (then > 4 * now || 4 * then < now) break;
    }
    return u - 24;
}

/* Take a stationary band for noise, and forget that it ever was quieter. */
static inline void edge_absorb(edge_t *e, int b, int64_t t, int64_t least, int subs)
{
    int j;
    edge_set_noise(e, b, least * 8 / 5);
    e->mean[b] = 0;
    for (j = 0; j < EDGE_SUBS; j++) e->sub_least[j][b] = edge_max(e->sub_least[j][b], least);
    edge_refresh_past(e, b);
    if (!e->open) return;
    if (e->absorbed_at < 0) {
        e->steady_from = t - subs * EDGE_SUB_FRAMES - e->sub_frames % EDGE_SUB_FRAMES;
        if (subs == EDGE_FAST_SUBS) e->steady_from = edge_steady_start(e, t, e->steady_from);
    }
    e->absorbed_at = t;
}

/* Most power of a band in 3.2 s; sub-windows not yet heard, or with digital silence, do not count. */
static inline int64_t edge_heard_most(const edge_t *e, int b)
{
    int64_t most = e->most[b];
    int j;
    for (j = 0; j < EDGE_SUBS; j++) if (e->sub_most[j][b] < EDGE_HUGE) most = edge_max(most, e->sub_most[j][b]);
    return most;
}

/* Was everything since a doubted start within 15 dB in every band: noise, if restless? */
static inline int edge_doubt_is_noise(const edge_t *e)
{
    int b;
    for (b = 0; b < EDGE_BANDS; b++)
        if (edge_heard_most(e, b) > EDGE_DOUBT_RATIO * edge_min(e->least[b], e->past_least[b])) return 0;
    return 1;
}

/* The least power of a long while is above the noise: it is the noise. A doubted start that it could
 * explain is thereby decided. */
static inline void edge_lift(edge_t *e, int b, int64_t t, int64_t least)
{
    edge_set_noise(e, b, least);
    if (!e->open || !e->doubt || e->on >= EDGE_BOOT || !edge_doubt_is_noise(e)) return;
    if (e->absorbed_at < 0) e->steady_from = 0;
    e->absorbed_at = t;
}

/* Has no band been as quiet as its noise for 1.6 s? Asked first: it seldom is so. */
static inline int edge_near_raised(const edge_t *e)
{
    int b, raised = 0;
    for (b = 0; b < EDGE_BANDS; b++) raised |= 2 * edge_min(e->least[b], e->near_least[b]) > 3 * e->noise[b];
    return raised;
}

/* Let a band that is steady, or was never as quiet as its noise is thought to be, be its noise. */
static inline void edge_take_steady(edge_t *e, int b, int64_t t, int fast)
{
    const int64_t least = edge_min(e->least[b], e->past_least[b]), noise = e->noise[b];
    int64_t most, longest, near_least;
    int slow, rise, near;
    if (least <= noise && !fast) {
        if (6 * (least + 1) <= noise && e->sub_frames > 40) edge_set_noise(e, b, least * 6);
        return;
    }
    most = edge_max(e->most[b], e->past_most[b]);
    near_least = edge_min(e->least[b], e->near_least[b]);
    longest = edge_min(edge_min(least, e->long_least[0][b]), edge_min(e->long_least[1][b], e->long_least[2][b]));
    slow = most < EDGE_STEADY * least && 2 * least > 3 * noise;
    near = fast && 2 * near_least > 3 * noise;
    if (e->open && t - e->on <= (EDGE_FAST_SUBS + 1) * EDGE_SUB_FRAMES) near = 0;
    if (e->open && t - e->on <= (EDGE_SUBS + 1) * EDGE_SUB_FRAMES) slow = 0;
    rise = longest > noise && longest < EDGE_HUGE;
    /* a voice held steady is stationary too, and must not be taken for noise */
    if ((slow || near || rise) && e->open && t - e->on < EDGE_VOICE_HOLD && edge_hears_voice(e, t)) return;
    if (slow) edge_absorb(e, b, t, least, EDGE_SUBS);
    else if (near) edge_absorb(e, b, t, near_least, EDGE_FAST_SUBS);
    else if (rise) edge_lift(e, b, t, longest);
    else if (6 * (least + 1) <= noise && e->sub_frames > 40) edge_set_noise(e, b, least * 6);
}

static inline void edge_follow_noise(edge_t *e, int64_t t, const edge_look *k)
{
    int learn = e->open ? t - e->off > EDGE_HANG / 2 && e->tail <= -EDGE_CLOSE : e->score < EDGE_OPEN / 2;
    int fast, b;
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t x = e->energy[t & EDGE_MASK][b];
        e->power[b] += (x - e->power[b]) / 16;
        if (e->power[b] < e->least[b]) e->least[b] = e->power[b];
        if (e->power[b] > e->most[b]) e->most[b] = e->power[b];
        if (learn) edge_learn(e, b, x, k->log_window[b]);
    }
    e->rumble += (e->energy[t & EDGE_MASK][0] - e->rumble) / 64;
    if (e->rumble < e->rumble_least) e->rumble_least = e->rumble;
    if (e->rumble > e->rumble_most) e->rumble_most = e->rumble;
    fast = edge_near_raised(e) && edge_steady_now(e);
    for (b = 0; b < EDGE_BANDS; b++) edge_take_steady(e, b, t, fast);
}

static inline void edge_roll_rumble(edge_t *e)
{
    int j = e->sub_frames / EDGE_SUB_FRAMES % EDGE_FAST_SUBS;
    e->sub_rumble_least[j] = e->rumble_least;
    e->sub_rumble_most[j] = e->rumble_most;
    e->rumble_least = e->near_rumble_least = EDGE_HUGE;
    e->rumble_most = e->near_rumble_most = 0;
    for (j = 0; j < EDGE_FAST_SUBS; j++) {
        e->near_rumble_least = edge_min(e->near_rumble_least, e->sub_rumble_least[j]);
        e->near_rumble_most = edge_max(e->near_rumble_most, e->sub_rumble_most[j]);
    }
}

static inline void edge_roll_subs(edge_t *e)
{
    int b, j;
    if (++e->sub_frames % EDGE_SUB_FRAMES) return;
    edge_roll_rumble(e);
    for (b = 0; b < EDGE_BANDS; b++) {
        e->sub_least[e->sub_at][b] = e->least[b];
        e->sub_most[e->sub_at][b] = e->most[b];
        e->least[b] = EDGE_HUGE;
        e->most[b] = 0;
    }
    e->sub_at = (e->sub_at + 1) % EDGE_SUBS;
    for (b = 0; b < EDGE_BANDS; b++) edge_refresh_past(e, b);
    if (e->sub_at) return;
    for (b = 0; b < EDGE_BANDS; b++) {
        e->long_least[e->long_at][b] = EDGE_HUGE;
        for (j = 0; j < EDGE_SUBS; j++)
            if (e->sub_least[j][b] < e->long_least[e->long_at][b]) e->long_least[e->long_at][b] = e->sub_least[j][b];
    }
    e->long_at = (e->long_at + 1) % 3;
}

/* A hole of digital silence longer than lost packets leave: sounds on either side of it are no one
 * steady noise. The noise stays what it was, for it may be back after the hole. */
static inline void edge_hear_hole(edge_t *e)
{
    int b;
    for (b = 0; b < EDGE_BANDS; b++) {
        e->least[b] = edge_min(e->least[b], e->noise[b]);
        e->most[b] = EDGE_HUGE;
    }
    e->rumble_most = EDGE_HUGE;
}

/* How long nothing has changed, counted in samples, so that it is no matter where frames begin. */
static inline void edge_count_still(edge_t *e, int64_t t)
{
    int first = e->first[t & EDGE_MASK];
    if (first < 0) { e->still += e->frame; return; }
    if (e->still + first + 1 >= (int64_t)EDGE_HOLE * e->frame) edge_hear_hole(e);
    e->still = e->frame - 1 - e->last[t & EDGE_MASK];
}

/* Digital silence that lasts: there is no noise, and what came before it says nothing. Shorter holes
 * may be lost packets and leave the noise alone. */
static inline void edge_hear_nothing(edge_t *e)
{
    int b;
    for (b = 0; b < EDGE_BANDS; b++) {
        e->least[b] = EDGE_FLOOR;
        e->most[b] = EDGE_HUGE;
        e->power[b] = 0;
        e->rumble = 0;
        e->rumble_least = 0;
        e->rumble_most = EDGE_HUGE;
        edge_set_noise(e, b, e->noise[b] + (EDGE_FLOOR - e->noise[b]) / 20);
    }
}

/* A start too loud to be believed as noise held a segment open for 1.2 s: let the least power since
 * the start stand for the noise. */
static inline void edge_resolve_doubt(edge_t *e)
{
    int b, j;
    if (!e->doubt) return;
    if (e->booted && (!e->open || e->on >= EDGE_BOOT) && e->sub_frames > EDGE_BOOT) e->doubt = 0;
    if (!e->doubt || e->sub_frames != EDGE_DOUBT_FRAMES) return;
    for (b = 0; b < EDGE_BANDS; b++) for (j = 0; j < 3; j++) e->long_least[j][b] = EDGE_HUGE;
}

#endif
