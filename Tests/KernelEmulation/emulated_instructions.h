// The types and intrinsics of AVX-512 that the P-256 kernel uses, in plain C: one line for each. A file that includes
// this one before the kernel's headers compiles the kernel for any 64-bit processor. It is about a hundred times slower
// then.
//
// The meaning of each intrinsic is that of Intel's Intrinsics Guide. In a line, i is the lane, and A, B and C are that
// lane of the vectors a, b and c.
#pragma once

#define KERNEL_EMULATION

#include <stdint.h>
#include <string.h>

typedef struct {
    _Alignas(64) uint64_t lane[8];
} __m512i;

typedef struct {
    _Alignas(64) double lane[8];
} __m512d;

/// The low half, which holds a count of bits or lane 0.
typedef struct {
    uint64_t lane[1];
} __m128i;

typedef uint8_t __mmask8;

enum { _CMP_LT_OQ = 17, _CMP_GT_OQ = 30 };

#define EMULATED static inline __attribute__((unused))

/// An intrinsic whose result has this value in every lane.
#define LANEWISE(type, name, parameters, value)             \
    EMULATED type name parameters {                         \
        type result;                                        \
        for (int i = 0; i < 8; i++) result.lane[i] = value; \
        return result;                                      \
    }

/// An intrinsic whose result is the mask of the lanes in which the condition holds.
#define MASK(name, parameters, condition)                             \
    EMULATED __mmask8 name parameters {                               \
        int mask = 0;                                                 \
        for (int i = 0; i < 8; i++) mask |= (condition) ? 1 << i : 0; \
        return (__mmask8)mask;                                        \
    }

#define A a.lane[i]
#define B b.lane[i]
#define C c.lane[i]
/// Whether lane i is chosen.
#define M (m >> i & 1)

// clang-format off

// MARK: Arithmetic

EMULATED uint64_t low_52_bits(uint64_t x) { return x & UINT64_MAX >> 12; }
EMULATED uint64_t high_product(uint64_t x, uint64_t y) {
    return (uint64_t)((unsigned __int128)low_52_bits(x) * low_52_bits(y) >> 52);
}

LANEWISE(__m512i, _mm512_set1_epi64, (long long a), (uint64_t)a)
LANEWISE(__m512i, _mm512_setzero_si512, (void), 0)
LANEWISE(__m512i, _mm512_add_epi64, (__m512i a, __m512i b), A + B)
LANEWISE(__m512i, _mm512_sub_epi64, (__m512i a, __m512i b), A - B)
LANEWISE(__m512i, _mm512_abs_epi64, (__m512i a), A >> 63 ? -A : A)
LANEWISE(__m512i, _mm512_madd52lo_epu64, (__m512i a, __m512i b, __m512i c), A + low_52_bits(B * C))
LANEWISE(__m512i, _mm512_madd52hi_epu64, (__m512i a, __m512i b, __m512i c), A + high_product(B, C))

// MARK: Bits

/// Bit 4 x + 2 y + z of the table is the result for the bits x, y and z.
EMULATED uint64_t three_bits(uint64_t x, uint64_t y, uint64_t z, int table) {
    uint64_t result = 0;
    for (int k = 0; k < 8; k++) result |= table >> k & 1 ? (k & 4 ? x : ~x) & (k & 2 ? y : ~y) & (k & 1 ? z : ~z) : 0;
    return result;
}

LANEWISE(__m512i, _mm512_and_epi64, (__m512i a, __m512i b), A & B)
LANEWISE(__m512i, _mm512_or_epi64, (__m512i a, __m512i b), A | B)
LANEWISE(__m512i, _mm512_ternarylogic_epi64, (__m512i a, __m512i b, __m512i c, int table), three_bits(A, B, C, table))
LANEWISE(__m512i, _mm512_srai_epi64, (__m512i a, unsigned n), (uint64_t)((int64_t)A >> n))
LANEWISE(__m512i, _mm512_srli_epi64, (__m512i a, unsigned n), A >> n)
LANEWISE(__m512i, _mm512_slli_epi64, (__m512i a, unsigned n), A << n)
LANEWISE(__m512i, _mm512_srl_epi64, (__m512i a, __m128i n), A >> n.lane[0])
LANEWISE(__m512i, _mm512_sll_epi64, (__m512i a, __m128i n), A << n.lane[0])

