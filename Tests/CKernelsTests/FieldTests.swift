import CKernels
import COpenSSL
import KernelInternals
import TestSupport
import Testing

@testable import Signatures

/// The arithmetic below the formulas, with limbs that random signatures never bring: a carry that is wrong once in
/// 2^40 times would pass every other test.
struct FieldTests {
    private static let mask: UInt64 = (1 << 52) - 1

    /// All ones, a single bit, a run of either, zero or anything.
    private static func limb(_ generator: inout SeededGenerator) -> UInt64 {
        let bit = UInt64.random(in: 0..<52, using: &generator)
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: return 0
        case 1: return mask
        case 2: return 1 << bit
        case 3: return mask >> bit
        case 4: return mask - 1 << bit
        default: return generator.next() & mask
        }
    }

    /// Five limbs: striking ones, or a value within 2 of a multiple of p up to 15 p.
    private static func limbs(_ generator: inout SeededGenerator, _ prime: Integer) throws -> [UInt64] {
        guard Int.random(in: 0..<4, using: &generator) == 0 else { return (0..<5).map { _ in limb(&generator) & mask } }
        let value = try Integer()
        BN_copy(value.number, prime.number)
        BN_mul_word(value.number, UInt.random(in: 0..<16, using: &generator))
        BN_add_word(value.number, UInt.random(in: 0...4, using: &generator))
        if BN_num_bits(value.number) > 2 { BN_sub_word(value.number, 2) }
        return (0..<5).map { index in
            (0..<52).reduce(0) { $0 | UInt64(BN_is_bit_set(value.number, CInt(52 * index + $1))) << UInt64($1) }
        }
    }

    /// The value of limbs that may be negative.
    private static func value(_ limbs: [UInt64]) throws -> Integer {
        let value = try Integer(), term = try Integer()
        for limb in limbs.reversed() {
            let signed = Int64(bitPattern: limb)
            BN_lshift(value.number, value.number, 52)
            BN_set_word(term.number, UInt(signed.magnitude))
            if signed < 0 {
                BN_sub(value.number, value.number, term.number)
            } else {
                BN_add(value.number, value.number, term.number)
            }
        }
        return withExtendedLifetime(term) { value }
    }

    @Test(
        "Products, squares and reductions of striking limbs agree with libcrypto and keep their bounds",
        .enabled(
            if: rg_cpu_features() & UInt32(RG_CPU_AVX512IFMA) != 0, "this processor has no AVX-512 IFMA"),
        arguments: 0..<Int(rg_field_operation_count))
    func operations(index: Int) throws {
        let operation = rg_field_operations[index], name = String(cString: operation.name)
        let library = try CurveLibrary(), context = BN_CTX_new()
        defer { BN_CTX_free(context) }
        let modulus = name == "montgomery_n" ? library.order : library.prime
        let radix = try library.power(name == "canonical" || name == "reduce_weakly" ? 0 : 260)
        let one = try Integer(1), slack = try library.power(230)
        let left = try Integer(), right = try Integer(), square = try Integer(), bound = try Integer()
        var generator = SeededGenerator(seed: runSeed &+ UInt64(index))
        for round in 0..<500 {
            var lanes = try (0..<4).map { _ in try (0..<8).map { _ in try Self.limbs(&generator, library.prime) } }
            // `montgomery` requires operands whose product is below 2^260.
            if name.hasPrefix("montgomery") { for lane in 0..<8 { lanes[1][lane][4] &= (1 << 48) - 1 } }
            let operands = lanes.map { lanes in (0..<40).map { lanes[$0 % 8][$0 / 8] } }
            var result = [UInt64](repeating: 0, count: 40)
            operands[0].withUnsafeBufferPointer { a in
                operands[1].withUnsafeBufferPointer { b in
                    operands[2].withUnsafeBufferPointer { c in
                        operands[3].withUnsafeBufferPointer { d in
                            operation.run(&result, [a.baseAddress, b.baseAddress, c.baseAddress, d.baseAddress])
                        }
                    }
                }
            }
            for lane in 0..<8 {
                let values = try lanes.map { try Self.value($0[lane]) }
                let given = try Self.value((0..<5).map { result[8 * $0 + lane] })
                // What is to be the result times the radix, modulo p or n.
                switch name {
                case "square": BN_sqr(right.number, values[0].number, context)
                case "square_plus_product":
                    BN_sqr(square.number, values[0].number, context)
                    BN_mul(right.number, values[1].number, values[2].number, context)
                    BN_add(right.number, right.number, square.number)
                case "product_plus_product":
                    BN_mul(square.number, values[0].number, values[1].number, context)
                    BN_mul(right.number, values[2].number, values[3].number, context)
                    BN_add(right.number, right.number, square.number)
                case "canonical", "reduce_weakly": BN_copy(right.number, values[0].number)
                default: BN_mul(right.number, values[0].number, values[1].number, context)
                }
                // From 0 to a b / radix + modulus; below the modulus, or to it and 2^230 more, for the reductions.
                BN_div(bound.number, nil, right.number, radix.number, context)
                BN_add(bound.number, bound.number, modulus.number)
                if name == "canonical" {
                    BN_sub(bound.number, modulus.number, one.number)
                } else if name == "reduce_weakly" {
                    BN_add(bound.number, modulus.number, slack.number)
                }
                BN_mod_mul(left.number, given.number, radix.number, modulus.number, context)
                BN_nnmod(right.number, right.number, modulus.number, context)
                let place: Comment = "\(name), seed \(runSeed), round \(round), lane \(lane)"
                #expect(BN_cmp(left.number, right.number) == 0, place)
                #expect(BN_is_negative(given.number) == 0 && BN_cmp(given.number, bound.number) <= 0, place)
                withExtendedLifetime((values, given)) {}
            }
        }
        withExtendedLifetime((library, radix, one, slack, left, right, square, bound, modulus)) {}
    }
}
