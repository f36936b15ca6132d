// One row at a time, for compilers without vector types. Other compilers build it for the tests.
#include <cmath>
#include <cstring>
#include "kernel.h"
#define INLINE inline
#define LANES 1
#define LEVEL portable
#define LEVEL_NAME "portable"
#include "rows.h"
