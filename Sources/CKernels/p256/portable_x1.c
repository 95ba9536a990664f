#define GROUPS 1
#define LANES_FILE "lanes/portable.h"
#define FIELD_FILE "field_words.h"
#define KNOWN_KEY_FORM 1
// Quickest with as many on a Zen 5 with 1 MiB of second-level cache; 256 are slower by a fifteenth.
#define TREE_CHECKS 64
#define CHECKS_TOGETHER 64
#include "kernel_headers.h"

#include "verify.h"

extern const rg_p256_functions rg_p256_portable_x1;
const rg_p256_functions rg_p256_portable_x1 = FUNCTIONS;
