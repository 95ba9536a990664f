// The kernel with one group of eight lanes, in plain C, which counts what it does. The checks of bounds would count.
#undef KERNEL_CHECKS
#include "include/KernelEmulation.h"

static struct operations done;

struct operations rg_take_operations(void) {
    struct operations taken = done;
    done = (struct operations){0, 0};
    return taken;
}

#define PORTABLE_LANES 8
#define GROUPS 1
#define LANES_FILE "../../../Tests/KernelEmulation/counted_lanes.h"
#define KNOWN_KEY_FORM 0
#include "../../Sources/CKernels/p256/kernel_headers.h"
#include "../../Sources/CKernels/p256/verify.h"

static const rg_p256_functions functions = FUNCTIONS;
const rg_p256_functions *const rg_p256_counted = &functions;
