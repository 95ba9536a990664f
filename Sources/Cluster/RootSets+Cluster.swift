package import Core
import Etcd
import Foundation
import Platform
package import RootSets
import Transport

extension RootSets {
    /// Opens a storage of a cluster, which is new or was in the same cluster before. A new one begins with the first
    /// segment of the cluster's log, and founds an empty log with the part of the change log that it is to keep. When
    /// the log does not go back to where the storage is, a snapshot of another service takes its place.
    ///
    /// Throws what opening a storage throws, `tlsRefused` when a file of TLS can't be used, and `storageFailed` when a
    /// new storage can't begin.
    package convenience init(
        _ configuration: Configuration, of cluster: ClusterSettings,
        surroundings: StorageSurroundings = StorageSurroundings(), acceptsLoss: Bool = false, log: Log = .none,
        onLoss: @escaping @Sendable () -> Void = {}
    ) throws(ServiceError) {
        let members = try EtcdMembers(cluster.endpoints, tls: cluster.tls, credentials: cluster.credentials)
        let shared = ClusterLog(
            members, name: cluster.name, stalenessMilliseconds: cluster.stalenessMilliseconds,
            bytesKept: configuration.logRetentionBytes, address: cluster.peers?.address, secret: cluster.secret,
            first: cluster.firstMember, log: log)
        var surroundings = surroundings
        if try RootSets.isNew(configuration.directory) {
            let own = Segment.Founding(
                hashKey: surroundings.random.bytes(Segment.Founding.hashKeyBytes),
                logRetentionBytes: UInt64(configuration.logRetentionBytes))
            if let founding = try shared.founding(orWith: own, log: log) {
                surroundings.random = RandomSource { $0.copyBytes(from: founding.hashKey.prefix($0.count)) }
            } else {
                log(.info, "the cluster's log does not go back to its beginning, so the storage begins with a snapshot")
                try RootSets.join(configuration, cluster, members, shared, log)
            }
        } else if let place = try RootSets.sharedPlace(in: configuration.directory),
            case .removed(let first) = shared.read(from: place.number + 1, after: place.hash)
        {
            let gap = "the storage has the cluster's log up to \(place.number), and the log begins at \(first)"
            log(.warning, "\(gap): a snapshot takes its place")
            try RootSets.join(configuration, cluster, members, shared, founding: place.founding, log)
        }
        try self.init(
            configuration, surroundings: surroundings, acceptsLoss: acceptsLoss, shared: shared, log: log,
            onLoss: onLoss)
    }

    /// The addresses of the other services, of which the one that is furthest comes first. Waits for one for a moment:
    /// services may start together.
    private static func others(
        than address: Endpoint, _ cluster: ClusterSettings, _ session: EtcdSession
    ) throws(ServiceError) -> [Endpoint] {
        let deadline = System.millisecondsWithSleep + Limits.snapshotSourceMilliseconds
        while true {
            var addresses: [Endpoint] = []
            do throws(EtcdFailure) {
                addresses = try Presence.records(cluster.name, session).map(\.record)
                    .sorted { $0.segment > $1.segment }
                    .compactMap { $0.address.flatMap { Endpoint($0) } }.filter { $0 != address }
            } catch {
                guard System.millisecondsWithSleep < deadline else {
                    throw ServiceError(.storageFailed, "the cluster's services are not known: \(error)")
                }
            }
            guard addresses.isEmpty, System.millisecondsWithSleep < deadline else { return addresses }
            usleep(UInt32(Limits.clusterWatchPauseMilliseconds) * 1000)
        }
    }

    /// Throws unless a snapshot is of this cluster, and of the log with that founding, which goes on behind it.
    private static func accept(
        _ place: SharedPlace?, of source: Endpoint, founding: Digest?, _ shared: ClusterLog
    ) throws(ServiceError) -> SharedPlace {
        func refusal(_ reason: String) -> ServiceError {
            ServiceError(.storageFailed, "the snapshot of \(source) can't be used: \(reason)")
        }
        guard let place else { throw refusal("its storage is in no cluster") }
        guard founding == nil || founding == place.founding else {
            throw refusal("its storage is in another cluster than this one was: is --cluster-name right?")
        }
        switch shared.read(from: place.number + 1, after: place.hash) {
        case .segments: return place
        case .removed(let first): throw refusal("it has the log up to \(place.number), and the log begins at \(first)")
        case .lost: throw refusal("the log has lost segment \(place.number), which was applied there")
        case .failed(let reason): throw refusal("the shared log does not answer: \(reason)")
        }
    }

    /// Puts a snapshot of another service into the place of the storage in a directory. `founding`: that of the storage
    /// that is there; `nil`: there is none.
    private static func join(
        _ configuration: Configuration, _ cluster: ClusterSettings, _ members: EtcdMembers, _ shared: ClusterLog,
        founding: Digest? = nil, _ log: Log
    ) throws(ServiceError) {
        let directory = configuration.directory
        guard let peers = cluster.peers else {
            throw ServiceError(
                .storageFailed,
                "the log of the cluster \(cluster.name) does not go back far enough: give the services a "
                    + "--cluster-address, or restore a backup of another one")
        }
        let addresses = try others(than: peers.address, cluster, EtcdSession(members, first: cluster.firstMember))
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
            throw ServiceError(.storageFailed, "making \(directory): \(SystemFailure("mkdir").reason)")
        }
        var path = Array((directory + "/joining-XXXXXX").utf8CString)
        let file = mkstemp(&path)
        guard file >= 0 else {
            throw ServiceError(.storageFailed, "making a file in \(directory): \(SystemFailure("mkstemp").reason)")
        }
        unlink(&path)
        defer { _ = Foundation.close(file) }
        let bytesMax = UInt64(configuration.sizeLimitBytes + configuration.reserveBytes)
        let source = try SnapshotDownload(peers: peers, bytesMax: bytesMax, log: log).get(from: addresses, to: file)
        guard lseek(file, 0, SEEK_SET) == 0 else { throw ServiceError(.storageFailed, "the snapshot can't be read") }
        var number: UInt64 = 0
        let summary = try StorageReplacement.replace(in: directory, by: file) { place throws(ServiceError) in
            number = try accept(place, of: source, founding: founding, shared).number
        }
        log(
            .info,
            "the storage is a snapshot of \(source): \(summary.collaborations) collaborations with \(summary.roots) "
                + "root hashes, the log up to \(number)")
    }
}
