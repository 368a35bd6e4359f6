/* What the edge detector is made of: its policy in numbers, the state of one side, its arithmetic.
 *
 * Nothing here decides anything. Integers only, no libm, no allocation; the other `_edge` headers
 * drive it.
 *
 * Number formats: filter states Q12, energies (mean squares) Q20, logs and statistics Q16 natural,
 * band mean and variance Q24. Signed right shifts are arithmetic on every compiler we build with. */
#ifndef DUPLEX_EDGE_STATE_H
#define DUPLEX_EDGE_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "_kernels.h"

#define EDGE_BANDS 3
#define EDGE_FRAMES_PER_SECOND 400
#define EDGE_MAX_FRAME 120   /* samples: 2.5 ms at 48 kHz */
#define EDGE_MAX_LEAP 48     /* samples: 1 ms at 48 kHz */
#define EDGE_NONE (-EDGE_MAX_FRAME)
#define EDGE_RING 1024       /* frames of energies kept: 2.56 s */
#define EDGE_MASK (EDGE_RING - 1)
#define EDGE_QUEUE 8         /* finished segments that may wait to be popped */
#define EDGE_PAUSES 512      /* pauses remembered, a power of two */
#define EDGE_SLOW 2048       /* 4 kHz samples kept to tell tone, voice and noise apart: 0.5 s */
#define EDGE_SLOW_MASK (EDGE_SLOW - 1)
#define EDGE_SLOW_PER_FRAME 10

#define EDGE_Q16(x) ((int32_t)((x) * 65536.0))
#define EDGE_Q20(x) ((int64_t)((x) * 1048576.0))
#define EDGE_Q24(x) ((int32_t)((x) * 16777216.0))
#define EDGE_HUGE ((int64_t)1 << 58)

/* Policy. A change of any of these is a change of the timing version. */
#define EDGE_LEVEL_FACTOR 16857      /* 10^-3.6 in Q26: an edge lies 36 dB below the level */
#define EDGE_CAP EDGE_Q16(6)         /* most a frame may say, either way */
#define EDGE_OPEN EDGE_Q16(16)
#define EDGE_OPEN_FRAMES 20          /* frames with evidence before opening: 50 ms */
#define EDGE_OPEN_STRONG 10
#define EDGE_CLOSE EDGE_Q16(8)
#define EDGE_HANG 80                 /* frames without evidence that close: 200 ms */
#define EDGE_PAUSE 24                /* frames of a pause inside a segment worth telling: 60 ms */
#define EDGE_SETTLE 120              /* frames after opening before the onset is final: 300 ms */
#define EDGE_REACH 504               /* frames an edge may lie in the past: 1.26 s */
#define EDGE_LEAD 80                 /* frames before the opening in which the onset is looked for */
#define EDGE_CHAIN 48                /* frames between two frames beyond doubt of one sound: 120 ms */
#define EDGE_WINDOW 6                /* frames of the sliding energy: 15 ms */
#define EDGE_CLEAR 4                 /* twice what defines an edge : noise, above which noise hides no frame */
#define EDGE_FLOOR EDGE_Q20(0.05)    /* noise is never taken to be lower, LSB^2 */
#define EDGE_EPS EDGE_Q20(0.01)
#define EDGE_MEAN_LOW EDGE_Q24(-0.6)
#define EDGE_MEAN_HIGH EDGE_Q24(0.3)
#define EDGE_VAR_START EDGE_Q24(0.15)
#define EDGE_VAR_MAX EDGE_Q24(1.5)
#define EDGE_SD_LEAST 410            /* 0.1 in Q12 */

/* Deviations that count as no evidence, and evidence an end must gather, by how restless a band's
 * noise is: from a steady 0.28 nepers (white) to a restless 0.48 (traffic, other talkers). */
#define EDGE_SD_STEADY 1147          /* Q12 */
#define EDGE_SD_SLOPE 80             /* Q12 to a Q16 share over 0.2 nepers */
#define EDGE_KAPPA_OPEN EDGE_Q16(1.7)
#define EDGE_KAPPA_OPEN_MORE EDGE_Q16(0.3)
#define EDGE_KAPPA_EDGE EDGE_Q16(1.3)
#define EDGE_KAPPA_SHY EDGE_Q16(0.7) /* more where the edge stands clear of the noise */
#define EDGE_SHY_UNTIL 0             /* deficit, 0.01 dB, above which nothing stands clear */
#define EDGE_SHY_OVER 600            /* and how far below it everything does */
#define EDGE_KAPPA_RESTLESS EDGE_Q16(2.5)
#define EDGE_END 12
#define EDGE_END_MORE 8              /* more in restless noise */
#define EDGE_END_SHY 4               /* less where the edge stands clear */
#define EDGE_END_CLEAR (-1200)       /* deficit, 0.01 dB, below which noise cannot pass for an end */

