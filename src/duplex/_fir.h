/* Low-pass tables of the webrtc detector, Q15: session rate -> 8 kHz.
 *
 * Odd, symmetric, DC gain exactly 32768; pass band to 3.4 kHz within 0.1 dB,
 * at least 60 dB down from 4.6 kHz. The half length is a whole number of 8 kHz
 * samples at 16, 24 and 48 kHz, so the delay (1.375 ms) is taken out exactly.
 * Padded with zeros to a multiple of eight. The sum of magnitudes is below 2,
 * so an int32 holds any output before it is rounded. tests/test_core_webrtc.py
 * checks every one of these statements.
 */
#ifndef DUPLEX_FIR_H
#define DUPLEX_FIR_H
#include <stdint.h>

/* 45 taps at 16000 Hz, 22 of them ahead. */
static const int16_t duplex_fir_16[48] = {
    48, 59, -45, -115, 35, 161, -66, -274, 62, 392, -87, -588,
    85, 837, -104, -1238, 103, 1896, -116, -3377, 112, 10435, 16338, 10435,
    112, -3377, -116, 1896, 103, -1238, -104, 837, 85, -588, -87, 392,
    62, -274, -66, 161, 35, -115, -45, 59, 48, 0, 0, 0,
};

/* 67 taps at 24000 Hz, 33 of them ahead. */
static const int16_t duplex_fir_24[72] = {
    24, 30, 8, -43, -83, -63, 20, 97, 79, -43, -164, -142,
    45, 235, 215, -56, -342, -325, 61, 486, 481, -68, -700, -724,
    73, 1051, 1152, -77, -1777, -2168, 79, 4549, 9025, 10898, 9025, 4549,
    79, -2168, -1777, -77, 1152, 1051, 73, -724, -700, -68, 481, 486,
    61, -325, -342, -56, 215, 235, 45, -142, -164, -43, 79, 97,
    20, -63, -83, -43, 8, 30, 24, 0, 0, 0, 0, 0,
};

/* 133 taps at 48000 Hz, 66 of them ahead. */
static const int16_t duplex_fir_48[136] = {
    14, 12, 12, 9, 2, -10, -23, -35, -42, -41, -31, -13,
    10, 33, 49, 52, 40, 14, -21, -56, -81, -87, -70, -30,
    23, 78, 118, 130, 107, 51, -28, -109, -170, -192, -162, -82,
    31, 150, 243, 278, 240, 128, -35, -210, -350, -410, -361, -203,
    37, 304, 525, 633, 575, 341, -39, -486, -889, -1124, -1084, -698,
    40, 1072, 2275, 3482, 4513, 5207, 5456, 5207, 4513, 3482, 2275, 1072,
    40, -698, -1084, -1124, -889, -486, -39, 341, 575, 633, 525, 304,
    37, -203, -361, -410, -350, -210, -35, 128, 240, 278, 243, 150,
    31, -82, -162, -192, -170, -109, -28, 51, 107, 130, 118, 78,
    23, -30, -70, -87, -81, -56, -21, 14, 40, 52, 49, 33,
    10, -13, -31, -41, -42, -35, -23, -10, 2, 9, 12, 12,
    14, 0, 0, 0,
};

#endif
