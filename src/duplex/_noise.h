/* The noise bus: beds, and sounds that come at random, each with its own stream.
 *
 * A bed goes on whatever is said; its gain is a constant, or set at every 20 ms block
 * and a straight line between, so that no step is heard. Sounds begin at whole
 * samples that are drawn a block at a time. Included by _chain.h only.
 */

static void bed_begin_block(line_bed *bed, const line_voice *voice, double expected, int64_t block)
{
    float gain = bed->gain;
    if (bed->follows)
        gain = gain * (float)(voice->level / expected);
    if (bed->drift != NULL)
        gain = gain * bed->drift[(block + 1) % bed->n_drift];
    bed->ramp.from = block ? bed->ramp.to : gain;
    bed->ramp.to = gain;
}

/* The run that a stretch begins or ends in the middle of. */
static const float *white_part(line_t *l, uint64_t key, uint64_t run)
{
    const white_gain plain = {1.0f, 0.0f, 0};
    if (l->white_run != run + 1 || l->white_key != key) {
        white_run(key, run, &plain, l->white);
        l->white_key = key;
        l->white_run = run + 1;
    }
    return l->white;
}

static void bed_white(const line_bed *bed, line_t *l, int64_t n, int first)
{
    const line_ramp *const r = &bed->ramp;
    white_gain gain = {r->from, (r->to - r->from) / (float)l->block, 0};
    int64_t done = 0;
    while (done < n) {
        const int64_t at = l->position + done, into = at % LINE_WHITE;
        const uint64_t run = (uint64_t)(at / LINE_WHITE);
        int64_t m = LINE_WHITE - into;
        if (m > n - done)
            m = n - done;
        gain.at = (int32_t)(at % l->block);
        if (first && m == LINE_WHITE)
            white_run(bed->key, run, &gain, l->bus + done);
        else
            add_floats(l->bus + done, white_part(l, bed->key, run) + into, m, r, gain.at,
                       l->block, first);
        done += m;
    }
}

static void bed_loop(const line_bed *bed, line_t *l, int64_t n, int first)
{
    int64_t done = 0;
    while (done < n) {
        const int64_t at = l->position + done;
        const int64_t into = (at + bed->offset) % bed->length;
        int64_t m = bed->length - into;
        if (m > n - done)
            m = n - done;
        add_pcm(l->bus + done, bed->loop + into, m, &bed->ramp, at % l->block, l->block, first);
        done += m;
    }
}

/* ---- sounds ---- */

/* Labels stand in order of their ends, whatever the order in which a stretch was mixed. */
static void label_add(line_t *l, const line_sounds *s, const line_voicing *v)
{
    line_label label = {v->start, v->end, s->effect, v->clip};
    int64_t k = l->n_labels;
    if (k == LINE_LABELS) {
        l->labels_lost++;
        return;
    }
    for (; k > 0 && (l->labels[k - 1].end > label.end ||
                     (l->labels[k - 1].end == label.end && l->labels[k - 1].start > label.start));
         k--)
        l->labels[k] = l->labels[k - 1];
    l->labels[k] = label;
    l->n_labels++;
}

static void sound_start(line_t *l, line_sounds *s, int64_t at, uint64_t random, double expected)
{
    line_voicing *v = NULL;
    int k;
    for (k = 0; k < (s->needs_quiet ? 1 : LINE_VOICES) && v == NULL; k++)
        if (!s->voices[k].on)
            v = &s->voices[k];
    if (v == NULL || l->voice.quiet < s->needs_quiet) {
        s->refused++;
        return;
    }
    v->on = 1;
    v->clip = (int32_t)draw_below(random, s->n_clips);
    v->gain = s->gains[random & (LINE_LEVELS - 1)];
    if (s->follows)
        v->gain = v->gain * (float)(l->voice.level / expected);
    v->start = at;
    v->end = at + s->lengths[v->clip];
    v->cut = INT64_MAX;
}

/* Cough and side talk stop when the caller speaks. */
static void sounds_yield(line_sounds *s, int64_t at, int64_t fade)
{
    int k;
    for (k = 0; k < LINE_VOICES; k++)
        if (s->voices[k].on && s->voices[k].cut == INT64_MAX && s->voices[k].start < at) {
            s->voices[k].cut = at;
            if (s->voices[k].end > at + fade)
                s->voices[k].end = at + fade;
        }
}

static void sounds_begin_block(line_t *l, line_sounds *s, double expected)
{
    const uint64_t block = (uint64_t)(l->position / l->block);
    int64_t offsets[3];
    int arrivals = 0, k, j;
    if (s->needs_quiet && l->voice.quiet == 0)
        sounds_yield(s, l->position, l->block / 2);
    if (s->every) {
        const int64_t next = (l->position + s->every - 1) / s->every * s->every;
        if (next && next < l->position + l->block)
            sound_start(l, s, next, draw(s->key, block * 8), expected);
        return;
    }
    while (arrivals < 3 && draw(s->key, block * 8) > s->at_most[arrivals])
        arrivals++;
    for (k = 0; k < arrivals; k++) {
        const int64_t offset = draw_below(draw(s->key, block * 8 + 1 + (uint64_t)k), l->block);
        for (j = k; j > 0 && offsets[j - 1] > offset; j--)
            offsets[j] = offsets[j - 1];
        offsets[j] = offset;
    }
    for (k = 0; k < arrivals; k++)
        sound_start(l, s, l->position + offsets[k],
                    draw(s->key, block * 8 + 4 + (uint64_t)k), expected);
}

static void sound_add(line_t *l, const line_sounds *s, line_voicing *v, int64_t n)
{
    const int16_t *clip = s->clips[v->clip];
    int64_t from = v->start > l->position ? v->start : l->position;
    int64_t to = v->end < l->position + n ? v->end : l->position + n;
    int64_t i;
    const float fade = v->cut == INT64_MAX ? 0.0f : 1.0f / (float)(int32_t)(l->block / 2);
    for (i = from; i < to; i++) {
        float gain = v->gain;
        if (i >= v->cut)
            gain = gain * (1.0f - (float)(int32_t)(i - v->cut) * fade);
        l->bus[i - l->position] += (float)clip[i - v->start] * gain;
    }
    if (v->end <= l->position + n) {
        label_add(l, s, v);
        v->on = 0;
    }
}

/* Whether any is to be heard in the next n samples. */
static int sounds_sound(const line_t *l, const line_sounds *s, int64_t n)
{
    int k;
    for (k = 0; k < LINE_VOICES; k++)
        if (s->voices[k].on && s->voices[k].start < l->position + n)
            return 1;
    return 0;
}

static void sounds_add(line_t *l, line_sounds *s, int64_t n)
{
    int k;
    for (k = 0; k < LINE_VOICES; k++)
        if (s->voices[k].on && s->voices[k].start < l->position + n)
            sound_add(l, s, &s->voices[k], n);
}
