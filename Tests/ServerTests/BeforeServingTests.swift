import Core
import Foundation
import Platform
import Server
import ServiceTestSupport
import TLS
import TestSupport
import Testing
import Transport

@Suite("Before a service serves")
struct BeforeServingTests {
    private let folder = ScratchDirectory()

    private var configuration: Configuration {
        var configuration = Configuration(dataDirectory: folder.path + "/data", workers: 1)
        configuration.endpoints = [Endpoint(path: folder.path + "/socket")]
        return configuration
    }

    @Test("Everything is open and nobody is answered")
    func order() throws {
        let peer = Shared<RawPeer?>(nil)
        let service = try Service(
            configuration,
            beforeServing: {
                // The system makes the connection, and the service has not accepted it.
                peer.with { $0 = try? RawPeer(configuration.endpoints[0]) }
                peer.value?.send([UInt8](repeating: 0xff, count: 16))
                #expect(FileManager.default.fileExists(atPath: folder.path + "/data/data.mdb"))
                usleep(50_000)
                #expect(peer.value?.isQuiet() == true)
            })
        // The bytes were no frame: the service answers with an error and closes the connection.
        #expect(peer.value?.receive(16).count == 16)
        #expect(service.shutDown() == .drained)
    }

    @Test("A service that is stopped there lets go of storage and sockets")
    func refused() throws {
        let failure = thrown(StartupFailure.self) {
            _ = try Service(
                configuration,
                beforeServing: { () throws(StartupFailure) in throw StartupFailure.outOfResources("a test") })
        }
        #expect(failure?.description.contains("a test") == true)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/socket"))
        #expect(
            becomesTrue {
                guard let service = try? Service(configuration) else { return false }
                return service.shutDown() == .drained
            })
    }

    @Test("The sandbox allows the data, the audit, and what SIGHUP reads again")
    func rules() {
        var configuration = configuration
        #expect(configuration.sandboxRules.writableFolders == [folder.path + "/data"])
        #expect(configuration.sandboxRules.readableFiles.isEmpty)
        configuration.auditPath = "/var/log/rootgate/audit.jsonl"
        configuration.secretPath = "/etc/rootgate/secret"
        configuration.tracePath = "/tmp/trace"
        configuration.optionsPath = "/etc/rootgate/options"
        configuration.tls = .init(
            certificatePath: "/etc/tls/a", keyPath: "/etc/tls/b", clientAuthoritiesPath: "/etc/tls/c")
        configuration.endpoints = [Endpoint(path: "/run/a/socket"), Endpoint(host: "::1", port: 0)]
        configuration.operatorEndpoints = [Endpoint(path: "/run/b/socket")]
        let rules = configuration.sandboxRules
        #expect(rules.writableFolders == [folder.path + "/data", "/var/log/rootgate"])
        #expect(rules.removalFolders == ["/run/a", "/run/b"])
        #expect(
            rules.readableFiles
                == ["/etc/rootgate/secret", "/etc/rootgate/options", "/etc/tls/a", "/etc/tls/b", "/etc/tls/c"])
    }

    @Test("Every path of a configuration was thought of when the sandbox's rules were written")
    func everyPath() {
        // A path that is used after the start belongs into the rules; a trace is open by then.
        let paths = Mirror(reflecting: configuration).children.compactMap(\.label).filter {
            $0.hasSuffix("Path") || $0.hasSuffix("Directory") || $0.hasSuffix("Folder") || $0.hasSuffix("File")
        }
        #expect(Set(paths) == ["dataDirectory", "secretPath", "auditPath", "tracePath", "optionsPath"])
        let tls = ServerTLSSettings(
            certificatePath: "", keyPath: "", clientAuthoritiesPath: nil, allowsTLS12: false)
        let files = Mirror(reflecting: tls).children.compactMap(\.label).filter { $0.hasSuffix("Path") }
        #expect(Set(files) == ["certificatePath", "keyPath", "clientAuthoritiesPath"])
    }
}
