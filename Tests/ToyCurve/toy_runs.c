#include <stdlib.h>
#include <string.h>

#include "toy_oracle.h"

// MARK: Equipment

enum { POINT_BYTES = 65, ROW_BYTES = 64 };

/// A kernel with its memory, and with tables for all keys.
typedef struct {
    const rg_toy_curve *curve;
    const rg_toy_group *group;
    void *workspace;
    uint64_t *generator, *known;
    size_t known_words;
    /// Whether the kernel has built all tables.
    int is_built;
    uint8_t (*point)[POINT_BYTES];
    /// 1 / a modulo the order, and 2^192.
    uint32_t inverse[ORDER_MAX], power192;
    /// What `evaluate` has said for the scalars of a small group, plus 1; without a tree and with one.
    Evaluation *evaluation[2];
    uint8_t *is_evaluated[2];
} Equipment;

/// Memory that is aligned for the kernel. Without memory a test ends at once.
static void *aligned_memory(size_t bytes) {
    void *memory =
        aligned_alloc(RG_P256_ALIGNMENT, (bytes + RG_P256_ALIGNMENT - 1) / RG_P256_ALIGNMENT * RG_P256_ALIGNMENT);
    if (!memory) abort();
    memset(memory, 0, bytes);
    return memory;
}

static size_t table_bytes(rg_toy_shape shape) {
    const int subtables = (shape.digits + shape.columns - 1) / shape.columns;
    return (size_t)(subtables << (shape.width - 1)) * ROW_BYTES;
}

static void write_integer(uint8_t bytes[32], uint64_t top, uint64_t low) {
    memset(bytes, 0, 32);
    for (int k = 0; k < 8; k++) {
        bytes[k] = (uint8_t)(top >> (56 - 8 * k));
        bytes[24 + k] = (uint8_t)(low >> (56 - 8 * k));
    }
}

static void write_point(uint8_t bytes[POINT_BYTES], uint8_t form, uint32_t x, uint32_t y) {
    bytes[0] = form;
    write_integer(bytes + 1, 0, x);
    write_integer(bytes + 33, 0, y);
}

/// False when the kernel says that some key is no point.
static int build_known(Equipment *e) {
    const uint8_t *points[RG_P256_BUILD_MAX];
    uint64_t *tables[RG_P256_BUILD_MAX];
    for (uint32_t key = 1; key < e->group->order;) {
        size_t count = 0;
        for (; count < RG_P256_BUILD_MAX && key < e->group->order; count++, key++) {
            points[count] = e->point[key];
            tables[count] = e->known + e->known_words * key;
        }
        if (!e->curve->functions.build_known(points, tables, count, e->workspace)) return 0;
    }
    return 1;
}

static Equipment equip(const rg_toy_curve *curve, const rg_toy_group *group, int with_known) {
    Equipment e = {.curve = curve, .group = group};
    const size_t order = group->order, scalars = order * order * order;
    e.workspace = aligned_memory(curve->functions.workspace_bytes);
    e.generator = aligned_memory(table_bytes(curve->generator));
    curve->functions.build_generator(e.generator, e.workspace);
    e.point = aligned_memory(order * POINT_BYTES);
    for (uint32_t k = 1; k < order; k++) {
        write_point(e.point[k], 4, group->x[k], group->y[k]);
        e.inverse[k] = scalar_inverse(group, k);
    }
    e.power192 = 1;
    for (int k = 0; k < 192; k++) e.power192 = scalar_product(group, e.power192, 2);
    for (int by_tree = 0; order <= 64 && by_tree < 2; by_tree++) {
        e.evaluation[by_tree] = aligned_memory(scalars * sizeof(Evaluation));
        e.is_evaluated[by_tree] = aligned_memory(scalars);
    }
    e.is_built = 1;
    if (!with_known) return e;
    e.known_words = table_bytes(curve->known_key) / sizeof(uint64_t);
    e.known = aligned_memory(order * table_bytes(curve->known_key));
    e.is_built = build_known(&e);
    return e;
}

static void release(Equipment *e) {
    free(e->workspace);
    free(e->generator);
    free(e->known);
    free(e->point);
    for (int by_tree = 0; by_tree < 2; by_tree++) {
        free(e->evaluation[by_tree]);
        free(e->is_evaluated[by_tree]);
    }
}

// MARK: Checks

/// A signature. Its digest and, where they are not in range, r and s get upper bits too.
typedef struct {
    /// Number 0 is no point of the curve.
    uint32_t key, r, s, digest;
    /// Instead of the key's own encoding.
    const uint8_t *point;
} Signature;

