import Audit
import Core
import RootSets
import Transport

/// The changes whose failure does not tell whether they were made. Behind a commit that has failed the storage may have
/// its changes all the same, and so may the log of a cluster. Those that were made get their lines once the storage
/// tells.
final class UndecidedLines: Sendable {
    /// A change that may have been made.
    struct Change: Sendable {
        /// Its line.
        var record: AuditRecord
        /// Every sequence up to this one was given to another change. A repetition of such a change has failed, too,
        /// and gets no second line.
        var reached: UInt64
        /// In milliseconds of the clock.
        var since: UInt64
        /// The number of the attempt that failed last.
        var attempt: UInt64
    }

    private struct State {
        var changes: [MutationIdentifier: Change] = [:]
        var reached: UInt64
        var attempts: UInt64 = 0
    }

    private let rootSets: RootSets
    private let trail: AuditTrail
    private let clock: MonotonicClock
    private let state: Lock<State>
    private let timer = Lock<RepeatingTimer?>(nil)

    init(_ rootSets: RootSets, _ trail: AuditTrail, _ clock: MonotonicClock) {
        self.rootSets = rootSets
        self.trail = trail
        self.clock = clock
        let last = try? rootSets.read { snapshot throws(ServiceError) in try snapshot.lastSequence() }
        state = Lock(State(reached: last ?? 0))
    }

    /// From now on it looks every second whether the storage tells.
    func begin(_ timers: Timers) {
        let timer = timers.every(milliseconds: Limits.auditUndecidedLookMilliseconds, leeway: 100) { [weak self] in
            self?.settle()
        }
        self.timer.withLock { $0 = timer }
    }

    /// Takes a change out, because it is attempted again; `nil` when it is not undecided.
    func take(_ identifier: MutationIdentifier) -> Change? {
        state.withLock { $0.changes.removeValue(forKey: identifier) }
    }

    /// Notes what an attempt has left undecided. `earlier`: what `take` returned before the attempt.
    func note(_ identifier: MutationIdentifier, _ record: AuditRecord, earlier: Change?) {
        let now = clock.milliseconds
        let isKept = state.withLock { state in
            state.attempts += 1
            var change = earlier ?? Change(record: record, reached: state.reached, since: now, attempt: 0)
            (change.since, change.attempt) = (now, state.attempts)
            guard state.changes.count < Limits.auditUndecidedMax else { return false }
            state.changes[identifier] = change
            return true
        }
        if !isKept { trail.noteLost("more than \(Limits.auditUndecidedMax) changes may have been made") }
    }

    /// Notes that a change was made. Those that were undecided before get their lines before it.
    func made(_ sequence: UInt64) {
        let isClear = state.withLock { state in
            state.reached = max(state.reached, sequence)
            return state.changes.isEmpty
        }
        if !isClear { settle() }
    }

    /// Asks the storage, if it can be read, which changes were made, and appends their lines.
    ///
    /// In a cluster a change that is missing may still arrive: it is forgotten when the storage has everything that was
    /// in the log long after the failure.
    func settle() {
        let changes = state.withLock { $0.changes }
        // A failure is reported before the changes that it leaves undecided. So a storage that has not failed now was
        // opened again behind the failure, and has what it will ever have of its own changes.
        guard !changes.isEmpty, rootSets.health.refusal == nil else { return }
        let isFresh = rootSets.isFresh
        let now = clock.milliseconds
        for (identifier, change) in changes {
            let sequence: UInt64?
            do throws(ServiceError) {
                sequence = try rootSets.read { snapshot throws(ServiceError) in
                    try snapshot.applied(identifier)?.sequence
                }
            } catch {
                continue
            }
            guard let sequence else {
                let mayArrive =
                    rootSets.sharesLog && !(isFresh && now - change.since >= Limits.auditUndecidedMilliseconds)
                if !mayArrive { forget(identifier, after: change.attempt) }
                continue
            }
            // Another thread may have been quicker.
            guard forget(identifier, after: change.attempt), sequence > change.reached else { continue }
            trail.note(change.line(sequence))
        }
    }

    /// Takes a change out unless it was attempted again. Returns whether it did.
    @discardableResult
    private func forget(_ identifier: MutationIdentifier, after attempt: UInt64) -> Bool {
        state.withLock { state in
            guard state.changes[identifier]?.attempt == attempt else { return false }
            state.changes[identifier] = nil
            return true
        }
    }

    /// For tests.
    var count: Int { state.withLock { $0.changes.count } }

    /// Settles what can be settled. The audit's last line tells no sequence when something can't.
    func close() {
        timer.withLock { $0 }?.cancelAndWait()
        settle()
        for _ in state.withLock({ $0.changes }) { trail.noteLost("it is not known whether a change was made") }
    }
}

extension UndecidedLines.Change {
    /// The line of the change, which was found to be made.
    func line(_ sequence: UInt64) -> AuditRecord {
        var line = record
        line.sequence = sequence
        line.outcome = "done"
        return line
    }
}

extension ServiceError {
    /// Whether a mutation that was answered with it may have been made.
    var leavesUndecided: Bool { [.storageFailed, .storageDamaged, .internalFault].contains(code) }
}
