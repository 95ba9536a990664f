import Cluster
import Core
import Etcd
import EtcdTestSupport
import Foundation
import RootgateClient
import Secrets
import Server
import ServiceTestSupport
import TestSupport
import Testing

/// Services that share their changes by an etcd of their own. They have one secret.
final class TestCluster {
    let etcd: EtcdProcesses
    private(set) var services: [TestService] = []
    private let scratch = ScratchDirectory()
    private let secretPath: String

    /// `adjust` changes the configuration of each service.
    init(
        services count: Int = 2, members: Int = 1, _ adjust: (inout Configuration) -> Void = { _ in }
    ) throws {
        etcd = try EtcdProcesses(members: members, ["--heartbeat-interval", "50", "--election-timeout", "500"])
        secretPath = scratch.path + "/secret"
        _ = try SecretFile(path: secretPath).rotate(at: 1_800_000_000_000)
        for _ in 0..<count { try add(adjust) }
        #expect(becomesTrue { self.services.allSatisfy { $0.service.resources.rootSets.isFresh } })
    }

    /// Starts another service.
    func add(_ adjust: (inout Configuration) -> Void = { _ in }) throws {
        let number = services.count
        let name = try #require(LogName("services"))
        services.append(
            try TestService {
                var cluster = ClusterSettings(etcd.endpoints, name: name)
                cluster.firstMember = number
                $0.cluster = cluster
                $0.secretPath = secretPath
                adjust(&$0)
            })
    }

    func clients() throws -> [RootgateClient] { try services.map { try $0.client() } }

    deinit {
        for service in services { service.stop() }
        etcd.end()
    }
}
