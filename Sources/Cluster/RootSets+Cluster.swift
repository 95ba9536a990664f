package import Core
import Etcd
package import RootSets

extension RootSets {
    /// Opens a storage of a cluster, which is new or was in the same cluster before. A new one begins with the first
    /// segment of the cluster's log, and founds an empty log with the part of the change log that it is to keep.
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
            bytesKept: configuration.logRetentionBytes, first: cluster.firstMember)
        var surroundings = surroundings
        if try RootSets.isNew(configuration.directory) {
            let own = Segment.Founding(
                hashKey: surroundings.random.bytes(Segment.Founding.hashKeyBytes),
                logRetentionBytes: UInt64(configuration.logRetentionBytes))
            guard let founding = try shared.founding(orWith: own) else {
                throw ServiceError(
                    .storageFailed,
                    "the log of the cluster \(cluster.name) does not go back to its beginning: a new gate begins with "
                        + "a backup of another one")
            }
            surroundings.random = RandomSource { $0.copyBytes(from: founding.hashKey.prefix($0.count)) }
        }
        try self.init(
            configuration, surroundings: surroundings, acceptsLoss: acceptsLoss, shared: shared, log: log,
            onLoss: onLoss)
    }
}
