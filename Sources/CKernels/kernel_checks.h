// Checks of the bounds that the kernels' comments state. Debug builds run them, and so does the build of the tests with
// sanitizers. In other builds KERNEL_CHECKS_ON is 0, and the compiler removes every check.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#ifdef KERNEL_CHECKS
enum { KERNEL_CHECKS_ON = 1 };
#else
enum { KERNEL_CHECKS_ON = 0 };
#endif

/// Aborts when a bound does not hold, and prints its name.
static inline void kernel_check(int holds, const char *bound) {
    if (!KERNEL_CHECKS_ON || holds) return;
    fprintf(stderr, "kernel bound broken: %s\n", bound);
    abort();
}
