/* The webrtc detector for any processor. */
#include "_webrtc.h"

#include "_webrtc_model.h"

webrtc_pair_fn webrtc_baseline_fn(void)
{
    return webrtc_pair;
}

void webrtc_init(webrtc_t *w)
{
    int k, j;
    memset(w, 0, sizeof *w);
    memcpy(w->noise_means, noise_means_first, sizeof w->noise_means);
    memcpy(w->speech_means, speech_means_first, sizeof w->speech_means);
    memcpy(w->noise_stds, noise_stds_first, sizeof w->noise_stds);
    memcpy(w->speech_stds, speech_stds_first, sizeof w->speech_stds);
    for (k = 0; k < WEBRTC_BANDS; k++) {
        w->least[k].values[0] = INT16_MIN;
        for (j = 0; j < WEBRTC_LEAST; j++)
            w->least[k].values[1 + j] = 10000;
        w->floors[k] = 1600;
    }
}
