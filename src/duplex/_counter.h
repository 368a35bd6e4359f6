/* Random numbers that are a function of a key and an index, and the white noise made of them.
 *
 * There is no generator to be in a state: sample 10 of a stream is the same whether
 * or not sample 9 was asked for. All of it is integer arithmetic up to the last
 * conversion, which is exact.
 */
#ifndef DUPLEX_COUNTER_H
#define DUPLEX_COUNTER_H

#include <string.h>

#include "_line.h"

/* 64 bits for one index: Steele, Lea and Flood's SplitMix finaliser over a Weyl sequence. */
static inline uint64_t draw(uint64_t key, uint64_t index)
{
    uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* A number below n, from the high bits of a draw. */
static inline int64_t draw_below(uint64_t random, int64_t n)
{
    return (int64_t)(((random >> 32) * (uint64_t)n) >> 32);
}

/* Marsaglia's xorshift; the seeds differ a lane and are drawn anew every LINE_WHITE samples. */
#define XORSHIFT(s) ((s) ^= (s) << 13, (s) ^= (s) >> 17, (s) ^= (s) << 5)

#if defined(__GNUC__)
typedef uint32_t eight_words __attribute__((vector_size(32)));
typedef int32_t eight_ints __attribute__((vector_size(32)));
typedef float eight_floats __attribute__((vector_size(32)));
#endif

/* One run of white noise: each sample is the sum of four 16-bit numbers less its mean,
 * so it lies within +-131070 and its variance is (65536^2 - 1) / 3. */
static inline void white_run(uint64_t key, uint64_t run, float *out)
{
    uint32_t a[8], b[8];
    int lane, k;
    for (lane = 0; lane < 8; lane++) {
        uint64_t seed = draw(key, run * 8 + (uint64_t)lane);
        a[lane] = (uint32_t)seed | 1u;
        b[lane] = (uint32_t)(seed >> 32) | 1u;
    }
#if defined(__GNUC__)
    {
        eight_words x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        for (k = 0; k < LINE_WHITE; k += 8) {
            eight_ints sum;
            eight_floats value;
            XORSHIFT(x);
            XORSHIFT(y);
            sum = (eight_ints)((x & 0xffffu) + (x >> 16) + (y & 0xffffu) + (y >> 16)) - 131070;
            value = __builtin_convertvector(sum, eight_floats);
            memcpy(out + k, &value, sizeof value);
        }
    }
#else
    for (k = 0; k < LINE_WHITE; k += 8) {
        for (lane = 0; lane < 8; lane++) {
            XORSHIFT(a[lane]);
            XORSHIFT(b[lane]);
            out[k + lane] = (float)((int32_t)((a[lane] & 0xffffu) + (a[lane] >> 16) +
                                              (b[lane] & 0xffffu) + (b[lane] >> 16)) - 131070);
        }
    }
#endif
}

#endif
