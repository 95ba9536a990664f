package import Core
package import Etcd
import Foundation
import Platform
package import RootSets
package import Transport

/// The log that the gates of a cluster share, in etcd.
package final class ClusterLog: SharedLog {
    /// The writer's thread uses it, and for a moment whoever founds the log.
    private let entries: Lock<OrderedLog>
    private let members: EtcdMembers
    private let name: LogName
    private let firstMember: Int
    private let bytesKept: Int
    private let address: Endpoint?
    private let secret: SecretNames?
    private let report: Log
    private let following = Lock<(doorbell: Doorbell, presence: Presence, heartbeat: Heartbeat)?>(nil)
    package let stalenessMilliseconds: UInt64

    /// `stalenessMilliseconds`: see `SharedLog`. `first`: the place of the member that is asked first, so that the
    /// gates of a cluster can be spread. `bytesKept`: how much of the log is kept for services that come back.
    /// `address`: where others get snapshots of this service's storage; `nil`: nowhere. `secret`: see
    /// `ClusterSettings`. `log`: told when other services have another secret.
    package init(
        _ members: EtcdMembers, name: LogName, stalenessMilliseconds: UInt64, bytesKept: Int, address: Endpoint? = nil,
        secret: SecretNames? = nil, first: Int = 0, log: Log = .none
    ) {
        (self.secret, report) = (secret, log)
        (self.members, self.name, self.stalenessMilliseconds) = (members, name, stalenessMilliseconds)
        (firstMember, self.bytesKept, self.address) = (first, bytesKept, address)
        entries = Lock(OrderedLog(EtcdSession(members, first: first), name: name))
    }

    /// The clock goes on while the machine sleeps, and nobody can set it.
    package var now: UInt64 { System.millisecondsWithSleep }

    package func append(_ segment: [UInt8], as number: UInt64, after hash: Digest?) -> SharedAppending {
        // Before the first attempt the segment was nowhere. So whichever attempt had its effect, the log ended before
        // the number at this moment.
        let asOf = now
        do throws(EtcdFailure) {
            let outcome = try entries.withLock { log throws(EtcdFailure) in
                try log.append(segment, as: number, after: hash, milliseconds: Limits.clusterAppendMilliseconds)
            }
            switch outcome {
            case .appended: return .appended(asOf: asOf)
            case .taken(let others): return .taken(others)
            case .misplaced: return .misplaced
            }
        } catch {
            if case .unknown = error { return .failed(reason: error.description, isUnknown: true) }
            return .failed(reason: error.description, isUnknown: false)
        }
    }

    package func read(from number: UInt64, after hash: Digest?) -> SharedReading {
        let asOf = now
        do throws(EtcdFailure) {
            let reading = try entries.withLock { log throws(EtcdFailure) in
                try log.read(from: number, after: hash, milliseconds: Limits.clusterReadMilliseconds)
            }
            switch reading {
            case .entries(let segments, let hasMore): return .segments(segments, hasMore: hasMore, asOf: asOf)
            case .removed(let first): return .removed(first: first)
            case .lost: return .lost
            }
        } catch {
            return .failed(reason: error.description)
        }
    }

    /// What the log was founded with. An empty log is founded with `new`; when somebody else is quicker, that is the
    /// founding. `nil`: the first segment has been removed, so a new storage can't begin with it.
    ///
    /// Waits for etcd for a while. Throws `storageFailed` when it does not answer, when the log begins with something
    /// else, and when it is empty although other services have applied segments of it.
    package func founding(
        orWith new: Segment.Founding, log: Log = .none
    ) throws(ServiceError) -> Segment.Founding? {
        let segment = Segment(identifier: .random(in: .min ... .max), after: .zero, .founding(new))
        let deadline = now + Limits.clusterFoundingMilliseconds
        log(.info, "the storage is new, and begins with what the cluster \(name) has in etcd")
        var first: [UInt8]?
        var isTold = false
        while first == nil {
            switch try foundUnlessLost(segment.bytes) {
            case .appended:
                log(.info, "founded the cluster \(name): its log was empty")
                return new
            case .taken(let found): first = found.first ?? []
            case .misplaced: return nil
            case .failed(let reason, _):
                guard now < deadline else {
                    throw ServiceError(.storageFailed, "a new service begins with the cluster's log, but \(reason)")
                }
                if !isTold { log(.warning, "waiting for etcd, with which a new service begins: \(reason)") }
                isTold = true
                usleep(UInt32(Limits.clusterWatchPauseMilliseconds) * 1000)
            }
        }
        guard let first, case .founding(let founding)? = Segment(first)?.contents else {
            throw ServiceError(.storageFailed, "the log \(name) in etcd does not begin as a cluster's does")
        }
        return founding
    }

    /// Appends the first segment, unless other services have applied segments and the log has none: whoever founds it
    /// anew would let in whom they have removed.
    ///
    /// Throws when that is so, and when nobody can say who the others are.
    private func foundUnlessLost(_ segment: [UInt8]) throws(ServiceError) -> SharedAppending {
        let furthest: UInt64
        do throws(EtcdFailure) {
            // They have told of their segments before the log is looked at.
            let session = EtcdSession(members, first: firstMember)
            furthest = try Presence.records(name, session).map(\.record.segment).max() ?? 0
        } catch {
            switch error {
            // It may answer in a moment.
            case .unreachable, .unknown, .refused(.noLeader, _), .refused(.tooManyRequests, _):
                return .failed(reason: error.description, isUnknown: false)
            case .refused(_, let reason):
                throw ServiceError(.storageFailed, "the cluster's services are not known: \(reason)")
            }
        }
        if furthest > 0, case .segments(let found, _, _) = read(from: 1, after: nil), found.isEmpty {
            throw ServiceError(
                .storageFailed,
                "another service has applied segment \(furthest) of the log \(name), and etcd has none: it was lost")
        }
        return append(segment, as: 1, after: nil)
    }

    package var absence: String? { presence.flatMap { $0.lostLog ?? $0.failure } }

    package var lostLog: String? { presence?.lostLog }

    package func gives(snapshot segment: UInt64?) { presence?.gives(snapshot: segment) }

    package var keepsSnapshot: Bool { presence?.keepsSnapshot ?? true }

    package var replacesStorage: Bool { address != nil }

    package var presentTimes: ClosedRange<UInt64>? { presence?.times }

    private var presence: Presence? { following.withLock { $0?.presence } }

    /// From now on a thread watches for new segments, one keeps this service's key in etcd, and one asks for news when
    /// nobody else does.
    package func begin(_ follower: SharedFollower) {
        let doorbell = Doorbell(members, name, first: firstMember, ring: follower.ring)
        let presence = Presence(
            members, name, first: firstMember, stalenessMilliseconds: stalenessMilliseconds, bytesKept: bytesKept,
            address: address, secret: secret, follower, log: report)
        let heartbeat = Heartbeat(members, name, first: firstMember, follower)
        following.withLock { following in
            precondition(following == nil, "a log is followed twice")
            following = (doorbell, presence, heartbeat)
        }
    }

    package func applied(_ number: UInt64, bytes: Int) {
        guard let presence else { return }
        presence.note(number, bytes: bytes)
        presence.hasProgressed()
    }

    package func whenEverywhere(
        _ sequence: UInt64, within milliseconds: UInt64, _ completion: @escaping @Sendable (Bool) -> Void
    ) {
        guard let presence else { return completion(false) }
        presence.whenEverywhere(sequence, within: milliseconds, completion)
    }

    package func end() {
        let following = following.withLock { following in
            defer { following = nil }
            return following
        }
        following?.heartbeat.close()
        following?.doorbell.close()
        following?.presence.close()
    }
}
