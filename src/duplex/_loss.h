/* Lost packets, on the packet clock, and what a listener's device plays instead.
 *
 * The chain moves once a packet, by one draw each, whatever a tick is. Without
 * concealment a lost packet is silence. With it the last periods of the voice go on
 * and fade, and the voice that comes back is cross-faded in; it never looks ahead,
 * so it adds no delay. Included by _chain.h only.
 */

/* Whether the next packet is lost. */
static int loss_next(line_loss *p)
{
    const uint64_t random = draw(p->key, (uint64_t)p->packets);
    const int first = p->packets == 0;
    p->packets++;
    switch (p->model) {
    case LOSS_IID:
        return random < p->to_bad;
    case LOSS_BURST:
        /* A packet always comes through between bursts, so none is longer than asked. */
        if (p->bad && --p->left > 0)
            return 1;
        if (p->bad)
            return p->bad = 0;
        p->bad = first ? random < p->at_first : random < p->to_bad;
        p->left = p->burst;
        return p->bad;
    default:
        if (first)
            p->bad = random < p->at_first;
        else if (p->bad)
            p->bad = random >= p->to_good;
        else
            p->bad = random < p->to_bad;
        return p->bad;
    }
}

static void past_keep(line_loss *p, const int16_t *x, int64_t at, int64_t n)
{
    const int64_t from = at & (LINE_PAST - 1);
    const int64_t first = n < LINE_PAST - from ? n : LINE_PAST - from;
    memcpy(p->past + from, x, (size_t)first * sizeof(int16_t));
    memcpy(p->past, x + first, (size_t)(n - first) * sizeof(int16_t));
}

/* How alike the last ``width`` samples and those ``lag`` before them are: c|c| / energy. */
static double likeness(const int16_t *end, int64_t lag, int64_t width, int64_t stride)
{
    int64_t product = 0, square = 0, i;
    for (i = -width; i < 0; i += stride) {
        product += (int64_t)end[i] * end[i - lag];
        square += (int64_t)end[i - lag] * end[i - lag];
    }
    return square ? (double)product * (double)(product < 0 ? -product : product) / (double)square
                  : 0.0;
}

static int64_t period_of(const line_loss *p, const int16_t *end)
{
    const int64_t stride = p->least / 20 > 0 ? p->least / 20 : 1;
    int64_t best = p->most, middle, lag;
    double most = -1.0;
    for (lag = p->least; lag <= p->most; lag += stride) {
        const double found = likeness(end, lag, p->most, stride);
        if (found > most) {
            most = found;
            best = lag;
        }
    }
    middle = best;
    most = -1.0;
    for (lag = middle - stride + 1; lag < middle + stride; lag++) {
        const double found = likeness(end, lag, p->most, 1);
        if (found > most) {
            most = found;
            best = lag;
        }
    }
    return best;
}

/* A loss begins at ``at``: take the periods to repeat, their end bent towards their start. */
static void conceal_begin(line_loss *p, int64_t at)
{
    int16_t last[LINE_PAST];
    const int16_t *end = last + LINE_PAST;
    int64_t i, period, bend;
    for (i = 0; i < LINE_PAST; i++)
        last[i] = p->past[(at + i) & (LINE_PAST - 1)];
    period = period_of(p, end);
    p->n_loop = period;
    while (p->n_loop + period <= p->most)
        p->n_loop += period;
    bend = period / 4;
    for (i = 0; i < p->n_loop; i++)
        p->loop[i] = (float)end[i - p->n_loop];
    for (i = 0; i < bend; i++) {
        const float part = (float)(int32_t)(i + 1) / (float)(int32_t)(bend + 1);
        float *to = &p->loop[p->n_loop - bend + i];
        *to = *to + ((float)end[i - bend - p->n_loop] - *to) * part;
    }
    p->step = (float)end[-1] - (float)end[-1 - p->n_loop];
    p->at = 0;
    p->missing = 0;
    p->healing = 0;
}

static inline float concealed(line_loss *p)
{
    const int64_t t = p->missing++;
    float v = p->loop[p->at];
    p->at = p->at + 1 == p->n_loop ? 0 : p->at + 1;
    if (t < p->blend)
        v += p->step * (1.0f - (float)(int32_t)t / (float)(int32_t)p->blend);
    if (t >= p->hold + p->fade)
        return 0.0f;
    if (t >= p->hold)
        v *= 1.0f - (float)(int32_t)(t - p->hold) / (float)(int32_t)p->fade;
    return v;
}

static void loss_of_part(line_loss *p, int16_t *x, int64_t n)
{
    int64_t i;
    if (!p->conceals) {
        memset(x, 0, (size_t)n * sizeof(int16_t));
        return;
    }
    for (i = 0; i < n; i++)
        x[i] = round_float(concealed(p));
}

static void loss_heals(line_loss *p, int16_t *x, int64_t n)
{
    int64_t i;
    for (i = 0; i < n && p->healing > 0; i++, p->healing--) {
        const float part = (float)(int32_t)p->healing / (float)(int32_t)(p->blend + 1);
        const float went_on = concealed(p);
        x[i] = round_float((float)x[i] + (went_on - (float)x[i]) * part);
    }
}

static void loss_begin_packet(line_loss *p, line_t *l, int64_t at)
{
    const int before = (int)p->lost_now;
    p->lost_now = loss_next(p);
    p->lost += p->lost_now;
    if (l->n_mask < l->mask_room)
        l->mask[l->n_mask++] = (uint8_t)p->lost_now;
    if (!p->conceals)
        return;
    if (p->lost_now && !before)
        conceal_begin(p, at);
    else if (!p->lost_now && before)
        p->healing = p->blend;
}

static void loss_run(line_loss *p, line_t *l, int16_t *x, int64_t at, int64_t n)
{
    while (n > 0) {
        const int64_t into = at % p->packet;
        int64_t m = p->packet - into;
        if (m > n)
            m = n;
        if (into == 0)
            loss_begin_packet(p, l, at);
        if (p->lost_now)
            loss_of_part(p, x, m);
        else if (p->healing > 0)
            loss_heals(p, x, m);
        if (p->conceals)
            past_keep(p, x, at, m);
        x += m;
        at += m;
        n -= m;
    }
}
