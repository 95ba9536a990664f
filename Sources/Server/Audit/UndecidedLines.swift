import Audit
import Core
import RootSets

/// The changes whose failure does not tell whether they were made. Behind a commit that has failed the storage may have
/// its changes all the same, and so may the log of a cluster. Those that the change log has get their lines once the
/// storage can be read.
///
/// Attempts of one mutation may overlap. So each change is decided when none of its attempts is in flight.
final class UndecidedLines: Sendable {
    private struct Change {
        /// Its line.
        let record: AuditRecord
        /// Changes up to this sequence were made before the attempt that failed first. One of these with the same
        /// identifier has a line, and the attempt was its repetition.
        let floor: UInt64
        /// The number of the attempt that failed last.
        var failure: UInt64
        /// When that was, by the clock of the log that the storage shares.
        var failedAt: UInt64?
        /// Where the change log has it, as far as is known.
        var sequence: UInt64?
        /// Whether records of the change log were removed among which it may have been.
        var isUntold = false

        /// The line of a change that was found to be made.
        var line: AuditRecord? {
            guard let sequence else { return nil }
            var line = record
            line.sequence = sequence
            return line
        }
    }

    /// The attempts of a mutation that are in flight.
    private struct Attempts {
        var count = 0
        /// What the storage had before the first of them.
        let floor: UInt64
    }

    private struct State {
        var changes: [MutationIdentifier: Change] = [:]
        var attempts: [MutationIdentifier: Attempts] = [:]
        var failures: UInt64 = 0
        /// The last sequence with a line of its own.
        var reached: UInt64
        /// Up to where the change log was read. It counts while there are changes.
        var looked: UInt64
        var isSettling = false
    }

    private let rootSets: RootSets
    private let trail: AuditTrail
    private let state: Lock<State>
    private let timer = Lock<RepeatingTimer?>(nil)

    init(_ rootSets: RootSets, _ trail: AuditTrail) {
        self.rootSets = rootSets
        self.trail = trail
        let last = (try? rootSets.read { snapshot throws(ServiceError) in try snapshot.lastSequence() }) ?? 0
        state = Lock(State(reached: last, looked: last))
    }

    /// From now on it looks every second whether the storage tells.
    func start(_ timers: Timers) {
        let timer = timers.every(milliseconds: Limits.auditUndecidedLookMilliseconds, leeway: 100) { [weak self] in
            self?.settle()
        }
        self.timer.withLock { $0 = timer }
    }

    /// An attempt of a mutation begins. `attemptEnded` follows, once for each: when it is refused before it is queued,
    /// or when the writer has answered. So what waits for the writer bounds how many attempts there are.
    func attemptBegins(_ identifier: MutationIdentifier) {
        let sequence = rootSets.sharedSequence ?? 0
        state.withLock { $0.attempts[identifier, default: Attempts(floor: max($0.reached, sequence))].count += 1 }
    }

    /// An attempt has ended. `record`: the line of the change, without a sequence. `wasTried`: false when the mutation
    /// was refused before it was queued.
    ///
    /// Returns the sequence of a change that was made and has no line yet; `nil`: there is none.
    func attemptEnded(
        _ identifier: MutationIdentifier, _ result: Result<MutationReceipt, ServiceError>, _ record: AuditRecord,
        wasTried: Bool
    ) -> UInt64? {
        let failedAt = rootSets.logTime
        let (sequence, isLost, isBehind) = state.withLock { state -> (UInt64?, Bool, Bool) in
            let floor = max(state.attempts[identifier]?.floor ?? 0, state.reached)
            state.attempts[identifier]?.count -= 1
            if state.attempts[identifier]?.count == 0 { state.attempts[identifier] = nil }
            switch result {
            case .success(let receipt) where !receipt.isRepeat:
                state.changes[identifier] = nil
                state.reached = max(state.reached, receipt.sequence)
                return (receipt.sequence, false, !state.changes.isEmpty && receipt.sequence > state.looked)
            case .success(let receipt):
                // In a storage of its own, a change that is newer than all that have lines has none: the queue has made
                // it again by itself.
                let change = state.changes.removeValue(forKey: identifier)
                let told = change?.floor ?? (rootSets.sharesLog ? .max : state.reached)
                guard receipt.sequence > told else { return (nil, false, false) }
                state.reached = max(state.reached, receipt.sequence)
                return (receipt.sequence, false, false)
            case .failure(let error):
                guard error.leavesUndecided, wasTried else { return (nil, false, false) }
                state.failures += 1
                if state.changes[identifier] != nil {
                    state.changes[identifier]?.failure = state.failures
                    state.changes[identifier]?.failedAt = failedAt
                } else {
                    guard state.changes.count < Limits.auditUndecidedMax else { return (nil, true, false) }
                    state.looked = state.changes.isEmpty ? floor : min(state.looked, floor)
                    state.changes[identifier] = Change(
                        record: record, floor: floor, failure: state.failures, failedAt: failedAt)
                }
                return (nil, false, false)
            }
        }
        if isLost { trail.noteLost("more than \(Limits.auditUndecidedMax) changes may have been made") }
        if isBehind { settle(pages: 1) }
        return sequence
    }

