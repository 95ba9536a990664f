// Assertions about the bounds of intermediate values. They cost time, so only checked builds have them.
#pragma once

#ifdef KERNEL_CHECKS
#include <stdio.h>
#include <stdlib.h>
#define KERNEL_CHECK(condition)                                                                  \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            fprintf(stderr, "%s:%d: kernel bound broken: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                             \
        }                                                                                        \
    } while (0)
#else
#define KERNEL_CHECK(condition) ((void)0)
#endif
