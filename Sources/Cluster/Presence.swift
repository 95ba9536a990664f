import Core
import Dispatch
import Etcd
import Foundation
import Platform
import RootSets
import Synchronization
import Transport

/// This service among the others of its cluster: a key in etcd with a lease, which tells how far the service has
/// applied the log. Whoever has no such key answers nothing that others may have changed.
///
/// Its thread keeps the key, removes segments from the log that everybody has applied or that one who is behind may not
/// keep, compares what the services hold, and tells who waits when everybody has applied a change.
final class Presence: Sendable {
    /// Called with whether every service has the change, or can't answer without it.
    typealias Completion = @Sendable (Bool) -> Void

    /// Somebody who waits until every service has a change.
    private struct Waiting {
        let sequence: UInt64
        let deadline: UInt64
        let completion: Completion
        /// When this service was first seen to have it; `nil`: it was not yet.
        var since: UInt64?
    }

    private struct State {
        var waiting: [Waiting] = []
        var share: LogShare
        /// See `GateRecord.snapshot`.
        var snapshot: UInt64?
        /// Whether the log is no longer kept behind it.
        var isSnapshotLost = false
        var isOver = false
    }

    private let members: EtcdMembers
    private let name: LogName
    private let first: Int
    private let stalenessMilliseconds: UInt64
    private let leaseSeconds: Int64
    private let address: Endpoint?
    private let secret: SecretNames?
    private let log: Log
    private let follower: SharedFollower
    private let state: Lock<State>
    private let lastFailure = Lock<String?>(nil)
    private let missing = Lock<String?>(nil)
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    /// From when and until when the key is in etcd for certain, in milliseconds of the log's clock; 0: it is not.
    private let since = Atomic<UInt64>(0)
    private let until = Atomic<UInt64>(0)

    /// `stalenessMilliseconds`: how long the service may go without news of the log; the key outlasts that.
    /// `bytesKept`: how much of the log is kept for services that come back. `address`: see `GateRecord`. `secret` and
    /// `log`: see `ClusterLog`.
    init(
        _ members: EtcdMembers, _ name: LogName, first: Int, stalenessMilliseconds: UInt64, bytesKept: Int,
        address: Endpoint?, secret: SecretNames? = nil, _ follower: SharedFollower, log: Log = .none
    ) {
        (self.secret, self.log) = (secret, log)
        (self.members, self.name, self.first) = (members, name, first)
        (self.address, self.follower) = (address, follower)
        self.stalenessMilliseconds = stalenessMilliseconds
        leaseSeconds = Int64(max(Limits.clusterLeaseSecondsMin, (2 * stalenessMilliseconds + 999) / 1000))
        state = Lock(State(share: LogShare(bytesMax: bytesKept)))
        let thread = Thread { [self] in
            run()
            ended.signal()
        }
        thread.name = "rootgate presence"
        thread.start()
    }

    /// Ends the key, so that nobody waits for this service.
    func close() {
        let wasOver = state.withLock { state in
            defer { state.isOver = true }
            return state.isOver
        }
        wake.signal()
        if !wasOver { ended.wait() }
    }

    /// The times between which the key was in etcd for certain; `nil`: it never was. What was read of the log in that
    /// time has everything that somebody may rely on who has looked for this service's key.
    var times: ClosedRange<UInt64>? {
        let until = until.load(ordering: .acquiring)
        let since = since.load(ordering: .acquiring)
        return since > 0 && since <= until ? since...until : nil
    }

    /// Why the key may not be in etcd; `nil`: nothing has failed.
    var failure: String? { lastFailure.withLock { $0 } }

    /// A segment is in the log.
    func note(_ segment: UInt64, bytes: Int) {
        state.withLock { $0.share.note(segment, bytes: bytes) }
    }

    /// Why the log can't be the one that others have applied; `nil`: nobody knows that it is not.
    var lostLog: String? { missing.withLock { $0 } }

    /// The last segment of the snapshot that this service gives to others; `nil`: it gives none.
    func gives(snapshot segment: UInt64?) {
        state.withLock { ($0.snapshot, $0.isSnapshotLost) = (segment, false) }
        wake.signal()
    }