    /// Reads what the change log has got since the failures, if the storage can be read, and appends the lines of those
    /// that were made. `pages`: of the log, to be read at most; the rest waits for the next call.
    ///
    /// A change that the log lacks was not made. In a cluster it may still arrive: it is forgotten when the storage has
    /// what was in the log long after the failure.
    func settle(pages: Int = .max) {
        let (failures, looked) = state.withLock { state -> (UInt64, UInt64?) in
            guard !state.changes.isEmpty, !state.isSettling else { return (0, nil) }
            state.isSettling = true
            return (state.failures, state.looked)
        }
        guard let looked else { return }
        defer { state.withLock { $0.isSettling = false } }
        // A failure is reported before the changes that it leaves undecided. So a storage that has not failed now was
        // opened again behind the failure, and has what it will ever have of its own changes.
        guard rootSets.health.refusal == nil else { return }
        let moment = rootSets.moment
        var log = LogPart(looked)
        do throws(ServiceError) {
            try rootSets.read { snapshot throws(ServiceError) in
                let totals = try snapshot.statistics()
                log.end = totals.lastSequence
                log.first = totals.firstSequence
                log.next = max(log.next, log.first - min(log.first, 1))
                var left = pages
                while log.next < log.end, left > 0 {
                    left -= 1
                    let page = try snapshot.changes(after: log.next, limit: Limits.changesPerPageMax)
                    guard let last = page.items.last else { break }
                    log.next = last.sequence
                    find(page.items)
                }
            }
        } catch {
            // Nothing counts as missing.
            log.end = .max
        }
        let (lines, lostCount) = take(log, failures, moment)
        for _ in 0..<lostCount { trail.noteLost("the change log no longer tells whether a change was made") }
        for (identifier, change) in lines {
            // While the audit can't be written, it is kept.
            guard let line = change.line, !trail.noteIfRoom(line) else { continue }
            state.withLock { $0.changes[identifier] = change }
        }
    }

    /// How far the change log was read.
    private struct LogPart {
        var next: UInt64
        var end: UInt64
        /// Its first record.
        var first: UInt64 = 0

        init(_ looked: UInt64) { (next, end) = (looked, looked) }
    }

    private func find(_ mutations: [LoggedMutation]) {
        state.withLock { state in
            for logged in mutations {
                guard let change = state.changes[logged.mutation.identifier], logged.sequence > change.floor else {
                    continue
                }
                state.changes[logged.mutation.identifier]?.sequence = logged.sequence
            }
        }
    }

    /// Takes out the changes that are decided, when the log was read that far. `failures`: those that are behind it.
    /// Returns those that were made, in their order, and the number of those of which nothing tells any more.
    private func take(
        _ log: LogPart, _ failures: UInt64, _ moment: ReadMoment
    ) -> (made: [(MutationIdentifier, Change)], lostCount: Int) {
        state.withLock { state in
            let looked = state.looked
            // What was read was not compared with changes that have failed meanwhile.
            if state.failures == failures { state.looked = log.next }
            var made: [(identifier: MutationIdentifier, change: Change)] = []
            var lostCount = 0
            for (identifier, change) in state.changes {
                let isUntold = change.isUntold || change.sequence == nil && max(looked, change.floor) + 1 < log.first
                if isUntold { state.changes[identifier]?.isUntold = true }
                guard state.attempts[identifier] == nil else { continue }
                if change.sequence != nil {
                    made.append((identifier, change))
                } else if log.next >= log.end, change.failure <= failures {
                    let wait = Limits.auditUndecidedMilliseconds
                    guard change.failedAt.map({ moment.has($0 + wait) }) ?? true else { continue }
                    if isUntold { lostCount += 1 }
                    state.changes[identifier] = nil
                }
            }
            for (identifier, change) in made {
                state.changes[identifier] = nil
                state.reached = max(state.reached, change.sequence ?? 0)
            }
            return (made.sorted { $0.change.sequence ?? 0 < $1.change.sequence ?? 0 }, lostCount)
        }
    }

    /// For tests.
    var count: Int { state.withLock { $0.changes.count } }

    /// Attempts in flight, for tests.
    func attempts(of identifier: MutationIdentifier) -> Int { state.withLock { $0.attempts[identifier]?.count ?? 0 } }

    /// Settles what can be settled. The rest counts as lost lines.
    func close() {
        timer.withLock { $0 }?.cancelAndWait()
        settle()
        for _ in 0..<count { trail.noteLost("it is not known whether a change was made") }
    }
}

extension ServiceError {
    /// Whether a mutation that was answered with it may have been made.
    fileprivate var leavesUndecided: Bool { [.storageFailed, .storageDamaged, .internalFault].contains(code) }
}
