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

@Suite("A service on a local socket")
struct LocalSocketServiceTests {
    private let folder = ScratchDirectory()
    private var endpoint: Endpoint { Endpoint(path: folder.path + "/socket") }

    private func service(_ adjust: (inout Configuration) -> Void = { _ in }) throws -> TestService {
        try TestService {
            $0.endpoints = [endpoint]
            adjust(&$0)
        }
    }

    private func reason(_ path: String) -> StartupFailure? {
        thrown(StartupFailure.self) { _ = try TestService { $0.endpoints = [Endpoint(path: path)] } }
    }

    @Test("Proofs are verified over a local socket, and the file goes with the service")
    func proofs() async throws {
        let service = try service { $0.listenMode = 0o620 }
        let path = try #require(endpoint.path)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o620)
        let small = try await SmallCollaboration(try service.client())
        let proof = try await small.proof()
        let requests = [AccessRequest](
            repeating: AccessRequest(collaboration: small.collaboration, proof: proof), count: 1000)
        #expect(try await small.client.verify(requests).count { $0.verdict == .granted } == 1)
        service.stop()
        #expect(!FileManager.default.fileExists(atPath: path))
        try service.start()
        #expect(try await small.client.verify(requests).allSatisfy { $0.verdict != .granted })
    }

    @Test("A service with certificates speaks plain text on its local socket, and a client with TLS is refused there")
    func noTLS() async throws {
        let paths = try SimulatedAuthority().issue().write(to: folder.path, as: "server")
        let service = try service {
            $0.tls = ServerTLSSettings(certificatePath: paths.certificate, keyPath: paths.key)
        }
        try await service.client().ping()
        let error = thrownServiceError {
            _ = try RootgateClient(endpoint, configuration: .init(tls: TLSOptions()))
        }
        #expect(error?.code == .tlsRefused)
    }

    @Test("The audit names the user and the process at the other end of a local socket")
    func audit() async throws {
        let file = folder.path + "/audit.jsonl"
        let service = try service { $0.auditPath = file }
        let deck = try #require(CollaborationIdentifier("deck"))
        _ = try await service.client().createCollaboration(deck)
        let line = try #require(try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n").last)
        #expect(line.contains("\"peer\":\"unix:uid=\(getuid()),pid=\(getpid())\""), "\(line)")
    }

    @Test("A start on a socket that is taken, foreign, too long or nowhere says so with the path")
    func refusals() throws {
        let service = try service()
        let path = try #require(endpoint.path)
        let taken = try #require(reason(path))
        #expect(taken.isInUse && taken.description == "the socket \(path) is taken: something listens there already")
        service.stop()
        try Data().write(to: URL(fileURLWithPath: path))
        #expect(
            reason(path)?.description
                == "can't listen on unix:\(path): bind: there is a file that is no socket; it was kept")
        let long = folder.path + "/" + String(repeating: "s", count: Limits.localSocketPathBytesMax)
        #expect(reason(long)?.description.hasPrefix("can't listen on unix:\(long): unix: the path has ") == true)
        #expect(reason(folder.path + "/no/socket")?.description.contains("opening its folder") == true)
    }

    @Test(
        "A client written from the specification alone agrees in everything over a local socket",
        .enabled(if: python != nil, "needs python3 with the package cryptography"))
    func pythonClient() throws {
        let service = try service()
        let result = try runProgram(
            try #require(python), [packageFile("Tests/Python/interoperability.py"), "\(endpoint)", "0"],
            environment: pythonEnvironment)
        #expect(result.code == 0, "\(result.output)\(result.errors)")
        service.stop()
    }
}
