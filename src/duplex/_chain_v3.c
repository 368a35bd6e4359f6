/* The chain of effects for x86-64-v3 (AVX2), given out only where the processor has it.
 *
 * Fused multiply-add stays off, by not being asked for and by -ffp-contract=off, so
 * this gives the bytes that _chain_baseline.c gives.
 */
#include "_line.h"

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)

#include <stddef.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt")
#endif

#include <immintrin.h>

#define CHAIN(name) name##_v3
#define LINE_IS_WIDE 1
#define LINE_WIDE 1
#include "_chain.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC reset_options
#endif

static int has_v3(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

line_run_fn line_run_v3_fn(void)
{
    return has_v3() ? line_run_v3 : NULL;
}

line_hear_fn line_hear_v3_fn(void)
{
    return has_v3() ? line_hear_v3 : NULL;
}

#else

#include <stddef.h>

line_run_fn line_run_v3_fn(void)
{
    return NULL;
}

line_hear_fn line_hear_v3_fn(void)
{
    return NULL;
}

void line_round_trip_v3(int law, const int16_t *x, int16_t *y, int64_t n)
{
    (void)law;
    (void)x;
    (void)y;
    (void)n;
}

#endif
