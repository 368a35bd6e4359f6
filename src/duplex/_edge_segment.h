/* Segments of the edge detector: opening, closing, and placing both edges by replaying the ring.
 *
 * Everything is decided per frame on absolute indices. It must never learn noise, and publishes a
 * segment once, when it is over. Driven by `edge_step`. */
#ifndef DUPLEX_EDGE_SEGMENT_H
#define DUPLEX_EDGE_SEGMENT_H

#include "_edge_cut.h"
#include "_edge_look.h"
#include "_edge_sound.h"

/* Twice the energy above noise that the outermost frame of a sound must have, of frames of which the
 * largest has `most` above noise: as much as that; or, where the edge stands clear of the noise, no
 * more than defines an edge. */
static inline int64_t edge_trim_need(const edge_t *e, int64_t most, int64_t noise)
{
    int64_t defines = 2 * edge_threshold(e);
    return defines > EDGE_CLEAR * noise && defines < most ? defines : most;
}

/* First frame of the window that ends at `at` with energy enough. */
static inline int64_t edge_trim_start(const edge_t *e, int64_t at)
{
    int64_t noise = edge_noise_total(e), most = 0, need, u, from = at - EDGE_WINDOW + 1;
    if (from < 0) from = 0;
    for (u = from; u <= at; u++) if (edge_total(e, u) > most) most = edge_total(e, u);
    need = edge_trim_need(e, most - noise, noise);
    for (u = from; u <= at; u++) if (2 * (edge_total(e, u) - noise) >= need) return u;
    return at;
}

/* Replay frames [from, t] with the level now known: sound begins where the evidence began that reaches
 * the opening score, or with an unbroken chain of frames beyond doubt, `on` at the earliest, leading up
 * to it. */
static inline int64_t edge_find_start(const edge_t *e, int64_t from, int64_t on, int64_t t)
{
    int64_t threshold = edge_threshold(e), at = on, chain = -1, last_hit = -EDGE_RING, before = -1, u;
    int32_t s = 0, log_threshold = edge_ln(threshold);
    for (u = from; u <= t && (s < EDGE_OPEN || u <= on); u++) {
        edge_look k = edge_examine(e, u);
        int hit;
        int32_t l = edge_judge(e, &k, before < 0 ? k.total : before, threshold, log_threshold, &hit);
        before = k.total;
        if (hit && u >= on) { if (u - last_hit > EDGE_CHAIN) chain = u; last_hit = u; }
        if (s <= 0) at = u;
        s = edge_clip(s + l, 0, EDGE_OPEN);
    }
    return edge_trim_start(e, chain >= 0 && chain < at && last_hit >= at - 2 ? chain : at);
}

/* First sample heard of a sound that begins in frame *at. After digital silence it is the first that
 * changes. */
static inline int64_t edge_first_sample(const edge_t *e, int64_t *at, int64_t t)
{
    int first = e->first[*at & EDGE_MASK];
    if (edge_noise_total(e) >= EDGE_Q20(1)) return edge_cut_start(e, at, t);
    return *at * e->frame + (first > 0 ? first : 0);
}

static inline void edge_place_start(edge_t *e, int64_t t)
{
    int64_t from = e->on - EDGE_LEAD, at;
    at = edge_find_start(e, from < e->free_from ? e->free_from : from, e->on, t);
    e->start = edge_first_sample(e, &at, t);
    if (e->doubt && at <= EDGE_BEGUN && !edge_silent(e, 0)) e->start = 0; /* it was under way before us */
    e->start_deficit = edge_deficit(e, edge_margin(e, at, EDGE_SHARP_START));
    e->start_flags = (e->start_deficit > 0 ? EDGE_START_MASKED : 0u)
                   | (edge_unreliable(e, e->start_deficit) ? EDGE_START_UNRELIABLE : 0u);
    e->settle = 0;
}

/* The same replay from the quiet side back into the speech: a lone burst of noise that held the
 * segment open does not gather enough to be its end. Only ever moves the end earlier. */
