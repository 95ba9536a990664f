// Checks every kernel that the processor can run, in plain C, so that the kernels can be checked where Swift can't be
// run: under an emulator.
//
//     check_kernels [CASES]     CASES is a file that make_cases.c wrote, for the P-256 kernels
//
// The SHA-256 kernels are compared with the reference below, and its mutants have to differ from it. Exits with 0 when
// everything agrees.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "CKernels.h"

static int failures;

static void report(const char *kernel, const char *what, size_t count, size_t length) {
    if (failures++ < 20) fprintf(stderr, "WRONG: %s, %s, %zu of %zu\n", kernel, what, count, length);
}

// MARK: - A reference of SHA-256, from the definition in FIPS 180-4

typedef unsigned __int128 wide;

// The first 32 bits behind the point of the square root (degree 2) or cube root (degree 3) of n.
static uint32_t root_bits(unsigned n, int degree) {
    // The largest x with x^degree <= n * 2^(32 * degree), whose last 32 bits stand behind the point.
    uint64_t low = 0, high = (uint64_t)1 << 38;
    const wide target = (wide)n << (32 * degree);
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        wide power = (wide)middle * middle;
        if (degree == 3) power *= middle;
        if (power <= target) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (uint32_t)low;
}

static uint32_t initial[8], constants[64];

static void compute_constants(void) {
    int count = 0;
    for (unsigned n = 2; count < 64; n++) {
        int is_prime = 1;
        for (unsigned d = 2; d * d <= n; d++) is_prime &= n % d != 0;
        if (!is_prime) continue;
        if (count < 8) initial[count] = root_bits(n, 2);
        constants[count++] = root_bits(n, 3);
    }
}

static uint32_t rotated(uint32_t x, int count) { return x >> count | x << (32 - count); }

static void reference_block(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], v[8];
    for (int t = 0; t < 16; t++) {
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 |
            block[4 * t + 3];
    }
    for (int t = 16; t < 64; t++) {
        const uint32_t s0 = rotated(w[t - 15], 7) ^ rotated(w[t - 15], 18) ^ w[t - 15] >> 3;
        const uint32_t s1 = rotated(w[t - 2], 17) ^ rotated(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) {
        const uint32_t s1 = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25);
        const uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants[t] + w[t];
        const uint32_t s0 = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22);
        const uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

static void reference_hash(const uint8_t *message, size_t length, uint8_t digest[32]) {
    uint32_t state[8];
    memcpy(state, initial, sizeof state);
    size_t done = 0;
    for (; length - done >= 64; done += 64) reference_block(state, message + done);
    uint8_t last[128] = {0};
    const size_t rest = length - done, bytes = rest < 56 ? 64 : 128;
    memcpy(last, message + done, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++) last[bytes - 1 - i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
    for (size_t at = 0; at < bytes; at += 64) reference_block(state, last + at);
    for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

// MARK: - SHA-256 kernels

enum { COUNT_MAX = 40, LENGTH_MAX = 200, GUARD = 0x5a };

static uint8_t pool[4096 + 64 * COUNT_MAX];

// `length` bytes right before a page that can't be read.
static uint8_t *before_page_end(const uint8_t *bytes, size_t length) {
    static uint8_t *end;
    if (!end) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) exit(2);
        end = pages + page;
    }
    memcpy(end - length, bytes, length);
    return end - length;
}

// Compares what a kernel writes for `count` messages with the reference; the byte behind has to stay.
static int agrees(const uint8_t *given, const uint8_t *const *messages, size_t length, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint8_t expected[32];
        reference_hash(messages[i], length, expected);
        if (memcmp(expected, given + 32 * i, 32) != 0) return 0;
    }
    return given[32 * count] == GUARD;
}

// The number of batches in which the kernel is wrong.
static size_t wrong_batches(const rg_sha256_functions *kernel, const char *name, int is_quiet) {
    size_t wrong = 0;
    uint8_t given[32 * COUNT_MAX + 1];
    const uint8_t *messages[COUNT_MAX];
    for (size_t length = 0; length <= LENGTH_MAX; length++) {
        for (size_t count = 0; count <= COUNT_MAX; count += length % 8 == 0 ? 1 : 7) {
            for (size_t i = 0; i < count; i++) messages[i] = pool + 37 * i;
            if (count > 0) messages[count - 1] = before_page_end(pool + 5, length);
            memset(given, GUARD, sizeof given);
            kernel->messages(messages, length, given, count);
            if (agrees(given, messages, length, count)) continue;
            wrong++;
            if (!is_quiet) report(name, "messages", count, length);
        }
    }
    for (size_t count = 0; count <= COUNT_MAX; count++) {
        const uint8_t *children = before_page_end(pool + count, 64 * count);
        for (size_t i = 0; i < count; i++) messages[i] = children + 64 * i;
        memset(given, GUARD, sizeof given);
        kernel->nodes(children, given, count);
        if (agrees(given, messages, 64, count)) continue;
        wrong++;
        if (!is_quiet) report(name, "nodes", count, 64);
    }
    kernel->nodes(NULL, NULL, 0);
    kernel->messages(NULL, 64, NULL, 0);
    return wrong;
}

