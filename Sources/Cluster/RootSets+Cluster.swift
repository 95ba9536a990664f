package import Core
import Etcd
import Foundation
import Platform
package import RootSets
import Transport

extension RootSets {
    /// Opens a storage of a cluster, which is new or was in the same cluster before. A new one begins with the first
    /// segment of the cluster's log, and founds an empty log with the part of the change log that it is to keep. When
    /// the log does not go back to where the storage is, a snapshot of another service takes its place. `onWait` is
    /// called while it is got.
    ///
    /// Throws what opening a storage throws, `tlsRefused` when a file of TLS can't be used, and `storageFailed` when a
    /// new storage can't begin.
    package convenience init(
        _ configuration: Configuration, of cluster: ClusterSettings,
        surroundings: StorageSurroundings = StorageSurroundings(), acceptsLoss: Bool = false, log: Log = .none,
        onLoss: @escaping @Sendable () -> Void = {}, onWait: StartExtension = .none
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
                logRetentionBytes: UInt64(configuration.changeLogBytesMax))
            if let founding = try shared.founding(orWith: own, log: log) {
                surroundings.random = RandomSource { $0.copyBytes(from: founding.hashKey.prefix($0.count)) }
            } else {
                log(.info, "the cluster's log does not go back to its beginning, so the storage begins with a snapshot")
                try RootSets.join(configuration, cluster, members, shared, log, onWait)
            }
        } else if let place = try RootSets.sharedPlace(in: configuration.directory),
            case .removed(let first) = shared.read(from: place.number + 1, after: place.hash)
        {
            let gap = "the storage has the cluster's log up to \(place.number), and the log begins at \(first)"
            log(.warning, "\(gap): a snapshot takes its place")
            try RootSets.join(configuration, cluster, members, shared, founding: place.founding, log, onWait)
        }
        try self.init(
            configuration, surroundings: surroundings, acceptsLoss: acceptsLoss, shared: shared, log: log,
            onLoss: onLoss)
    }

    /// The addresses of the other services, of which the one that is furthest comes first.
    private static func others(
        than address: Endpoint, _ cluster: ClusterSettings, _ session: EtcdSession
    ) throws(ServiceError) -> [Endpoint] {
        do throws(EtcdFailure) {
            return try Presence.records(cluster.name, session).map(\.record)
                .sorted { $0.segment > $1.segment }
                .compactMap { $0.address.flatMap { Endpoint($0) } }.filter { $0 != address }
        } catch {
            throw ServiceError(.storageFailed, "the cluster's services are not known: \(error)")
        }
    }

    /// Throws unless a snapshot is of this cluster, and of the log with that founding, which goes on behind it.
    private static func accept(
        _ place: SharedPlace?, founding: Digest?, _ shared: ClusterLog
    ) throws(ServiceError) -> SharedPlace {
        func refusal(_ reason: String) -> ServiceError {
            ServiceError(.storageFailed, "its snapshot can't be used: \(reason)")
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

    /// Puts a snapshot of another service into the place of the storage in a directory. Asks one after the other, again
    /// and again for a while: services may start together. `founding`: that of the storage that is there; `nil`: there
    /// is none.
    ///
    /// Throws why none of the snapshots has taken the place.
    private static func join(
        _ configuration: Configuration, _ cluster: ClusterSettings, _ members: EtcdMembers, _ shared: ClusterLog,
        founding: Digest? = nil, _ log: Log, _ onWait: StartExtension
    ) throws(ServiceError) {
        let directory = configuration.directory
        guard let peers = cluster.peers else {
            throw ServiceError(
                .storageFailed,
                "the log of the cluster \(cluster.name) does not go back far enough: give the services a "
                    + "--cluster-address, or restore a backup of another one")
        }
        let session = EtcdSession(members, first: cluster.firstMember)
        let download = SnapshotDownload(
            peers: peers, bytesMax: UInt64(configuration.sizeLimitBytes + configuration.reserveBytes), onWait: onWait)
        let deadline = System.millisecondsWithSleep + cluster.joinMilliseconds
        var told: Set<String> = []
        while true {
            var failures: [String] = []
            do throws(ServiceError) {
                for source in try others(than: peers.address, cluster, session) {
                    if told.insert("\(source)").inserted { log(.info, "asking \(source) for a snapshot") }
                    do throws(ServiceError) {
                        return try replaceStorage(in: directory, by: download, of: source, log) {
                            place throws(ServiceError) in try accept(place, founding: founding, shared)
                        }
                    } catch {
                        failures.append("\(source): \(error.reason)")
                    }
                }
                if failures.isEmpty { failures = ["there is none with a --cluster-address"] }
            } catch {
                failures = [error.reason]
            }
            let reasons = failures.joined(separator: "; ")
            guard System.millisecondsWithSleep < deadline else {
                throw ServiceError(.storageFailed, "no other service of the cluster gives a snapshot: \(reasons)")
            }
            if told.insert(reasons).inserted {
                log(.warning, "no other service of the cluster gives a snapshot so far: \(reasons)")
            }
            usleep(UInt32(Limits.snapshotAskMilliseconds) * 1000)
        }
    }

    /// Puts the snapshot of another service into the place of the storage in a directory, if `accept` does not throw.
    private static func replaceStorage(
        in directory: String, by download: SnapshotDownload, of source: Endpoint, _ log: Log,
        _ accept: (SharedPlace?) throws(ServiceError) -> SharedPlace
    ) throws(ServiceError) {
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
        let size = try download.get(from: source, to: file)
        download.onWait(
            Limits.startExtensionSeconds + size / Limits.snapshotRestoreBytesPerMillisecond / 1000,
            "restoring a snapshot of \(source)")
        guard lseek(file, 0, SEEK_SET) == 0 else { throw ServiceError(.storageFailed, "the snapshot can't be read") }
        var number: UInt64 = 0
        let summary = try StorageReplacement.replace(in: directory, by: file) { place throws(ServiceError) in
            number = try accept(place).number
        }
        log(
            .info,
            "the storage is a snapshot of \(source): \(summary.collaborations) collaborations with \(summary.roots) "
                + "root hashes, the log up to \(number)")
    }
}
