package import Core
import Dispatch
import Foundation
package import Kernels
import Synchronization

/// The state that all signature verifiers of a service share: the kernel, the tables of known keys, and the
/// cross-check, which compares outcomes with libcrypto's.
package final class SignatureEngine: Sendable {
    package struct Configuration: Sendable {
        /// When off, libcrypto verifies everything.
        package var usesKernels = true
        /// The kernel that verifies everything, of those that the processor can run. Without one, `KernelChoice` and
        /// measurements decide.
        package var kernel: Kernel?
        /// Memory for tables of known keys; 0 disables them.
        package var knownKeyBytesMax = 256 << 20
        /// libcrypto verifies one outcome in so many again. With 0 it verifies only the first batch again.
        package var sampleInterval = 4096
        /// Whether kernels are tested and timed on a thread of their own, which takes half a second. Until then
        /// libcrypto verifies everything.
        package var vetsLater = false

        package init() {}
    }

    /// Counts of the cross-check and of the tables.
    package struct Statistics: Sendable {
        package let crossChecks: UInt64
        package let disagreements: UInt64
        /// Samples that were skipped because too many waited.
        package let skippedChecks: UInt64
        package let knownKeys: Int
        package let knownKeyBytes: Int
        package let knownKeyHits: UInt64
    }

    /// Verifies through libcrypto alone.
    package static let libcrypto = SignatureEngine()

    /// What verifies besides libcrypto.
    final class Equipment: Sendable {
        let kernel: SignatureKernel
        let knownKeys: KnownKeys?

        init(_ kernel: SignatureKernel, _ configuration: Configuration) {
            self.kernel = kernel
            let hasRoom = configuration.knownKeyBytesMax >= KnownKeys.bytesMin(kernel)
            knownKeys =
                kernel.usesTables && hasRoom ? KnownKeys(kernel, bytesMax: configuration.knownKeyBytesMax) : nil
        }
    }

    /// Set once at most.
    private let equipped = AtomicLazyReference<Equipment>()
    let sampleInterval: Int
    private let isKernelOff = Atomic<Bool>(false)
    private let isFirstBatchTaken = Atomic<Bool>(false)
    private let queue = DispatchQueue(label: "rootgate cross-check", qos: .utility)
    private let waiting = Atomic<Int>(0)
    private let checked = Atomic<UInt64>(0)
    private let disagreements = Atomic<UInt64>(0)
    private let skipped = Atomic<UInt64>(0)
    private let log: Log

    private init() {
        sampleInterval = 0
        log = .none
    }

    /// `log` is called with a line for people when the self-test or the cross-check fails.
    package convenience init(
        _ configuration: Configuration, log: Log = .none
    ) {
        self.init(configuration, kernel: nil, log: log)
        guard configuration.usesKernels else { return }
        guard configuration.vetsLater else {
            vet(configuration)
            return
        }
        let thread = Thread { [weak self] in self?.vet(configuration) }
        thread.name = "rootgate kernels"
        thread.start()
    }

    init(_ configuration: Configuration, kernel: SignatureKernel?, log: Log) {
        sampleInterval = configuration.sampleInterval
        self.log = log
        if let kernel { _ = equipped.storeIfNil(Equipment(kernel, configuration)) }
    }

    /// Tests and times the kernels, and takes those that are to be used.
    private func vet(_ configuration: Configuration) {
        let vetted =
            configuration.kernel.map { SignatureKernel.vetted([$0], isChosen: true) } ?? SignatureKernel.vetted
        for failure in vetted.failures {
            let instead = vetted.kernel?.names.joined(separator: " and ") ?? "OpenSSL"
            log(.critical, "a signature kernel failed its self-test (\(failure)); \(instead) verifies instead")
        }
        if let kernel = vetted.kernel { _ = equipped.storeIfNil(Equipment(kernel, configuration)) }
    }

    /// What verifies besides libcrypto; `nil` when nothing does, or not yet.
    var equipment: Equipment? { equipped.load() }

    private var kernel: SignatureKernel? { equipment?.kernel }

    var knownKeys: KnownKeys? { equipment?.knownKeys }

    /// Whether a disagreement has switched the kernel off.
    var isOff: Bool { isKernelOff.load(ordering: .relaxed) }

    /// The kernel; `nil` when there is none, or not yet, or when it was switched off.
    private var kernelInUse: SignatureKernel? { isOff ? nil : kernel }

    /// Rounds `count` up: how many checks take as much time as `count` of them.
    package func filled(_ count: Int) -> Int { kernelInUse?.filled(count) ?? count }

    /// The most signed proofs that a worker takes at once while peers take turns.
    package var sharedPortion: Int { kernelInUse?.sharedPortion ?? Limits.libcryptoProofsPerSharedPortion }

    /// The kernels that verify at present; empty when only libcrypto verifies.
    package var kernelNames: [String] { kernelInUse?.names ?? [] }

    /// What was measured of them at the start, and of libcrypto where it takes part.
    package var kernelRates: [KernelRate] { kernelInUse?.rates ?? [] }

    package var statistics: Statistics {
        Statistics(
            crossChecks: checked.load(ordering: .relaxed), disagreements: disagreements.load(ordering: .relaxed),
            skippedChecks: skipped.load(ordering: .relaxed), knownKeys: knownKeys?.count ?? 0,
            knownKeyBytes: (knownKeys?.count ?? 0) * (kernel?.knownKeyBytes ?? 0), knownKeyHits: knownKeys?.hits ?? 0)
    }

    // MARK: Cross-check

    /// Returns true once: the first batch of a service is cross-checked as a whole.
    func takesFirstBatch() -> Bool {
        !isFirstBatchTaken.load(ordering: .relaxed) && !isFirstBatchTaken.exchange(true, ordering: .relaxed)
    }

    /// Queues a check that libcrypto verifies again, on another thread. When too many wait, this one is skipped.
    func crossCheck(_ check: SignatureCheck, _ outcome: SignatureOutcome) {
        guard waiting.load(ordering: .relaxed) < Limits.crossChecksQueuedMax else {
            skipped.add(1, ordering: .relaxed)
            return
        }
        waiting.add(1, ordering: .relaxed)
        let point = [UInt8](check.point)
        let (scalars, digest) = (check.scalars, check.digest)
        queue.async { [self] in
            defer { waiting.subtract(1, ordering: .relaxed) }
            let expected = point.withUnsafeBytes { bytes in
                try? LibcryptoVerifier().verify(SignatureCheck(point: bytes, scalars: scalars, digest: digest))
            }
            // libcrypto ran out of memory, so this check has no result.
            guard let expected else { return }
            checked.add(1, ordering: .relaxed)
            guard expected != outcome else { return }
            disagreements.add(1, ordering: .relaxed)
            let wasOff = isKernelOff.exchange(true, ordering: .relaxed)
            log(
                .critical,
                "the signature kernel \(kernel?.names.joined(separator: " or ") ?? "") said \(outcome) "
                    + "where libcrypto says \(expected)"
                    + (wasOff ? "" : "; it is switched off until the next start"))
        }
    }

    /// Waits until every cross-check that was queued so far is done. For tests and orderly shutdown.
    package func finishCrossChecks() {
        queue.sync {}
    }
}
