import Core

/// The head of a request of HTTP/1.1 or 1.0 (RFC 9112). The connection is closed after the first response.
struct HTTPRequest: Equatable, Sendable {
    enum Method: Sendable {
        case get
        case head
        case post
        /// A method that no page has.
        case other
    }

    let method: Method
    /// The path, as it was sent.
    let path: String
    /// What follows the first `?` of the target, as it was sent; empty when nothing does.
    let query: String
    /// The values of each field, by its name in small letters.
    private let fields: [String: [String]]
    /// The host in the target, if it has one: it counts in place of the field (RFC 9112, section 3.2.2).
    private let targetHost: String?

    /// `head`: ends with the empty line. `nil` when it is malformed, or of another version.
    init?(head: UnsafeRawBufferPointer) {
        var lines = head.split(separator: HTTPRequest.lineFeed, omittingEmptySubsequences: false).map { line in
            line.last == HTTPRequest.carriageReturn ? line.dropLast() : line
        }
        // Behind the last line break there is nothing, and before it the empty line.
        guard lines.count > 2, lines.removeLast().isEmpty, lines.removeLast().isEmpty else { return nil }
        let words = lines.removeFirst().split(separator: HTTPRequest.space, omittingEmptySubsequences: false)
        guard words.count == 3, HTTPRequest.isToken(words[0]), let target = Target(words[1]),
            let fields = HTTPRequest.fields(in: lines)
        else { return nil }
        let hosts = fields["host"]?.count ?? 0
        // RFC 9112, section 3.2: a request of HTTP/1.1 has the field once, an older one at most once.
        switch String(decoding: words[2], as: UTF8.self) {
        case "HTTP/1.1": guard hosts == 1 else { return nil }
        case "HTTP/1.0": guard hosts <= 1 else { return nil }
        default: return nil
        }
        (path, query, targetHost) = (target.path, target.query, target.host)
        self.fields = fields
        switch String(decoding: words[0], as: UTF8.self) {
        case "GET": method = .get
        case "HEAD": method = .head
        case "POST": method = .post
        default: method = .other
        }
    }

    /// Whose page is asked for, with its port; `nil` when the request does not say.
    var host: String? { targetHost ?? fields["host"]?.first }

    /// The value of a field that there is once; `nil` for others. `name`: in small letters.
    func value(of name: String) -> String? {
        guard let values = fields[name], values.count == 1 else { return nil }
        return values[0]
    }

    /// Whether there is a field of that name. `name`: in small letters.
    func has(_ name: String) -> Bool { fields[name] != nil }

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

    /// A target in origin form, or in absolute form with http.
    private struct Target {
        let host: String?
        let path: String
        let query: String

        /// `nil` for others.
        init?(_ bytes: Bytes) {
            guard bytes.allSatisfy({ (0x21...0x7e).contains($0) }) else { return nil }
            var rest = String(decoding: bytes, as: UTF8.self)[...]
            let scheme = "http://"
            if rest.prefix(scheme.count).lowercased() == scheme {
                rest = rest.dropFirst(scheme.count)
                host = String(rest.prefix { $0 != "/" && $0 != "?" })
                rest = rest.drop { $0 != "/" && $0 != "?" }
                if rest.first != "/" { rest = "/" + rest }
            } else {
                host = nil
            }
            guard rest.first == "/" else { return nil }
            path = String(rest.prefix { $0 != "?" })
            query = String(rest.dropFirst(path.count + 1))
        }
    }

    /// The values of each field; `nil` when one of them is malformed.
    private static func fields(in lines: [Bytes]) -> [String: [String]]? {
        var fields: [String: [String]] = [:]
        for line in lines {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), isToken(line[..<colon]),
                line[colon...].allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == UInt8(ascii: "\t") })
            else { return nil }
            let value = line[line.index(after: colon)...].drop(while: isBlank)
            let end = value.lastIndex { !isBlank($0) }.map { value.index(after: $0) } ?? value.startIndex
            let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
            fields[name, default: []].append(String(decoding: value[..<end], as: UTF8.self))
        }
        return fields
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == UInt8(ascii: "\t") }

    private static let tokenBytes = Set(
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

    private static func isToken(_ bytes: Bytes) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy { tokenBytes.contains($0) }
    }
}
