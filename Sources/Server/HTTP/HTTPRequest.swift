import Core

/// The head of a request of HTTP/1.1 or 1.0 (RFC 9112). Nothing else of a request is read: no page takes a body, and
/// the connection is closed after the first response.
struct HTTPRequest: Equatable, Sendable {
    enum Method: Sendable {
        case get
        case head
        /// A method that no page has.
        case other
    }

    let method: Method
    /// The path, as it was sent.
    let path: String

    /// `head`: ends with the empty line. `nil` when it is malformed, or of another version.
    init?(head: UnsafeRawBufferPointer) {
        var lines = head.split(separator: HTTPRequest.lineFeed, omittingEmptySubsequences: false).map { line in
            line.last == HTTPRequest.carriageReturn ? line.dropLast() : line
        }
        // Behind the last line break there is nothing, and before it the empty line.
        guard lines.count > 2, lines.removeLast().isEmpty, lines.removeLast().isEmpty else { return nil }
        let words = lines.removeFirst().split(separator: HTTPRequest.space, omittingEmptySubsequences: false)
        guard words.count == 3, HTTPRequest.isToken(words[0]), let path = HTTPRequest.path(of: words[1]) else {
            return nil
        }
        let hosts = HTTPRequest.hosts(in: lines)
        // RFC 9112, section 3.2: a request of HTTP/1.1 has the field once, an older one at most once.
        switch String(decoding: words[2], as: UTF8.self) {
        case "HTTP/1.1": guard hosts == 1 else { return nil }
        case "HTTP/1.0": guard let hosts, hosts <= 1 else { return nil }
        default: return nil
        }
        self.path = path
        switch String(decoding: words[0], as: UTF8.self) {
        case "GET": method = .get
        case "HEAD": method = .head
        default: method = .other
        }
    }

    /// The offset after the empty line that ends the head; `nil` while that line has not arrived.
    static func endOfHead(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var lineStart = 0
        for (offset, byte) in bytes.enumerated() where byte == lineFeed {
            let line = bytes[lineStart..<offset]
            if line.isEmpty || line.elementsEqual([carriageReturn]), lineStart > 0 { return offset + 1 }
            lineStart = offset + 1
        }
        return nil
    }

    private typealias Bytes = Slice<UnsafeRawBufferPointer>

    private static let lineFeed = UInt8(ascii: "\n")
    private static let carriageReturn = UInt8(ascii: "\r")
    private static let space = UInt8(ascii: " ")

    /// The path of a target in origin form, or in absolute form with http; `nil` for others.
    private static func path(of target: Bytes) -> String? {
        guard target.allSatisfy({ (0x21...0x7e).contains($0) }) else { return nil }
        var rest = String(decoding: target, as: UTF8.self)[...]
        let scheme = "http://"
        if rest.prefix(scheme.count).lowercased() == scheme {
            rest = rest.dropFirst(scheme.count).drop { $0 != "/" && $0 != "?" }
            if rest.first != "/" { rest = "/" + rest }
        }
        guard rest.first == "/" else { return nil }
        return String(rest.prefix { $0 != "?" })
    }

    /// How often the fields have a host; `nil` when one of them is malformed.
    private static func hosts(in fields: [Bytes]) -> Int? {
        var count = 0
        for field in fields {
            guard let colon = field.firstIndex(of: UInt8(ascii: ":")), isToken(field[..<colon]),
                field[colon...].allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == UInt8(ascii: "\t") })
            else { return nil }
            if String(decoding: field[..<colon], as: UTF8.self).lowercased() == "host" { count += 1 }
        }
        return count
    }

    private static let tokenBytes = Set(
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    private static func isToken(_ bytes: Bytes) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy { tokenBytes.contains($0) }
    }
}
