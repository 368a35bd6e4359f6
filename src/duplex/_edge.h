/* The edge detector: where speech starts and ends in one stream of int16 samples.
 *
 * Feed it samples in chunks of any size; it hands back finished segments in absolute samples, each
 * edge with its visibility deficit, and says at any moment whether speech is in progress. Everything
 * is decided per 2.5 ms frame on absolute indices in integers, so neither the chunking nor the
 * compiler nor the machine can move an edge. It must never allocate, call libm, read a clock or
 * learn of the other side. The engine drives one per side; offline passes drive one per channel.
 *
 * Three adaptive bands (below 600 Hz, to 2 kHz, above) each yield the standardised log ratio of
 * their 15 ms energy to the noise; the best band feeds a CUSUM that opens a segment, another closes
 * it after 200 ms without evidence. Edges are then placed by replaying the ring with the level that
 * the segment turned out to have: 36 dB below speech, or the noise, whichever is higher. */
#ifndef DUPLEX_EDGE_H
#define DUPLEX_EDGE_H

#include "_edge_front.h"
#include "_edge_noise.h"
#include "_edge_segment.h"

/* ---- steady tones ---- */

/* Did the sound just stop: the last 5 ms a quarter of the 60 ms before them? */
static inline int edge_fell(const edge_t *e, int64_t t)
{
    int64_t before = 0;
    int j;
    for (j = 2; j < 26; j++) before += edge_total(e, t - j) / 24;
    return 4 * (edge_total(e, t) + edge_total(e, t - 1)) / 2 < before;
}

/* A tone is certain while a segment is open: the segment is revoked if it was nothing else, else it
 * ends where the tone began. The sound goes on, so the opening score is left full. */
static inline void edge_end_in_tone(edge_t *e, int64_t t)
{
    int64_t on = e->on;
    e->tonal = on >= e->tone_from - EDGE_TONE_FRAMES - 8;
    if (!e->tonal) on = e->tone_from;
    if (e->off > e->tone_from) e->off = e->tone_from;
    if (e->settle > 0) edge_place_start(e, t);
    edge_close(e, t);
    e->on = on;
    e->score = 3 * EDGE_OPEN;
    e->counted = e->strong = EDGE_OPEN_FRAMES;
}

/* A steady tone or pair of tones is no speech: it can neither be a segment nor hold one open. While it
 * lasts nothing opens; should it turn into something else without a pause it was a steady voice after
 * all, and the segment starts where the tone did. */
static inline void edge_hush_tone(edge_t *e, int64_t t, const edge_look *k)
{
    int held = e->tone_run >= EDGE_TONE_LOOKS;
    if (held) e->free_from = t;
    if (!e->open && e->score <= 0) { e->tone_run = 0; return; }
    if (t - e->tone_at < EDGE_TONE_FRAMES) return;
    e->tone_at = t;
    if (!edge_is_tone(e, 0, EDGE_TONE_SPAN)) {
        e->tone_run = 0;
        if (held && (t - e->on >= EDGE_REACH || k->opens <= 0 || edge_fell(e, t))) e->score = 0;
        return;
    }
    if (++e->tone_run == 1) e->tone_from = t - EDGE_TONE_SPAN / EDGE_SLOW_PER_FRAME;
    if (e->tone_run >= EDGE_TONE_LOOKS && e->open) edge_end_in_tone(e, t);
}

/* ---- one frame ---- */

static inline void edge_step(edge_t *e, int64_t t)
{
    edge_look k = edge_examine(e, t);
    int silent = edge_silent(e, t);
    e->silent_run = silent ? e->silent_run + 1 : 0;
    edge_hush_tone(e, t, &k);
    if (!e->open) edge_idle(e, t, &k);
    if (e->open) edge_in_speech(e, t, &k);
    edge_count_still(e, t);
    if (e->still >= (int64_t)EDGE_NOTHING * e->frame) edge_hear_nothing(e);
    edge_resolve_doubt(e);
    if (!silent) edge_follow_noise(e, t, &k);
    edge_roll_subs(e);
    if (t % 8 == 0) edge_refresh_sd(e);
}