static int is_in_range(const Equipment *e, uint32_t a) { return a > 0 && a < e->group->order; }

/// SplitMix64.
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void write_check(const Equipment *e, rg_p256_check *check, const Signature *signature) {
    uint64_t state = (uint64_t)signature->digest << 32 | signature->s << 16 | signature->r;
    const uint64_t top = next_random(&state), order = e->group->order;
    check->point = signature->point ? signature->point : e->point[signature->key];
    write_integer(check->r, signature->r > order ? top : 0, signature->r);
    write_integer(check->s, signature->s > order ? top : 0, signature->s);
    // A digest of 256 bits that is the given one modulo the order.
    const uint64_t rest = signature->digest + order - scalar_product(e->group, top, e->power192);
    write_integer(check->digest, top, rest % order + order * (next_random(&state) >> 32));
}

/// What the kernel is to say, and the exceptional case that makes it do so.
static uint8_t expected_outcome(
    const Equipment *e, const Signature *signature, int is_known, int by_tree, Evaluation *evaluation, int *valid) {
    *evaluation = (Evaluation){NO_CASE, 0, 0};
    *valid = 0;
    if (signature->key == 0) return RG_P256_BAD_KEY;
    if (!is_in_range(e, signature->r) || !is_in_range(e, signature->s)) return RG_P256_INVALID;
    const uint32_t inverse = e->inverse[signature->s];
    const uint32_t u1 = scalar_product(e->group, signature->digest, inverse);
    const uint32_t u2 = scalar_product(e->group, signature->r, inverse);
    const size_t order = e->group->order, place = (signature->key * order + u1) * order + u2;
    if (e->is_evaluated[by_tree] && e->is_evaluated[by_tree][place]) {
        *evaluation = e->evaluation[by_tree][place];
    } else {
        *evaluation = evaluate(e->curve, e->group, signature->key, u1, u2, is_known, by_tree);
        // The model's own sum has to be the right one.
        if (evaluation->sum != (u1 + scalar_product(e->group, u2, signature->key)) % order) abort();
        if (e->is_evaluated[by_tree]) {
            e->evaluation[by_tree][place] = *evaluation;
            e->is_evaluated[by_tree][place] = 1;
        }
    }
    *valid = is_valid(e->group, signature->key, u1, u2, signature->r);
    return evaluation->first != NO_CASE ? RG_P256_UNDECIDED : *valid ? RG_P256_VALID : RG_P256_INVALID;
}

/// Whether the check at that place of a batch is summed by a tree.
static int is_by_tree(const Equipment *e, size_t place, size_t count) {
    const size_t first = place / e->curve->tree_checks * e->curve->tree_checks, rest = count - first;
    return (rest < e->curve->tree_checks ? rest : e->curve->tree_checks) >= e->curve->tree_min;
}

static void tally_outcome(
    rg_toy_tally *tally, const Signature *signature, uint8_t outcome, uint8_t expected, Evaluation evaluation,
    int valid) {
    tally->checks++;
    tally->valid += outcome == RG_P256_VALID;
    tally->invalid += outcome == RG_P256_INVALID;
    tally->bad_key += outcome == RG_P256_BAD_KEY;
    tally->undecided += outcome == RG_P256_UNDECIDED;
    tally->equal += evaluation.first == EQUAL;
    tally->opposite += evaluation.first == OPPOSITE;
    tally->within_tree += evaluation.first != NO_CASE && evaluation.within_tree;
    tally->undecided_valid += outcome == RG_P256_UNDECIDED && valid;
    if (outcome == expected) return;
    if (tally->wrong++ > 0) return;
    tally->expected = expected;
    tally->outcome = outcome;
    tally->key = signature->key;
    tally->r = signature->r;
    tally->s = signature->s;
    tally->digest = signature->digest;
}

/// Verifies a batch, and compares every outcome.
static void run_batch(
    const Equipment *e, int is_known, const Signature *signatures, size_t count, rg_toy_tally *tally) {
    rg_p256_check checks[RG_P256_BATCH_MAX];
    const uint64_t *tables[RG_P256_BATCH_MAX];
    uint8_t outcomes[RG_P256_BATCH_MAX];
    for (size_t k = 0; k < count; k++) {
        write_check(e, &checks[k], &signatures[k]);
        tables[k] = e->known + e->known_words * signatures[k].key;
    }
    memset(outcomes, 0xff, sizeof outcomes);
    if (is_known)
        e->curve->functions.verify_known(checks, tables, count, e->generator, e->workspace, outcomes);
    else
        e->curve->functions.verify(checks, count, e->generator, e->workspace, outcomes);
    for (size_t k = 0; k < count; k++) {
        Evaluation evaluation;
        int valid;
        const uint8_t expected =
            expected_outcome(e, &signatures[k], is_known, is_by_tree(e, k, count), &evaluation, &valid);
        tally_outcome(tally, &signatures[k], outcomes[k], expected, evaluation, valid);
    }
}

