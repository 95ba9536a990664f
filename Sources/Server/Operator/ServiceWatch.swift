import Audit
import Core
import Foundation
import RootSets
import Verification

/// Finds out how the service is, for the operator's pages and for a supervisor. It asks the workers again and again.
final class ServiceWatch: Sendable {
    private let resources: VerificationResources
    /// `nil` unless there is an audit.
    private let trail: AuditTrail?
    private let admission: Admission
    private let pulse: WorkerPulse
    private let ownProof: OwnProof
    private let clock: MonotonicClock
    private let storageBytesMax: Int
    private let reserveBytes: Int
    /// When the certificate ends to be valid, in seconds since 1970; `nil`: there is none.
    let certificateEnd: @Sendable () -> Int64?
    private let date: @Sendable () -> Date
    private let timer: RepeatingTimer

    /// `slowest`: `nil` when nobody keeps requests. `milliseconds`: between two looks. At each look `onOwnProof` is
    /// called, on any thread, if a proof of the service's own was verified rightly since the last look, and if every
    /// worker lives.
    init(
        _ resources: VerificationResources, _ trail: AuditTrail?, _ admission: Admission, _ pulse: WorkerPulse,
        _ ownProof: OwnProof,
        _ configuration: Configuration, slowest: SlowestRequests?, certificateEnd: @escaping @Sendable () -> Int64?,
        clock: MonotonicClock, date: @escaping @Sendable () -> Date, timers: Timers, milliseconds: Int,
        onOwnProof: @escaping @Sendable () -> Void
    ) {
        self.resources = resources
        self.trail = trail
        self.admission = admission
        self.pulse = pulse
        self.ownProof = ownProof
        self.clock = clock
        self.certificateEnd = certificateEnd
        self.date = date
        storageBytesMax = configuration.storageBytesMax
        reserveBytes = configuration.storageReserveBytes
        pulse.ask()
        ownProof.verifyOne()
        let minute = Lock(clock.milliseconds / 60_000)
        let judged = Lock<UInt64>(0)
        timer = timers.every(milliseconds: milliseconds, leeway: milliseconds / 10) {
            pulse.ask()
            let state = ownProof.state
            let isVerified = judged.withLock { ServiceWatch.isVerified(state, after: &$0) }
            if isVerified, !pulse.isDead { onOwnProof() }
            ownProof.verifyOne()
            let now = clock.milliseconds / 60_000
            let isNext = minute.withLock { minute in
                defer { minute = now }
                return minute != now
            }
            if isNext { slowest?.beginMinute() }
        }
    }

    /// Whether a proof of the service's own was judged since the last call, and the last one rightly. `judged`: how
    /// many were judged at the last call.
    static func isVerified(_ state: OwnProof.State, after judged: inout UInt64) -> Bool {
        defer { judged = state.count }
        return judged != state.count && state.fault == nil
    }

    /// Asks no more, and waits until nobody is being asked.
    func stop() { timer.cancelAndWait() }

    /// Proofs of the service's own that were judged.
    var ownProofs: UInt64 { ownProof.state.count }

    /// Whether the process should be left alone. Otherwise only a restart helps.
    var liveness: ReadinessReport {
        ReadinessReport([
            ("process", nil), ("workers", workerFault(after: Limits.workerDeadMilliseconds)),
        ])
    }

    /// Whether the service should get requests.
    var readiness: ReadinessReport {
        ReadinessReport(
            [
                ("drain", admission.isDraining.load(ordering: .relaxed) ? "the service is shutting down" : nil),
                ("storage", storageFault), ("writer", writerFault), ("room", roomFault), ("disk", diskFault),
                ("workers", workerFault(after: Limits.workerSilentMilliseconds)), ("proof", proofFault),
                ("certificate", certificateFault),
            ] + (trail.map { [("audit", $0.fault)] } ?? [])
                + (resources.rootSets.sharesLog ? [("cluster", clusterFault)] : []))
    }

    private var clusterFault: String? {
        guard !resources.rootSets.isFresh else { return nil }
        let problem = resources.rootSets.sharingProblem.map { ": " + $0 } ?? ""
        return "what the other services have changed is not known" + problem
    }

    private var storageFault: String? {
        let health = resources.rootSets.health
        // The log and the statistics have the finding, which names a key.
        if health.hasFailed { return "the storage has failed: see the service's log" }
        if health.level != .intact { return "the storage is damaged: see the service's log" }
        return health.isChecked ? nil : "the storage is being checked after its start"
    }

    private var writerFault: String? {
        guard let busy = resources.rootSets.commitMilliseconds, busy > Limits.commitSlowMilliseconds else { return nil }
        return "the writer has been at one commit for \(busy / 1000) s"
    }

    private var roomFault: String? {
        if resources.rootSets.health.isChecked { resources.rootSets.lookForRoom() }
        if resources.rootSets.lacksRoom { return "additions are refused for lack of room" }
        let used = try? resources.rootSets.read { snapshot throws(ServiceError) in try snapshot.statistics().usedBytes }
        guard let used, used >= storageBytesMax else { return nil }
        return "the data takes \(used >> 20) MiB, and --storage-max is \(storageBytesMax >> 20) MiB"
    }

    private var diskFault: String? {
        guard let free = resources.rootSets.diskBytesFree, free < reserveBytes else { return nil }
        return "the disk has \(free >> 20) MiB left, less than --storage-reserve"
    }

    private func workerFault(after milliseconds: UInt64) -> String? {
        guard let silent = pulse.mostSilent, silent.milliseconds > milliseconds else { return nil }
        return "worker \(silent.worker) has been silent for \(silent.milliseconds / 1000) s"
    }

    private var proofFault: String? {
        let state = ownProof.state
        if let fault = state.fault { return fault }
        guard let granted = state.granted else { return "no proof of its own was verified yet" }
        let age = clock.milliseconds - min(clock.milliseconds, granted)
        return age > Limits.ownProofMilliseconds ? "no proof of its own was verified for \(age / 1000) s" : nil
    }

    private var certificateFault: String? {
        guard let end = certificateEnd() else { return nil }
        let left = Double(end) - date().timeIntervalSince1970
        if left <= 0 { return "the certificate has expired" }
        return left < Double(Limits.certificateLeftSeconds) ? "the certificate expires in \(Int(left / 60)) min" : nil
    }
}