/* ---- start-up ---- */

/* Is everything heard so far one steady noise: 40 ms powers of each band within 6 dB? */
static inline int edge_boot_steady(const edge_t *e)
{
    int64_t t;
    int b, j;
    for (b = 0; b < EDGE_BANDS; b++) {
        int64_t least = EDGE_HUGE, most = 0;
        for (t = EDGE_BOOT_SKIP + 16; t <= e->frames; t++) {
            int64_t s = 0;
            for (j = 1; j <= 16; j++) s += e->energy[t - j][b];
            if (s < least) least = s;
            if (s > most) most = s;
        }
        if (most > (b ? 4 : 8) * least) return 0;
    }
    return !edge_is_voice(e) || edge_is_tone(e, 0, EDGE_TONE_SPAN);
}

/* First estimate: the blocks no louder than twice the quietest, capped unless steady. */
static inline void edge_first_noise(edge_t *e)
{
    int64_t block[EDGE_BOOT_LOUD / EDGE_BOOT_BLOCK + 1][EDGE_BANDS] = {{0}}, noise[EDGE_BANDS] = {0}, quietest = EDGE_HUGE, sum, t;
    int b, i, n = 0, c = 0, used = 0;
    for (t = EDGE_BOOT_SKIP; t < e->frames && n < EDGE_BOOT_LOUD / EDGE_BOOT_BLOCK; t++) {
        if (edge_silent(e, t)) continue;
        for (b = 0; b < EDGE_BANDS; b++) block[n][b] += e->energy[t][b] / EDGE_BOOT_BLOCK;
        if (++c == EDGE_BOOT_BLOCK) { c = 0; n++; }
    }
    for (i = 0; i < n; i++) { sum = block[i][0] + block[i][1] + block[i][2]; if (sum < quietest) quietest = sum; }
    for (i = 0; i < n; i++) {
        if (block[i][0] + block[i][1] + block[i][2] > 2 * quietest) continue;
        used++;
        for (b = 0; b < EDGE_BANDS; b++) noise[b] += block[i][b];
    }
    if (!used) return;
    for (b = 0; b < EDGE_BANDS; b++) noise[b] /= used;
    sum = noise[0] + noise[1] + noise[2];
    if (sum > EDGE_BOOT_CEILING && !(e->heard >= EDGE_BOOT_LOUD && edge_boot_steady(e))) {
        int64_t over = sum / (EDGE_BOOT_CEILING >> 8);
        for (b = 0; b < EDGE_BANDS; b++) noise[b] = (noise[b] / over) << 8;
        e->doubt = 1;
    }
    for (b = 0; b < EDGE_BANDS; b++) { edge_set_noise(e, b, noise[b]); e->power[b] = e->noise[b]; }
    e->rumble = e->noise[0];
}

/* Take the first estimate, then live through what was heard with it. */
static inline void edge_boot(edge_t *e)
{
    int64_t t;
    e->booted = 1;
    if (e->silent_run < 20) edge_first_noise(e);
    e->silent_run = 0;
    e->still = 0;
    for (t = 0; t < e->frames; t++) edge_step(e, t);
}

static inline int edge_boot_due(edge_t *e, int64_t t)
{
    int64_t recent = 0;
    int j;
    if (edge_silent(e, t)) e->silent_run++; else { e->silent_run = 0; e->heard++; }
    if (e->silent_run >= 20 || e->heard >= EDGE_BOOT_LOUD || t >= EDGE_REACH) return 1;
    if (e->heard < EDGE_BOOT) return 0;
    for (j = 0; j < 20; j++) recent += edge_total(e, t - j) / 20;
    return recent < EDGE_BOOT_CEILING;
}

/* ---- front end ---- */

/* Ten means a frame of what is below 2 kHz. Sums stay below 2^26, so that the reciprocal divides
 * them exactly. */
