#define GROUPS 1
#define LANES_FILE "lanes/portable.h"
#define KNOWN_KEY_FORM 1
#include "kernel_headers.h"

#include "verify.h"

extern const rg_p256_functions rg_p256_portable_x1;
const rg_p256_functions rg_p256_portable_x1 = FUNCTIONS;
