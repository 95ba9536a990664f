#if defined(__x86_64__)
#define GROUPS 2
#include "avx512ifma.h"

extern const rg_p256_functions rg_p256_avx512ifma_two_groups;
const rg_p256_functions rg_p256_avx512ifma_two_groups = {BLOCK,  sizeof(Workspace), build_generator,
                                                         verify, verify_known,      build_known};
#endif
