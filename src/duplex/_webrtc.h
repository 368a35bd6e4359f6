/* The webrtc detector of 10 ms at 8 kHz, mode 2: its state, and who may run it.
 *
 * What the WebRTC project's voice detector decides (six bands, two Gaussians a band
 * and model, all in integers), written anew so that a processor does many bands at
 * once; the numbers in it are that project's. It must decide as the ``webrtcvad``
 * package does, frame for frame: _core.pyx asks both before it trusts this one, and
 * tests/test_core_webrtc.py compares every number of the state that shows. Compiled
 * twice, as _webrtc_baseline.c and _webrtc_v3.c. Nothing here allocates or calls Python.
 */
#ifndef DUPLEX_WEBRTC_H
#define DUPLEX_WEBRTC_H

#include <stdint.h>

enum {
    WEBRTC_FRAME = 80,   /* samples in 10 ms */
    WEBRTC_BANDS = 6,
    WEBRTC_SPLITS = 5,   /* filters that halve a band */
    WEBRTC_ROW = 8,      /* lanes of one Gaussian of all bands; two stay empty */
    WEBRTC_MODEL = 16,   /* lanes of both Gaussians: first, second */
    WEBRTC_LEAST = 16    /* smallest features kept of a band */
};

/* What one band was at its quietest: values in order, each with its age in frames. A
 * value smaller than any other stands before the first. */
typedef struct {
    int16_t values[1 + WEBRTC_LEAST], ages[1 + WEBRTC_LEAST];
} webrtc_least;

/* One side's detector. ``webrtc_pair`` writes it, nobody else; never reset. */
typedef struct {
    int16_t upper[WEBRTC_SPLITS], lower[WEBRTC_SPLITS];
    int16_t high_pass[4];
    int16_t noise_means[WEBRTC_MODEL], noise_stds[WEBRTC_MODEL];
    int16_t speech_means[WEBRTC_MODEL], speech_stds[WEBRTC_MODEL];
    webrtc_least least[WEBRTC_BANDS];
    int16_t floors[WEBRTC_ROW]; /* the quietest, smoothed */
    int32_t updates;     /* frames that were loud enough to learn from, up to three */
    int hangover, speech;
} webrtc_t;

/* Decide one frame of each of two sides; bits of who speaks. */
typedef int (*webrtc_pair_fn)(webrtc_t *one, const int16_t *x, webrtc_t *two, const int16_t *y);

void webrtc_init(webrtc_t *w);
webrtc_pair_fn webrtc_baseline_fn(void);
/* NULL where this build or processor has no newer kernels. */
webrtc_pair_fn webrtc_v3_fn(void);

#endif
