import Core
import Foundation
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Transport

/// The page that tells Apple's systems which app opens the links.
@Suite struct AssociationTests {
    private func site(_ base: String = "https://example.com/c") throws -> TestService {
        try TestService { configuration in
            configuration.linkBase = base
            configuration.associationEndpoint = Endpoint(host: "127.0.0.1", port: 0)
            configuration.appIdentifiers = ["TEAM1.com.example.app", "TEAM1.com.example.other"]
        }
    }

    /// What the service sends for some bytes before it closes the connection.
    private func answer(_ service: TestService, _ pieces: String...) throws -> String {
        try PageVisitor.answer(of: try #require(service.service.associationEndpoints.first), to: pieces)
    }

    private static let path = "/.well-known/apple-app-site-association"

    @Test(
        "The page names the apps and the path of the links",
        arguments: [("https://example.com/c", "/c/*"), ("https://example.com/", "/*"), ("https://example.com", "/*")])
    func thePageNamesTheAppsAndThePathOfTheLinks(_ base: String, _ links: String) throws {
        let text = try answer(try site(base), "GET \(Self.path) HTTP/1.1\r\nHost: example.com\r\n\r\n")
        let parts = text.components(separatedBy: "\r\n\r\n")
        #expect(parts.count == 2)
        #expect(parts[0].hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(parts[0].contains("Content-Type: application/json\r\n"))
        #expect(parts[0].contains("Content-Length: \(parts[1].utf8.count)\r\n"))
        #expect(
            parts[1] == #"{"applinks":{"details":[{"appIDs":["TEAM1.com.example.app","TEAM1.com.example.other"],"#
                + #""components":[{"/":"\#(links)"}]}]}}"#)
    }

    @Test("A request that arrives in pieces is answered as a whole one")
    func aRequestInPiecesIsOne() throws {
        let text = try answer(try site(), "GET \(Self.path)?x=1 HT", "TP/1.1\r\nHost: a", "\r\n\r", "\n")
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test("An answer to HEAD has no body")
    func headGetsNoBody() throws {
        let text = try answer(try site(), "HEAD \(Self.path) HTTP/1.0\r\n\r\n")
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(text.hasSuffix("\r\n\r\n"))
    }

    @Test(
        "Everything else gets its status",
        arguments: [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
            ("GET /.well-known/other HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
            ("POST \(path) HTTP/1.1\r\nHost: a\r\n\r\n", "405 Method Not Allowed"),
            ("GET \(path)\r\n\r\n", "400 Bad Request"), ("nonsense\n\n", "400 Bad Request"),
            ("GET  \(path) HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request"),
            ("GET / HTTP/1.1\r\nX: \(String(repeating: "x", count: 9000))", "431 Request Header Fields Too Large"),
        ])
    func everythingElseGetsItsStatus(_ request: String, _ status: String) throws {
        #expect(try answer(try site(), request).hasPrefix("HTTP/1.1 \(status)\r\n"))
    }

    @Test("A head is read up to the limit, and refused above it")
    func lengthOfHead() throws {
        let site = try site()
        func head(_ count: Int) -> String {
            let start = "GET \(Self.path) HTTP/1.1\r\nHost: a\r\nX: "
            return start + String(repeating: "x", count: count - start.utf8.count - 4) + "\r\n\r\n"
        }
        #expect(try answer(site, head(Limits.requestHeadBytesMax)).hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(try answer(site, head(Limits.requestHeadBytesMax + 1)).hasPrefix("HTTP/1.1 431 "))
        let long = head(Limits.requestHeadBytesMax + 4)
        #expect(try answer(site, String(long.dropLast(2))).hasPrefix("HTTP/1.1 431 "))
    }

    @Test("A head that does not arrive in time gets its status, and a silent connection is closed")
    func lateHeads() throws {
        let site = try site()
        let begin = ContinuousClock.now
        #expect(try answer(site, "GET / HTTP/1.1\r\nHos").hasPrefix("HTTP/1.1 408 Request Timeout\r\n"))
        #expect(ContinuousClock.now - begin >= .milliseconds(Int(Limits.requestHeadMilliseconds)))
        #expect(try answer(site, "") == "")
    }

    @Test("Visitors of the page are limited and take no connections from clients")
    func visitorsTakeNoPlaceFromTheGateAndAreNotTooMany() async throws {
        let service = try TestService { configuration in
            configuration.linkBase = "https://example.com/c"
            configuration.associationEndpoint = Endpoint(host: "127.0.0.1", port: 0)
            configuration.appIdentifiers = ["T.a"]
            configuration.connectionsMax = 1
        }
        let endpoint = try #require(service.service.associationEndpoints.first)
        // An address alone gets half of the places.
        let silent = try (0..<Limits.visitorsMax / 2).map { _ in
            try Socket.connect(to: endpoint, milliseconds: 5000)
        }
        // One visitor more is told so. Clients can still connect.
        #expect(try answer(service, "").hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
        try await service.client().ping()
        for descriptor in silent { close(descriptor) }
        // Other visitors are served again once the service notices that these have gone.
        let deadline = ContinuousClock.now + patience
        var isUnanswered = false
        while !isUnanswered, ContinuousClock.now < deadline {
            let descriptor = try Socket.connect(to: endpoint, milliseconds: 5000)
            defer { close(descriptor) }
            usleep(20_000)
            var byte: UInt8 = 0
            isUnanswered = recv(descriptor, &byte, 1, 0) == -1 && errno == EAGAIN
        }
        #expect(try answer(service, "GET \(Self.path) HTTP/1.0\r\n\r\n").hasPrefix("HTTP/1.1 200 OK\r\n"))
    }
}
