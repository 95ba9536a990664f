import Core
import Foundation
import Testing

@testable import Server

/// The heads of requests to the server of pages, and its responses, without sockets.
@Suite struct HTTPRequestTests {
    private func request(_ text: String) -> HTTPRequest? {
        text.utf8.withContiguousStorageIfAvailable { HTTPRequest(head: UnsafeRawBufferPointer($0)) } ?? nil
    }

    @Test(
        "The path is that of the target without its query",
        arguments: [
            ("/metrics", "/metrics"), ("/metrics?a=b?c", "/metrics"), ("/?", "/"), ("http://a:1/readyz?x", "/readyz"),
            ("HTTP://a", "/"), ("http://a?x", "/"), ("//x", "//x"),
        ])
    func thePathIsThatOfTheTarget(_ target: String, _ path: String) throws {
        let found = try #require(request("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n"))
        #expect(found.path == path)
        #expect(found.method == .get)
    }

    @Test(
        "A malformed head is none",
        arguments: [
            "", "\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nb\r\n\r\n", "GET / HTTP/1.1\r\nHost: \u{1}\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
            " / HTTP/1.1\r\nHost: a\r\n\r\n", "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", "GET /\tHTTP/1.1\r\nHost: a\r\n\r\n",
            "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        ])
    func malformedHeadsAreNone(_ text: String) {
        #expect(request(text) == nil)
    }

    @Test("A head of an older version needs no host, and lines may end without a carriage return")
    func lenientHeads() {
        #expect(request("GET / HTTP/1.0\n\n")?.path == "/")
        #expect(request("HEAD / HTTP/1.1\nHOST:a\nx:\ty\n\n")?.method == .head)
        #expect(request("BREW / HTTP/1.1\r\nHost:\r\n\r\n")?.method == .other)
    }

    @Test("Dates are those of RFC 9110")
    func datesAreThoseOfTheStandard() {
        #expect(HTTPResponse.date(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPResponse.date(0) == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(HTTPResponse.date(1_709_251_199) == "Thu, 29 Feb 2024 23:59:59 GMT")
    }

    @Test("Every response has the length of its body", arguments: HTTPResponse.Status.allCases)
    func everyResponseHasTheLengthOfItsBody(_ status: HTTPResponse.Status) {
        let response = HTTPResponse.refusal(status)
        let text = String(decoding: response.bytes(at: 0), as: UTF8.self)
        let parts = text.components(separatedBy: "\r\n\r\n")
        #expect(parts.count == 2 && parts[1] == status.rawValue + "\n")
        let lines = parts[0].components(separatedBy: "\r\n")
        #expect(lines.first == "HTTP/1.1 \(status.rawValue)")
        #expect(lines.contains("Content-Length: \(parts[1].utf8.count)"))
        #expect(lines.contains("Connection: close"))
        #expect(lines.contains("Date: Thu, 01 Jan 1970 00:00:00 GMT"))
        #expect(String(decoding: response.bytes(hasBody: false, at: 0), as: UTF8.self) == parts[0] + "\r\n\r\n")
    }
}
