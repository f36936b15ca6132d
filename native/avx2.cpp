// Four rows at a time, on x86-64-v3 processors. The headers come first, because their inline functions
// must not be compiled for this instruction set: the linker may keep any one copy.
#include <cmath>
#include <cstring>
#include "kernel.h"
#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define INLINE inline __attribute__((always_inline))
#define LANES 4
#define LEVEL avx2
#define LEVEL_NAME "AVX2"
#include "rows.h"
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
