/* What the webrtc detector makes of the bands: speech or noise, and what it learns of both.
 *
 * Noise and speech are each two Gaussians a band. A band's two likelihoods vote, with
 * weights and alone; then the model that the frame belongs to moves towards it. Lanes
 * are bands, first those of all first Gaussians, then of all second ones, so the loops
 * are of one length and a compiler does eight or sixteen at once. Products wrap where
 * the detector's own do. Included by _webrtc_baseline.c and _webrtc_v3.c only.
 */
#include "_webrtc_bands.h"

#define LANES(k, n) for (k = 0; k < (n); k++)

/* Everything is in the units of the detector: means and deviations Q7, levels Q4. */
static const int16_t noise_weights[WEBRTC_MODEL] = {34, 62, 72, 66, 53, 25, 0, 0,
                                                    94, 66, 56, 62, 75, 103, 0, 0};
static const int16_t speech_weights[WEBRTC_MODEL] = {48, 82, 45, 87, 50, 47, 0, 0,
                                                     80, 46, 83, 41, 78, 81, 0, 0};
static const int16_t noise_means_first[WEBRTC_MODEL] = {6738, 4892, 7065, 6715, 6771, 3369, 0, 0,
                                                        7646, 3863, 7820, 7266, 5020, 4362, 0, 0};
static const int16_t speech_means_first[WEBRTC_MODEL] = {
    8306, 10085, 10078, 11823, 11843, 6309, 0, 0, 9473, 9571, 10879, 7581, 8180, 7483, 0, 0};
static const int16_t noise_stds_first[WEBRTC_MODEL] = {378, 1064, 493, 582, 688, 593, 384, 384,
                                                       474, 697, 475, 688, 421, 455, 384, 384};
static const int16_t speech_stds_first[WEBRTC_MODEL] = {555, 505, 567, 524, 585, 1231, 384, 384,
                                                        509, 828, 492, 1540, 1079, 850, 384, 384};
/* What means are held within. */
static const int16_t noise_lowest[WEBRTC_MODEL] = {640, 640, 640, 640, 640, 640, 640, 640,
                                                   768, 768, 768, 768, 768, 768, 768, 768};
static const int16_t noise_highest[WEBRTC_MODEL] = {
    9216, 9088, 8960, 8832, 8704, 8576, 8448, 8320, 9344, 9216, 9088, 8960, 8832, 8704, 8576, 8448};
static const int16_t speech_lowest[WEBRTC_MODEL] = {640, 640, 640, 640, 640, 640, 640, 640,
                                                    768, 768, 768, 768, 768, 768, 768, 768};
static const int16_t speech_highest[WEBRTC_MODEL] = {
    13440, 12032, 12032, 12160, 12160, 12160, 12160, 12160,
    13440, 12032, 12032, 12160, 12160, 12160, 12160, 12160};
static const int16_t noise_most[WEBRTC_ROW] = {9216, 9088, 8960, 8832, 8704, 8576, 32767, 32767};
static const int16_t speech_most[WEBRTC_ROW] = {11392, 11392, 11520, 11520,
                                                11520, 11520, 32767, 32767};
static const int16_t least_apart[WEBRTC_ROW] = {544, 544, 576, 576, 576, 576, -32768, -32768};
static const int16_t votes[WEBRTC_ROW] = {6, 8, 10, 12, 14, 16, 0, 0};

#define OLDEST 100           /* frames a quiet one is remembered */
#define STD_LEAST 384
#define LOG2_E 5909          /* Q12 */
#define LIKELY 22005         /* a squared distance beyond it is none at all, Q10 */
#define VOTE_OF_ONE 82
#define VOTE_OF_ALL 285
#define HANGOVER_SHORT 6
#define HANGOVER_LONG 9
#define LONG_SPEECH 6

/* Likelihoods of levels under one model in Q27, and distances over the variance in Q11. */
static inline void likelihoods(const int16_t *restrict levels, const int16_t *restrict means,
                               const int16_t *restrict stds, const int16_t *restrict weights,
                               int16_t *restrict deltas, int32_t *restrict chances)
{
    int32_t bits[WEBRTC_MODEL];
    float powers[WEBRTC_MODEL];
    int16_t inverse[WEBRTC_MODEL];
    int k;
    LANES(k, WEBRTC_MODEL)
        inverse[k] = (int16_t)(int32_t)((float)(131072 + (stds[k] >> 1)) / (float)stds[k]);
    LANES(k, WEBRTC_MODEL) {
        const int16_t quarter = inverse[k] >> 2;
        const int16_t square = (int16_t)((quarter * quarter) >> 2);
        const int16_t away = (int16_t)(levels[k] * 8 - means[k]);
        const int16_t delta = (int16_t)((square * away) >> 10);
        int32_t distance = (delta * away) >> 9;
        distance = distance > LIKELY ? LIKELY : distance;
        deltas[k] = delta;
        /* 2^-x with a straight line between whole x is what the bits of a float say. */
        bits[k] = (137 << 23) - ((LOG2_E * distance) >> 12) * 8192;
    }
    memcpy(powers, bits, sizeof powers);
    LANES(k, WEBRTC_MODEL) {
        const uint16_t scale = (uint16_t)(weights[k] * inverse[k]);
        const uint16_t power = (uint16_t)(int32_t)powers[k];
        chances[k] = (int32_t)((uint32_t)scale * power);
    }
}