// MARK: Masks

MASK(_mm512_cmpeq_epi64_mask, (__m512i a, __m512i b), A == B)
MASK(_mm512_cmpge_epu64_mask, (__m512i a, __m512i b), A >= B)
MASK(_mm512_movepi64_mask, (__m512i a), A >> 63)
MASK(_mm512_test_epi64_mask, (__m512i a, __m512i b), A & B)
MASK(_mm512_testn_epi64_mask, (__m512i a, __m512i b), !(A & B))
MASK(_mm512_cmp_pd_mask, (__m512d a, __m512d b, int comparison), comparison == _CMP_LT_OQ ? A < B : A > B)

LANEWISE(__m512i, _mm512_mask_mov_epi64, (__m512i a, __mmask8 m, __m512i b), M ? B : A)
LANEWISE(__m512i, _mm512_mask_add_epi64, (__m512i a, __mmask8 m, __m512i b, __m512i c), M ? B + C : A)
LANEWISE(__m512i, _mm512_mask_sub_epi64, (__m512i a, __mmask8 m, __m512i b, __m512i c), M ? B - C : A)
LANEWISE(__m512i, _mm512_mask_xor_epi64, (__m512i a, __mmask8 m, __m512i b, __m512i c), M ? B ^ C : A)

// MARK: Order of lanes

/// Choice k of four, of two bits each; and the first lane of that pair of lanes.
EMULATED int choice(int n, int k) { return n >> 2 * k & 3; }
EMULATED int pair(int n, int k) { return 2 * choice(n, k); }

LANEWISE(__m512i, _mm512_unpacklo_epi64, (__m512i a, __m512i b), i % 2 ? b.lane[i - 1] : A)
LANEWISE(__m512i, _mm512_unpackhi_epi64, (__m512i a, __m512i b), i % 2 ? B : a.lane[i + 1])
LANEWISE(__m512i, _mm512_shuffle_i64x2, (__m512i a, __m512i b, int n), (i < 4 ? a : b).lane[pair(n, i / 2) + i % 2])
LANEWISE(__m512i, _mm512_permutex_epi64, (__m512i a, int n), a.lane[i / 4 * 4 + choice(n, i % 4)])

// MARK: Memory and lane 0

EMULATED __m512i _mm512_load_si512(const void *from) { return *(const __m512i *)from; }
EMULATED void _mm512_store_si512(void *to, __m512i a) { *(__m512i *)to = a; }
EMULATED __m512i _mm512_loadu_si512(const void *from) { __m512i a; memcpy(&a, from, sizeof a); return a; }
EMULATED void _mm512_storeu_si512(void *to, __m512i a) { memcpy(to, &a, sizeof a); }
EMULATED __m128i _mm512_castsi512_si128(__m512i a) { return (__m128i){{a.lane[0]}}; }
EMULATED __m128i _mm_cvtsi32_si128(int a) { return (__m128i){{(uint32_t)a}}; }
EMULATED long long _mm_cvtsi128_si64(__m128i a) { return (long long)a.lane[0]; }

// MARK: Doubles

LANEWISE(__m512d, _mm512_set1_pd, (double a), a)
LANEWISE(__m512d, _mm512_setzero_pd, (void), 0)
LANEWISE(__m512d, _mm512_add_pd, (__m512d a, __m512d b), A + B)
LANEWISE(__m512d, _mm512_sub_pd, (__m512d a, __m512d b), A - B)
LANEWISE(__m512d, _mm512_mul_pd, (__m512d a, __m512d b), A * B)
LANEWISE(__m512d, _mm512_fmadd_pd, (__m512d a, __m512d b, __m512d c), A * B + C)
LANEWISE(__m512d, _mm512_cvtepi64_pd, (__m512i a), (double)(int64_t)A)

// clang-format on

#undef EMULATED
#undef LANEWISE
#undef MASK
#undef A
#undef B
#undef C
#undef M
