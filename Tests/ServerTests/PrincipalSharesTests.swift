import Collaboration
import Core
import Foundation
import Identity
import Principals
import RootgateClient
import Server
import ServiceTestSupport
import TLS
import TestSupport
import Testing
import Transport

/// Principals that are known without a key have shares of their own.
@Suite("Shares of principals") struct PrincipalSharesTests {
    private let collaborate = [LimitedRole(.collaborate, prefixes: [.every])]

    /// Checks that `second` can have a query that waits when `first` has as many as one may have.
    private func expectOwnShares(
        _ first: RootgateClient, _ second: RootgateClient, on service: TestService
    ) async throws {
        let account = try #require(Account("ana"))
        var query = ReadShelf(of: account, for: .everyApp, limit: 1)
        query.after = try await first.send(query).version
        query.waitMilliseconds = 30_000
        var waiting = (0..<4).map { _ in Task { [query] in try await first.send(query) } }
        #expect(becomesTrue { service.service.suspendedQueries == 4 })
        let fifth = query
        await #expect(throws: ServiceError(.busy, "")) { _ = try await first.send(fifth) }
        waiting.append(Task { [query] in try await second.send(query) })
        #expect(becomesTrue(within: 10) { service.service.suspendedQueries == 5 })
        _ = try await second.send(SetConsent(of: account, .everything, isAllowed: true))
        for task in waiting { _ = try await task.value }
    }

    @Test("Principals by certificate on one address have a share each")
    func certificates() async throws {
        let directory = ScratchDirectory()
        let authority = SimulatedAuthority()
        let authorityPath = try authority.write(to: directory.path)
        let paths = try authority.issue().write(to: directory.path, as: "server")
        let guarded = try await GuardedService()
        for name in ["one", "two"] {
            _ = try await guarded.administrator.send(
                CreatePrincipal(
                    try GuardedService.name(name), roles: collaborate,
                    certificates: [try #require(Principals.CertificateName("spiffe://example.org/\(name)"))]))
        }
        guarded.service.stop()
        let service = try TestService(directory: guarded.service.directory) {
            $0.tls = ServerTLSSettings(
                certificatePath: paths.certificate, keyPath: paths.key, clientAuthoritiesPath: authorityPath)
            $0.endpoints = [Endpoint(host: "127.0.0.1", port: 0)]
            $0.followsMax = 8
        }
        func client(_ name: String) throws -> RootgateClient {
            let issued = authority.issue(
                CertificatePlan { plan in
                    plan.commonName = name
                    plan.names = [.uri("spiffe://example.org/\(name)")]
                })
            let paths = try issued.write(to: directory.path, as: name)
            let options = TLSOptions(
                authoritiesPath: authorityPath, certificatePath: paths.certificate, keyPath: paths.key)
            return try RootgateClient(
                Endpoint(host: "localhost", port: service.endpoint.port),
                configuration: .init(requestTimeout: patience, tls: options))
        }
        try await expectOwnShares(try client("one"), try client("two"), on: service)
    }

    @Test("A principal by local user has a share of its own beside the user's other connections")
    func localUser() async throws {
        let folder = ScratchDirectory()
        let service = try TestService {
            $0.endpoints = [Endpoint(path: folder.path + "/socket")]
            $0.followsMax = 8
        }
        let (keyOfRoot, key) = (APIKey.random(), APIKey.random())
        _ = try await service.client().send(
            CreatePrincipal(
                try GuardedService.name("root"), roles: [LimitedRole(.administer, prefixes: [.every])],
                key: NewKey(KeyHash(keyOfRoot))))
        func client(_ key: APIKey?) throws -> RootgateClient {
            try RootgateClient(service.endpoint, configuration: .init(requestTimeout: patience, key: key))
        }
        let administrator = try client(keyOfRoot)
        _ = try await administrator.send(
            CreatePrincipal(try GuardedService.name("user"), roles: collaborate, localUser: UInt32(getuid())))
        _ = try await administrator.send(
            CreatePrincipal(try GuardedService.name("keyed"), roles: collaborate, key: NewKey(KeyHash(key))))
        try await expectOwnShares(try client(nil), try client(key), on: service)
    }

    @Test("A connection whose principal was removed is its address's again")
    func changes() async throws {
        let guarded = try await GuardedService { $0.followsMax = 8 }
        let keys = [
            try await guarded.principal("one", collaborate), try await guarded.principal("two", collaborate),
        ]
        let first = try guarded.client(keys[0])
        try await expectOwnShares(first, try guarded.client(keys[1]), on: guarded.service)
        _ = try await guarded.administrator.send(RemoveKey(keys[0].identifier))
        let account = try #require(Account("ana"))
        await #expect(throws: ServiceError(.roleMissing, "")) { _ = try await first.send(ReadConsent(of: account)) }
        try await first.ping()
    }
}
