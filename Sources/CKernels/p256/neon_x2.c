#if defined(__aarch64__)
#define GROUPS 1
#define LANES_FILE "lanes/neon.h"
#define KNOWN_KEY_FORM 1
#include "kernel_headers.h"

#include "verify.h"

extern const rg_p256_functions rg_p256_neon_x2;
const rg_p256_functions rg_p256_neon_x2 = FUNCTIONS;
#endif
