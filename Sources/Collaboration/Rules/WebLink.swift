package import Foundation

/// A link of the web, http or https with a host, in its normal form (RFC 3986, section 6.2). Links of one normal form
/// are the same link.
///
/// Scheme and host have no upper case. The scheme's default port is left out. Escapes of unreserved characters are
/// decoded, and other escapes have upper case. The path has no dot segments and no slashes at its end. A query or a
/// fragment that is empty is left out.
package struct WebLink: Hashable, Sendable {
    private static let defaultPorts = ["http": 80, "https": 443]

    let scheme: String
    /// What stands before the `@`, escaped.
    let user: String?
    let host: String
    /// `nil`: the scheme's default port.
    let port: Int?
    /// The parts of the path, escaped.
    let segments: [String]
    let query: String?
    let fragment: String?

    package init?(_ url: URL) {
        self.init(url.absoluteString)
    }

    /// `nil` unless the text is a link of the web.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let scheme = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
        guard let defaultPort = WebLink.defaultPorts[scheme], bytes[colon...].starts(with: Array("://".utf8)) else {
            return nil
        }
        let rest = bytes[(colon + 3)...]
        let pathStart = rest.firstIndex { [UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) }
        let fragmentStart = rest.firstIndex(of: UInt8(ascii: "#")) ?? rest.endIndex
        let queryStart = rest[..<fragmentStart].firstIndex(of: UInt8(ascii: "?")) ?? fragmentStart
        guard let authority = Authority(rest[..<(pathStart ?? rest.endIndex)]),
            let path = WebLink.normal(rest[(pathStart ?? queryStart)..<queryStart]),
            let query = WebLink.normal(rest[queryStart..<fragmentStart].dropFirst()),
            let fragment = WebLink.normal(rest[fragmentStart...].dropFirst())
        else { return nil }
        self.scheme = scheme
        (user, host) = (authority.user, authority.host)
        port = authority.port == defaultPort ? nil : authority.port
        segments = WebLink.segments(ofPath: path)
        self.query = query.isEmpty ? nil : query
        self.fragment = fragment.isEmpty ? nil : fragment
    }

    /// The link as text.
    package var text: String {
        var text = scheme + "://"
        if let user { text += user + "@" }
        text += host
        if let port { text += ":\(port)" }
        text += "/" + segments.joined(separator: "/")
        if let query { text += "?" + query }
        if let fragment { text += "#" + fragment }
        return text
    }

    /// The parts of the path below the base's path; `nil` when the link does not lead there. Query and fragment don't
    /// matter. A link with user information leads to no place of the base.
    func segments(below base: WebLink) -> ArraySlice<String>? {
        guard user == nil, (scheme, host, port) == (base.scheme, base.host, base.port),
            segments.starts(with: base.segments)
        else { return nil }
        return segments.dropFirst(base.segments.count)
    }

    /// The same for a link that people take for one below the base, although it leads nowhere: whatever its scheme and
    /// user information are, with either scheme's default port, a dot behind the host, and empty parts in the path.
    func segmentsOfAnySpelling(below base: WebLink) -> ArraySlice<String>? {
        let (names, start) = (segments.filter { !$0.isEmpty }, base.segments.filter { !$0.isEmpty })
        let hasPort = port == base.port || base.port == nil && WebLink.defaultPorts.values.contains { $0 == port }
        guard hasPort, hostWithoutDot == base.hostWithoutDot, names.starts(with: start) else { return nil }
        return names.dropFirst(start.count)
    }

    /// The host without the dot at its end that makes it a whole name.
    private var hostWithoutDot: Substring { host.hasSuffix(".") ? host.dropLast() : host[...] }

    /// User information, host and port.
    private struct Authority {
        var user: String?
        let host: String
        let port: Int?

        init?(_ bytes: ArraySlice<UInt8>) {
            var place = bytes
            if let end = bytes.lastIndex(of: UInt8(ascii: "@")) {
                guard let user = WebLink.normal(bytes[..<end]) else { return nil }
                self.user = user
                place = bytes[(end + 1)...]
            }
            // The colons of an address of IPv6 are in brackets.
            let bracket = place.lastIndex(of: UInt8(ascii: "]"))
            let colon = place[(bracket ?? place.startIndex)...].firstIndex(of: UInt8(ascii: ":"))
            guard let host = WebLink.normal(place[..<(colon ?? place.endIndex)])?.lowercased(), !host.isEmpty,
                bracket == nil ? !host.contains("[") : host.hasPrefix("[") && host.hasSuffix("]")
            else { return nil }
            self.host = host
            guard let digits = colon.map({ place[($0 + 1)...] }), !digits.isEmpty else {
                port = nil
                return
            }
            guard digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                let number = UInt16(String(decoding: digits, as: UTF8.self))
            else { return nil }
            port = Int(number)
        }
    }

    /// The text with its escapes in their normal form; `nil` when it has a wrong escape or a character that an address
    /// does not contain.
    private static func normal(_ bytes: ArraySlice<UInt8>) -> String? {
        var normal: [UInt8] = []
        normal.reserveCapacity(bytes.count)
        var position = bytes.startIndex
        while position < bytes.endIndex {
            let byte = bytes[position]
            guard (0x21...0x7e).contains(byte), byte != UInt8(ascii: "\\") else { return nil }
            guard byte == UInt8(ascii: "%") else {
                normal.append(byte)
                position += 1
                continue
            }
            guard bytes.endIndex - position >= 3,
                let value = [UInt8](
                    hexadecimal: String(decoding: bytes[(position + 1)..<(position + 3)], as: UTF8.self))?.first
            else { return nil }
            if isUnreserved(value) {
                normal.append(value)
            } else {
                normal += Array("%".utf8) + Array([value].hexadecimal.uppercased().utf8)
            }
            position += 3
        }
        return String(decoding: normal, as: UTF8.self)
    }

    /// RFC 3986, section 2.3.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// The parts of a path without dot segments (RFC 3986, section 5.2.4) and without slashes at its end.
    private static func segments(ofPath path: String) -> [String] {
        var segments: [String] = []
        for part in path.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
            switch part {
            case ".": continue
            case "..": _ = segments.popLast()
            default: segments.append(String(part))
            }
        }
        while segments.last == "" { segments.removeLast() }
        return segments
    }
}
