import Core
import KernelInternals
import TestSupport
import Testing

@testable import Signatures

/// Derives the kernels' private constants again, by libcrypto's integers or by plain arithmetic.
struct ConstantsTests {
    /// What the constant of each name is to be.
    private static func derivations() throws -> [String: Integer] {
        let arithmetic = try IntegerArithmetic()
        let (p, b, n, x, y) = try arithmetic.curve()
        let radix = try arithmetic.power(260, modulo: p)
        let limb = try Integer(1 << 52)
        func factor(_ modulus: Integer) throws -> Integer {
            try arithmetic.difference(limb, arithmetic.inverse(of: modulus, modulo: limb))
        }
        return [
            "P_LIMBS": p, "P_WORDS": p, "P_ONE": radix,
            "P_THREE": try arithmetic.product(Integer(3), radix, modulo: p),
            "P_SQUARED_RADIX": try arithmetic.power(520, modulo: p),
            "P_CUBED_RADIX": try arithmetic.power(780, modulo: p),
            "CURVE_B": try arithmetic.product(b, radix, modulo: p),
            "GENERATOR_X": try arithmetic.product(x, radix, modulo: p),
            "GENERATOR_Y": try arithmetic.product(y, radix, modulo: p), "N_LIMBS": n, "N_WORDS": n,
            "N_SQUARED_RADIX": try arithmetic.power(520, modulo: n),
            "N_CUBED_RADIX": try arithmetic.power(780, modulo: n),
            "P_MINUS_N": try arithmetic.difference(p, n), "P_FACTOR": try factor(p), "N_FACTOR": try factor(n),
        ]
    }

    @Test("Every constant of P-256 is what libcrypto's parameters make it")
    func p256() throws {
        let derivations = try Self.derivations()
        #expect(rg_p256_constant_count == derivations.count)
        for index in 0..<rg_p256_constant_count {
            let constant = rg_p256_constants[index]
            let name = String(cString: constant.name)
            let expected = try #require(derivations[name], "there is no derivation of \(name)")
            let digits = Array(UnsafeBufferPointer(start: constant.digits, count: constant.count))
            #expect(digits == expected.digits(Int(constant.bits), constant.count), "\(name)")
        }
    }

    /// The first `count` primes.
    private static func primes(_ count: Int) -> [UInt64] {
        var primes: [UInt64] = []
        var candidate: UInt64 = 2
        while primes.count < count {
            if primes.allSatisfy({ candidate % $0 != 0 }) { primes.append(candidate) }
            candidate += 1
        }
        return primes
    }

    /// The first 32 bits of the fractional part of the root of `prime` of that degree: the largest r with
    /// r^degree <= prime 2^(32 degree), modulo 2^32.
    private static func fraction(ofRoot degree: Int, of prime: UInt64) -> UInt32 {
        let bound = UInt128(prime) << UInt128(32 * degree)
        var root: UInt128 = 0
        for bit in (0..<40).reversed() {
            let next = root | 1 << UInt128(bit)
            // next is below 2^40, so its cube is below 2^120.
            let power = (0..<degree).reduce(UInt128(1)) { product, _ in product * next }
            if power <= bound { root = next }
        }
        return UInt32(truncatingIfNeeded: root)
    }

    @Test("The tables of SHA-256 are the roots of the first primes, and the schedule of the padding of 64 bytes")
    func sha256() {
        let initial = (0..<8).map { rg_sha256_tested_initial_state[$0] }
        #expect(initial == Self.primes(8).map { Self.fraction(ofRoot: 2, of: $0) })
        let constants = Self.primes(64).map { Self.fraction(ofRoot: 3, of: $0) }
        #expect((0..<64).map { rg_sha256_tested_round_constants[$0] } == constants)

        func rotated(_ x: UInt32, _ n: UInt32) -> UInt32 { x >> n | x << (32 - n) }
        var w = [UInt32](repeating: 0, count: 64)
        w[0] = 0x8000_0000
        w[15] = 512
        for t in 16..<64 {
            let s0 = rotated(w[t - 15], 7) ^ rotated(w[t - 15], 18) ^ w[t - 15] >> 3
            let s1 = rotated(w[t - 2], 17) ^ rotated(w[t - 2], 19) ^ w[t - 2] >> 10
            w[t] = w[t - 16] &+ s0 &+ w[t - 7] &+ s1
        }
        let addends = zip(w, constants).map { $0 &+ $1 }
        #expect((0..<64).map { rg_sha256_tested_node_padding[$0] } == addends)
    }
}
