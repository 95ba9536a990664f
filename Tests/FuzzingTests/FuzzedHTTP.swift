import Core
import Foundation

@testable import Server

/// Heads of HTTP requests to the server of pages. The first byte says in which pieces they arrive.
enum FuzzedHTTP {
    static let subject = FuzzSubject("http", bytesMax: 512, seeds: seeds) { input in
        guard let site, let first = input.first else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
        let end = HTTPRequest.endOfHead(bytes)
        // A head ends with its first empty line, however much of what follows has arrived.
        let seen = Int(first) % (bytes.count + 1)
        let early = HTTPRequest.endOfHead(UnsafeRawBufferPointer(rebasing: bytes[..<seen]))
        try demand(
            early == (end.map { $0 <= seen } ?? false ? end : nil), "the end of a head depends on what follows it")
        guard let end else { return }
        try demand(end >= 2 && bytes[end - 1] == 10, "a head does not end with a line")
        let head = UnsafeRawBufferPointer(rebasing: bytes[..<end])
        guard case .response(let answer) = site.reception(of: head) else { throw Finding("a body is awaited") }
        try check(String(decoding: answer, as: UTF8.self), to: head)
        try checkForm(head, bytes[end...])
    }

    /// A site with a form awaits as many bytes as the head says, at most the form's, and of nothing but a form.
    private static func checkForm(_ head: UnsafeRawBufferPointer, _ rest: Slice<UnsafeRawBufferPointer>) throws {
        guard case .body(let count, let response) = FormSite().reception(of: head) else { return }
        let request = HTTPRequest(head: head)
        try demand(
            count <= FormSite.bytesMax && request?.method == .post && request?.has("transfer-encoding") == false
                && request?.value(of: "content-length").flatMap { Int($0) } == count,
            "a body of \(count) bytes is awaited")
        guard rest.count >= count else { return }
        let body = UnsafeRawBufferPointer(rebasing: rest.prefix(count))
        let answer = String(decoding: response(body), as: UTF8.self)
        let isForm = FormFields(body) != nil
        try demand(answer.hasPrefix("HTTP/1.1 \(isForm ? "200" : "400")"), "the form gets “\(answer.prefix(20))”")
    }

    private struct FormSite: HTTPSite {
        static let bytesMax = 40

        func page(for request: HTTPRequest) -> HTTPPage? {
            HTTPPage(
                form: HTTPPage.Form(bytesMax: FormSite.bytesMax) { _ in HTTPResponse(.ok, [], contentType: "a/b") }
            ) { HTTPResponse(.ok, [], contentType: "a/b") }
        }
    }

    private static func check(_ answer: String, to head: UnsafeRawBufferPointer) throws {
        let line = answer.prefix { $0 != "\r\n" }
        try demand(
            ["200 OK", "400 Bad Request", "404 Not Found", "405 Method Not Allowed"]
                .contains { line == "HTTP/1.1 " + $0 }, "the answer begins with “\(line)”")
        let parts = answer.components(separatedBy: "\r\n\r\n")
        let length = parts[0].components(separatedBy: "\r\nContent-Length: ").last?.prefix { $0.isNumber }
        let isHead = head.starts(with: Array("HEAD ".utf8))
        try demand(
            parts.count == 2 && (isHead && parts[1].isEmpty || length == "\(parts[1].utf8.count)"),
            "the body of “\(line)” has not the length that its head says")
        try demand(!line.hasSuffix("Allowed") || answer.contains("\r\nAllow: GET, HEAD\r\n"), "nothing is allowed")
        try demand(answer.utf8.count < 4096, "the answer has \(answer.utf8.count) bytes")
        guard line.hasSuffix("OK") else { return }
        let asked = text(head.prefix { $0 != 10 })
        let isAsked = [" ", "?"].contains { asked.contains(AssociationSite.path + $0) }
        try demand(
            isAsked && ["GET ", "HEAD "].contains { asked.hasPrefix($0) },
            "the page is shown to a request for something else")
        let hosts = head.split(separator: 10).count { line in
            text(line).lowercased().hasPrefix("host:")
        }
        try demand(
            hosts == 1 || hosts == 0 && asked.contains(" HTTP/1.0"),
            "the page is shown to a request with \(hosts) hosts")
    }

    /// A character for each byte. In UTF-8 a colon and a combining mark behind it would be one character.
    private static func text(_ bytes: some Sequence<UInt8>) -> String {
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: bytes.lazy.map { Unicode.Scalar($0) })
        return String(scalars)
    }

    private static let site = try? AssociationSite(linkBase: "https://example.com/c", appIdentifiers: ["TEAM.app"])

    private static func seeds() -> [[UInt8]] {
        [
            "GET \(AssociationSite.path) HTTP/1.1\r\nHost: a\r\n\r\n", "HEAD \(AssociationSite.path)?a HTTP/1.0\n\n",
            "POST \(AssociationSite.path) HTTP/1.1\r\nhost:\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET",
            "\r\n\r\n", "GET /\r\n\r\n", "GET http://a\(AssociationSite.path) HTTP/1.1\r\nHost: a\r\nB:c\r\n\r\n",
            "GET \(AssociationSite.path) HTTP/1.1\r\nHost: a\r\nHOST: b\r\n\r\n",
            "GET \(AssociationSite.path) HTTP/1.1\r\nHost:\u{65E}\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\n\r\na=%3Cb+c",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 41\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\n\r\na",
        ].map { [7] + Array($0.utf8) }
    }
}
