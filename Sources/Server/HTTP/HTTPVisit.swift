import Core
import Transport

/// One connection to an `HTTPServer`. It is closed after the first response.
///
/// Sendable without the compiler's proof: only the server's thread uses `awaited`.
final class HTTPVisit: ConnectionHandler, @unchecked Sendable {
    private let connection: Connection
    /// `nil`: there are too many visitors.
    private let site: (any HTTPSite)?
    private let onClose: @Sendable () -> Void
    /// Where the body ends that is awaited behind the head, and what makes the response of the received bytes; `nil`:
    /// none is.
    private var awaited: (end: Int, response: (UnsafeRawBufferPointer) -> [UInt8])?

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
        if awaited == nil, let end = HTTPRequest.endOfHead(bytes), end <= Limits.requestHeadBytesMax {
            switch site.reception(of: UnsafeRawBufferPointer(rebasing: bytes[..<end])) {
            case .response(let answer): return finish(with: answer, range)
            case .body(let count, let response):
                awaited = (end + count, { response(UnsafeRawBufferPointer(rebasing: $0[end...])) })
            }
        }
        if let awaited {
            // What is behind the body is another request, which gets no answer.
            guard bytes.count >= awaited.end else { return Progress(consumed: 0, nextFrameBytes: awaited.end) }
            return finish(with: awaited.response(UnsafeRawBufferPointer(rebasing: bytes[..<awaited.end])), range)
        }
        guard bytes.count < Limits.requestHeadBytesMax else {
            return finish(with: HTTPResponse.refusal(.headTooLarge).bytes(), range)
        }
        return Progress(consumed: 0, nextFrameBytes: bytes.count + 1)
    }

    private func finish(with answer: [UInt8], _ range: Range<Int>) -> Progress {
        connection.send(answer)
        connection.close()
        return Progress(consumed: range.count, nextFrameBytes: 0)
    }

    func lastWord() -> [UInt8]? { HTTPResponse.refusal(.requestTimeout).bytes() }

    var isBusy: Bool { false }

    func drained() {}

    func closed() { onClose() }
}