/* Edges cut off by the sample. */
#define EDGE_LEAP 50                 /* square of what is no noise, in its power: 5 deviations of a difference */
#define EDGE_CUT_START 8             /* frames from a start found in which its cut may lie */
#define EDGE_CUT_END 20              /* and back from an end */
#define EDGE_CUT_LOUD 8              /* a cut sound : noise */
#define EDGE_CUT_HERE 16             /* more where but the sample within the frame is asked */
#define EDGE_CUT_RING 32             /* and a cut sound : what rings on */
#define EDGE_CUT_RINGS 8             /* frames the filters ring on for */
#define EDGE_CUT_UNSEEN 24           /* sixteenths of what can be seen that may precede a cut */
#define EDGE_CUT_END_UNSEEN 32       /* or follow it and its ringing */

/* Visibility deficits, 0.01 dB. */
#define EDGE_RESTLESS 1000
#define EDGE_RESTLESS_FROM EDGE_Q16(0.4)
#define EDGE_RESTLESS_OVER 10        /* Q16 a thousandth: up to 0.55 nepers */
#define EDGE_SHARP_FROM 600
#define EDGE_SHARP 800
#define EDGE_SHARP_START 4           /* frames after a start, and before an end, that tell */
#define EDGE_SHARP_END 8
#define EDGE_FADING 300              /* above what defines an edge: an end below it fades out */
#define EDGE_FADED (-1100)           /* such an end is not known better than this */
#define EDGE_FADED_MORE 2000         /* nor so well as a sharp one */
#define EDGE_UNRELIABLE 1200
#define EDGE_CAPPED (-600)           /* and from here when the variance of the noise is beyond bounds */

/* Start-up: what is known of the noise before anything was heard. */
#define EDGE_BOOT 48                    /* frames heard before the first estimate: 120 ms */
#define EDGE_BOOT_LOUD 168              /* and when all of them are loud: 420 ms */
#define EDGE_BOOT_SKIP 8                /* frames in which the filters settle */
#define EDGE_BOOT_BLOCK 10              /* frames a block of the first estimate spans */
#define EDGE_BOOT_CEILING EDGE_Q20(10737) /* -50 dBFS: louder is not believed unless it is steady */
#define EDGE_BEGUN 3                    /* frames into a loud stream that are its beginning */
#define EDGE_DOUBT_FRAMES 480           /* how long a disbelieved start may hold a segment open */
#define EDGE_DOUBT_RATIO 32             /* most : least of a band that may still be noise: 15 dB */

/* Stationary sound: minimum and maximum of a 40 ms power over sub-windows of 100 ms.
 * A sound is only judged when it is older than the windows asked, so that where they begin is no matter. */
#define EDGE_SUB_FRAMES 40
#define EDGE_SUBS 32                    /* 3.2 s */
#define EDGE_FAST_SUBS 16               /* 1.6 s */
#define EDGE_STEADY 12                  /* most : least that is stationary over 3.2 s */
#define EDGE_STEADY_FAST 4              /* and in every band over 1.6 s */
#define EDGE_STEADY_SLACK 64            /* frames a revoked segment may precede what revokes it: 160 ms */
#define EDGE_HOLE 28                    /* frames of digital silence that are more than lost packets: 70 ms */
#define EDGE_NOTHING 42                 /* and after which there is no noise: 105 ms */
#define EDGE_VOICE_HOLD 4400            /* a voice held this long is given up as noise: 11 s */
#define EDGE_TONE_FRAMES 20             /* between two looks for a tone: 50 ms */
#define EDGE_VOICE_FRAMES 40            /* between two looks for a voice: 100 ms */
#define EDGE_TONE_SPAN 512              /* slow samples a look for a tone takes in: 128 ms */
#define EDGE_TONE_LEAST ((int64_t)1 << 20)
#define EDGE_TONE_GAIN 256              /* prediction gain of a tone pair: 24 dB */
#define EDGE_TONE_LOOKS 3               /* looks in a row that make it one */