static inline void edge_retrace_end(edge_t *e, int64_t t)
{
    int64_t threshold = edge_threshold(e), at = t, chain = -1, last_hit = -1, u, from = t - EDGE_REACH;
    int32_t s = 0, log_threshold = edge_ln(threshold), need = e->end_need[e->end_band];
    int band = e->end_band, chain_band = band;
    if (edge_band_deficit(e, e->end_band) < EDGE_END_CLEAR) return;
    if (from < e->on) from = e->on;
    for (u = t; u >= from && s < need; u--) {
        edge_look k = edge_examine(e, u);
        int hit;
        int32_t l = edge_judge(e, &k, edge_total(e, u - 1), threshold, log_threshold, &hit);
        if (hit) { if (chain < 0 || last_hit - u > EDGE_CHAIN) { chain = u; chain_band = k.band; } last_hit = u; }
        if (s <= 0) { at = u; band = k.band; }
        s += l;
        if (s < 0) s = 0;
    }
    if (s < need) return;
    if (chain > at && last_hit <= at + 2) { at = chain; band = chain_band; }
    if (at < e->off) { e->off = at; e->end_band = band; }
}

static inline int64_t edge_part(const edge_t *e, int64_t t, int all)
{
    return all ? edge_total(e, t) : e->energy[t & EDGE_MASK][e->end_band];
}

/* Sample after the last one heard in a frame. Where there is no noise it is the last that changes; but
 * one after which nothing changes is the silence itself, and the sound ended just before it. */
static inline int64_t edge_end_of_frame(const edge_t *e, int64_t at)
{
    int last = e->last[at & EDGE_MASK], next = e->last[(at + 1) & EDGE_MASK];
    int64_t end = (at + 1) * e->frame;
    if (edge_noise_total(e) >= EDGE_Q20(1) || last < 0) return end;
    if (next < 0) return end - e->frame + last + (end - e->frame + last + 1 >= e->samples);
    if (e->first[(at + 1) & EDGE_MASK] == next && edge_silent(e, at + 2)) return end + next;
    return end - e->frame + last + 1;
}

/* Sample after the last one heard: trimmed like the start, in the band that held on when noise is near. */
static inline int64_t edge_place_end(const edge_t *e)
{
    int64_t whole = edge_noise_total(e), noise, most = 0, at = e->off, from = at - EDGE_WINDOW + 1, u;
    int all = edge_relative(e->level) > 4 * whole;
    noise = all ? whole : e->noise[e->end_band];
    if (from < 0) from = 0;
    for (u = from; u <= e->off; u++) if (edge_part(e, u, all) > most) most = edge_part(e, u, all);
    most = edge_trim_need(e, most - noise, noise);
    for (u = e->off; u >= from; u--) if (2 * (edge_part(e, u, all) - noise) >= most) { at = u; break; }
    return edge_cut_end(e, at, edge_end_of_frame(e, at));
}

/* Sound came back at frame t after a pause too short to end the segment: keep where it was not heard. */
static inline void edge_note_pause(edge_t *e, int64_t t)
{
    int64_t off = e->off, resumed = edge_find_start(e, off + 1, off + 1, t);
    int band = e->end_band;
    edge_pause found;
    edge_retrace_end(e, resumed - 1);
    found.start = edge_place_end(e);
    found.end = edge_first_sample(e, &resumed, t);
    e->off = off;
    e->end_band = band;
    if (found.end - found.start < (int64_t)EDGE_PAUSE * e->frame) return;
    e->pauses[e->pauses_n++ & (EDGE_PAUSES - 1)] = found;
}

/* Where the last 10 ms are hardly louder than what defines an edge the sound fades out, and however
 * little noise there is it has no one end. */
static inline int32_t edge_faded(const edge_t *e, int64_t last, int32_t deficit)
{
    int64_t s = -edge_noise_total(e);
    int j;
    for (j = 0; j < 4; j++) s += edge_total(e, last - j) / 4;
    if (deficit >= EDGE_FADED || edge_ratio(s > 0 ? s : 0, edge_threshold(e)) >= EDGE_FADING) return deficit;
    return edge_clip(deficit + EDGE_FADED_MORE, INT32_MIN, EDGE_FADED);
}