#if defined(__aarch64__)
extern const rg_sha256_functions rg_sha256_mutant_armsha2_schedule, rg_sha256_mutant_armsha2_cut,
    rg_sha256_mutant_armsha2_second_stream;

static const struct {
    const char *name;
    uint32_t needs;
    const rg_sha256_functions *functions;
} mutants[] = {
    {"armsha2_schedule", RG_CPU_ARM_SHA2, &rg_sha256_mutant_armsha2_schedule},
    {"armsha2_cut", RG_CPU_ARM_SHA2, &rg_sha256_mutant_armsha2_cut},
    {"armsha2_second_stream", RG_CPU_ARM_SHA2, &rg_sha256_mutant_armsha2_second_stream},
};

static void check_mutants(uint32_t features) {
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0]; i++) {
        if (mutants[i].needs & ~features) continue;
        const size_t wrong = wrong_batches(mutants[i].functions, mutants[i].name, 1);
        if (wrong == 0) report(mutants[i].name, "a mutant agrees with the reference", 0, 0);
        printf("mutant %s: refused, wrong in %zu batches\n", mutants[i].name, wrong);
    }
}
#else
static void check_mutants(uint32_t features) { (void)features; }
#endif

// MARK: - P-256 kernels

typedef struct {
    uint8_t point[65];
    rg_p256_check check;
    uint8_t expected;
} signature_case;

enum { CASES_MAX = 20000 };

static signature_case *cases;
static size_t case_count;

static size_t read_bytes(const char *text, uint8_t *bytes, size_t most) {
    size_t count = 0;
    unsigned byte;
    for (; count < most && sscanf(text, "%2x", &byte) == 1; text += 2) bytes[count++] = (uint8_t)byte;
    return count;
}

static void read_cases(const char *path) {
    FILE *file = fopen(path, "r");
    cases = calloc(CASES_MAX, sizeof *cases);
    if (!file || !cases) {
        fprintf(stderr, "check_kernels: %s can't be read\n", path);
        exit(2);
    }
    char point[256], r[256], s[256], digest[256], outcome[256];
    while (case_count < CASES_MAX && fscanf(file, "%255s %255s %255s %255s %255s", point, r, s, digest, outcome) == 5) {
        signature_case *read = &cases[case_count++];
        const size_t point_bytes = read_bytes(point, read->point, sizeof read->point);
        read->check.point = read->point;
        if ((point_bytes != 33 && point_bytes != 65) || read_bytes(r, read->check.r, 32) != 32 ||
            read_bytes(s, read->check.s, 32) != 32 || read_bytes(digest, read->check.digest, 32) != 32) {
            fprintf(stderr, "check_kernels: line %zu of %s is no case\n", case_count, path);
            exit(2);
        }
        read->expected = strcmp(outcome, "valid") == 0 ? RG_P256_VALID
            : strcmp(outcome, "invalid") == 0          ? RG_P256_INVALID
                                                       : RG_P256_BAD_KEY;
    }
    fclose(file);
}

static void *aligned(size_t bytes) {
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!memory) exit(2);
    return memory;
}

// A P-256 kernel with the memory that it needs.
typedef struct {
    const char *name;
    const rg_p256_functions *functions;
    uint64_t *generator;
    void *workspace;
    uint64_t *tables[RG_P256_BATCH_MAX];
    size_t undecided, wrong;
} equipped_kernel;