    /// Whether the log is kept behind that snapshot.
    var keepsSnapshot: Bool { state.withLock { !$0.isSnapshotLost } }

    /// Calls `completion` once, on any thread, when every service of the cluster has applied the change with a
    /// sequence, or can't answer without it; or with false when that is not known after so many milliseconds.
    func whenEverywhere(_ sequence: UInt64, within milliseconds: UInt64, _ completion: @escaping Completion) {
        let deadline = System.millisecondsWithSleep + milliseconds
        let isTaken = state.withLock { state in
            guard !state.isOver, state.waiting.count < Limits.everywhereWaitersMax else { return false }
            state.waiting.append(Waiting(sequence: sequence, deadline: deadline, completion: completion))
            return true
        }
        guard isTaken else { return completion(false) }
        wake.signal()
    }

    /// Something was applied: the key is to tell it soon.
    func hasProgressed() { wake.signal() }

    // MARK: The thread

    /// The thread's own: what it has told etcd.
    private struct Told {
        var lease: Int64?
        var record: GateRecord?
        /// The revision in which the key was put last, as far as it is known; 0: it does not exist.
        var revision: Int64 = 0
        var nextKeepAlive: UInt64 = 0
        var nextPut: UInt64 = 0
        var nextLook: UInt64 = 0
        var removedBefore: UInt64 = 0
        /// Whether the log was told that the other services are not known.
        var isUnknown = false
        /// The services with another secret, as the log was told of them.
        var foreign: Set<String> = []
        /// The services that are far behind, and those that can't follow any more, as the log was told of them.
        var late: Set<String> = []
        var lost: Set<String> = []
        /// The services with storages of other clusters, as the log was told of them.
        var strangers: Set<String> = []
        /// Whether the log was told that the cluster's log does not go back to a snapshot.
        var hasLostSnapshot = false
    }

    private func run() {
        let session = EtcdSession(members, first: first)
        let key = Presence.prefix(name) + Array(String(UInt64.random(in: .min ... .max), radix: 16).utf8)
        var told = Told()
        while !state.withLock({ $0.isOver }) {
            do throws(EtcdFailure) {
                try keep(&told, key, session)
                lastFailure.withLock { $0 = nil }
            } catch {
                // It is repeated after a pause.
                told.nextKeepAlive = 0
                lastFailure.withLock { $0 = "this service's key in etcd can't be kept: \(error)" }
            }
            let isAwaited = state.withLock { !$0.waiting.isEmpty }
            if isAwaited || System.millisecondsWithSleep >= told.nextLook { lookOrTell(&told, key, session) }
            giveUpOverdue()
            let isBeginning = follower.progress().hash == nil
            let pause = isAwaited || isBeginning ? Limits.clusterLookMilliseconds : Limits.clusterPresenceMilliseconds
            if wake.wait(timeout: .now() + .milliseconds(Int(pause))) == .success {
                // Many changes are told at once.
                usleep(UInt32(Limits.clusterLookMilliseconds) * 1000)
                while wake.wait(timeout: .now()) == .success {}
            }
        }
        if let lease = told.lease { try? session.end(lease: lease, milliseconds: Limits.clusterReadMilliseconds) }
        for waiting in takeWaiting({ _ in true }) { waiting.completion(false) }
    }

