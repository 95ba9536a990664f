// What every mutant of the P-256 kernel begins with. Then it includes the kernel's private headers from the
// bottom up, puts its substitution between two of them, and ends with end.h.
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS 1
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi2"))), apply_to = function)
