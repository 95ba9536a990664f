import Core
import Foundation
import Identity
import RootgateClient
import Server
import ServiceTestSupport
import TLS
import TestSupport
import Testing
import Transport

@Suite("A service with certificates")
struct EncryptedServiceTests {
    /// A service on the loopback interface with an authority's certificate, and what a client of it needs.
    private struct Encrypted {
        let authority: SimulatedAuthority
        let directory = ScratchDirectory()
        let service: TestService
        let authorityPath: String

        init(demandsCertificate: Bool = false, host: String = "127.0.0.1") throws {
            authority = SimulatedAuthority()
            authorityPath = try authority.write(to: directory.path)
            let paths = try authority.issue().write(to: directory.path, as: "server")
            let settings = ServerTLSSettings(
                certificatePath: paths.certificate, keyPath: paths.key,
                clientAuthoritiesPath: demandsCertificate ? authorityPath : nil)
            service = try TestService {
                $0.tls = settings
                $0.endpoints = [Endpoint(host: host, port: 0)]
            }
        }

        var endpoint: Endpoint { Endpoint(host: "localhost", port: service.endpoint.port) }

        /// A client that trusts the authority, with a certificate of `issuer` when there is one.
        func client(certificateOf issuer: SimulatedAuthority? = nil) throws -> RootgateClient {
            var options = TLSOptions(authoritiesPath: authorityPath)
            if let issuer {
                let paths = try issuer.issue().write(to: directory.path, as: "client")
                (options.certificatePath, options.keyPath) = (paths.certificate, paths.key)
            }
            return try RootgateClient(endpoint, configuration: .init(requestTimeout: patience, tls: options))
        }
    }

    @Test("Proofs are verified over an encrypted connection")
    func proofs() async throws {
        let encrypted = try Encrypted()
        let small = try await SmallCollaboration(try encrypted.client())
        let proof = try await small.proof()
        let requests = [AccessRequest](
            repeating: AccessRequest(collaboration: small.collaboration, proof: proof), count: 1000)
        let decisions = try await small.client.verify(requests)
        #expect(decisions.count { $0.verdict == .granted } == 1)
    }

    @Test("Requests of many tasks share an encrypted connection")
    func manyTasks() async throws {
        let encrypted = try Encrypted()
        let client = try encrypted.client()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<64 { group.addTask { for _ in 0..<20 { try await client.ping() } } }
            try await group.waitForAll()
        }
    }

    @Test("A client without a certificate, or with a stranger's, gets the error tls-refused with the reason")
    func clientCertificates() async throws {
        let encrypted = try Encrypted(demandsCertificate: true)
        try await encrypted.client(certificateOf: encrypted.authority).ping()
        for (issuer, reason) in [
            (nil, "demands a certificate"), (SimulatedAuthority("a stranger"), "unknown authority"),
        ] {
            do throws(ServiceError) {
                let client: RootgateClient
                do { client = try encrypted.client(certificateOf: issuer) } catch { throw .init(.internalFault, "") }
                try await client.ping()
                Issue.record("the client was let in")
            } catch {
                #expect(error.code == .tlsRefused && error.reason.contains(reason), "\(error)")
            }
        }
    }

    @Test("A client gives up at once when the certificate can't be trusted")
    func untrusted() async throws {
        let encrypted = try Encrypted()
        let stranger = try SimulatedAuthority("a stranger").write(to: encrypted.directory.path, as: "stranger")
        let client = try RootgateClient(
            encrypted.endpoint,
            configuration: .init(requestTimeout: .seconds(3600), tls: TLSOptions(authoritiesPath: stranger)))
        do throws(ServiceError) {
            try await client.ping()
            Issue.record("the certificate was trusted")
        } catch {
            #expect(error.code == .tlsRefused && error.reason.contains("unknown authority"), "\(error)")
        }
    }

    @Test("With certificates a service listens where everybody can reach it, and says why it does not without them")
    func addresses() async throws {
        #expect(throws: Never.self) { try Encrypted(host: "0.0.0.0") }
        do throws(StartupFailure) {
            _ = try TestService { $0.endpoints = [Endpoint(host: "0.0.0.0", port: 0)] }
            Issue.record("plain text is served to everybody")
        } catch {
            #expect(error.description.contains("give --tls-certificate and --tls-key"))
        }
        do throws(StartupFailure) {
            _ = try TestService { $0.tls = ServerTLSSettings(certificatePath: "/nowhere/a", keyPath: "/nowhere/b") }
            Issue.record("a service started without its certificate")
        } catch {
            #expect(error.description == "the certificate /nowhere/a can't be read: No such file or directory")
        }
    }

    @Test("Reading the certificates again keeps the clients that are in, and lets new ones see the new certificate")
    func reload() async throws {
        let encrypted = try Encrypted()
        let early = try encrypted.client()
        try await early.ping()
        let second = SimulatedAuthority("a second authority")
        let path = try second.write(to: encrypted.directory.path, as: "second")
        _ = try second.issue().write(to: encrypted.directory.path, as: "server")
        encrypted.service.service.reload()
        let late = try RootgateClient(
            encrypted.endpoint,
            configuration: .init(requestTimeout: patience, tls: TLSOptions(authoritiesPath: path)))
        try await late.ping()
        try await early.ping()
    }

    @Test(
        "The Python client gets in with TLS, and is refused what the protocol refuses",
        .enabled(if: python != nil, "needs python3 with the package cryptography"))
    func pythonClient() throws {
        let encrypted = try Encrypted(demandsCertificate: true)
        let paths = try encrypted.authority.issue().write(to: encrypted.directory.path, as: "client")
        let result = try runProgram(
            try #require(python),
            [
                packageFile("Tests/Python/encryption.py"), "localhost", "\(encrypted.service.endpoint.port)", "--ca",
                encrypted.authorityPath, "--certificate", paths.certificate, "--key", paths.key,
            ], environment: pythonEnvironment)
        #expect(result.code == 0, "\(result.output)\(result.errors)")
    }
}
