// The rest of every mutant of the P-256 kernel: a table of its functions, by the name MUTANT.
#include "../../Sources/CKernels/p256/verify.h"

#ifndef MUTANT_VERIFY
#define MUTANT_VERIFY verify
#define MUTANT_VERIFY_KNOWN verify_known
#endif

extern const rg_p256_functions MUTANT;
const rg_p256_functions MUTANT = {BLOCK,           sizeof(Workspace), KNOWN_KEY_BYTES,     KNOWN_KEY_FORM,
                                  build_generator, MUTANT_VERIFY,     MUTANT_VERIFY_KNOWN, build_known};
