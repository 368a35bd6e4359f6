/* What one leg of a call does to audio: the state of every effect, in one struct.
 *
 * A line is built by _line.pyx, which fills in parameters that Python rounded, and
 * driven one stretch of samples at a time through ``run``, which the engine calls
 * inside ``advance``. Nothing here may allocate, call Python, read a clock or use a
 * function of libm other than sqrt: the same samples must come out on any machine,
 * in any stretches, from either build of the kernels.
 *
 * Everything random is a function of (key, index), where the key stands for seed,
 * leg and effect and the index counts samples, blocks or packets from the start.
 */
#ifndef DUPLEX_LINE_H
#define DUPLEX_LINE_H

#include <stdint.h>

enum {
    LINE_BEDS = 4,       /* noise and background speech at once */
    LINE_SOUNDS = 4,     /* bursts, tics, side speech, one to spare */
    LINE_VOICES = 4,     /* of one kind, sounding at once */
    LINE_LEVELS = 256,   /* gains a sound may be drawn with */
    LINE_LABELS = 1024,  /* sounds finished between two drains */
    LINE_SECTIONS = 8,   /* of one cascade */
    LINE_BLOCK = 960,    /* samples in 20 ms at 48 kHz */
    LINE_WHITE = 160,    /* samples made from one set of counters */
    LINE_TAPS = 160,     /* of the telephone's filter at 48 kHz */
    LINE_PHASE = 26,     /* of which one sample out of the telephone takes so many: even */
    LINE_LINES = 8,      /* of the reverberation */
    LINE_PAST = 4096     /* samples a concealment may look back, a power of two */
};

enum { LAW_MU = 0, LAW_A = 1 };
enum { LOSS_NONE = 0, LOSS_IID = 1, LOSS_BURST = 2, LOSS_GILBERT = 3 };

/* Whether the source speaks, and how loud: learnt at the end of every 20 ms. */
typedef struct {
    uint64_t energy;     /* of this block so far */
    int64_t quiet;       /* whole quiet blocks in a row */
    int onset;           /* the last block began an utterance */
    /* Active level after P.56, in steps of 1 ms. */
    int follow;
    int64_t step;        /* samples in 1 ms */
    int64_t filled;
    uint64_t absolute, square;
    double fast, slow;   /* the envelope, in two stages */
    double squares[15], lengths[15];
    int hang[15];
    double estimate;     /* RMS of active speech, 0 until there was some */
    double level;        /* what gains go by */
} line_voice;

/* A gain that is only ever a straight line within a block. */
typedef struct {
    float from, to;
} line_ramp;

/* Noise under everything: white from the counter, or a loop. */
typedef struct {
    int on;
    uint64_t key;
    const int16_t *loop; /* NULL: white */
    int64_t length, offset;
    float gain;          /* at the level speech is expected to have */
    int follows;         /* the caller's level rather than the expected one */
    const float *drift;  /* one factor a block, going round; NULL: none */
    int64_t n_drift;
    line_ramp ramp;
} line_bed;

typedef struct {
    int64_t start, end;  /* at the line's samples; end is less when it was cut short */
    int32_t effect, clip;
} line_label;

typedef struct {
    int64_t start, end, cut; /* cut: fades out from here; INT64_MAX when it does not */
    int32_t clip, on;
    float gain;
} line_voicing;

/* Sounds that come at random, as a Poisson process over samples. */
typedef struct {
    int on, effect;
    uint64_t key;
    uint64_t at_most[3]; /* a draw at or below [k] means k arrivals in this block, or fewer */
    const int16_t **clips;
    int64_t *lengths;
    int64_t n_clips;
    int64_t every;       /* samples between arrivals instead; 0: at random */
    float gains[LINE_LEVELS];
    int follows;
    int needs_quiet;     /* blocks the source must have been quiet for; 0: may always sound */
    line_voicing voices[LINE_VOICES];
    int64_t refused;     /* arrivals while the source spoke or all voices sounded */
} line_sounds;

/* A delayed copy and its repetitions. The ring holds what was fed plus its own past. */
typedef struct {
    int on;
    float *ring;
    int64_t mask, delay;
    float gain, decay;
} line_delay;

/* Eight delays that feed each other: late reverberation that decays by 60 dB in rt60. */
typedef struct {
    int on;
    double *rings[LINE_LINES];
    int64_t mask, delays[LINE_LINES];
    double gains[LINE_LINES];
    double wet;
} line_reverb;

