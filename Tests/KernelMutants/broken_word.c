// The field of words with checks, and a value that its contract does not allow.
#include "include/KernelMutants.h"

#ifndef KERNEL_CHECKS
#define KERNEL_CHECKS
#endif
#define GROUPS 1
#define LANES_FILE "lanes/portable.h"
#include "../../Sources/CKernels/p256/kernel_headers.h"
#include "../../Sources/CKernels/p256/field_words.h"

void rg_run_with_broken_word(void) {
    // p is 0, and is not reduced.
    const Digits p = digits_of_words((const word[4]){P_WORDS[0], P_WORDS[1], P_WORDS[2], P_WORDS[3]});
    Digits r;
    square_digits(&r, &p);
}