    /// Makes the key, keeps it, and tells in it what was applied.
    private func keep(_ told: inout Told, _ key: [UInt8], _ session: EtcdSession) throws(EtcdFailure) {
        let now = System.millisecondsWithSleep
        let milliseconds = Limits.clusterReadMilliseconds
        guard let lease = told.lease else { return try make(&told, key, session) }
        do throws(EtcdFailure) {
            if now >= told.nextKeepAlive {
                guard let found = try session.keepAlive(key, lease: lease, milliseconds: milliseconds) else {
                    throw .refused(.other, "the members elect a leader")
                }
                // It is another's, or a request that was late has put it with an earlier lease.
                guard found.lease == lease else { throw .refused(.noLease, "the key has no lease, or another one") }
                // Somebody else has put the key: etcd was restored from a backup, where the key is older.
                if found.revision != told.revision { (told.record, told.nextPut) = (nil, 0) }
                told.revision = found.revision
                told.nextKeepAlive = now + Limits.clusterKeepAliveMilliseconds
                until.store(end(of: now), ordering: .releasing)
            }
            let record = self.record
            if record != told.record, now >= told.nextPut {
                let revision = try session.replace(
                    key, from: told.revision, with: record.bytes, lease: lease, milliseconds: milliseconds)
                told.nextPut = now + Limits.clusterLookMilliseconds
                if let revision {
                    (told.revision, told.record) = (revision, record)
                } else {
                    // The next turn looks how the key is, and puts it again.
                    told.nextKeepAlive = 0
                }
            }
        } catch {
            // The key is gone, or will be. Nothing is answered until there is another one.
            if case .refused(.noLease, _) = error { lose(&told) }
            throw error
        }
    }

    /// What the key is to tell.
    private var record: GateRecord {
        GateRecord(
            follower.progress(), address: address, snapshot: state.withLock { $0.snapshot }, secrets: secret?.names,
            staleness: stalenessMilliseconds)
    }

    /// Makes the key with a new lease.
    private func make(_ told: inout Told, _ key: [UInt8], _ session: EtcdSession) throws(EtcdFailure) {
        let now = System.millisecondsWithSleep
        let milliseconds = Limits.clusterReadMilliseconds
        // Before that nobody can say whether the log lacks what others have applied.
        guard follower.progress().hash != nil else { throw .refused(.other, "the storage has not read its log yet") }
        let others = try others(than: key, &told, session)
        try checkLog(others, session)
        let record = self.record
        let lease = try session.beginLease(seconds: leaseSeconds, milliseconds: milliseconds)
        told.revision = try session.leasedKey(key, milliseconds: milliseconds).0.revision
        guard
            let revision = try session.replace(
                key, from: told.revision, with: record.bytes, lease: lease, milliseconds: milliseconds)
        else { throw .unknown("the key was put meanwhile") }
        (told.lease, told.record, told.revision) = (lease, record, revision)
        told.nextKeepAlive = now + Limits.clusterKeepAliveMilliseconds
        compareSecrets(&told, others)
        // Who looks for the key from now on finds it.
        since.store(System.millisecondsWithSleep, ordering: .releasing)
        until.store(end(of: now), ordering: .releasing)
    }

    /// The key does not last, as far as is known. Nothing is answered until there is another one.
    private func lose(_ told: inout Told) {
        told.lease = nil
        until.store(0, ordering: .releasing)
    }

    /// Throws when another service has applied segments that the log does not have. Then etcd has lost them, and this
    /// service does not know what was in them.
    private func checkLog(_ others: [GateRecord], _ session: EtcdSession) throws(EtcdFailure) {
        let progress = follower.progress()
        let furthest = others.map(\.segment).max() ?? 0
        var lost: String?
        // The others told of their segments before, so the log has something behind this service's last one.
        if furthest > progress.segment, let hash = progress.hash,
            case .entries(let new, _) = try OrderedLog(session, name: name).read(
                from: progress.segment + 1, after: hash, milliseconds: Limits.clusterReadMilliseconds),
            new.isEmpty
        {
            lost = "another service has applied segment \(furthest), and the shared log ends at \(progress.segment)"
        }
        missing.withLock { $0 = lost }
        if let lost { throw .refused(.other, lost) }
    }

    /// When a lease that was asked for, or kept, at a time ends at the earliest.
    private func end(of began: UInt64) -> UInt64 {
        began + UInt64(leaseSeconds) * 1000 - Limits.clusterLeaseMarginMilliseconds
    }

    /// Looks how far the others are. Tells the log when that fails, and when it does not any more: meanwhile nothing is
    /// confirmed everywhere, nothing is removed from the log, and services are not compared.
    private func lookOrTell(_ told: inout Told, _ key: [UInt8], _ session: EtcdSession) {
        do throws(EtcdFailure) {
            try look(&told, key, session)
            if told.isUnknown { log(.info, "the other services of the cluster are known again") }
            told.isUnknown = false
        } catch {
            secret?.found(foreignServices: nil)
            // When etcd does not answer, the storage is stale soon, and that is told.
            guard !told.isUnknown, case .refused(let refusal, _) = error, refusal != .noLeader else { return }
            log(.error, "the other services of the cluster are not known, so no change is confirmed: \(error)")
            told.isUnknown = true
        }
    }

