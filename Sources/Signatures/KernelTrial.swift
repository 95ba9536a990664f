import CKernels
import Core
import Dispatch
import Foundation

/// A long comparison of the P-256 kernels with libcrypto, over random signatures and their mutations.
package struct KernelTrial {
    /// Cases between two progress reports.
    private static let progressStep = 20_000
    /// One batch in this many is verified again, with a table for each key.
    private static let knownStride = 8

    fileprivate struct Tally: Sendable {
        var checked = 0, disagreements = 0, undecided = 0
        var first: String?
    }

    /// Compares a kernel with libcrypto over `count` cases, on all cores. Without a `name`, it compares all kernels
    /// that this processor can run. After every 20,000 cases it calls `progress` with the cases checked so far and a
    /// text with the rate.
    ///
    /// `undecided` counts the outcomes that leave the decision to libcrypto. Such an outcome is a disagreement unless
    /// the case is exceptional. The same seed and number of cores give the same cases. An unknown name, a kernel that
    /// cannot run, and a failure of libcrypto are reported as the first disagreement, with 0 checked.
    package static func run(
        kernel name: String?, count: Int, seed: UInt64, progress: ((checked: Int, text: String)) -> Void
    ) -> (checked: Int, disagreements: Int, undecided: Int, firstDisagreement: String?) {
        let features = rg_cpu_features()
        let indices = (0..<rg_kernel_count).filter { index in
            let kernel = rg_kernels[index]
            return kernel.p256 != nil && kernel.needs & ~features == 0
                && (name == nil || name == String(cString: kernel.name))
        }
        guard !indices.isEmpty else {
            return (0, 0, 0, "there is no kernel \(name ?? "for P-256") that this processor can run")
        }
        let workers = max(1, ProcessInfo.processInfo.activeProcessorCount)
        let start = ContinuousClock.now
        let total = Lock(Tally())
        var done = 0
        while done < count {
            let round = min(progressStep, count - done)
            let offset = done
            DispatchQueue.concurrentPerform(iterations: workers) { worker in
                let share = round / workers + (worker < round % workers ? 1 : 0)
                let roundSeed = seed &+ UInt64(offset) &* 0x9e37_79b9_7f4a_7c15 &+ UInt64(worker) &* 2
                let tally = compare(indices, count: share, seed: roundSeed)
                total.withLock { total in
                    total.checked += tally.checked
                    total.disagreements += tally.disagreements
                    total.undecided += tally.undecided
                    total.first = total.first ?? tally.first
                }
            }
            done += round
            let tally = total.withLock { $0 }
            let elapsed = (ContinuousClock.now - start) / .seconds(1)
            let text =
                "\(tally.checked) of \(count) checked, \(Int(Double(tally.checked) / elapsed)) a second, "
                + "\(tally.disagreements) disagreements, \(tally.undecided) undecided"
            progress((checked: tally.checked, text: text))
        }
        let tally = total.withLock { $0 }
        return (tally.checked, tally.disagreements, tally.undecided, tally.first)
    }

    /// Compares one core's share of a round.
    private static func compare(_ indices: [Int], count: Int, seed: UInt64) -> Tally {
        var tally = Tally()
        do {
            let maker = try SignatureCases(seed: seed, keys: 256, nonces: 256)
            let kernels = indices.compactMap { index in
                rg_kernels[index].p256.map { (String(cString: rg_kernels[index].name), EquippedKernel($0)) }
            }
            var batches = 0
            while tally.checked < count {
                let size = min(RG_P256_BATCH_MAX - batches % 7, count - tally.checked)
                var batch: [SignatureCase] = []
                for _ in 0..<size { batch.append(try maker.ordinary()) }
                let knowable = batches % knownStride == 0 ? batch.filter { $0.expected != RG_P256_BAD_KEY } : []
                for (name, kernel) in kernels {
                    tally.add("\(name), new keys", kernel.outcomes(of: batch), for: batch)
                    if !knowable.isEmpty {
                        tally.add("\(name), known keys", kernel.knownOutcomes(of: knowable), for: knowable)
                    }
                }
                tally.checked += size
                batches += 1
            }
        } catch {
            tally.disagreements += 1
            tally.first = tally.first ?? "\(error)"
        }
        return tally
    }
}

extension KernelTrial.Tally {
    mutating func add(_ path: String, _ outcomes: [UInt8]?, for batch: [SignatureCase]) {
        guard let outcomes else {
            disagreements += 1
            first = first ?? "\(path): a batch of \(batch.count) was refused, or not written exactly"
            return
        }
        for (outcome, check) in zip(outcomes, batch) {
            if UInt32(outcome) == RG_P256_UNDECIDED.rawValue { undecided += 1 }
            guard !check.allows(outcome) else { continue }
            disagreements += 1
            first = first ?? "\(path): outcome \(outcome) instead of \(check.expected.rawValue), \(check.description)"
        }
    }
}
