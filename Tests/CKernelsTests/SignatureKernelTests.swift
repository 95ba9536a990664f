import CKernels
import Core
import TestSupport
import Testing

@testable import Signatures

/// The P-256 kernels against libcrypto.
@Suite(.serialized)
struct SignatureKernelTests {
    private let maker: SignatureCases

    init() throws {
        maker = try SignatureCases(seed: runSeed, keys: 64, nonces: 64)
    }

    /// Every case that a kernel may find hard: all bounds, keys and sums, and a sample of striking scalars with
    /// keys that are related to the generator. Made once, since libcrypto takes a while to say what they are.
    private static let crafted: [SignatureCase]? = try? craftedCases()

    private static func craftedCases() throws -> [SignatureCase] {
        let maker = try SignatureCases(seed: runSeed &+ 6, keys: 8, nonces: 8)
        var cases = try maker.ranges() + maker.smallR() + maker.boundaryKeys() + maker.repeatedOrder() + maker.sums()
        for _ in 0..<20 { cases += try maker.meetings() }
        var generator = SeededGenerator(seed: runSeed &+ 7)
        let keys = try maker.relatedKeys([1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 4095, 4096, 8191, 8192, 8193])
        let scalars = try maker.strikingScalars()
        let zero = try Integer()
        for key in keys {
            for index in 0..<60 {
                guard var u1 = scalars.randomElement(using: &generator),
                    let u2 = scalars.randomElement(using: &generator)
                else { break }
                if index == 0 { u1 = ("0", zero) }
                if index % 5 == 1 { u1 = u2 }
                if index % 5 == 2 { u1 = ("-(\(u2.name))", try maker.library.difference(zero, u2.value)) }
                if index % 5 == 3 { u1 = ("random", try maker.scalar()) }
                let point = index % 2 == 0 ? key.point : try maker.library.reencoded(key.point)
                cases += try maker.chosen(
                    "\(key.name), u1 = \(u1.name), u2 = \(u2.name)", point, u1.value, u2.value, isExceptional: true)
            }
        }
        return cases
    }

    /// Runs the cases in batches of that size, and reports every outcome that is not allowed. Returns how many
    /// outcomes were undecided.
    @discardableResult
    private func compare(
        _ cases: [SignatureCase], by kernel: EquippedKernel, isKnown: Bool = false, size: Int = RG_P256_BATCH_MAX
    ) throws -> Int {
        var undecided = 0
        let cases = isKnown ? cases.filter { $0.expected != RG_P256_BAD_KEY } : cases
        for start in stride(from: 0, to: cases.count, by: size) {
            let batch = cases[start..<min(start + size, cases.count)]
            let outcomes = try #require(isKnown ? kernel.knownOutcomes(of: batch) : kernel.outcomes(of: batch))
            for (outcome, check) in zip(outcomes, batch) {
                if UInt32(outcome) == RG_P256_UNDECIDED.rawValue { undecided += 1 }
                if !check.allows(outcome) {
                    Issue.record(
                        "seed \(runSeed), \(outcome) instead of \(check.expected.rawValue): \(check.description)")
                }
            }
        }
        return undecided
    }

    // MARK: Random

    @Test(
        "Random signatures and each of their mutations agree, with new keys and with known ones",
        arguments: NamedKernel.p256)
    func random(kernel: NamedKernel) throws {
        let equipped = try kernel.equipped()
        var cases: [SignatureCase] = []
        for mutation in SignatureCases.Mutation.allCases {
            for _ in 0..<(mutation == .none ? 400 : 60) { cases.append(try maker.ordinary(mutation)) }
        }
        var generator = SeededGenerator(seed: runSeed)
        cases.shuffle(using: &generator)
        #expect(cases.count { $0.expected == RG_P256_VALID } > 400)
        #expect(cases.count { $0.expected == RG_P256_BAD_KEY } > 20)
        cases = kernel.sample(cases, oneIn: 7)
        let mayBeUndecided = cases.count { $0.isExceptional }
        #expect(mayBeUndecided <= 60, "only a digest of zero is")
        for size in [128, 37, 5] {
            #expect(try compare(cases, by: equipped, size: size) <= mayBeUndecided)
            #expect(try compare(cases, by: equipped, isKnown: true, size: size) <= mayBeUndecided)
        }
    }

