import Cluster
import Core
import Hashing
import Kernels
import Platform
import RootSets
import Signatures
import Synchronization
import Transport
import Verification

/// Collects the figures of the statistics operation.
final class StatisticsSource: Sendable {
    private let resources: VerificationResources
    private let pool: WorkerPool
    private let admission: Admission
    private let memory: MemoryBudget
    private let queries: SuspendedQueries
    private let refusals: LimitRefusals
    /// `nil` unless the service is one of a cluster.
    private let secret: SecretNames?
    private let clock: MonotonicClock
    private let started: UInt64
    let connections = Atomic<Int>(0)
    let accepted = Atomic<UInt64>(0)

    init(
        _ resources: VerificationResources, _ pool: WorkerPool, _ admission: Admission, _ memory: MemoryBudget,
        _ queries: SuspendedQueries, _ refusals: LimitRefusals,
        _ secret: SecretNames?, _ clock: MonotonicClock
    ) {
        self.resources = resources
        self.pool = pool
        self.admission = admission
        self.memory = memory
        self.queries = queries
        self.refusals = refusals
        self.secret = secret
        self.clock = clock
        started = clock.milliseconds
    }

    /// Names and values in a fixed order; names are stable, listed in PROTOCOL.md. `storage`: `nil` when it can't be
    /// read; then its figures are missing.
    func figures(storage: StorageStatistics?) -> [(name: String, value: UInt64)] {
        let challenges = resources.challenges.statistics
        let commits = resources.rootSets.commitCounts
        let signatures = resources.signatures.statistics
        let operations = admission.requestCounts
        var figures: [(name: String, value: UInt64)] = [
            ("uptime-milliseconds", clock.milliseconds - started),
            ("resident-bytes", UInt64(System.residentBytes)),
            ("connections", UInt64(connections.load(ordering: .relaxed))),
            ("connections-accepted", accepted.load(ordering: .relaxed)),
            ("requests", operations.reduce(0) { $0 + $1.count }),
            ("requests-in-flight", UInt64(max(0, admission.inFlight.load(ordering: .relaxed)))),
            ("requests-following", UInt64(queries.count)),
            ("requests-busy", admission.refusals.load(ordering: .relaxed)),
            ("request-memory-bytes", UInt64(memory.heldBytes)),
            ("proofs-waiting", UInt64(pool.depth)),
            ("mutations-waiting", UInt64(resources.rootSets.queueDepth)),
            ("mutations", commits.mutations),
            ("commits", commits.commits),
            ("storage-checked", resources.rootSets.health.isChecked ? 1 : 0),
            ("storage-damaged", resources.rootSets.health.level == .damaged ? 1 : 0),
            ("storage-failed", resources.rootSets.health.level == .failed ? 1 : 0),
        ]
        if let storage {
            figures += [
                ("sequence", storage.lastSequence),
                ("log-first-sequence", storage.firstSequence),
                ("log-bytes", storage.logBytes),
                ("collaborations", storage.collaborations),
                ("roots", storage.roots),
                ("storage-bytes", UInt64(storage.fileBytes)),
                ("storage-used-bytes", UInt64(storage.usedBytes)),
            ]
        }
        if let sharing = resources.rootSets.sharing {
            figures.append(("cluster-segment", sharing.segment))
            if let behind = sharing.behindMilliseconds { figures.append(("cluster-behind-milliseconds", behind)) }
            if let foreign = secret?.foreignServices { figures.append(("cluster-foreign-secrets", foreign)) }
        }
        figures += [
            ("challenges-issued", challenges.issued),
            ("replay-memory-bytes", UInt64(challenges.replayBytes)),
            ("nonces-remembered", UInt64(resources.nonces.count)),
            ("known-keys", UInt64(signatures.knownKeys)),
            ("known-key-bytes", UInt64(signatures.knownKeyBytes)),
            ("known-key-hits", signatures.knownKeyHits),
            ("cross-checks", signatures.crossChecks),
            ("cross-checks-skipped", signatures.skippedChecks),
            ("cross-check-disagreements", signatures.disagreements),
        ]
        for (kind, count) in refusals.counts { figures.append((kind.figure, count)) }
        figures.append(("keys-slowed", refusals.slowedKeys.load(ordering: .relaxed)))
        let inUse = Set(resources.signatures.kernelNames + BatchHashing.standard.kernelNames)
        for kernel in Kernel.all {
            figures.append(("kernel-" + kernel.name, inUse.contains(kernel.name) ? 1 : 0))
        }
        for rate in resources.signatures.kernelRates + BatchHashing.standard.rates {
            figures.append(("rate-\(rate.name)-\(rate.work.rawValue)", UInt64(rate.perSecond)))
        }
        for (name, count) in operations { figures.append(("operation-" + name, count)) }
        for (verdict, count) in pool.verdictCounts {
            figures.append(("verdict-" + verdict.name, count))
        }
        return figures
    }
}
