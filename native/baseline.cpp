// Two rows at a time, which every x86-64 (SSE2) and aarch64 (NEON) processor supports.
#include <cmath>
#include <cstring>
#include "kernel.h"
#ifdef __GNUC__
#ifdef __SSE2__
#include <emmintrin.h>
#define LEVEL_NAME "SSE2"
#else
#define LEVEL_NAME "128-bit vectors"
#endif
#define INLINE inline __attribute__((always_inline))
#define LANES 2
#define LEVEL baseline
#include "rows.h"
#endif