    /// Looks how far the others are.
    private func look(_ told: inout Told, _ key: [UInt8], _ session: EtcdSession) throws(EtcdFailure) {
        let asked = System.millisecondsWithSleep
        let reached = follower.progress().sequence
        let seen = System.millisecondsWithSleep
        // Who begins to wait after the question gets the next one.
        state.withLock { state in
            for index in state.waiting.indices where state.waiting[index].sequence <= reached {
                state.waiting[index].since = state.waiting[index].since ?? seen
            }
        }
        let others = try others(than: key, &told, session)
        let own = follower.progress()
        let isEverywhere = { (waiting: Waiting) in
            guard let since = waiting.since else { return false }
            return others.allSatisfy { $0.has(waiting.sequence, inLogFor: asked - min(asked, since)) }
        }
        for waiting in takeWaiting(isEverywhere) { waiting.completion(true) }
        guard asked >= told.nextLook else { return }
        told.nextLook = asked + Limits.clusterTrimMilliseconds
        do throws(EtcdFailure) {
            try checkLog(others, session)
        } catch {
            if lostLog != nil { lose(&told) }
            throw error
        }
        compareSecrets(&told, others)
        if let mine = told.record, mine.isOutvoted(by: others) {
            follower.disagree(
                "behind segment \(mine.checkpoint ?? 0) of the cluster's log most other services hold something else")
        }
        guard let bounds = state.withLock({ $0.share.bounds() }) else { return }
        // Nothing is kept for those who can't follow any more.
        let least = max(1, told.removedBefore) - 1
        let (following, lost) = (others.filter { $0.segment >= least }, others.filter { $0.segment < least })
        tell(&told, late: following.filter { $0.segment < bounds.usual }, lost: lost)
        let snapshots = (others.map(\.snapshot) + [state.withLock { $0.snapshot }]).compactMap { $0 }.min()
        noteSnapshots(&told, snapshots, bounds.leastForSnapshots ?? 0)
        let applied = following.map(\.segment).min() ?? .max
        let before = min(own.segment, bounds.removal(applied: applied, snapshots: snapshots))
        guard before > max(1, told.removedBefore) else { return }
        let log = OrderedLog(session, name: name)
        if try log.remove(before: before, milliseconds: Limits.clusterReadMilliseconds) { told.removedBefore = before }
    }

    /// Tells the log when services are so far behind that more of the cluster's log is kept for them, when some can't
    /// follow any more, and when there are none of these.
    private func tell(_ told: inout Told, late: [GateRecord], lost: [GateRecord]) {
        let (lateNames, lostNames) = (Presence.names(of: late), Presence.names(of: lost))
        guard lateNames != told.late || lostNames != told.lost else { return }
        if !lateNames.isSubset(of: told.late) {
            log(
                .warning,
                "the cluster's log is kept longer for services that are far behind, but not without an end: "
                    + lateNames.sorted().joined(separator: ", "))
        }
        if !lostNames.isSubset(of: told.lost) {
            log(
                .warning,
                "the cluster's log does not go back to services that are too far behind; replace their storages: "
                    + lostNames.sorted().joined(separator: ", "))
        }
        if lateNames.isEmpty, lostNames.isEmpty { log(.info, "no service of the cluster is far behind any more") }
        (told.late, told.lost) = (lateNames, lostNames)
    }

    /// Notes whether the cluster's log is kept behind the snapshot that this service gives, and tells the log once when
    /// it is not kept behind the oldest one of all. `least`: the segment before which nothing is kept.
    private func noteSnapshots(_ told: inout Told, _ oldest: UInt64?, _ least: UInt64) {
        let isLost = oldest.map { $0 < least } ?? false
        state.withLock { state in
            if let own = state.snapshot, own < least { state.isSnapshotLost = true }
        }
        if isLost, !told.hasLostSnapshot {
            log(
                .warning,
                "a service takes longer to get a snapshot and to restore it than the cluster's log is kept: raise "
                    + "--log-retention at all services")
        }
        told.hasLostSnapshot = isLost
    }