enum { EDGE_START_MASKED = 1, EDGE_END_MASKED = 2, EDGE_START_UNRELIABLE = 4, EDGE_END_UNRELIABLE = 8 };
enum { EDGE_QUIET = 0, EDGE_PROVISIONAL = 1, EDGE_SPEECH = 2 };

/* A finished segment: [start, end) in absolute samples; deficits in hundredths of a dB. */
typedef struct {
    int64_t start, end;
    int32_t start_deficit, end_deficit;
    uint32_t flags;
} edge_segment;

/* A stretch inside a segment in which nothing was heard, in absolute samples. */
typedef struct {
    int64_t start, end;
} edge_pause;

/* What one frame looks like against the noise as known now. */
typedef struct {
    int64_t total, excess;    /* energy of all bands; energy above noise in bands that stand out */
    const int32_t *log_window;
    int32_t opens, edges;     /* evidence for speech: to open with, and, keener, to place edges with */
    int band;                 /* that `edges` comes from */
} edge_look;

/* One side. Written only by edge_push and edge_finish; reset only by edge_init. */
typedef struct {
    int32_t frame, leap, pole_dc, pole_low, pole_mid; /* samples a frame, a leap; pole gains Q20 */
    int32_t wide;                               /* run the kernels for newer processors */
    int32_t dc[2], low[2], mid[2];              /* filter states Q12 */
    int32_t pos, begun;
    uint64_t sum[EDGE_BANDS];
    int32_t below[EDGE_MAX_FRAME + 1];          /* sums of this frame below 2 kHz, sample by sample */
    int32_t slow_run;                           /* samples to one slow sample, 0 when that varies */
    uint32_t slow_part;                         /* its reciprocal, Q32, rounded up */
    int64_t samples, frames;                    /* taken in so far */

    int64_t energy[EDGE_RING][EDGE_BANDS];
    int64_t window[EDGE_RING][EDGE_BANDS];      /* mean energies of the 15 ms that end with a frame */
    int32_t log_window[EDGE_RING][EDGE_BANDS];
    int64_t recent[EDGE_BANDS];                 /* energies of the last EDGE_WINDOW frames, summed */
    int16_t first[EDGE_RING], last[EDGE_RING];  /* samples that changed; last < 0: digital silence */
    int16_t leap_first[EDGE_RING], leap_last[EDGE_RING]; /* samples that leapt, or EDGE_NONE */
    int16_t raw[EDGE_MAX_LEAP + EDGE_MAX_FRAME + 16];    /* this frame, and the samples it leaps from */
    int16_t slow[EDGE_SLOW];
    uint32_t slow_at;

    int64_t noise[EDGE_BANDS], power[EDGE_BANDS];
    int32_t mean[EDGE_BANDS], var[EDGE_BANDS], log_noise[EDGE_BANDS], inv_sd[EDGE_BANDS];
    int32_t kappa_open[EDGE_BANDS], kappa_edge[EDGE_BANDS], end_need[EDGE_BANDS];
    int64_t least[EDGE_BANDS], most[EDGE_BANDS];
    int64_t rumble, rumble_least, rumble_most;               /* the low band, slower */
    int64_t sub_rumble_least[EDGE_FAST_SUBS], sub_rumble_most[EDGE_FAST_SUBS];
    int64_t sub_least[EDGE_SUBS][EDGE_BANDS], sub_most[EDGE_SUBS][EDGE_BANDS];
    int64_t past_least[EDGE_BANDS], past_most[EDGE_BANDS];   /* of all sub-windows */
    int64_t near_least[EDGE_BANDS], near_most[EDGE_BANDS];   /* of the last EDGE_FAST_SUBS */
    int64_t long_least[3][EDGE_BANDS];
    int32_t sub_frames, sub_at, long_at;
    int64_t near_rumble_least, near_rumble_most;
    int64_t still;                              /* samples since the last that changed */
    int32_t booted, doubt, heard, silent_run;
    int32_t voice, tone_run;                    /* is it a voice; looks in a row that saw a tone */
    int64_t voice_at, tone_at, tone_from;       /* frames */

    int32_t score, strong, counted;             /* opening CUSUM */
    int32_t open, settle, tail, end_band;       /* closing CUSUM */
    int64_t free_from, on, off;                 /* frames: nothing heard before; first; last */
    int64_t level, channel_level;               /* energy of this segment, and of those before */
    int64_t start;                              /* samples; provisional while settle > 0 */
    int32_t start_deficit;
    uint32_t start_flags;
    int64_t steady_from, absorbed_at;           /* frames; -1: never */
    int32_t tonal;                              /* nothing but a tone since the segment began */

    edge_pause pauses[EDGE_PAUSES];             /* the newest, by start; the next goes to pauses_n */
    int64_t pauses_n;
    edge_segment queue[EDGE_QUEUE];
    int32_t queue_at, queue_n, revoked;
} edge_t;