/* How much of a likelihood is the first Gaussian's and the second's, Q14. */
static inline void shares(const int32_t *restrict chances, int empty, int16_t *restrict out)
{
    int k;
    LANES(k, WEBRTC_ROW) {
        const int32_t both = (chances[k] + chances[k + WEBRTC_ROW]) >> 12;
        const double first = (double)((chances[k] & ~0xFFF) * 4);
        const int32_t share = (int32_t)(first / (double)(both > 0 ? both : 1));
        out[k] = (int16_t)(both > 0 ? share : empty);
        out[k + WEBRTC_ROW] = (int16_t)(both > 0 ? 16384 - share : 0);
    }
}

/* Whether the bands together or one alone say speech. */
static inline int vote(const int32_t *noise, const int32_t *speech)
{
    int32_t sum = 0, most = 0;
    int k;
    for (k = 0; k < WEBRTC_BANDS; k++) {
        const int32_t h0 = noise[k] + noise[k + WEBRTC_ROW];
        const int32_t h1 = speech[k] + speech[k + WEBRTC_ROW];
        const int32_t ratio = leading_zeros((uint32_t)h0) - leading_zeros((uint32_t)h1);
        sum += ratio * votes[k];
        most = ratio > most ? ratio : most;
    }
    return sum >= VOTE_OF_ALL || 4 * most > VOTE_OF_ONE;
}

/* The oldest values go, and the next younger one is spared for a frame. */
static void least_forget(webrtc_least *l)
{
    int16_t *const values = l->values + 1, *const ages = l->ages + 1;
    int i;
    for (i = 0; i < WEBRTC_LEAST; i++) {
        if (ages[i] != OLDEST) {
            ages[i]++;
            continue;
        }
        memmove(values + i, values + i + 1, (size_t)(WEBRTC_LEAST - 1 - i) * sizeof *values);
        memmove(ages + i, ages + i + 1, (size_t)(WEBRTC_LEAST - 1 - i) * sizeof *ages);
        values[WEBRTC_LEAST - 1] = 10000;
        ages[WEBRTC_LEAST - 1] = 101;
    }
}

/* Take a level in among the least sixteen: what was before it stays, what was behind it goes
 * one further, the last is lost. Ages are of the values that stand there. */
#if DUPLEX_SSE2
static inline void least_insert(webrtc_least *l, int16_t level)
{
    const __m128i found = _mm_set1_epi16(level), one = _mm_set1_epi16(1);
    __m128i values[2], ages[2];
    int k;
    for (k = 0; k < 2; k++) {
        const __m128i value = _mm_loadu_si128((const __m128i *)(l->values + 1 + 8 * k));
        const __m128i before = _mm_loadu_si128((const __m128i *)(l->values + 8 * k));
        const __m128i age = _mm_loadu_si128((const __m128i *)(l->ages + 1 + 8 * k));
        const __m128i age_before = _mm_loadu_si128((const __m128i *)(l->ages + 8 * k));
        const __m128i more = _mm_cmpgt_epi16(value, found);
        const __m128i more_before = _mm_cmpgt_epi16(before, found);
        const __m128i moved = _mm_or_si128(_mm_and_si128(more_before, age_before),
                                           _mm_andnot_si128(more_before, one));
        values[k] = _mm_max_epi16(before, _mm_min_epi16(value, found));
        ages[k] = _mm_or_si128(_mm_andnot_si128(more, age), _mm_and_si128(more, moved));
    }
    for (k = 0; k < 2; k++) {
        _mm_storeu_si128((__m128i *)(l->values + 1 + 8 * k), values[k]);
        _mm_storeu_si128((__m128i *)(l->ages + 1 + 8 * k), ages[k]);
    }
}

