#include "include/KernelInternals.h"

#define GROUPS 1
#define LANES_FILE "lanes/portable.h"
#include "../../Sources/CKernels/p256/kernel_headers.h"

#include "../../Sources/CKernels/p256/field_words.h"
#include "../../Sources/CKernels/p256/forms_words.h"

static Digits load_value(const uint64_t *words) {
    return digits_of_words((const word[4]){words[0], words[1], words[2], words[3]});
}

static void store_value(uint64_t *words, const Digits *a) { EACH_WORD(i) words[i] = word_of(a, i); }

#define OPERATION(name, ...)                                                    \
    static void run_##name(uint64_t *result, const uint64_t *const *operands) { \
        const Digits a = load_value(operands[0]), b = load_value(operands[1]);  \
        const Digits c = load_value(operands[2]), d = load_value(operands[3]);  \
        Digits r;                                                               \
        (void)b, (void)c, (void)d;                                              \
        __VA_ARGS__                                                             \
        store_value(result, &r);                                                \
    }

OPERATION(sum, r = add(a, b);)
OPERATION(difference, r = subtract(a, b);)
OPERATION(product, r = product(&a, &b);)
OPERATION(square, r = square(&a);)
OPERATION(square_plus_product, r = square_plus_product(&a, &b, &c);)
OPERATION(product_plus_product, r = product_plus_product(&a, &b, &c, &d);)
OPERATION(row, lanes words[4]; words_of_coordinate(words, &a, 0); EACH_WORD(i) r.limb[0][i] = words[i];)
OPERATION(coordinate, coordinate_of_words(&r, 0, a.limb[0]);)
OPERATION(integer, lanes words[4]; EACH_WORD(i) words[i] = a.limb[0][i]; limbs_of_words(r.limb[0], words);
          digits_of_integer(&r);)
OPERATION(residue, lanes limb[GROUPS][LIMBS]; residue_of_digits(limb, &a); digits_of_residue(&r, limb);)
OPERATION(parity, lane_mask odd[GROUPS]; odd_values(odd, &a); r = digits_of_words((const word[4]){odd[0]});)

#define ENTRY(name, operands) \
    { #name, operands, run_##name }

static const rg_field_operation operations[] = {
    ENTRY(sum, 2),
    ENTRY(difference, 2),
    ENTRY(product, 2),
    ENTRY(square, 1),
    ENTRY(square_plus_product, 3),
    ENTRY(product_plus_product, 4),
    ENTRY(row, 1),
    ENTRY(coordinate, 1),
    ENTRY(integer, 1),
    ENTRY(residue, 1),
    ENTRY(parity, 1),
};

const rg_field_operation *const rg_word_operations = operations;
const size_t rg_word_operation_count = sizeof operations / sizeof operations[0];
