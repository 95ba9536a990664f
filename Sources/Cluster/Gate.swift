package import Core
package import Etcd
import Foundation
package import RootSets

/// One storage of a cluster, which follows the log that all of them share.
package final class Gate: Sendable {
    package struct Settings: Sendable {
        /// The cluster's name in etcd.
        package var name: LogName
        /// How many milliseconds old the last question to the log may be that found nothing new, at most: an older
        /// storage may lack a removal, so nothing is answered from it.
        package var stalenessMilliseconds: UInt64
        /// The place of the member of etcd that is asked first.
        package var firstMember: Int

        package init(name: LogName, stalenessMilliseconds: UInt64 = 2500, firstMember: Int = 0) {
            self.name = name
            self.stalenessMilliseconds = stalenessMilliseconds
            self.firstMember = firstMember
        }
    }

    package let rootSets: RootSets
    private let doorbell: Doorbell

    /// Opens the storage, which is new or was in the same cluster before. A new one begins with the first segment of
    /// the log, and founds an empty log with the part of the change log that it is to keep.
    ///
    /// Throws what opening a storage throws, and `storageFailed` when a new one can't begin.
    package init(
        _ settings: Settings, _ members: EtcdMembers, _ configuration: RootSets.Configuration,
        surroundings: StorageSurroundings = StorageSurroundings(), log: Log = .none,
        onLoss: @escaping @Sendable () -> Void = {}
    ) throws(ServiceError) {
        let shared = ClusterLog(
            members, name: settings.name, stalenessMilliseconds: settings.stalenessMilliseconds,
            first: settings.firstMember)
        var surroundings = surroundings
        if RootSets.isNew(configuration.directory) {
            let own = Segment.Founding(
                hashKey: surroundings.random.bytes(Segment.Founding.hashKeyBytes),
                logRetentionBytes: UInt64(configuration.logRetentionBytes))
            guard let founding = try shared.founding(orWith: own) else {
                throw ServiceError(
                    .storageFailed,
                    "the log of the cluster \(settings.name) does not go back to its beginning: a new gate begins with "
                        + "a backup of another one")
            }
            surroundings.random = RandomSource { $0.copyBytes(from: founding.hashKey.prefix($0.count)) }
        }
        let sets = try RootSets(configuration, surroundings: surroundings, shared: shared, log: log, onLoss: onLoss)
        rootSets = sets
        doorbell = Doorbell(shared, first: settings.firstMember) { [weak sets] in sets?.sharedLogHasChanged() }
    }

    deinit { doorbell.close() }

    /// Ends the storage.
    package func close() {
        doorbell.close()
        rootSets.close()
    }
}