static inline int least_grow_older(webrtc_least *l)
{
    __m128i *const at = (__m128i *)(l->ages + 1);
    const __m128i one = _mm_set1_epi16(1), oldest = _mm_set1_epi16(OLDEST);
    const __m128i low = _mm_loadu_si128(at), high = _mm_loadu_si128(at + 1);
    if (_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi16(low, oldest),
                                       _mm_cmpeq_epi16(high, oldest))))
        return 0;
    _mm_storeu_si128(at, _mm_add_epi16(low, one));
    _mm_storeu_si128(at + 1, _mm_add_epi16(high, one));
    return 1;
}
#else
static inline void least_insert(webrtc_least *l, int16_t level)
{
    int16_t *const values = l->values + 1, *const ages = l->ages + 1;
    int i;
    for (i = WEBRTC_LEAST; i > 0 && values[i - 1] > level; i--) {
        if (i == WEBRTC_LEAST)
            continue;
        values[i] = values[i - 1];
        ages[i] = ages[i - 1];
    }
    if (i == WEBRTC_LEAST)
        return;
    values[i] = level;
    ages[i] = 1;
}

/* 0, and nothing done, when one is too old to grow older. */
static inline int least_grow_older(webrtc_least *l)
{
    int i;
    for (i = 1; i <= WEBRTC_LEAST; i++)
        if (l->ages[i] == OLDEST)
            return 0;
    for (i = 1; i <= WEBRTC_LEAST; i++)
        l->ages[i]++;
    return 1;
}
#endif

/* The quietest of every band, smoothed. */
static inline void follow_floors(webrtc_t *w, const int16_t *levels)
{
    const int place = w->updates > 2 ? 2 : 0;
    int k;
    for (k = 0; k < WEBRTC_BANDS; k++) {
        int16_t now, keeps = 0;
        if (!least_grow_older(&w->least[k]))
            least_forget(&w->least[k]);
        least_insert(&w->least[k], levels[k]);
        now = w->updates ? w->least[k].values[1 + place] : 1600;
        if (w->updates)
            keeps = now < w->floors[k] ? 6553 : 32439;
        w->floors[k] =
            (int16_t)(((keeps + 1) * w->floors[k] + (32767 - keeps) * now + 16384) >> 15);
    }
}

static inline void weigh(const int16_t *restrict means, const int16_t *restrict weights,
                         int32_t *restrict out)
{
    int k;
    LANES(k, WEBRTC_ROW)
        out[k] = means[k] * weights[k] + means[k + WEBRTC_ROW] * weights[k + WEBRTC_ROW];
}

/* The noise model goes with the quietest, and with the frame where that is noise. */
static inline void learn_noise(webrtc_t *w, const int16_t *restrict levels, int is_noise,
                               const int16_t *restrict part, const int16_t *restrict deltas)
{
    int16_t drift[WEBRTC_MODEL], before[WEBRTC_MODEL];
    int32_t mean[WEBRTC_ROW];
    int k;
    weigh(w->noise_means, noise_weights, mean);
    LANES(k, WEBRTC_ROW) {
        const int16_t off = (int16_t)(w->floors[k] * 16 - (int16_t)(mean[k] >> 6));
        drift[k] = drift[k + WEBRTC_ROW] = (int16_t)((off * 154) >> 9);
    }
    memcpy(before, w->noise_means, sizeof before);
    LANES(k, WEBRTC_MODEL) {
        const int16_t pull = (int16_t)((part[k] * deltas[k]) >> 11);
        int16_t m = (int16_t)(before[k] + (is_noise ? (pull * 655) >> 22 : 0) + drift[k]);
        m = m < noise_lowest[k] ? noise_lowest[k] : m;
        w->noise_means[k] = m > noise_highest[k] ? noise_highest[k] : m;
    }
    if (!is_noise)
        return;
    LANES(k, WEBRTC_MODEL) {
        const int16_t away = (int16_t)(levels[k] - (before[k] >> 3));
        const int32_t error = ((deltas[k] * away) >> 3) - 4096;
        const int32_t step = (int32_t)((uint32_t)((part[k] + 2) >> 2) * (uint32_t)error) >> 14;
        /* Below 2^18, so that a float's division is that of whole numbers. */
        const int16_t share = (int16_t)(int32_t)((float)step / (float)w->noise_stds[k]);
        const int16_t std = (int16_t)(w->noise_stds[k] + ((int16_t)(share + 32) >> 6));
        w->noise_stds[k] = std < STD_LEAST ? STD_LEAST : std;
    }
}

