// The last signature of a full batch gets the outcome of the one before.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "CKernels.h"

static void verify(const rg_p256_check *, size_t, const uint64_t *, void *, uint8_t *);
static void broken_verify(
    const rg_p256_check *checks, size_t count, const uint64_t *generator, void *workspace, uint8_t *outcomes) {
    verify(checks, count, generator, workspace, outcomes);
    if (count == RG_P256_BATCH_MAX) outcomes[count - 1] = outcomes[count - 2];
}
#define MUTANT_VERIFY broken_verify
#define MUTANT_VERIFY_KNOWN verify_known

#define MUTANT rg_p256_mutant_one_place
#include "end.h"
