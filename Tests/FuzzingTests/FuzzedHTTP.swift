import Core
import Foundation

@testable import Server

/// Heads of HTTP requests to the page about associated domains. The first byte says in which pieces they arrive.
enum FuzzedHTTP {
    static let subject = FuzzSubject("http", bytesMax: 512, seeds: seeds) { input in
        guard let site, let first = input.first else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
        let end = AssociationSite.endOfHead(bytes)
        // A head ends with its first empty line, however much of what follows has arrived.
        let seen = Int(first) % (bytes.count + 1)
        let early = AssociationSite.endOfHead(UnsafeRawBufferPointer(rebasing: bytes[..<seen]))
        try demand(
            early == (end.map { $0 <= seen } ?? false ? end : nil), "the end of a head depends on what follows it")
        guard let end else { return }
        try demand(end >= 2 && bytes[end - 1] == 10, "a head does not end with a line")
        let answer = String(decoding: site.response(to: UnsafeRawBufferPointer(rebasing: bytes[..<end])), as: UTF8.self)
        let line = answer.prefix { $0 != "\r\n" }
        try demand(
            ["200 OK", "400 Bad Request", "404 Not Found", "405 Method Not Allowed"]
                .contains { line == "HTTP/1.1 " + $0 }, "the answer begins with “\(line)”")
        let isAsked = ["GET", "HEAD"].contains { method in
            [" ", "?"].contains { bytes.starts(with: Array("\(method) \(AssociationSite.path)\($0)".utf8)) }
        }
        try demand(!line.hasSuffix("OK") || isAsked, "the page is shown to a request for something else")
        try demand(answer.utf8.count < 4096, "the answer has \(answer.utf8.count) bytes")
    }

    private static let site = try? AssociationSite(linkBase: "https://example.com/c", appIdentifiers: ["TEAM.app"])

    private static func seeds() -> [[UInt8]] {
        [
            "GET \(AssociationSite.path) HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD \(AssociationSite.path)?a HTTP/1.0\n\n",
            "POST \(AssociationSite.path) HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\nGET", "\r\n\r\n", "GET /\r\n\r\n",
        ].map { [7] + Array($0.utf8) }
    }
}
