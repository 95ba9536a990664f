package import Core
import Synchronization

/// Whether the storage can be relied on. Every part of the storage that meets damage or a fault reports it here, from
/// any thread. The log gets one line with CRITICAL for each level that is reached, with the first finding of that
/// level.
///
/// `damaged` stays until the service is started anew. `failed` ends when the storage was opened again.
package final class StorageHealth: Sendable {
    package enum Level: UInt8, Comparable, Sendable {
        /// Nothing was found.
        case intact
        /// Stored data contradict themselves. What is whole is still answered; each request that needs what is not is
        /// refused with `storageDamaged`.
        case damaged
        /// The storage can't be read or written. Every request that needs it is refused.
        case failed

        package static func < (one: Level, other: Level) -> Bool { one.rawValue < other.rawValue }
    }

    /// What was found first at a level.
    package struct Finding: Sendable {
        package let level: Level
        /// One line for the operator, without a full stop at its end.
        package let what: String
    }

    private struct Listeners {
        var onFailure: (@Sendable () -> Void)?
        var onDamage: (@Sendable () -> Void)?
    }

    private struct Findings {
        var damage: Finding?
        var failure: Finding?
    }

    /// The raw value of the level, for readers on hot paths.
    private let current = Atomic<UInt8>(Level.intact.rawValue)
    private let findings = Lock(Findings())
    /// Held from a finding until its line is in the log. So whoever reports, too, returns behind the line.
    private let reporting = Lock(())
    private let log: Log
    private let listeners = Lock(Listeners())
    private let checked = Atomic<Bool>(false)
    private let areWaitsBounded = Atomic<Bool>(false)

    /// `log` gets messages of one line, on the thread that reports.
    package init(log: Log = .none) {
        self.log = log
    }

    package var level: Level { Level(rawValue: current.load(ordering: .acquiring)) ?? .failed }

    /// Whether nothing may be answered from the storage. One load of a byte.
    package var hasFailed: Bool { current.load(ordering: .acquiring) == Level.failed.rawValue }

    /// Whether everything that is stored was checked since the storage was opened.
    package var isChecked: Bool { checked.load(ordering: .acquiring) }

    /// Whether readers wait only `Limits.uncheckedWaitMilliseconds` after the beginning of the check for it to come to
    /// what they read. Then they get `busy` with a time, as from `RootSets.admit`.
    package var boundsWaits: Bool {
        get { areWaitsBounded.load(ordering: .acquiring) }
        set { areWaitsBounded.store(newValue, ordering: .releasing) }
    }

    func note(isChecked: Bool) { checked.store(isChecked, ordering: .releasing) }

    /// The first finding of the present level; `nil` while the storage is intact.
    package var finding: Finding? {
        findings.withLock { $0.failure ?? $0.damage }
    }

    /// Reports damage or a failure. Only the first finding of a level is kept and logged. `intact` reports nothing.
    /// Returns when the line of the level's first finding is in the log, whoever has reported it.
    ///
    /// `what`: one line for the operator, without a full stop at its end.
    package func report(_ level: Level, _ what: @autoclosure () -> String) {
        let isFirst = reporting.withLock { _ in
            let line = keep(level, what())
            if let line { log(.critical, line) }
            return line != nil
        }
        guard isFirst else { return }
        listeners.withLock { level == .failed ? $0.onFailure : $0.onDamage }?()
    }

    /// Keeps the first finding of a level. Returns the line for the log; `nil` when it is not the first one.
    private func keep(_ level: Level, _ what: @autoclosure () -> String) -> String? {
        findings.withLock { findings in
            switch level {
            case .intact: return nil
            case .damaged:
                guard findings.damage == nil else { return nil }
                let finding = Finding(level: .damaged, what: what())
                findings.damage = finding
                if findings.failure == nil { current.store(Level.damaged.rawValue, ordering: .releasing) }
                return "the storage is damaged: \(finding.what)"
            case .failed:
                guard findings.failure == nil else { return nil }
                let finding = Finding(level: .failed, what: what())
                findings.failure = finding
                current.store(Level.failed.rawValue, ordering: .releasing)
                return "the storage has failed: \(finding.what)"
            }
        }
    }

    /// Reports the failure if it says that stored data are damaged.
    func note(_ failure: StorageFailure) {
        if failure.isDamage { report(.damaged, failure.text) }
    }

    /// Reports the error of a read if it says that stored data are damaged.
    func note(_ error: ServiceError) {
        guard error.code == .storageDamaged, StorageFailure.isDamage(detail: error.detail) else { return }
        report(.damaged, error.reason)
    }

    /// From now on a failure calls `body` after it was logged, on the thread that reports it.
    func whenFailed(_ body: @escaping @Sendable () -> Void) {
        listeners.withLock { $0.onFailure = body }
    }

    /// From now on the first damage calls `body` after it was logged, on the thread that reports it.
    func whenDamaged(_ body: @escaping @Sendable () -> Void) {
        listeners.withLock { $0.onDamage = body }
    }

    /// Ends a failure: the storage was opened again and judged. Damage that was found before stays.
    package func recover() {
        reporting.withLock { _ in
            let recovered = findings.withLock { findings in
                guard findings.failure != nil else { return false }
                findings.failure = nil
                current.store((findings.damage?.level ?? .intact).rawValue, ordering: .releasing)
                return true
            }
            if recovered { log(.info, "the storage was opened again: it answers and takes changes") }
        }
    }

    /// The error for requests that need the storage while it has failed; `nil` while it has not.
    package var refusal: ServiceError? {
        guard hasFailed, let finding else { return nil }
        return ServiceError(.storageDamaged, "the storage has failed: \(finding.what)")
    }

    /// The error for additions to a damaged storage: they would be built on what is not right. Removals of what is
    /// intact get through. `nil` while no damage is known.
    var refusalOfAdditions: ServiceError? {
        level == .intact ? nil : ServiceError(.storageDamaged, "the storage is damaged, and nothing is added to it")
    }

    /// The error that takes the service out of rotation: whoever asks whether it is ready gets it. `nil` while the
    /// storage is intact. It names no key.
    package var unreadiness: ServiceError? {
        if let refusal { return refusal }
        return level == .intact ? nil : ServiceError(.storageDamaged, "the storage is damaged: see the service's log")
    }
}
