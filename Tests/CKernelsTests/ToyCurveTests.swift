import TestSupport
import Testing
import ToyCurve

/// A curve y^2 = x^3 - 3 x + b modulo p, with an order below p, and what plain arithmetic says about it.
struct SmallCurve: Sendable, CustomTestStringConvertible {
    let p: UInt32, b: UInt32

    /// Small enough for all keys and scalars. A point has x = 0, which is 0 in Montgomery form, too.
    static let exhaustive = SmallCurve(p: 43, b: 10)
    /// Large enough for exceptional cases to be rare. The kernel's square root is right for this prime.
    static let sampled = SmallCurve(p: 1283, b: 32)

    var testDescription: String { "modulo \(p)" }

    /// All points, ascending by x and y.
    var points: [(x: UInt32, y: UInt32)] {
        (0..<p).flatMap { x in
            (0..<p).filter { y in y * y % p == (x * x % p * x + (p - 3) * x + b) % p }.map { y in (x, y) }
        }
    }

    var kernel: UnsafePointer<rg_toy_curve>? { rg_toy_curve_modulo(p) }

    /// Calls the body with the kernel over this curve and with the oracle.
    func run<T>(_ body: (UnsafePointer<rg_toy_curve>, OpaquePointer) throws -> T) throws -> T {
        let kernel = try #require(kernel)
        let group = try #require(rg_toy_group_create(p, b), "the points are no group of prime order")
        defer { rg_toy_group_free(group) }
        return try body(kernel, group)
    }
}

/// How a batch is verified.
struct ToyMode: Sendable, CustomTestStringConvertible {
    let isKnown: Bool
    let batch: Int
    /// The order of the checks.
    var step: UInt64 = 1

    var testDescription: String { "\(isKnown ? "known" : "new") keys in batches of \(batch)" }
    var value: rg_toy_mode { rg_toy_mode(is_known: isKnown ? 1 : 0, batch: batch, step: step) }

    /// With new keys and with known ones, in batches of each size.
    static func both(_ batches: [Int], step: UInt64 = 1) -> [ToyMode] {
        [false, true].flatMap { isKnown in batches.map { ToyMode(isKnown: isKnown, batch: $0, step: step) } }
    }
}

/// The kernel's own source over small curves. There the exceptional cases are frequent, and all of them can be run.
@Suite(.serialized)
struct ToyCurveTests {
    // MARK: The curves

    private static func power(_ exponent: Int, modulo m: UInt64) -> UInt64 {
        (0..<exponent).reduce(1) { power, _ in power * 2 % m }
    }

    private static func inverse(of a: UInt64, modulo m: UInt64) throws -> UInt64 {
        try #require((1..<m).first { a * $0 % m == 1 })
    }

    /// -1 / m modulo 2^52, bit by bit.
    private static func factor(_ m: UInt64) -> UInt64 {
        (0..<52).reduce(0) { factor, bit in (factor &* m &+ 1) >> UInt64(bit) & 1 == 0 ? factor : factor | 1 << bit }
    }

    @Test(
        "Every constant of the small curves is what the curve's equation makes it",
        arguments: [SmallCurve.exhaustive, .sampled])
    func constants(curve: SmallCurve) throws {
        let points = curve.points, kernel = try #require(curve.kernel).pointee
        let p = UInt64(curve.p), n = UInt64(points.count + 1), first = try #require(points.first)
        let radix = Self.power(260, modulo: p)
        let expected: [String: UInt64] = [
            "P_LIMBS": p, "P_WORDS": p, "P_ONE": radix, "P_THREE": 3 * radix % p,
            "P_SQUARED_RADIX": Self.power(520, modulo: p), "P_CUBED_RADIX": Self.power(780, modulo: p),
            "CURVE_B": UInt64(curve.b) * radix % p, "GENERATOR_X": UInt64(first.x) * radix % p,
            "GENERATOR_Y": UInt64(first.y) * radix % p, "N_LIMBS": n, "N_WORDS": n,
            "N_SQUARED_RADIX": Self.power(520, modulo: n), "N_CUBED_RADIX": Self.power(780, modulo: n),
            "P_MINUS_N": p - n, "P_FACTOR": Self.factor(p), "N_FACTOR": Self.factor(n),
            "P_RADIX_INVERSE": try Self.inverse(of: radix, modulo: p),
        ]
        #expect(kernel.constants == expected.count)
        for index in 0..<kernel.constants {
            let constant = kernel.constant[index], name = String(cString: constant.name)
            let digits = (0..<constant.count).map { constant.digits[$0] }
            #expect(digits.first == expected[name], "\(name)")
            #expect(digits.dropFirst().allSatisfy { $0 == 0 }, "\(name)")
        }
        #expect(p < 1 << kernel.scalar_bits && n > 1 << (kernel.scalar_bits - 1))
    }