/* One section in the form of _filters.h and its past. */
typedef struct {
    double c[5], a2, a4;
    double x[4], y[4];   /* the oldest first */
} line_section;

typedef struct {
    int n;
    line_section sections[LINE_SECTIONS];
} line_cascade;

typedef struct {
    int on;
    line_cascade band, muffled;
    uint64_t key, muffle_below;
    int64_t muffle_start, muffle_end, muffle_fade;
    float gain;
    int agc;
    uint64_t agc_energy;
    line_ramp agc_ramp;
    int32_t dc, clip, lost_bits;
} line_microphone;

/* Down to 8 kHz, band, gain, the codec's steps, and up again. */
typedef struct {
    int on, factor;
    int span, taps;      /* taps that are not zero, and padded to a multiple of sixteen */
    int16_t down[LINE_TAPS];
    int16_t up[6][LINE_PHASE]; /* oldest first */
    int16_t past[LINE_TAPS + LINE_BLOCK + 64];
    int16_t narrow[LINE_PHASE + LINE_BLOCK + 16];
    int32_t pairs[LINE_PHASE + LINE_BLOCK + 16];
    int16_t phases[6][LINE_BLOCK / 2 + 16];
    line_cascade band;
    double gain;
    int law;
} line_telephony;

typedef struct {
    int model, conceals;
    uint64_t key;
    int64_t packet, burst; /* samples, packets */
    uint64_t to_bad, to_good, at_first;
    int bad, lost_now;
    int64_t left;          /* packets left of a fixed burst */
    int64_t lost, packets;
    /* Concealment: what came out last, the stretch that is repeated and how it goes. */
    int16_t past[LINE_PAST];
    float loop[LINE_PAST];
    int64_t n_loop, at;    /* its length, and where in it the repetition stands */
    int64_t missing;       /* samples since the loss began */
    int64_t healing;       /* samples of cross-fade into what came after it still to go */
    int64_t blend;         /* samples of a cross-fade */
    int64_t hold, fade;    /* repeated at full level so long, then fading so long */
    int64_t least, most;   /* shortest and longest period */
    float step;            /* the break at the first repeated sample, worn off over a blend */
} line_loss;

struct line_t;
typedef void (*line_run_fn)(struct line_t *, const int16_t *, int16_t *, int16_t *, int64_t);
typedef void (*line_hear_fn)(struct line_t *, const int16_t *, int64_t);

/* Written by run and hear only, between which it may be read; never reset. */
typedef struct line_t {
    line_run_fn run;       /* source, what comes out, noise as mixed or NULL, how many */
    line_hear_fn hear;     /* what the speaker of this side was played meanwhile */
    int64_t position, heard, block;
    double expected;       /* RMS of active speech, as sources are levelled */
    line_voice voice;
    line_sounds sounds[LINE_SOUNDS];
    int n_sounds;
    line_bed beds[LINE_BEDS];
    int n_beds;
    line_delay echo, acoustic;
    line_reverb reverb;
    line_microphone microphone;
    line_telephony telephony;
    line_loss loss;
    float bus[LINE_BLOCK];
    float white[LINE_WHITE]; /* the run of a bed that a stretch ended in, at a gain of 1 */
    uint64_t white_key, white_run; /* whose it is, and its number from 1 on; 0: none */
    double signals[2][LINE_BLOCK];
    int16_t mixed[LINE_BLOCK];
    uint8_t *mask;         /* one byte a packet that began: lost or not */
    int64_t n_mask, mask_room;
    line_label labels[LINE_LABELS];
    int64_t n_labels, labels_lost;
    int64_t clipped;
} line_t;

void line_init(line_t *l, int32_t rate_hz, double expected);
double line_reverb_energy(line_reverb *r, int64_t n);
line_run_fn line_run_baseline_fn(void);
line_hear_fn line_hear_baseline_fn(void);
/* NULL where this build or processor has no newer kernels. */
line_run_fn line_run_v3_fn(void);
line_hear_fn line_hear_v3_fn(void);
void line_round_trip_baseline(int law, const int16_t *x, int16_t *y, int64_t n);
void line_round_trip_v3(int law, const int16_t *x, int16_t *y, int64_t n);

#endif