static inline void edge_decimate(edge_t *e, int silent)
{
    const int32_t *sums = e->below;
    int i;
    for (i = 0; i < EDGE_SLOW_PER_FRAME; i++) {
        int from = i * e->pos / EDGE_SLOW_PER_FRAME, to = (i + 1) * e->pos / EDGE_SLOW_PER_FRAME;
        int32_t s = silent ? 0 : sums[to] - sums[from];
        e->slow[e->slow_at++ & EDGE_SLOW_MASK] = (int16_t)(to > from ? edge_clip(s / (to - from), -32768, 32767) : 0);
    }
}

static inline void edge_decimate_evenly(edge_t *e, int silent)
{
    const int32_t *sums = e->below, run = e->slow_run;
    uint32_t at = e->slow_at;
    int i;
    e->slow_at += EDGE_SLOW_PER_FRAME;
    for (i = 0; i < EDGE_SLOW_PER_FRAME; i++, sums += run) {
        const int32_t s = silent ? 0 : sums[run] - sums[0], sign = s >> 31;
        const int32_t mean = (int32_t)(((uint64_t)(uint32_t)((s ^ sign) - sign) * e->slow_part) >> 32);
        e->slow[at++ & EDGE_SLOW_MASK] = (int16_t)edge_clip((mean ^ sign) - sign, -32768, 32767);
    }
}

static inline void edge_end_frame(edge_t *e)
{
    int64_t t = e->frames, energy[EDGE_BANDS];
    int k = (int)(t & EDGE_MASK), silent, b;
    edge_find_changes(e, k);
    silent = e->last[k] < 0;
    if (e->slow_run && e->pos == e->frame) edge_decimate_evenly(e, silent); else edge_decimate(e, silent);
    if (silent) { /* let nothing ring on into digital silence */
        e->dc[1] /= 2; e->low[0] /= 2; e->low[1] /= 2; e->mid[0] /= 2; e->mid[1] /= 2;
        e->dc[0] = (int32_t)e->raw[EDGE_MAX_LEAP - 1] * 4096;
    }
    for (b = 0; b < EDGE_BANDS; b++) {
        energy[b] = silent ? 0 : (int64_t)((e->sum[b] << 8) / (uint32_t)e->pos);
        e->sum[b] = 0;
    }
    edge_keep(e, t, energy);
    edge_find_leaps(e, k);
    e->pos = 0;
    e->frames = t + 1;
    if (e->booted) edge_step(e, t);
    else if (edge_boot_due(e, t)) edge_boot(e);
}

/* ---- interface ---- */

/* Is this a rate the detector works at? */
static inline int edge_rate_ok(int32_t rate)
{
    return rate >= 8000 && rate <= EDGE_MAX_FRAME * EDGE_FRAMES_PER_SECOND && rate % EDGE_FRAMES_PER_SECOND == 0;
}

static inline void edge_init(edge_t *e, int32_t rate)
{
    int b, j;
    memset(e, 0, sizeof *e);
    e->frame = rate / EDGE_FRAMES_PER_SECOND;
    e->leap = rate / 1000;
    if (e->frame % EDGE_SLOW_PER_FRAME == 0) {
        e->slow_run = e->frame / EDGE_SLOW_PER_FRAME;
        e->slow_part = (uint32_t)(0xffffffffu / (uint32_t)e->slow_run) + 1;
    }
    e->pole_dc = edge_pole(60, rate);
    e->pole_low = edge_pole(600, rate);
    e->pole_mid = edge_pole(2000, rate);
    e->absorbed_at = -1;
    e->tone_at = e->voice_at = -EDGE_RING;
    for (b = 0; b < EDGE_BANDS; b++) {
        edge_set_noise(e, b, EDGE_FLOOR);
        e->var[b] = EDGE_VAR_START;
        e->least[b] = EDGE_HUGE;
        for (j = 0; j < EDGE_SUBS; j++) e->sub_least[j][b] = e->sub_most[j][b] = EDGE_HUGE;
        edge_refresh_past(e, b);
    }
    e->rumble_least = e->near_rumble_least = EDGE_HUGE;
    e->near_rumble_most = EDGE_HUGE;
    for (j = 0; j < EDGE_FAST_SUBS; j++) e->sub_rumble_least[j] = e->sub_rumble_most[j] = EDGE_HUGE;
    edge_refresh_sd(e);
}