    /// How the log is told of some services; not of all when there are very many.
    private static func names(of records: [GateRecord]) -> Set<String> {
        Set(records.prefix(Limits.gatesNamedMax).map(\.name))
    }

    /// Tells the log when other services have another secret, and when none has any more.
    private func compareSecrets(_ told: inout Told, _ others: [GateRecord]) {
        guard let mine = told.record, let secret else { return }
        let foreign = others.filter { mine.hasForeignSecret(to: $0) }
        secret.found(foreignServices: foreign.count)
        let names = Set(
            foreign.prefix(Limits.gatesNamedMax).map {
                "\($0.name) (generation \($0.secrets?.first ?? ""))"
            })
        guard names != told.foreign else { return }
        told.foreign = names
        guard !names.isEmpty else { return log(.info, "no other service has another secret any more") }
        let own = mine.secrets?.first ?? ""
        let who = foreign.count == 1 ? "another service has" : "\(foreign.count) other services have"
        log(
            .warning,
            "\(who) another secret than this one (generation \(own)): grants are taken for forged; give all the same "
                + "--secret-file: \(names.sorted().joined(separator: ", "))")
    }

    private func takeWaiting(_ isDue: (Waiting) -> Bool) -> [Waiting] {
        state.withLock { state in
            guard !state.waiting.isEmpty else { return [] }
            let due = state.waiting.filter(isDue)
            state.waiting.removeAll(where: isDue)
            return due
        }
    }

    private func giveUpOverdue() {
        let now = System.millisecondsWithSleep
        for waiting in takeWaiting({ $0.deadline <= now }) { waiting.completion(false) }
    }

    // MARK: Keys

    static func prefix(_ name: LogName) -> [UInt8] { Array("rootgate/\(name)/gate/".utf8) }

    /// What the services of a cluster tell, with the names of their keys and the leases that these end with.
    static func records(
        _ name: LogName, _ session: EtcdSession
    ) throws(EtcdFailure) -> [(key: [UInt8], record: GateRecord, lease: Int64)] {
        let prefix = prefix(name)
        let range = EtcdSession.KeyRange(from: prefix, to: prefix.dropLast() + [UInt8(ascii: "/") + 1])
        let page = try session.read(range, limit: Limits.gatesMax, milliseconds: Limits.clusterReadMilliseconds)
        var records: [(key: [UInt8], record: GateRecord, lease: Int64)] = []
        for entry in page.entries {
            // Every service's key ends with a lease.
            guard let record = GateRecord(entry.value), entry.lease != 0 else {
                let key = String(decoding: entry.key, as: UTF8.self).escapingControls
                throw .refused(.other, "the key \(key) in etcd is no service's: remove it (etcdctl del)")
            }
            records.append((entry.key, record, entry.lease))
        }
        guard !page.hasMore else { throw .refused(.other, "the cluster \(name) has too many services") }
        return records
    }

    /// What the other services of the cluster tell. Those whose storages are of another cluster are none: the log is
    /// not theirs, so nothing depends on them. The log is told of them.
    private func others(
        than key: [UInt8], _ told: inout Told, _ session: EtcdSession
    ) throws(EtcdFailure) -> [GateRecord] {
        let (all, own) = (try Presence.records(name, session).filter { $0.key != key }.map(\.record), record)
        let strangers = all.filter { $0.isStranger(to: own) }
        let names = Presence.names(of: strangers)
        if !names.isSubset(of: told.strangers) {
            log(
                .error,
                "services with storages of another cluster use the name \(name), and are left out; give them their own "
                    + "--cluster-name: \(names.sorted().joined(separator: ", "))")
        } else if names.isEmpty, !told.strangers.isEmpty {
            log(.info, "no service with a storage of another cluster uses the name \(name) any more")
        }
        told.strangers = names
        return all.filter { !$0.isStranger(to: own) }
    }
}
