import Core
import Foundation
import Platform
import TestSupport
import Testing
@testable import Transport

@Suite("Endpoints")
struct EndpointTests {
    @Test(
        "An endpoint is read as host and port and written the same way",
        arguments: [
            ("localhost:7570", "localhost", 7570), ("127.0.0.1:0", "127.0.0.1", 0), ("[::1]:65535", "::1", 65535),
            ("example.com:1", "example.com", 1), ("[fe80::1]:80", "fe80::1", 80),
        ] as [(String, String, UInt16)])
    func parsing(text: String, host: String, port: UInt16) throws {
        let endpoint = try #require(Endpoint(text))
        #expect(endpoint == Endpoint(host: host, port: port))
        #expect(endpoint.description == text)
    }

    @Test(
        "A log that names no single host has the network of an address",
        arguments: [
            ("192.0.2.77", "192.0.2.0/24"), ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:12:34:5:6:7:8", "2001:db8:12::/48"), ("fe80::1%eth0", "fe80:0:0::/48"),
            ("127.0.0.9", "127.0.0.9:5"), ("::1", "[::1]:5"), ("no address", "an unknown address"),
        ])
    func network(host: String, expected: String) {
        #expect(Peer.network(Endpoint(host: host, port: 5)).network == expected)
    }

    @Test(
        "The text unix: and an absolute path is a local socket, which is loopback",
        arguments: ["/run/rootgate/rootgate.sock", "/", "/a:1", "/ä b"])
    func localSocket(path: String) throws {
        let endpoint = try #require(Endpoint("unix:\(path)"))
        #expect(endpoint == Endpoint(path: path) && endpoint.path == path)
        #expect(endpoint.description == "unix:\(path)")
        #expect(endpoint.isLoopback && endpoint.host.isEmpty && endpoint.port == 0)
        #expect(endpoint != Endpoint(host: "", port: 0))
    }

    @Test("A host may be named unix")
    func hostNamedUnix() {
        #expect(Endpoint("unix:7570") == Endpoint(host: "unix", port: 7570))
    }

    @Test(
        "What is no endpoint is refused",
        arguments: [
            "unix:", "unix:relative", "unix:./relative", "UNIX:/path", "unix",
            "", ":", "localhost", "localhost:", ":7570", "localhost:65536", "localhost:-1", "localhost:seven",
            "::1:7570",
            "[]:7570", "[::1]", "localhost:75 70", "1:2:3",
        ])
    func refused(text: String) {
        #expect(Endpoint(text) == nil)
    }

    @Test(
        "Only names and addresses of this machine's loopback are loopback",
        arguments: [
            ("localhost", true), ("LocalHost", true), ("::1", true), ("127.0.0.1", true), ("127.255.0.9", true),
            ("0.0.0.0", false), ("::", false), ("128.0.0.1", false), ("126.0.0.1", false),
            ("localhost.example.com", false),
            ("127.0.0.1.example.com", false), ("192.168.1.1", false), ("", false), ("1.0.0.127", false),
        ])
    func loopback(host: String, isLoopback: Bool) {
        #expect(Endpoint(host: host, port: 1).isLoopback == isLoopback)
    }

    @Test("A port where nobody listens is connection-refused")
    func nobodyListens() throws {
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        close(listener.descriptor)
        do throws(ServiceError) {
            close(try Socket.connect(to: listener.endpoint, milliseconds: 5000))
            Issue.record("the connection was made")
        } catch {
            #expect(error.code == .connectionRefused)
            #expect(error.detail == UInt32(ECONNREFUSED))
        }
    }

    @Test("A host that has no address is connection-refused")
    func noSuchHost() {
        do throws(ServiceError) {
            close(try Socket.connect(to: Endpoint(host: "999.999.999.999", port: 1), milliseconds: 5000))
            Issue.record("the connection was made")
        } catch {
            #expect(error.code == .connectionRefused)
        }
    }

    @Test("A port that is taken can't be listened on")
    func takenPort() throws {
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        defer { close(listener.descriptor) }
        #expect(listener.endpoint.port != 0)
        #expect(throws: SystemFailure.self) { try Socket.listen(on: listener.endpoint) }
    }

    @Test("A port that is taken on one of a name's addresses can't be listened on, and none of the others is kept")
    func partlyTakenPort() throws {
        let hosts = ["::1", "127.0.0.1"]
        let addresses = try hosts.map { host in
            try #require(try Socket.addresses(of: Endpoint(host: host, port: 0), passive: true).first)
        }
        let taken = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        let port = taken.endpoint.port
        defer { close(taken.descriptor) }
        guard let other = try? Socket.listen(on: Endpoint(host: "::1", port: port)).first else {
            print("SKIPPED: the IPv6 loopback is not there, or port \(port) is taken on it")
            return
        }
        close(other.descriptor)
        do throws(SystemFailure) {
            let listeners = try Socket.listen(at: addresses, port: port, backlog: 1)
            for listener in listeners { close(listener.descriptor) }
            Issue.record("\(listeners.map(\.endpoint)) are listened on")
        } catch {
            #expect(error.number == EADDRINUSE)
            #expect(error.call == "bind" || error.call == "listen")
        }
        let again = try Socket.listen(on: Endpoint(host: "::1", port: port))
        for listener in again { close(listener.descriptor) }
    }

    @Test("All addresses of a name are listened on at the same port")
    func samePort() throws {
        let listeners = try Socket.listen(on: Endpoint(host: "localhost", port: 0))
        defer { for listener in listeners { close(listener.descriptor) } }
        #expect(Set(listeners.map(\.endpoint.port)).count == 1)
        #expect(listeners.allSatisfy { $0.endpoint.isLoopback })
    }
}