static inline void learn_speech(webrtc_t *w, const int16_t *restrict levels,
                                const int16_t *restrict part, const int16_t *restrict deltas)
{
    int k;
    LANES(k, WEBRTC_MODEL) {
        const int16_t mean = w->speech_means[k], std = w->speech_stds[k];
        const int16_t pull = (int16_t)((part[k] * deltas[k]) >> 11);
        const int16_t move = (int16_t)((((pull * 6554) >> 21) + 1) >> 1);
        const int16_t away = (int16_t)(levels[k] - ((mean + 4) >> 3));
        const int32_t error = ((deltas[k] * away) >> 3) - 4096;
        const int32_t step = (int32_t)((uint32_t)(part[k] >> 2) * (uint32_t)error) >> 4;
        const int16_t share = (int16_t)(int32_t)((double)step / (double)(int16_t)(std * 10));
        const int16_t wider = (int16_t)(std + ((int16_t)(share + 128) >> 8));
        int16_t m = (int16_t)(mean + move);
        m = m < speech_lowest[k] ? speech_lowest[k] : m;
        w->speech_means[k] = m > speech_highest[k] ? speech_highest[k] : m;
        w->speech_stds[k] = wider < STD_LEAST ? STD_LEAST : wider;
    }
}

/* Keep the two models apart and below their bounds. */
static inline void keep_apart(webrtc_t *w)
{
    int16_t up[WEBRTC_MODEL], down[WEBRTC_MODEL];
    int32_t noise[WEBRTC_ROW], speech[WEBRTC_ROW];
    int k;
    weigh(w->noise_means, noise_weights, noise);
    weigh(w->speech_means, speech_weights, speech);
    LANES(k, WEBRTC_ROW) {
        const int16_t apart = (int16_t)((int16_t)(speech[k] >> 9) - (int16_t)(noise[k] >> 9));
        const int16_t lack = (int16_t)(least_apart[k] - apart);
        const int close = apart < least_apart[k];
        up[k] = up[k + WEBRTC_ROW] = (int16_t)(close ? (13 * lack) >> 2 : 0);
        down[k] = down[k + WEBRTC_ROW] = (int16_t)(close ? (3 * lack) >> 2 : 0);
    }
    LANES(k, WEBRTC_MODEL) {
        w->speech_means[k] = (int16_t)(w->speech_means[k] + up[k]);
        w->noise_means[k] = (int16_t)(w->noise_means[k] - down[k]);
    }
    weigh(w->noise_means, noise_weights, noise);
    weigh(w->speech_means, speech_weights, speech);
    LANES(k, WEBRTC_ROW) {
        const int16_t s = (int16_t)(speech[k] >> 7), n = (int16_t)(noise[k] >> 7);
        up[k] = up[k + WEBRTC_ROW] = (int16_t)(s > speech_most[k] ? s - speech_most[k] : 0);
        down[k] = down[k + WEBRTC_ROW] = (int16_t)(n > noise_most[k] ? n - noise_most[k] : 0);
    }
    LANES(k, WEBRTC_MODEL) {
        w->speech_means[k] = (int16_t)(w->speech_means[k] - up[k]);
        w->noise_means[k] = (int16_t)(w->noise_means[k] - down[k]);
    }
}

/* Decide a frame from its levels, and learn from it. */
static inline int webrtc_judge(webrtc_t *w, const int16_t *levels)
{
    int16_t noise_deltas[WEBRTC_MODEL], speech_deltas[WEBRTC_MODEL], part[WEBRTC_MODEL];
    int32_t noise[WEBRTC_MODEL], speech[WEBRTC_MODEL];
    int speaks;
    likelihoods(levels, w->noise_means, w->noise_stds, noise_weights, noise_deltas, noise);
    likelihoods(levels, w->speech_means, w->speech_stds, speech_weights, speech_deltas, speech);
    speaks = vote(noise, speech);
    follow_floors(w, levels);
    shares(speaks ? speech : noise, speaks ? 0 : 16384, part);
    learn_noise(w, levels, !speaks, part, noise_deltas);
    if (speaks)
        learn_speech(w, levels, part, speech_deltas);
    keep_apart(w);
    w->updates += w->updates < 3;
    return speaks;
}

/* Speech goes on for some frames after the last that was heard. */
static inline int webrtc_settle(webrtc_t *w, int speaks)
{
    if (speaks) {
        const int is_long = ++w->speech > LONG_SPEECH;
        w->speech = is_long ? LONG_SPEECH : w->speech;
        w->hangover = is_long ? HANGOVER_LONG : HANGOVER_SHORT;
        return 1;
    }
    w->speech = 0;
    if (w->hangover == 0)
        return 0;
    w->hangover--;
    return 1;
}

static int webrtc_pair(webrtc_t *one, const int16_t *x, webrtc_t *two, const int16_t *y)
{
    int16_t levels[2][WEBRTC_MODEL] = {{0}};
    int powers[2], a, b;
    webrtc_features(one, x, two, y, levels, powers);
    a = powers[0] > LEAST_POWER ? webrtc_judge(one, levels[0]) : 0;
    b = powers[1] > LEAST_POWER ? webrtc_judge(two, levels[1]) : 0;
    a = webrtc_settle(one, a);
    return a | webrtc_settle(two, b) << 1;
}
