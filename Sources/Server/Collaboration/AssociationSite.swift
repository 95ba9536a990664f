import Core
import Foundation
import Transport

/// The page from which Apple's systems learn which app opens the universal links. It is served over HTTP/1.1; the
/// server that serves the links' domain with TLS stands in front of it. Apple: "Supporting associated domains".
struct AssociationSite: Sendable {
    static let path = "/.well-known/apple-app-site-association"

    private let page: [UInt8]

    /// `appIdentifiers`: each the team's prefix, a dot and the bundle identifier.
    ///
    /// Throws when the link base is no URL.
    init(linkBase: String, appIdentifiers: [String]) throws(StartupFailure) {
        struct Site: Encodable {
            struct Links: Encodable {
                struct Details: Encodable {
                    let appIDs: [String]
                    let components: [[String: String]]
                }
                let details: [Details]
            }
            let applinks: Links
        }
        guard let base = URL(string: linkBase) else {
            throw StartupFailure.linkBase(linkBase, reason: "it is no URL")
        }
        let links = base.path.hasSuffix("/") ? base.path + "*" : base.path + "/*"
        let site = Site(
            applinks: Site.Links(
                details: [Site.Links.Details(appIDs: appIdentifiers, components: [["/": links]])]))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            page = Array(try encoder.encode(site))
        } catch {
            // Strings can always be written as JSON.
            throw StartupFailure.linkBase(linkBase, reason: "it is no URL")
        }
    }

    /// The response to a request. `head` ends with the empty line.
    func response(to head: UnsafeRawBufferPointer) -> [UInt8] {
        let line = head.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
        let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard words.count == 3, words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0" else {
            return AssociationSite.response("400 Bad Request", [])
        }
        let target = words[1].prefix { $0 != "?" }
        guard target == AssociationSite.path else { return AssociationSite.response("404 Not Found", []) }
        switch words[0] {
        case "GET": return AssociationSite.response("200 OK", page)
        case "HEAD": return AssociationSite.response("200 OK", page, hasBody: false)
        default: return AssociationSite.response("405 Method Not Allowed", [], more: "Allow: GET, HEAD\r\n")
        }
    }

    /// The offset after the empty line that ends the head; `nil` while that line has not arrived.
    static func endOfHead(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var lineStart = 0
        for (offset, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") {
            let line = bytes[lineStart..<offset]
            if line.isEmpty || line.elementsEqual([UInt8(ascii: "\r")]), lineStart > 0 { return offset + 1 }
            lineStart = offset + 1
        }
        return nil
    }

    static func response(_ status: String, _ body: [UInt8], hasBody: Bool = true, more: String = "") -> [UInt8] {
        let head = """
            HTTP/1.1 \(status)\r\nContent-Type: application/json\r\nContent-Length: \(body.count)\r\n\
            \(more)Connection: close\r\n\r\n
            """
        return Array(head.utf8) + (hasBody ? body : [])
    }
}

/// One connection to the association's page. It is closed after the first response.
final class AssociationVisit: ConnectionHandler {
    private let connection: Connection
    private let site: AssociationSite
    private let onClose: @Sendable () -> Void

    init(_ connection: Connection, _ site: AssociationSite, onClose: @escaping @Sendable () -> Void) {
        self.connection = connection
        self.site = site
        self.onClose = onClose
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        let bytes = buffer.bytes(range)
        if let end = AssociationSite.endOfHead(bytes) {
            connection.send(site.response(to: UnsafeRawBufferPointer(rebasing: bytes[..<end])))
        } else if bytes.count >= Limits.requestHeadBytesMax {
            connection.send(AssociationSite.response("431 Request Header Fields Too Large", []))
        } else {
            return Transport.Progress(consumed: 0, nextFrameBytes: bytes.count + 1)
        }
        connection.close()
        return Transport.Progress(consumed: range.count, nextFrameBytes: 0)
    }

    var isBusy: Bool { false }

    func drained() {}

    func closed() { onClose() }
}
