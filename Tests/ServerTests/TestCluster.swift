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
import Transport

/// Services that share their changes by an etcd of their own. They have one secret.
final class TestCluster {
    static let name: LogName = {
        guard let name = LogName("services") else { preconditionFailure("not a name") }
        return name
    }()

    let etcd: EtcdProcesses
    private(set) var services: [TestService] = []
    private let scratch = ScratchDirectory()
    let secretPath: String

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

    /// Starts another service. `waiting`: see `TestService`.
    func add(
        waiting: Shared<[String]>? = nil, _ adjust: (inout Configuration) -> Void = { _ in }
    ) throws {
        let number = services.count
        // Others are told the address before the service listens there.
        let address = Endpoint(host: "127.0.0.1", port: try EtcdProcesses.freePorts(1)[0])
        services.append(
            try TestService(waiting: waiting) {
                var cluster = ClusterSettings(etcd.endpoints, name: TestCluster.name)
                cluster.firstMember = number
                cluster.peers = ClusterSettings.Peers(address: address, tls: nil)
                $0.cluster = cluster
                $0.endpoints = [address]
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
