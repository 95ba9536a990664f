import Cluster
import Core
import Etcd
import EtcdTestSupport
import Foundation
import RootSets
import Secrets
import Transport

/// Members of etcd on this machine, and services that share a log in them.
final class BenchCluster {
    static let members = 3
    /// Without it etcd keeps what the services have removed from the log, until it is full: see
    /// deploy/handbook/cluster.md.
    private static let compaction = ["--auto-compaction-mode", "revision", "--auto-compaction-retention", "100"]

    let etcd: EtcdProcesses
    /// The file with the secret of the services.
    let secretPath: String
    private let directory: TemporaryDirectory

    /// Starts the members. Throws `Skipped` when there is no etcd.
    init(members: Int = BenchCluster.members) throws {
        guard EtcdTestSupport.etcd != nil else { throw Skipped(reason: "there is no program etcd") }
        directory = try TemporaryDirectory()
        secretPath = directory.path + "/secret"
        _ = try SecretFile(path: secretPath).rotate(at: UInt64(Date().timeIntervalSince1970 * 1000))
        etcd = try EtcdProcesses(members: members, BenchCluster.compaction)
    }

    static func name() throws -> LogName {
        guard let name = LogName("bench") else { throw ServiceError(.internalFault, "a name is not valid") }
        return name
    }

    /// A port that nobody listened at a moment ago.
    func freePort() throws -> UInt16 { try EtcdProcesses.freePorts(1)[0] }

    /// So many storages of the cluster, in this process, each of which knows how fresh it is.
    func storages(_ count: Int) throws -> [RootSets] {
        let storages = try (0..<count).map { number in
            var settings = ClusterSettings(etcd.endpoints, name: try BenchCluster.name())
            settings.firstMember = number
            return try RootSets(
                RootSets.Configuration(directory: "\(directory.path)/\(number)", sizeLimitBytes: 64 << 30),
                of: settings)
        }
        for storage in storages { try wait { storage.isFresh } }
        return storages
    }

    /// Waits until something is so. Throws when it takes longer than any service of a cluster takes to begin.
    func wait(until isSo: () throws -> Bool) throws {
        let end = monotonicSeconds() + 60
        while try !isSo() {
            guard monotonicSeconds() < end else { throw ServiceError(.busy, "a service does not follow the log") }
            usleep(100)
        }
    }

    /// Waits until the log does not go back to its beginning, so that a new service needs a snapshot.
    func waitForTrimming() throws {
        let settings = ClusterSettings(etcd.endpoints, name: try BenchCluster.name())
        try wait { try ClusterReport(of: settings).log.map { $0.lowerBound > 1 } ?? false }
    }

    /// What the members have received and sent so far.
    ///
    /// Throws when a member does not tell it.
    func traffic() throws -> EtcdTraffic {
        try etcd.endpoints.map { try EtcdTraffic(of: $0) }.reduce(EtcdTraffic()) { $0 + $1 }
    }
}
