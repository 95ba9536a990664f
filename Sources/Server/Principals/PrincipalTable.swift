import Audit
import Collaboration
import Core
import Foundation
import Principals
import RootSets
import Synchronization

/// All principals in memory. A commit that changes principals replaces the table before its request is answered. So a
/// removal holds for every request that begins after its answer, on open connections too.
final class PrincipalTable: Sendable {
    private struct State {
        var directory = PrincipalDirectory.closed
        /// Whether the directory may be older than the storage, because the storage could not be read.
        var isStale = true
        var uses: [PrincipalUse.Subject: PrincipalUse] = [:]
        /// Of the principals that have had a connection.
        var allowances: [PrincipalName: PrincipalAllowance] = [:]
    }

    private let rootSets: RootSets
    /// `nil` unless there is an audit.
    private let trail: AuditTrail?
    private let date: @Sendable () -> Date
    /// The clock by which invitations and grants expire, too.
    private let expiryClock: MonotonicClock?
    /// The clock of rates.
    private let clock: MonotonicClock
    /// Gives the identifiers of changes that the service makes by itself.
    private let random: RandomSource
    /// What was refused because of limits.
    let refusals = LimitRefusals()
    /// By door, so that whoever guesses at one of them delays nobody at the other.
    private let wrongKeys = Lock<[KeyDoor: WrongKeys]>([:])
    private let state = Lock(State())
    /// Counts the directories. It is raised with the lock held, after the directory was replaced.
    private let replacements = Atomic<UInt64>(0)

    /// Reads all principals. `expiryClock`: milliseconds since 1970 that don't go back; `nil`: principals expire by
    /// `date`.
    ///
    /// Throws `storageDamaged` or `storageFailed`.
    init(
        _ rootSets: RootSets, trail: AuditTrail?, date: @escaping @Sendable () -> Date,
        expiryClock: MonotonicClock? = nil, clock: MonotonicClock = .system, random: RandomSource = .system
    ) throws(ServiceError) {
        self.rootSets = rootSets
        self.expiryClock = expiryClock
        self.clock = clock
        self.random = random
        self.trail = trail
        self.date = date
        try state.withLock { state throws(ServiceError) in try load(&state) }
    }

    /// Differs between two moments if principals may have changed in between.
    var version: UInt64 { replacements.load(ordering: .acquiring) }

    /// The time by which principals and keys expire. It does not go back when the date is set back.
    var now: Date {
        let lowest = expiryClock.map { Date(timeIntervalSince1970: Double($0.milliseconds) / 1000) }
        return max(date(), lowest ?? .distantPast)
    }

    /// Whether there was a principal at any time.
    var isConfigured: Bool { current.directory.isConfigured }

    /// All principals, and the version that they belong to. Nobody is known while the storage can't be read.
    var current: (directory: PrincipalDirectory, version: UInt64) {
        state.withLock { state in
            if state.isStale { try? load(&state) }
            return (state.directory, version)
        }
    }

    /// Reads all principals again. Called before the change of principals is answered, whatever came of it.
    func reload() {
        state.withLock { state in
            state.isStale = true
            do throws(ServiceError) {
                try load(&state)
            } catch {
                state.directory = .closed
                replacements.add(1, ordering: .releasing)
            }
        }
    }

    private func load(_ state: inout State) throws(ServiceError) {
        state.directory = try rootSets.read { snapshot throws(ServiceError) in
            try PrincipalRecords.directory(snapshot)
        }
        state.isStale = false
        state.uses = state.uses.filter { subject, _ in state.directory.has(subject.principal, subject.key) }
        state.allowances = state.allowances.filter { name, _ in state.directory.has(name, nil) }
        for (name, allowance) in state.allowances {
            if let limits = state.directory.limits(of: name) { allowance.replace(limits) }
        }
        replacements.add(1, ordering: .releasing)
    }

    /// The principal that a match stands for.
    func principal(_ match: PrincipalDirectory.Match) -> Principal {
        let subject = PrincipalUse.Subject(principal: match.principal.name, key: match.key?.identifier)
        let (known, allowance) = state.withLock { state in
            (state.uses[subject], self.allowance(of: match.principal, &state))
        }
        if let known { return Principal(match, known, allowance) }
        // Without its record the use counts as the first one.
        let stored = try? rootSets.read { snapshot throws(ServiceError) in
            try PrincipalRecords.lastUse(of: subject.principal, subject.key, snapshot)
        }
        let use = state.withLock { state in
            let use = state.uses[subject] ?? PrincipalUse(subject, stored: stored ?? 0)
            state.uses[subject] = use
            return use
        }
        return Principal(match, use, allowance)
    }

    /// What the principal uses of its limits, which are those of the directory: the match may be older. Called under
    /// the lock.
    private func allowance(of record: PrincipalRecord, _ state: inout State) -> PrincipalAllowance {
        if let known = state.allowances[record.name] { return known }
        let limits = state.directory.limits(of: record.name)
        let allowance = PrincipalAllowance(limits ?? record.limits, clock, refusals)
        // One that was removed in the meantime is nobody's after the connection's next look.
        if limits != nil { state.allowances[record.name] = allowance }
        return allowance
    }

    /// Notes that the principal makes a request. The first use of a key gets a line in the audit. The storage is told
    /// of it, and again after an hour; nobody waits for that.
    func noteUse(_ use: PrincipalUse, from peer: String?) {
        let now = UInt64(max(0, date().timeIntervalSince1970 * 1000))
        guard let last = use.note(at: now) else { return }
        if last == 0, let trail {
            let means = use.subject.key.map { "key \($0)" } ?? "a certificate or local user"
            trail.note(
                AuditRecord(
                    .key, principal: use.subject.principal.text, peer: peer, operation: "firstUse",
                    detail: "\(means) is used for the first time"))
        }
        let edit = PrincipalRecords.use(of: use.subject.principal, use.subject.key, milliseconds: max(1, now))
        // A use that can't be stored is stored with the next one.
        rootSets.submit(Mutation(identifier: .random(from: random), .edit(edit))) { _ in }
    }

    /// Throws `busy` with the time to wait when the address has presented too many wrong keys at the door. Then the key
    /// is not looked at, and the audit tells so.
    func checkAttempt(at door: KeyDoor, from address: Holder, peer: String?) throws(ServiceError) {
        let now = clock.milliseconds
        guard let milliseconds = wrongKeys.withLock({ $0[door]?.wait(of: address, at: now) }) else { return }
        refusals.slowedKeys.add(1, ordering: .relaxed)
        trail?.noteRefusal(.slowedKey, of: address) {
            AuditRecord(
                .key, principal: "anonymous", peer: peer, operation: door.rawValue,
                outcome: ServiceError.Code.busy.name,
                detail: "the key was not looked at: its address has presented too many wrong ones")
        }
        throw ServiceError(
            .busy, detail: UInt32(clamping: milliseconds),
            "this address has presented too many wrong keys: try again in \(milliseconds) ms")
    }

    /// Notes that a key was refused: for the next ones of its address, and in the audit.
    func noteRefusal(of key: KeyIdentifier?, at door: KeyDoor, from address: Holder, peer: String?) {
        let now = clock.milliseconds
        wrongKeys.withLock { $0[door, default: WrongKeys()].note(address, at: now) }
        trail?.noteRefusal(.wrongKey, of: address) {
            AuditRecord(
                .key, principal: "anonymous", peer: peer, operation: door.rawValue,
                outcome: ServiceError.Code.keyRefused.name, detail: key.map { "key \($0)" })
        }
    }
}