// Runs a batch of the cases that `selected` names, with tables or without.
static void run_batch(equipped_kernel *kernel, const size_t *selected, size_t count, int is_known) {
    rg_p256_check checks[RG_P256_BATCH_MAX];
    const uint8_t *points[RG_P256_BATCH_MAX];
    uint8_t outcomes[RG_P256_BATCH_MAX + 1];
    memset(outcomes, GUARD, sizeof outcomes);
    for (size_t i = 0; i < count; i++) {
        checks[i] = cases[selected[i]].check;
        points[i] = checks[i].point;
    }
    if (is_known) {
        for (size_t i = 0; i < count; i += RG_P256_BUILD_MAX) {
            const size_t keys = count - i < RG_P256_BUILD_MAX ? count - i : RG_P256_BUILD_MAX;
            if (!kernel->functions->build_known(points + i, kernel->tables + i, keys, kernel->workspace)) {
                report(kernel->name, "no table", i, count);
            }
        }
        for (size_t i = 0; i < count; i++) checks[i].point = NULL;
        kernel->functions->verify_known(
            checks, (const uint64_t *const *)kernel->tables, count, kernel->generator, kernel->workspace, outcomes);
    } else {
        kernel->functions->verify(checks, count, kernel->generator, kernel->workspace, outcomes);
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t expected = cases[selected[i]].expected;
        if (outcomes[i] == expected) continue;
        // Only signatures that somebody made on purpose may be left to libcrypto.
        if (outcomes[i] == RG_P256_UNDECIDED) {
            kernel->undecided++;
            continue;
        }
        kernel->wrong++;
        report(kernel->name, is_known ? "known key, outcome" : "new key, outcome", outcomes[i], expected);
    }
    if (outcomes[count] != GUARD) report(kernel->name, "wrote behind the outcomes", count, count);
}

static void check_p256(const char *name, const rg_p256_functions *functions) {
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 129, 256};
    equipped_kernel kernel = {.name = name, .functions = functions};
    kernel.generator = aligned(RG_P256_GENERATOR_BYTES);
    kernel.workspace = aligned(functions->workspace_bytes);
    for (size_t i = 0; i < RG_P256_BATCH_MAX; i++) kernel.tables[i] = aligned(functions->known_bytes);
    functions->build_generator(kernel.generator, kernel.workspace);
    for (int is_known = 0; is_known < 2; is_known++) {
        // All cases once, in batches of all sizes, and every size at least once.
        size_t next = 0;
        for (size_t batch = 0; next < case_count || batch < sizeof sizes / sizeof sizes[0]; batch++) {
            size_t selected[RG_P256_BATCH_MAX];
            const size_t size = sizes[batch % (sizeof sizes / sizeof sizes[0])];
            for (size_t i = 0; i < size;) {
                selected[i] = next++ % case_count;
                // A key that is none has no table.
                if (!is_known || cases[selected[i]].expected != RG_P256_BAD_KEY) i++;
            }
            run_batch(&kernel, selected, size, is_known);
        }
    }
    printf("%s: %zu wrong of %zu cases, %zu undecided\n", name, kernel.wrong, 2 * case_count, kernel.undecided);
    if (kernel.undecided * 20 > case_count) report(name, "too many are undecided", kernel.undecided, case_count);
    for (size_t i = 0; i < RG_P256_BATCH_MAX; i++) free(kernel.tables[i]);
    free(kernel.generator);
    free(kernel.workspace);
}

int main(int count, char **words) {
    compute_constants();
    if (count > 1) read_cases(words[1]);
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof pool; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        pool[i] = (uint8_t)(state >> 56);
    }
    uint8_t digest[32];
    reference_hash((const uint8_t *)"abc", 3, digest);
    static const uint8_t abc[4] = {0xba, 0x78, 0x16, 0xbf};
    if (memcmp(digest, abc, sizeof abc) != 0) report("reference", "FIPS 180-4's first example", 0, 0);
    const uint32_t features = rg_cpu_features();
    size_t checked = 0;
    for (size_t i = 0; i < rg_kernel_count; i++) {
        const rg_kernel *kernel = &rg_kernels[i];
        if (kernel->needs & ~features) {
            printf("SKIPPED: %s, whose instructions this processor lacks\n", kernel->name);
        } else if (kernel->sha256) {
            printf("%s: %zu batches wrong\n", kernel->name, wrong_batches(kernel->sha256, kernel->name, 0));
            checked++;
        } else if (case_count == 0) {
            printf("SKIPPED: %s, because there are no cases\n", kernel->name);
        } else {
            check_p256(kernel->name, kernel->p256);
            checked++;
        }
        fflush(stdout);
    }
    check_mutants(features);
    if (checked == 0) report("table", "no kernel was checked", 0, 0);
    free(cases);
    return failures == 0 ? 0 : 1;
}