    @Test(
        "The small curves are of P-256's kind: a prime order below p, and an r that stands for two x coordinates",
        arguments: [SmallCurve.exhaustive, .sampled])
    func kind(curve: SmallCurve) throws {
        let xs = Set(curve.points.map(\.x)), order = try curve.run { rg_toy_group_order($1) }
        #expect(order == curve.points.count + 1)
        #expect(order < curve.p && curve.p < 2 * order && curve.p % 4 == 3)
        #expect((1..<curve.p - order).contains { xs.contains($0 + order) })
    }

    // MARK: The formulas

    private func expect(_ tally: rg_toy_formula_tally, lanes: Int, exceptional: Int) {
        #expect(tally.lanes == lanes)
        #expect(tally.exceptional == exceptional)
        #expect(tally.wrong == 0)
    }

    @Test("Adding fails exactly where two points have the same x, and Z is 0 there and stays 0")
    func addition() throws {
        // 36 points plus and minus 36, of which two have its x, with 42 Zs; and all X and V with Z = 0.
        expect(
            try SmallCurve.exhaustive.run { rg_toy_add_all($0, $1, 1) }, lanes: 36 * 2 * (36 * 42 + 43 * 43),
            exceptional: 36 * 2 * (2 * 42 + 43 * 43))
        let tally = try SmallCurve.sampled.run { rg_toy_add_all($0, $1, 1000) }
        #expect(tally.lanes > 1222 * 1222 * 2 && tally.exceptional >= 1222 * 2 * 2 && tally.wrong == 0)
    }

    @Test("Doubling fails for no point, and Z stays 0")
    func doubling() throws {
        for (curve, points, p) in [(SmallCurve.exhaustive, 36, 43), (.sampled, 1222, 1283)] {
            expect(
                try curve.run { rg_toy_double_all($0, $1, 1) }, lanes: points * (p - 1) + p * p, exceptional: p * p)
        }
    }

    @Test("A chain of odd multiples fails where it reaches infinity, and at no multiple before that")
    func chain() throws {
        for (curve, points, length) in [(SmallCurve.exhaustive, 36, 64), (.sampled, 1222, 640)] {
            // (n - 1) / 2 multiples are below n.
            expect(
                try curve.run { rg_toy_chain_all($0, $1, length) }, lanes: points * length,
                exceptional: points * (length - points / 2))
        }
    }

    @Test(
        "A tree notes exactly the lanes in which it adds points with the same x, and sums all others", arguments: 2...4)
    func tree(points: Int) throws {
        let tally = try SmallCurve.exhaustive.run { rg_toy_sum_all($0, $1, points) }
        #expect(tally.lanes == (0..<points).reduce(1) { count, _ in count * 36 })
        #expect(tally.exceptional > tally.lanes / 20 && tally.wrong == 0)
        guard points == 2 else { return }
        expect(
            try SmallCurve.sampled.run { rg_toy_sum_all($0, $1, 2) }, lanes: 1222 * 1222, exceptional: 1222 * 2)
    }

    // MARK: Verification