/* ---- arithmetic ---- */

static inline int32_t edge_clip(int32_t v, int32_t low, int32_t high)
{
    return v < low ? low : v > high ? high : v;
}

static inline int64_t edge_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t edge_max(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int edge_top_bit(uint64_t x)
{
#if defined(__GNUC__)
    return 63 - __builtin_clzll(x);
#else
    int n = 0;
    while (x >>= 1) n++;
    return n;
#endif
}

static inline int edge_low_bit(unsigned x)
{
#if defined(__GNUC__)
    return __builtin_ctz(x);
#else
    int n = 0;
    while (!(x >> n & 1)) n++;
    return n;
#endif
}

/* Natural log of an energy plus 0.01, Q16, error below 1e-4: leading zeros and a table of ln(1 + i/64). */
static inline int32_t edge_ln(int64_t energy)
{
    static const int32_t table[65] = {
        0, 1016, 2017, 3002, 3973, 4930, 5873, 6802, 7719, 8623, 9515, 10394, 11262, 12119, 12965,
        13800, 14624, 15438, 16242, 17037, 17821, 18597, 19364, 20121, 20870, 21611, 22343, 23067,
        23783, 24492, 25193, 25886, 26573, 27252, 27924, 28589, 29248, 29900, 30546, 31185, 31818,
        32445, 33067, 33682, 34292, 34896, 35494, 36087, 36675, 37258, 37835, 38407, 38975, 39537,
        40095, 40648, 41196, 41740, 42280, 42815, 43345, 43872, 44394, 44912, 45426};
    uint64_t x = (uint64_t)(energy + EDGE_EPS);
    int top = edge_top_bit(x);
    uint64_t m = x << (63 - top);
    uint32_t i = (uint32_t)(m >> 57) & 63u, part = (uint32_t)(m >> 41) & 65535u;
    int32_t a = table[i], b = table[i + 1];
    return a + (int32_t)(((int64_t)(b - a) * part) >> 16) + (top - 20) * 45426;
}

/* exp of a Q16 number of size below 8, as Q16. */
static inline int64_t edge_exp(int32_t y)
{
    int64_t s = 65536, t = 65536, r = y;
    int k = 0, i;
    while (r > 22713) { r -= 45426; k++; }
    while (r < -22713) { r += 45426; k--; }
    for (i = 1; i < 7; i++) { t = t * r / 65536 / i; s += t; }
    return k >= 0 ? s << k : s >> -k;
}

/* The whole part of the root, of 21 bits at most. Whole numbers that small are held exactly by a double,
 * and no root that is no whole number comes near enough to one to be rounded to it. */
static inline uint32_t edge_sqrt(uint64_t x)
{
#if DUPLEX_SSE2
    const __m128d root = _mm_set_sd((double)(int64_t)(x >> 42 ? ((uint64_t)1 << 42) - 1 : x));
    return (uint32_t)_mm_cvttsd_si32(_mm_sqrt_sd(root, root));
#else
    uint64_t r = 0, bit = (uint64_t)1 << 40;
    while (bit > x) bit >>= 2;
    for (; bit; bit >>= 2) {
        if (x >= r + bit) { x -= r + bit; r = (r >> 1) + bit; } else r >>= 1;
    }
    return (uint32_t)r;
#endif
}

/* 1 - exp(-2 pi hz / rate) in Q20, by its series in Q30. */
static inline int32_t edge_pole(int32_t hz, int32_t rate)
{
    int64_t x = (int64_t)hz * 6746518852LL / rate, term = (int64_t)1 << 30, s = term;
    int i;
    for (i = 1; i < 24; i++) { term = -((term * (x >> 2)) / ((int64_t)1 << 28)) / i; s += term; }
    return (int32_t)((((int64_t)1 << 30) - s) >> 10);
}

#endif