static inline void edge_begin(edge_t *e, const int16_t *x, size_t n)
{
    if (!e->begun && n) { e->begun = 1; e->dc[0] = (int32_t)x[0] * 4096; }
}

/* Take in samples; returns how many were taken, fewer than n only when the queue is full: pop, go on. */
static inline size_t edge_push(edge_t *e, const int16_t *x, size_t n)
{
    size_t done = 0;
    edge_begin(e, x, n);
    while (done < n && e->queue_n < EDGE_QUEUE) {
        int32_t take = e->frame - e->pos;
        if ((size_t)take > n - done) take = (int32_t)(n - done);
        edge_filter(e, x + done, take);
        done += (size_t)take;
        e->samples += take;
        if (e->pos == e->frame) edge_end_frame(e);
    }
    return done;
}

/* The same for two sides of one rate that have taken in as much: returns how many of either were taken. */
static inline size_t edge_push_both(edge_t *e, edge_t *f, const int16_t *x, const int16_t *y, size_t n)
{
    size_t done = 0;
    edge_begin(e, x, n);
    edge_begin(f, y, n);
    while (done < n && e->queue_n < EDGE_QUEUE && f->queue_n < EDGE_QUEUE) {
        int32_t take = e->frame - e->pos;
        if ((size_t)take > n - done) take = (int32_t)(n - done);
#if DUPLEX_AVX2
        if (e->wide && take >= 4) edge_filter_both(e, f, x + done, y + done, take);
        else
#endif
        { edge_filter(e, x + done, take); edge_filter(f, y + done, take); }
        done += (size_t)take;
        e->samples += take; f->samples += take;
        if (e->pos == e->frame) { edge_end_frame(e); edge_end_frame(f); }
    }
    return done;
}

/* One frame of nothing after the last sample. */
static inline void edge_pad(edge_t *e)
{
    static const int64_t nothing[EDGE_BANDS] = {0};
    int k = (int)(e->frames & EDGE_MASK);
    edge_keep(e, e->frames, nothing);
    e->first[k] = e->last[k] = -1;
    e->leap_first[k] = e->leap_last[k] = EDGE_NONE;
    edge_step(e, e->frames++);
}

/* End of the stream: the part frame counts, an open segment ends. Pop first; push nothing after. */
static inline void edge_finish(edge_t *e)
{
    int i;
    if (e->pos > 0) edge_end_frame(e);
    if (!e->booted && e->frames > 0) edge_boot(e);
    for (i = 0; i < EDGE_HANG + EDGE_WINDOW && (i < EDGE_WINDOW || e->open); i++) edge_pad(e);
}

static inline int edge_pop(edge_t *e, edge_segment *out)
{
    if (e->queue_n == 0) return 0;
    *out = e->queue[e->queue_at];
    e->queue_at = (e->queue_at + 1) % EDGE_QUEUE;
    e->queue_n--;
    return 1;
}

/* The pauses inside a segment just popped, oldest first: the next after *at (0 to begin with). Those of
 * a segment with more than EDGE_PAUSES are lost from the front. */
static inline int edge_next_pause(const edge_t *e, const edge_segment *s, int64_t *at, edge_pause *out)
{
    if (*at < e->pauses_n - EDGE_PAUSES) *at = e->pauses_n - EDGE_PAUSES;
    while (*at < e->pauses_n) {
        *out = e->pauses[(*at)++ & (EDGE_PAUSES - 1)];
        if (out->start > s->start && out->end < s->end) return 1;
    }
    return 0;
}

/* Is speech in progress, as of the last full frame; *start is where it began, final for EDGE_SPEECH. A
 * sudden steady noise passes for speech until it is known, 1.7 s at most, and no longer. */
static inline int edge_active(const edge_t *e, int64_t *start)
{
    if (!e->open || (e->absorbed_at >= 0 && e->off <= e->absorbed_at + 8)) return EDGE_QUIET;
    *start = e->start;
    return e->settle > 0 ? EDGE_PROVISIONAL : EDGE_SPEECH;
}

#endif
