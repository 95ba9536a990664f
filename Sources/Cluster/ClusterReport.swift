package import Core
import Etcd
import RootSets

/// How the services of a cluster stand, as etcd tells.
package struct ClusterReport: Sendable {
    /// A service whose key is in etcd.
    package struct Service: Sendable {
        package let record: GateRecord
        /// In how many seconds the key ends, unless the service keeps it; `nil`: etcd does not tell.
        package let secondsLeft: Int64?
        /// Whether the service has not kept its key for half of the key's time: it has ended, or hangs.
        package let isSilent: Bool
    }

    /// The services whose keys are in etcd. Who is furthest comes first.
    package let services: [Service]
    /// The numbers of the log's first and last segments; `nil`: it is empty.
    package let log: ClosedRange<UInt64>?

    /// Throws `storageFailed` when etcd does not answer, and `tlsRefused`.
    package init(of cluster: ClusterSettings) throws(ServiceError) {
        let members = try EtcdMembers(cluster.endpoints, tls: cluster.tls, credentials: cluster.credentials)
        let session = EtcdSession(members, first: cluster.firstMember)
        let entries = OrderedLog(session, name: cluster.name)
        do throws(EtcdFailure) {
            services = try ClusterReport.services(cluster.name, session)
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

    private static func services(_ name: LogName, _ session: EtcdSession) throws(EtcdFailure) -> [Service] {
        var services: [Service] = []
        for (_, record, lease) in try Presence.records(name, session) {
            var (secondsLeft, isSilent): (Int64?, Bool) = (nil, false)
            do throws(EtcdFailure) {
                let time = try session.time(ofLease: lease, milliseconds: Limits.clusterReadMilliseconds)
                secondsLeft = time?.left
                isSilent = time.map { 2 * ($0.left + 1) <= $0.whole } ?? true
            } catch {
                // A user of etcd may lack the right to know.
                guard case .refused(.forbidden, _) = error else { throw error }
            }
            services.append(Service(record: record, secondsLeft: secondsLeft, isSilent: isSilent))
        }
        return services.sorted {
            ($0.record.segment, $0.record.address ?? "") > ($1.record.segment, $1.record.address ?? "")
        }
    }

    /// The numbers of segments behind which services hold something else than others do.
    package var disagreements: [UInt64] {
        var digests: [UInt64: Set<String>] = [:]
        for service in services.map(\.record) {
            if let contents = service.contents { digests[service.segment, default: []].insert(contents) }
            if let checkpoint = service.checkpoint, let digest = service.digest {
                digests[checkpoint, default: []].insert(digest)
            }
        }
        return digests.filter { $0.value.count > 1 }.keys.sorted()
    }

    /// Whether services have storages of different clusters. Then what the rest of the report says may be about another
    /// cluster than the log's.
    package var areStrangers: Bool {
        services.indices.contains { index in
            services[..<index].contains { $0.record.isStranger(to: services[index].record) }
        }
    }

    /// The services to which the log does not go back: they can't follow it any more.
    package var leftBehind: [Service] {
        guard let log else { return [] }
        return services.filter { $0.record.segment < max(1, log.lowerBound) - 1 }
    }

    /// Whether a service has applied segments that the log does not have: etcd has lost them.
    package var isLogLost: Bool { services.lazy.map(\.record.segment).max() ?? 0 > log?.upperBound ?? 0 }

    /// Whether etcd knows nothing of a cluster of that name.
    package var isNothing: Bool { services.isEmpty && log == nil }

    /// Whether all services stand at the same segment, so that what they hold was compared there.
    package var isComplete: Bool { Set(services.map(\.record.segment)).count <= 1 }

    /// The services that do not accept a generation of the secret which another one accepts, with its name. Nothing is
    /// wrong yet when that is only prepared, but it must not be used.
    package var missingGenerations: [(service: Service, generation: String)] {
        let all = Set(services.flatMap { $0.record.secrets ?? [] }).sorted()
        return services.flatMap { service in
            all.filter { generation in service.record.secrets.map { !$0.contains(generation) } ?? false }
                .map { (service, $0) }
        }
    }

    /// Whether one service takes what another one authenticates for forged, because their secrets differ.
    package var hasForeignSecrets: Bool {
        services.indices.contains { index in
            services[..<index].contains { $0.record.hasForeignSecret(to: services[index].record) }
        }
    }
}

extension ClusterReport {
    /// Lets the log of a cluster whose etcd has lost it go on behind what a storage has applied. Other storages that
    /// have applied less need a snapshot then. Returns the number of the last segment that was applied.
    ///
    /// Throws `storageFailed` when the log is not empty, or etcd does not answer, or the storage shares no log, and
    /// `storageInUse` when a service has the directory.
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