/// Signatures that wait for their batch to be full.
typedef struct {
    const Equipment *equipment;
    rg_toy_mode mode;
    Signature signatures[RG_P256_BATCH_MAX];
    size_t count;
    rg_toy_tally tally;
} Batcher;

/// Tables that were not built count as a wrong outcome.
static Batcher begin_batches(const Equipment *e, rg_toy_mode mode) {
    return (Batcher){.equipment = e, .mode = mode, .tally = {.wrong = !e->is_built}};
}

static void flush(Batcher *b) {
    if (b->count > 0) run_batch(b->equipment, b->mode.is_known, b->signatures, b->count, &b->tally);
    b->count = 0;
}

static void append(Batcher *b, Signature signature) {
    b->signatures[b->count++] = signature;
    if (b->count == b->mode.batch) flush(b);
}

// MARK: Runs

rg_toy_tally rg_toy_verify_all(const rg_toy_curve *curve, const rg_toy_group *group, rg_toy_mode mode) {
    Equipment e = equip(curve, group, mode.is_known);
    Batcher batcher = begin_batches(&e, mode);
    const uint64_t order = group->order, bound = order + 1, total = (order - 1) * bound * bound * order;
    for (uint64_t i = 0; i < total; i++) {
        const uint64_t n = i * mode.step % total;
        const uint64_t digest = n % order, s = n / order % bound, r = n / order / bound % bound;
        append(
            &batcher,
            (Signature){
                .key = (uint32_t)(n / order / bound / bound + 1),
                .r = (uint32_t)r,
                .s = (uint32_t)s,
                .digest = (uint32_t)digest,
            });
    }
    flush(&batcher);
    release(&e);
    return batcher.tally;
}

/// The signature of these scalars by this key, with r = x of u1 G + u2 Q modulo the order, or another r with the same
/// u1 and u2. False when that sum has no such r.
static int signature_of(
    const Equipment *e, Signature *signature, uint32_t key, uint32_t u1, uint32_t u2, uint32_t error) {
    const uint32_t order = e->group->order, sum = (u1 + scalar_product(e->group, u2, key)) % order;
    const uint32_t r = (e->group->x[sum] + error) % order;
    if (r == 0 || u2 == 0) return 0;
    const uint32_t s = scalar_product(e->group, r, e->inverse[u2]);
    *signature = (Signature){.key = key, .r = r, .s = s, .digest = scalar_product(e->group, u1, s)};
    return 1;
}

rg_toy_tally rg_toy_verify_sums(const rg_toy_curve *curve, const rg_toy_group *group, rg_toy_mode mode) {
    Equipment e = equip(curve, group, mode.is_known);
    Batcher batcher = begin_batches(&e, mode);
    const uint64_t order = group->order, total = (order - 1) * order * (order - 1);
    for (uint64_t i = 0; i < total; i++) {
        const uint64_t n = i * mode.step % total;
        const uint32_t u2 = (uint32_t)(n % (order - 1)) + 1, u1 = (uint32_t)(n / (order - 1) % order);
        Signature signature;
        if (signature_of(&e, &signature, (uint32_t)(n / (order - 1) / order) + 1, u1, u2, 0))
            append(&batcher, signature);
    }
    flush(&batcher);
    release(&e);
    return batcher.tally;
}

rg_toy_tally rg_toy_verify_some(
    const rg_toy_curve *curve, const rg_toy_group *group, rg_toy_mode mode, size_t count, uint64_t seed) {
    Equipment e = equip(curve, group, mode.is_known);
    Batcher batcher = begin_batches(&e, mode);
    const uint32_t order = group->order;
    for (size_t made = 0; made < count;) {
        const uint64_t random = next_random(&seed);
        const uint32_t key = 1 + (uint32_t)(random & 0xffff) % (order - 1);
        const uint32_t u1 = (uint32_t)(random >> 16 & 0xffff) % order, u2 = (uint32_t)(random >> 32 & 0xffff) % order;
        Signature signature;
        if (!signature_of(&e, &signature, key, u1, u2, made % 2 ? (uint32_t)(random >> 48) : 0)) continue;
        append(&batcher, signature);
        made++;
    }
    flush(&batcher);
    release(&e);
    return batcher.tally;
}

