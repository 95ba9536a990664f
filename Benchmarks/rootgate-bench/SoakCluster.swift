import Audit
import Collaboration
import Core
import Foundation
import Principals
import RootgateClient
import TLS
import Transport

/// The services of a soak: two of a cluster over one member of etcd. Each has an address with TLS and an audit of its
/// changes. They have one principal, without whose key they do nothing.
final class SoakCluster: Sendable {
    /// Each is used by one thread at a time.
    private nonisolated(unsafe) let services: [BenchService]
    private nonisolated(unsafe) let cluster: BenchCluster
    let key = APIKey.random()
    let endpoints: [Endpoint]
    private let encrypted: [(endpoint: Endpoint, options: TLSOptions)]
    let dataDirectories: [String]

    /// Starts the services, and waits until both know the principal.
    ///
    /// Throws `Skipped` when there is no etcd.
    init() throws {
        cluster = try BenchCluster(members: 1)
        let cluster = cluster
        services = try (0..<2).map { _ in try BenchService(of: cluster, isEncrypted: true, isAudited: true) }
        endpoints = services.map(\.endpoint)
        encrypted = services.compactMap(\.encrypted)
        dataDirectories = services.map(\.dataDirectory)
        guard let name = PrincipalName("soak") else { throw ServiceError(.internalFault, "a name is not valid") }
        let request = CreatePrincipal(
            name, roles: PrincipalRole.allCases.map { LimitedRole($0, prefixes: [.every]) }, key: NewKey(KeyHash(key)))
        let open = try RootgateClient(endpoints[0])
        defer { open.close() }
        try blocking { _ = try await open.send(request) }
        for place in endpoints.indices { try waitUntilFresh(place) }
    }

    /// A client with the key. `place`: of the service.
    func client(_ place: Int, isEncrypted: Bool = false) throws(ServiceError) -> RootgateClient {
        let configuration = RootgateClient.Configuration(tls: isEncrypted ? encrypted[place].options : nil, key: key)
        return try RootgateClient(
            isEncrypted ? encrypted[place].endpoint : endpoints[place], configuration: configuration)
    }

    /// Returns when every service has applied the change with this sequence.
    func waitUntilEverywhere(_ sequence: UInt64) throws {
        let client = try client(0)
        defer { client.close() }
        try cluster.wait { (try? blocking { try await client.confirmEverywhere(sequence) }) != nil }
    }

    /// Ends a service in order, starts it again over its storage, and waits until it follows the others. Calls `body`
    /// meanwhile, again and again.
    func restart(_ place: Int, meanwhile body: () throws -> Void) throws {
        let result = Lock<Result<Void, any Error>?>(nil)
        Thread { [self] in
            let ended = Result { () throws in
                try services[place].restart()
                try waitUntilFresh(place)
            }
            result.withLock { $0 = ended }
        }.start()
        var failure: (any Error)?
        while result.withLock({ $0 == nil }) {
            guard failure == nil else {
                usleep(10_000)
                continue
            }
            do { try body() } catch { failure = error }
        }
        try result.withLock { $0 }?.get()
        if let failure { throw failure }
    }

    /// Waits until a service answers questions of somebody who has the key. Then it follows the others.
    private func waitUntilFresh(_ place: Int) throws {
        let client = try client(place)
        defer { client.close() }
        guard let nobody = CollaborationIdentifier("nobody") else { return }
        try cluster.wait {
            do {
                _ = try blocking { try await client.testRoots([.zero], in: nobody) }
                return true
            } catch let error as ServiceError {
                return error.code == .unknownCollaboration
            }
        }
    }

    /// Ends the services, and verifies what each has written into its audit. Returns how many lines that are.
    ///
    /// Throws when a line is missing, or is another one than was written.
    func verifyAudits() throws -> Int {
        var lines = 0
        for service in services {
            service.stop()
            let names = try FileManager.default.contentsOfDirectory(atPath: service.dataDirectory)
            let paths = names.filter { $0.hasPrefix(BenchService.auditName) }.map { "\(service.dataDirectory)/\($0)" }
            let audit = try AuditVerification(paths, keys: [:]) { try Data(contentsOf: URL(fileURLWithPath: $0)) }
            if let finding = audit.findings.first { throw ServiceError(.internalFault, "an audit: \(finding)") }
            lines += audit.lineCount
        }
        return lines
    }
}
