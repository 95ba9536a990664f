import Core
import Transport

/// One connection to an `HTTPServer`. It is closed after the first response.
final class HTTPVisit: ConnectionHandler {
    private let connection: Connection
    /// `nil`: there are too many visitors.
    private let site: (any HTTPSite)?
    private let onClose: @Sendable () -> Void

    /// Without a site the visitor gets a refusal at once.
    init(_ connection: Connection, _ site: (any HTTPSite)?, onClose: @escaping @Sendable () -> Void) {
        self.connection = connection
        self.site = site
        self.onClose = onClose
        guard site == nil else { return }
        connection.send(HTTPResponse.refusal(.unavailable).bytes())
        connection.close()
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Progress {
        let bytes = buffer.bytes(range)
        guard let site else { return Progress(consumed: range.count, nextFrameBytes: 0) }
        if let end = HTTPRequest.endOfHead(bytes), end <= Limits.requestHeadBytesMax {
            connection.send(site.response(to: UnsafeRawBufferPointer(rebasing: bytes[..<end])))
        } else if bytes.count >= Limits.requestHeadBytesMax {
            connection.send(HTTPResponse.refusal(.headTooLarge).bytes())
        } else {
            return Progress(consumed: 0, nextFrameBytes: bytes.count + 1)
        }
        connection.close()
        return Progress(consumed: range.count, nextFrameBytes: 0)
    }

    func lastWord() -> [UInt8]? { HTTPResponse.refusal(.requestTimeout).bytes() }

    var isBusy: Bool { false }

    func drained() {}

    func closed() { onClose() }
}
