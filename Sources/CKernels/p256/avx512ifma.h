// The P-256 kernel for AVX-512 IFMA, as static functions of the file that includes this one.
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi2"))), apply_to = function)
#include "verify.h"
#pragma clang attribute pop
