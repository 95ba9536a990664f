import CKernels
import Core

/// Tests a P-256 kernel before it is used, with a few hundred ordinary and chosen signatures. libcrypto computes the
/// expected outcomes when the test is made.
struct SignatureSelfTest {
    /// All cases in random order, so that similar cases are in different lanes.
    private let cases: [SignatureCase]
    /// The cases with a valid key, which can have a table.
    private let knowable: [SignatureCase]
    /// Cases that somebody could make on purpose and that a kernel has to decide itself, whatever its neighbours are.
    private let purposeful: [SignatureCase]
    /// Ordinary signatures, used to fill batches with a known pattern.
    private let valid, invalid: [SignatureCase]

    /// Batch sizes up to the widest step, and sizes around its multiples; the last two have blocks behind those that
    /// are summed together. The full batch is tested with patterns.
    private static let sizes = Array(1...17) + [31, 32, 33, 63, 64, 65, 127, 128, 129, 200]

    /// Genuine signatures by several keys, to time kernels with.
    var samples: [SignatureCase] { valid }

    /// Throws `internalFault` when libcrypto can't do it.
    init(seed: UInt64 = 1) throws(ServiceError) {
        let maker = try SignatureCases(seed: seed, keys: 24, nonces: 24)
        var ordinary: [SignatureCase] = []
        for index in 0..<200 {
            let mutations = SignatureCases.Mutation.allCases
            ordinary.append(try maker.ordinary(index % 2 == 0 ? .none : mutations[index / 2 % mutations.count]))
        }
        valid = ordinary.filter { $0.expected == RG_P256_VALID && !$0.isExceptional }
        invalid = ordinary.filter { $0.expected == RG_P256_INVALID && !$0.isExceptional }
        purposeful = try maker.shuffled(maker.smallR() + maker.repeatedOrder())
        cases = try maker.shuffled(ordinary + maker.ranges() + maker.boundaryKeys() + maker.sums(isBrief: true))
        knowable = cases.filter { $0.expected != RG_P256_BAD_KEY }
    }

    /// Says what the kernel does wrong; `nil` when it passes. The processor must have the kernel's instructions.
    /// `generator` is the table that the kernel built. Without it, a table is built for the test alone, which takes
    /// longer than the test.
    func failure(
        of kernel: UnsafePointer<rg_p256_functions>, generator: UnsafePointer<UInt64>? = nil
    ) -> String? {
        let equipped = EquippedKernel(kernel, generator: generator)
        return failureOfPatterns(equipped) ?? failureOfSizes(equipped) ?? failureOfPurpose(equipped)
            ?? failureOfTables(equipped)
    }

    /// Tests every place of a full batch: a valid signature between invalid ones, and an invalid one between valid
    /// ones.
    private func failureOfPatterns(_ kernel: EquippedKernel) -> String? {
        for first in 0..<2 {
            let batch = (0..<RG_P256_BATCH_MAX).map { place in
                (place + first) % 2 == 0 ? valid[place % valid.count] : invalid[place % invalid.count]
            }
            for isKnown in [false, true] {
                if let failure = failure(in: batch, by: kernel, isKnown: isKnown) { return failure }
            }
        }
        return nil
    }

    /// Tests all cases in batches of all the sizes.
    private func failureOfSizes(_ kernel: EquippedKernel) -> String? {
        for (cases, isKnown) in [(cases, false), (knowable, true)] {
            var start = 0, index = 0
            while index < Self.sizes.count || start < cases.count {
                let size = Self.sizes[index % Self.sizes.count]
                let batch = (start..<start + size).map { cases[$0 % cases.count] }
                if let failure = failure(in: batch, by: kernel, isKnown: isKnown) { return failure }
                start += size
                index += 1
            }
        }
        return nil
    }

    /// Tests the purposeful cases alone and among valid signatures, in batches that are summed with trees and without.
    private func failureOfPurpose(_ kernel: EquippedKernel) -> String? {
        for (size, stride) in [(1, 1), (8, 3), (17, 4), (64, 2)] {
            var next = 0
            while next < purposeful.count {
                let batch = (0..<size).map { place -> SignatureCase in
                    guard place % stride == 0 else { return valid[(next + place) % valid.count] }
                    defer { next += 1 }
                    return purposeful[next % purposeful.count]
                }
                for isKnown in [false, true] {
                    if let failure = failure(in: batch, by: kernel, isKnown: isKnown) { return failure }
                }
            }
        }
        return nil
    }

    /// Tests that a point off the curve gets no table.
    private func failureOfTables(_ kernel: EquippedKernel) -> String? {
        for bad in cases where bad.expected == RG_P256_BAD_KEY {
            if kernel.knownOutcomes(of: [valid[0], bad]) != nil { return "known keys: a table for \(bad.description)" }
        }
        return nil
    }

    private func failure(in batch: [SignatureCase], by kernel: EquippedKernel, isKnown: Bool) -> String? {
        let path = isKnown ? "known keys" : "new keys"
        guard let outcomes = isKnown ? kernel.knownOutcomes(of: batch) : kernel.outcomes(of: batch) else {
            return "\(path): a batch of \(batch.count) was refused, or not written exactly"
        }
        for (place, check) in batch.enumerated() where !check.allows(outcomes[place]) {
            return "\(path): outcome \(outcomes[place]) instead of \(check.expected.rawValue) "
                + "at \(place) of \(batch.count), \(check.description)"
        }
        return nil
    }
}