    @Test("The trial of the command line finds no disagreement", arguments: NamedKernel.nativeP256)
    func trial(kernel: NamedKernel) {
        var lines = 0
        let result = KernelTrial.run(kernel: kernel.name, count: 2000, seed: runSeed) { _ in lines += 1 }
        #expect(result.checked == 2000)
        #expect(result.disagreements == 0, "seed \(runSeed): \(result.firstDisagreement ?? "")")
        #expect(lines == 1)
    }

    @Test("The trial of a kernel that does not exist checks nothing and says so")
    func unknownTrial() {
        let result = KernelTrial.run(kernel: "p256-abacus", count: 10, seed: 1) { _ in }
        #expect(result.checked == 0)
        #expect(result.firstDisagreement?.contains("p256-abacus") == true)
    }

    // MARK: Crafted

    @Test("No crafted case gets a wrong outcome, with new keys and with known ones", arguments: NamedKernel.p256)
    func crafted(kernel: NamedKernel) throws {
        let cases = kernel.sample(try #require(Self.crafted), oneIn: 11), equipped = try kernel.equipped()
        var generator = SeededGenerator(seed: runSeed &+ 1)
        let size = 61
        var report: [String] = []
        for (name, isKnown) in [("new", false), ("known", true)] {
            _ = try compare(cases, by: equipped, isKnown: isKnown)
            // Whole batches: a short rest is summed in another way, with other exceptions.
            let fitting = isKnown ? cases.filter { $0.expected != RG_P256_BAD_KEY } : cases
            let whole = Array(fitting.prefix(fitting.count - fitting.count % size))
            let mixed = whole.shuffled(using: &generator)
            let inOrder = try compare(whole, by: equipped, isKnown: isKnown, size: size)
            let shuffled = try compare(mixed, by: equipped, isKnown: isKnown, size: size)
            // Whether a case is undecided is a matter of the case, not of its neighbours.
            #expect(inOrder == shuffled, "seed \(runSeed)")
            report.append("\(inOrder) undecided with \(name) keys")
        }
        print("\(kernel.name): \(cases.count) crafted cases, \(report.joined(separator: ", "))")
    }

    @Test(
        "The cases are what their names say",
        arguments: [
            ("Q = 1 G, u1 = -u2, forged", RG_P256_INVALID), ("u2 Q = -u1 G, forged", RG_P256_INVALID),
            ("x(R) = r + n", RG_P256_VALID), ("x(R) = r, small", RG_P256_VALID),
            ("x(R) = r + n, almost p", RG_P256_VALID), ("x(R) = r + n, long", RG_P256_VALID),
            ("x(R) = r, long", RG_P256_VALID), ("x(R) = r, almost p - n", RG_P256_VALID),
            ("x(R) = r, above p - n", RG_P256_VALID), ("x(R) = r, almost n", RG_P256_VALID),
            ("x(R) = r + n - p", RG_P256_INVALID), ("x(R) = 0 = r + n - p", RG_P256_INVALID),
            ("r = 1, x(R) is another", RG_P256_INVALID), ("r = p - n - 1, x(R) is another", RG_P256_INVALID),
            ("r = p - n, x(R) is another", RG_P256_INVALID), ("r = p - n + 1, x(R) is another", RG_P256_INVALID),
            ("r = n - 1, x(R) is another", RG_P256_INVALID), ("r = x(R) above n", RG_P256_INVALID),
            ("u2 is n but for the last digit, 4 columns", RG_P256_VALID),
            ("u2 is n but for column 0, 4 columns, forged", RG_P256_INVALID),
            ("u2 is n but for the last digit, 2 columns", RG_P256_VALID),
            ("u2 is n but for column 0, 2 columns, forged", RG_P256_INVALID), ("r with n added", RG_P256_INVALID),
            ("s small", RG_P256_VALID), ("s with n added", RG_P256_INVALID),
            ("u1 = 0", RG_P256_VALID), ("digest = n, u1 = 0", RG_P256_VALID),
            ("the last addition doubles", RG_P256_VALID), ("the first addition cancels", RG_P256_VALID),
            ("x = p instead of 0", RG_P256_BAD_KEY), ("x = 0", RG_P256_VALID), ("y = 1", RG_P256_VALID),
            ("y = p + 1 instead of 1", RG_P256_BAD_KEY), ("no y for this x", RG_P256_BAD_KEY),
            ("x with p added", RG_P256_BAD_KEY), ("off the curve by one bit", RG_P256_BAD_KEY),
        ])
    func names(name: String, outcome: rg_p256_outcome) throws {
        let cases = try #require(Self.crafted).filter { $0.name == name }
        #expect(!cases.isEmpty)
        for check in cases { #expect(check.expected == outcome, "\(check.description)") }
    }

    @Test(
        "The kernel decides a small r and a u2 with the digits of n, wherever they stand among honest signatures",
        arguments: NamedKernel.p256)
    func purposeful(kernel: NamedKernel) throws {
        let equipped = try kernel.equipped()
        let cases = try maker.smallR() + maker.repeatedOrder()
        var honest: [SignatureCase] = []
        for _ in 0..<RG_P256_BATCH_MAX { honest.append(try maker.ordinary(.none)) }
        #expect(cases.allSatisfy { !$0.isExceptional })
        for size in [1, 8, 16, 17, 64, 256] {
            // In all places, in every other one, and in one.
            for distance in Set([1, 2, size]).sorted() where distance <= size {
                let places = Array(stride(from: 0, to: size, by: distance))
                let given = distance == size && size > 1 ? kernel.sample(cases, oneIn: 15) : cases
                for start in stride(from: 0, to: given.count, by: places.count) {
                    var batch = Array(honest[..<size])
                    for (place, check) in zip(places, given[start...]) { batch[(place + start) % size] = check }
                    #expect(try compare(batch, by: equipped) == 0)
                    #expect(try compare(batch, by: equipped, isKnown: true) == 0)
                }
            }
        }
    }

    @Test("All lanes exceptional, and all the same", arguments: NamedKernel.p256)
    func allExceptional(kernel: NamedKernel) throws {
        let equipped = try kernel.equipped()
        let exceptional = try #require(Self.crafted).filter(\.isExceptional).prefix(200)
        for check in kernel.sample(Array(exceptional), oneIn: 10) {
            for size in [8, 16, 17] {
                let batch = [SignatureCase](repeating: check, count: size)
                try compare(batch, by: equipped, size: size)
                try compare(batch, by: equipped, isKnown: true, size: size)
            }
        }
    }

    @Test(
        "A neighbour that is exceptional, a bad key or out of range changes no other outcome",
        arguments: NamedKernel.p256)
    func neighbours(kernel: NamedKernel) throws {
        let equipped = try kernel.equipped()
        var ordinary: [SignatureCase] = []
        for index in 0..<33 { ordinary.append(try maker.ordinary(index % 3 == 0 ? .bitOfDigest : .none)) }
        let crafted = Array(try #require(Self.crafted).enumerated().prefix(600))
        for (index, check) in kernel.sample(crafted, oneIn: 41) {
            var batch = ordinary
            batch[index % batch.count] = check
            try compare(batch, by: equipped)
            try compare(batch, by: equipped, isKnown: true)
        }
    }

    @Test("The same key many times in one batch", arguments: NamedKernel.p256)
    func sameKey(kernel: NamedKernel) throws {
        let equipped = try kernel.equipped()
        let maker = try SignatureCases(seed: runSeed &+ 3, keys: 1, nonces: 8)
        var cases: [SignatureCase] = []
        for index in 0..<128 { cases.append(try maker.ordinary(index % 4 == 1 ? .bitOfS : .none)) }
        try compare(cases, by: equipped)
        try compare(cases, by: equipped, isKnown: true)
    }

    // MARK: Batches

    @Test("Batches of every size, each with one bad signature at every place in turn", arguments: NamedKernel.p256)
    func sizes(kernel: NamedKernel) throws {
        let equipped = try kernel.equipped()
        var valid: [SignatureCase] = [], bad: [SignatureCase] = []
        for _ in 0..<RG_P256_BATCH_MAX { valid.append(try maker.ordinary(.none)) }
        for mutation in [SignatureCases.Mutation.bitOfR, .bitOfS, .bitOfDigest, .otherParity, .zeroS, .onesR, .bitOfX] {
            bad.append(try maker.ordinary(mutation))
        }
        for size in kernel.sample(Array(1...RG_P256_BATCH_MAX), oneIn: 37) {
            for turn in 0..<3 {
                let place = (size * 31 + turn * 47) % size
                var batch = Array(valid[..<size])
                batch[place] = bad[(size + turn) % bad.count]
                try compare(batch, by: equipped)
                if turn == 0 { try compare(batch, by: equipped, isKnown: true) }
            }
        }
        // Every place of the largest batch.
        for place in kernel.sample(Array(0..<RG_P256_BATCH_MAX), oneIn: 51) {
            var batch = valid
            batch[place] = bad[place % 3]
            try compare(batch, by: equipped)
        }
    }

    @Test("No byte behind a key of 33 or 65 bytes is read", arguments: NamedKernel.p256)
    func pageEnd(kernel: NamedKernel) throws {
        let functions = try #require(kernel.p256)
        let equipped = try kernel.equipped()
        let workspace = UnsafeMutableRawPointer.allocate(
            byteCount: functions.pointee.workspace_bytes, alignment: RG_P256_ALIGNMENT)
        let table = UnsafeMutableRawPointer.allocate(
            byteCount: functions.pointee.known_bytes, alignment: RG_P256_ALIGNMENT)
        defer {
            workspace.deallocate()
            table.deallocate()
        }
        let memory = try PageEnd(bytes: 4096), checks = try PageEnd(bytes: MemoryLayout<rg_p256_check>.stride)
        var lengths: Set<Int> = []
        for _ in 0..<24 {
            let signature = try maker.ordinary(.none)
            lengths.insert(signature.point.count)
            var check = rg_p256_check()
            check.point = memory.place(signature.point)
            withUnsafeMutableBytes(of: &check.r) { $0.copyBytes(from: signature.r) }
            withUnsafeMutableBytes(of: &check.s) { $0.copyBytes(from: signature.s) }
            withUnsafeMutableBytes(of: &check.digest) { $0.copyBytes(from: signature.digest) }
            // The check itself ends at such a page too.
            let bytes = withUnsafeBytes(of: &check) { Array($0) }
            let placed = UnsafeRawPointer(checks.place(bytes)).assumingMemoryBound(to: rg_p256_check.self)
            var outcome: UInt8 = 99
            functions.pointee.verify(placed, 1, equipped.generator, workspace, &outcome)
            #expect(UInt32(outcome) == RG_P256_VALID.rawValue)

            let known = table.assumingMemoryBound(to: UInt64.self)
            let built = withUnsafePointer(to: Optional(check.point!)) { points in
                withUnsafePointer(to: Optional(known)) { functions.pointee.build_known(points, $0, 1, workspace) }
            }
            #expect(built == 1)
            withUnsafePointer(to: Optional(UnsafePointer(known))) { tables in
                functions.pointee.verify_known(placed, tables, 1, equipped.generator, workspace, &outcome)
            }
            #expect(UInt32(outcome) == RG_P256_VALID.rawValue)
        }
        #expect(lengths == [33, 65], "seed \(runSeed)")
    }
}