    /// Every outcome is the oracle's, and exceptional cases of both kinds made lanes undecided.
    private func expectRight(_ tally: rg_toy_tally, checks: Int, minimum: Int = 1, isKnown: Bool = false) {
        #expect(tally.checks == checks)
        #expect(
            tally.wrong == 0,
            "key \(tally.key), r \(tally.r), s \(tally.s), e \(tally.digest): \(tally.outcome), not \(tally.expected)"
        )
        #expect(tally.undecided == tally.equal + tally.opposite)
        #expect(tally.equal >= minimum && tally.opposite >= minimum && tally.undecided_valid >= minimum)
        #expect(tally.valid > tally.undecided_valid && tally.invalid + tally.valid > tally.undecided)
    }

    @Test(
        "Of all signatures of a small curve, those with an exceptional addition are undecided, and all others decided",
        arguments: ToyMode.both([16]) + ToyMode.both([256], step: 1_000_003))
    func allSignatures(mode: ToyMode) throws {
        let tally = try SmallCurve.exhaustive.run { rg_toy_verify_all($0, $1, mode.value) }
        // Keys, r and s from 0 to n, digests.
        expectRight(tally, checks: 36 * 38 * 38 * 37, minimum: 1000)
        #expect((tally.within_tree > 1000) == (mode.batch == 256))
    }

    @Test("A lane by itself has the outcome that it has among others", arguments: ToyMode.both([1, 8, 144]))
    func alone(mode: ToyMode) throws {
        let tally = try SmallCurve.exhaustive.run { rg_toy_verify_sums($0, $1, mode.value) }
        // Keys, u1, and u2, but for sums without an r: infinity for each key and u2, and x = 0, twice.
        expectRight(tally, checks: 36 * 37 * 36 - 3 * 36 * 36, minimum: 1000)
        #expect(tally.invalid == 0)
    }

    @Test(
        "A failing lane changes no other one, whatever their places in the batch",
        arguments: ToyMode.both([9, 16, 24, 144]))
    func places(mode: ToyMode) throws {
        let tally = try SmallCurve.exhaustive.run { rg_toy_verify_places($0, $1, mode.value) }
        #expect(tally.wrong == 0)
        #expect(tally.checks % (2 * mode.batch * mode.batch) == 0)
        #expect(tally.undecided >= 2 * mode.batch * mode.batch / 2 && tally.valid > tally.checks / 2)
        #expect(tally.invalid > 0 && (tally.bad_key > 0) == !mode.isKnown)
    }

    @Test("The same holds for a larger curve in two groups of lanes", arguments: ToyMode.both([32, 256]))
    func larger(mode: ToyMode) throws {
        let curve = SmallCurve.sampled, seed = runSeed
        let tally = try curve.run { rg_toy_verify_some($0, $1, mode.value, 50_000, seed) }
        expectRight(tally, checks: 50_000, minimum: 10)
        #expect((tally.within_tree > 10) == (mode.batch > 32))
        #expect(
            try curve.run { rg_toy_verify_places($0, $1, ToyMode(isKnown: mode.isKnown, batch: 48).value).wrong } == 0)
    }

    @Test("A key that is no point of the curve is a bad key, and changes no lane beside it", arguments: [16, 32])
    func keys(batch: Int) throws {
        var tally = try SmallCurve.exhaustive.run { rg_toy_verify_keys($0, $1, batch, 6, 0) }
        #expect(tally.wrong == 0 && tally.checks == 2 * 64 * 64 && tally.bad_key == 64 * 64 - 36)
        tally = try SmallCurve.sampled.run { rg_toy_verify_keys($0, $1, batch, 11, 1) }
        #expect(tally.wrong == 0 && tally.checks == 2 * 2 * 2048 && tally.bad_key == 2 * 2048 - 1222)
    }

    @Test(
        "These runs refuse kernels that forget an undecided lane, or to keep a failing lane from the inversion of all"
    )
    func mutants() throws {
        var number = 0
        while let mutant = rg_toy_mutant(number) {
            let wrong = try SmallCurve.exhaustive.run { _, group in
                ToyMode.both([8, 24]).reduce(rg_toy_verify_keys(mutant, group, 32, 6, 0).wrong) { wrong, mode in
                    wrong + rg_toy_verify_places(mutant, group, mode.value).wrong
                }
            }
            #expect(wrong > 50, "\(String(cString: mutant.pointee.name))")
            number += 1
        }
        #expect(number >= 7)
    }
}
