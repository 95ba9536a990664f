#if defined(__x86_64__)
#define GROUPS 1
#include "avx512ifma.h"

extern const rg_p256_functions rg_p256_avx512ifma_one_group;
const rg_p256_functions rg_p256_avx512ifma_one_group = {BLOCK,  sizeof(Workspace), build_generator,
                                                        verify, verify_known,      build_known};
#endif