enum { GOOD_MAX = 64, FAILING_MAX = 32 };

typedef struct {
    Signature good[GOOD_MAX], failing[FAILING_MAX];
    size_t good_count, failing_count;
} Samples;

/// Valid signatures without an exceptional case, and one failing signature for each kind of exceptional case, for every
/// bound of r and s, and for no point.
static Samples choose_samples(const Equipment *e, int is_known) {
    static const uint8_t off_curve[POINT_BYTES] = {4, [32] = 5, [64] = 1};
    Samples samples = {.good_count = 0};
    const uint32_t order = e->group->order;
    int found[2][3][2] = {{{0}}};
    for (uint32_t n = 1; n < 64 * order; n++) {
        Signature signature;
        Evaluation by_tree, one_by_one;
        int valid;
        if (!signature_of(e, &signature, 1 + n * 7 % (order - 1), n * 11 % order, n * 5 % order, 0)) continue;
        expected_outcome(e, &signature, is_known, 1, &by_tree, &valid);
        expected_outcome(e, &signature, is_known, 0, &one_by_one, &valid);
        if (by_tree.first == NO_CASE && one_by_one.first == NO_CASE) {
            if (samples.good_count < GOOD_MAX && valid) samples.good[samples.good_count++] = signature;
            continue;
        }
        int *const is_found[2] = {&found[0][one_by_one.first][0], &found[1][by_tree.first][by_tree.within_tree]};
        const int is_new = !*is_found[0] || !*is_found[1];
        *is_found[0] = *is_found[1] = 1;
        if (is_new) samples.failing[samples.failing_count++] = signature;
    }
    if (samples.good_count == 0 || samples.failing_count == 0) abort();
    const Signature good = samples.good[0];
    for (int k = 0; k < 6 + !is_known; k++) {
        Signature *failing = &samples.failing[samples.failing_count++];
        *failing = good;
        if (k < 3) failing->r = k == 0 ? 0 : order + (uint32_t)k - 1;
        if (k >= 3 && k < 6) failing->s = k == 3 ? 0 : order + (uint32_t)k - 4;
        if (k == 6) failing->key = 0, failing->point = off_curve;
    }
    return samples;
}

rg_toy_tally rg_toy_verify_places(const rg_toy_curve *curve, const rg_toy_group *group, rg_toy_mode mode) {
    Equipment e = equip(curve, group, mode.is_known);
    Batcher batcher = begin_batches(&e, mode);
    const Samples samples = choose_samples(&e, mode.is_known);
    for (size_t f = 0; f < samples.failing_count; f++)
        for (size_t place = 0; place < 2 * mode.batch; place++)
            for (size_t k = 0; k < mode.batch; k++) {
                // First one failing check among good ones, then the reverse.
                const int is_failing = place < mode.batch ? k == place : k != place - mode.batch;
                append(&batcher, is_failing ? samples.failing[f] : samples.good[(place + k) % samples.good_count]);
            }
    release(&e);
    return batcher.tally;
}

/// The number of the point that the coordinates encode, or 0.
static uint32_t decode(const rg_toy_group *group, uint32_t x, uint32_t y, int is_compressed) {
    if (!is_compressed) return number_of_point(group, x, y);
    for (uint32_t k = 1; k < group->order; k++)
        if (group->x[k] == x && group->y[k] % 2 == y) return k;
    return 0;
}

rg_toy_tally rg_toy_verify_keys(
    const rg_toy_curve *curve, const rg_toy_group *group, size_t batch, int bits, int is_compressed) {
    Equipment e = equip(curve, group, 0);
    Batcher batcher = begin_batches(&e, (rg_toy_mode){0, batch, 1});
    const Samples samples = choose_samples(&e, 0);
    uint8_t points[RG_P256_BATCH_MAX][POINT_BYTES];
    const uint32_t y_count = is_compressed ? 2 : 1u << bits;
    for (uint32_t x = 0; x < 1u << bits; x++)
        for (uint32_t y = 0; y < y_count; y++) {
            uint8_t *point = points[batcher.count];
            write_point(point, is_compressed ? (uint8_t)(2 + y) : 4, x, y);
            const uint32_t key = decode(group, x, y, is_compressed), scalar = (x + y) % (group->order - 1) + 1;
            Signature signature = samples.good[0];
            if (key > 0) (void)signature_of(&e, &signature, key, scalar, scalar, 0);
            signature.key = key;
            signature.point = point;
            append(&batcher, signature);
            append(&batcher, samples.good[(x + y) % samples.good_count]);
        }
    flush(&batcher);
    release(&e);
    return batcher.tally;
}
