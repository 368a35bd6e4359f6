/* Random numbers that are a function of a key and an index.
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

#endif
