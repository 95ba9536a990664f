// With the SHA-2 instructions of ARMv8, the schedule of the later rounds takes two vectors in the wrong order.
#if defined(__aarch64__)
#include "CKernels.h"

#define rg_sha256_nodes_armsha2 mutant_armsha2_schedule_nodes
#define rg_sha256_messages_armsha2 mutant_armsha2_schedule_messages
#include <arm_neon.h>
#define vsha256su1q_u32(words, earlier, later) vsha256su1q_u32(words, later, earlier)
#include "../../Sources/CKernels/sha256/sha256_armsha2.c"

extern const rg_sha256_functions rg_sha256_mutant_armsha2_schedule;
const rg_sha256_functions rg_sha256_mutant_armsha2_schedule = {2, rg_sha256_nodes_armsha2, rg_sha256_messages_armsha2};
#endif
