package import Core
import Etcd
import RootSets

/// How the services of a cluster stand, as etcd tells.
package struct ClusterReport: Sendable {
    /// The services that are alive. Who is furthest comes first.
    package let services: [GateRecord]
    /// The numbers of the log's first and last segments; `nil`: it is empty.
    package let log: ClosedRange<UInt64>?

    /// Throws `storageFailed` when etcd does not answer, and `tlsRefused`.
    package init(of cluster: ClusterSettings) throws(ServiceError) {
        let members = try EtcdMembers(cluster.endpoints, tls: cluster.tls, credentials: cluster.credentials)
        let session = EtcdSession(members, first: cluster.firstMember)
        let entries = OrderedLog(session, name: cluster.name)
        do throws(EtcdFailure) {
            services = try Presence.records(cluster.name, session).map(\.record)
                .sorted { ($0.segment, $0.address ?? "") > ($1.segment, $1.address ?? "") }
            if let first = try entries.first(milliseconds: Limits.clusterReadMilliseconds),
                let last = try entries.last(milliseconds: Limits.clusterReadMilliseconds)
            {
                // Others may remove what was the first one.
                log = min(first, last)...last
            } else {
                log = nil
            }
        } catch {
            throw ServiceError(.storageFailed, "etcd does not tell how the services stand: \(error)")
        }
    }

    init(services: [GateRecord], log: ClosedRange<UInt64>?) { (self.services, self.log) = (services, log) }

    /// The numbers of segments behind which services hold something else than others do.
    package var disagreements: [UInt64] {
        var digests: [UInt64: Set<String>] = [:]
        for service in services {
            if let contents = service.contents { digests[service.segment, default: []].insert(contents) }
            if let checkpoint = service.checkpoint, let digest = service.digest {
                digests[checkpoint, default: []].insert(digest)
            }
        }
        return digests.filter { $0.value.count > 1 }.keys.sorted()
    }

    /// Whether a service has applied segments that the log does not have: etcd has lost them.
    package var isLogLost: Bool { services.lazy.map(\.segment).max() ?? 0 > log?.upperBound ?? 0 }

    /// Whether etcd knows nothing of a cluster of that name.
    package var isNothing: Bool { services.isEmpty && log == nil }

    /// Whether all services stand at the same segment, so that what they hold was compared there.
    package var isComplete: Bool { Set(services.map(\.segment)).count <= 1 }
}

extension ClusterReport {
    /// Lets the log of a cluster whose etcd has lost it go on behind what a storage has applied. Other storages that
    /// have applied less need a snapshot then. Returns the number of the last segment that was applied.
    ///
    /// Throws `storageFailed` when the log is not empty, or etcd does not answer, or the storage shares no log.
    package static func restartLog(
        of cluster: ClusterSettings, behind directory: String
    ) throws(ServiceError) -> UInt64 {
        guard let place = try RootSets.sharedPlace(in: directory) else {
            throw ServiceError(.storageFailed, "the storage in \(directory) is of no cluster")
        }
        let members = try EtcdMembers(cluster.endpoints, tls: cluster.tls, credentials: cluster.credentials)
        let entries = OrderedLog(EtcdSession(members, first: cluster.firstMember), name: cluster.name)
        let segment = Segment(identifier: .random(in: .min ... .max), after: place.hash, .mutations([]))
        let isRestarted: Bool
        do throws(EtcdFailure) {
            isRestarted = try entries.restart(
                segment.bytes, as: place.number + 1, milliseconds: Limits.clusterAppendMilliseconds)
        } catch {
            throw ServiceError(.storageFailed, "etcd does not take the segment: \(error)")
        }
        guard isRestarted else {
            throw ServiceError(
                .storageFailed,
                "the log of \(cluster.name) in etcd is not empty: choose another name, or remove the keys from "
                    + "rootgate/\(cluster.name)/ on")
        }
        return place.number
    }
}
