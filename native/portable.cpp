// One row at a time, for compilers without vectors; the others compile it to be tested against.
#include <cmath>
#include <cstring>
#include "kernel.h"
#define INLINE inline
#define LANES 1
#define LEVEL portable
#define LEVEL_NAME "portable"
#include "rows.h"