static inline void edge_publish(edge_t *e, int64_t end, uint32_t flags)
{
    edge_segment *s = &e->queue[(e->queue_at + e->queue_n) % EDGE_QUEUE];
    int64_t last = (end - 1) / e->frame;
    if (end > e->samples) end = e->samples;
    if (end <= e->start) return;
    s->start = e->start;
    s->end = end;
    s->start_deficit = e->start_deficit;
    s->end_deficit = edge_faded(e, last, edge_deficit(e, edge_margin(e, last - EDGE_SHARP_END + 1, EDGE_SHARP_END)));
    s->flags = flags | e->start_flags | (s->end_deficit > 0 ? EDGE_END_MASKED : 0u)
             | (edge_unreliable(e, s->end_deficit) ? EDGE_END_UNRELIABLE : 0u);
    e->queue_n++;
}

/* A beep is over before a look can see it: look at it whole when it closes. */
static inline int edge_was_beep(const edge_t *e, int64_t t)
{
    int64_t n = e->off - e->on - 4;
    return n >= 16 && n <= 120 && edge_is_tone(e, (int32_t)(t - e->off + 3) * EDGE_SLOW_PER_FRAME, (int32_t)n * EDGE_SLOW_PER_FRAME);
}

/* End the segment; what turned out to be steady noise or a tone is revoked, not published. */
static inline void edge_close(edge_t *e, int64_t t)
{
    int absorbed = e->absorbed_at >= 0 && e->off <= e->absorbed_at + 8;
    if (e->tonal || edge_was_beep(e, t) || (absorbed && e->on >= e->steady_from - EDGE_STEADY_SLACK)) {
        e->revoked++;
    } else {
        if (absorbed && e->steady_from < e->off) {
            e->off = e->steady_from;
            if (e->steady_from > t - EDGE_REACH) edge_retrace_end(e, e->steady_from);
        } else if (t - e->off >= EDGE_HANG) edge_retrace_end(e, t);
        edge_publish(e, edge_place_end(e), absorbed ? EDGE_END_UNRELIABLE : 0u);
        e->channel_level = e->channel_level == 0 ? e->level : e->channel_level + (e->level - e->channel_level) * 3 / 10;
    }
    e->open = 0;
    e->score = 0;
    e->free_from = e->off + EDGE_WINDOW;
    e->on = t + 1;
    e->absorbed_at = -1;
    e->tonal = 0;
}

/* ---- opening and closing ---- */

static inline void edge_idle(edge_t *e, int64_t t, const edge_look *k)
{
    int64_t u;
    if (e->score <= 0) { e->on = t; e->counted = 0; e->strong = 0; }
    e->score = edge_clip(e->score + k->opens, 0, 3 * EDGE_OPEN);
    if (k->opens > 0) e->counted++;
    if (k->opens >= EDGE_CAP / 2) e->strong++;
    if (e->tone_run >= EDGE_TONE_LOOKS) return;
    if (t - e->on >= EDGE_REACH) { e->score = 0; return; }
    if (e->score < EDGE_OPEN || e->counted < EDGE_OPEN_FRAMES || e->strong < EDGE_OPEN_STRONG) return;
    e->open = 1;
    e->tail = 0;
    e->off = t;
    e->settle = EDGE_SETTLE;
    e->start = e->on * e->frame;
    e->absorbed_at = -1;
    e->tonal = 0;
    for (e->level = 0, u = e->on; u <= t; u++) {
        int64_t x = edge_total(e, u);
        if (x > e->level) e->level += (x - e->level) / 8;
    }
}

static inline void edge_in_speech(edge_t *e, int64_t t, const edge_look *k)
{
    int64_t threshold;
    int hit;
    e->level += k->total > e->level ? (k->total - e->level) / 8 : (k->total - e->level) / 2048;
    threshold = edge_threshold(e);
    e->tail += edge_judge(e, k, edge_total(e, t - 1), threshold, edge_ln(threshold), &hit);
    if (hit) e->tail = 1;
    if (e->tail > 0) {
        if (t - e->off > EDGE_PAUSE) edge_note_pause(e, t);
        e->tail = 0;
        e->off = t;
        e->end_band = k->band;
    }
    if (e->tail < -EDGE_CLOSE) e->tail = -EDGE_CLOSE;
    if (e->settle > 0 && (--e->settle == 0 || t - e->off >= EDGE_HANG - 1)) edge_place_start(e, t);
    if (t - e->off >= EDGE_HANG) edge_close(e, t);
}

#endif
