// Of known keys, the check at place 8 is verified with the table of the one before.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "CKernels.h"

static void verify_known(const rg_p256_check *, const uint64_t *const *, size_t, const uint64_t *, void *, uint8_t *);
static void broken_verify_known(
    const rg_p256_check *checks, const uint64_t *const *tables, size_t count, const uint64_t *generator,
    void *workspace, uint8_t *outcomes) {
    const uint64_t *mixed[RG_P256_BATCH_MAX];
    memcpy(mixed, tables, count * sizeof *mixed);
    if (count > 8) mixed[8] = mixed[7];
    verify_known(checks, mixed, count, generator, workspace, outcomes);
}
#define MUTANT_VERIFY verify
#define MUTANT_VERIFY_KNOWN broken_verify_known

#define MUTANT rg_p256_mutant_known_place
#include "end.h"
