/* The webrtc detector for x86-64-v3 (AVX2), given out only where the processor has it. */
#include "_webrtc.h"

#include <stddef.h>

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt")
#endif

#include "_webrtc_model.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC reset_options
#endif

webrtc_pair_fn webrtc_v3_fn(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? webrtc_pair : NULL;
}

#else

webrtc_pair_fn webrtc_v3_fn(void)
{
    return NULL;
}

#endif
