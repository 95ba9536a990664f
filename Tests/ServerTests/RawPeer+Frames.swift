import Core
import TestSupport
import Wire

/// Requests and answers over a raw socket.
extension RawPeer {
    func send(_ operation: UInt16, id: UInt64, body: [UInt8]) {
        var bytes: [UInt8] = []
        FrameWriter.append(.request, operation, requestID: id, to: &bytes) { $0 += body }
        send(bytes)
    }

    func send(_ request: Request, id: UInt64) {
        var body: [UInt8] = []
        request.append(to: &body)
        send(request.operation.rawValue, id: id, body: body)
    }

    /// The next frame; `nil` when the connection ended.
    func readFrame() -> (header: FrameHeader, body: [UInt8])? {
        var bytes: [UInt8] = []
        while true {
            let (frame, missing) = bytes.withUnsafeBytes { received in
                var frames = FrameReader(received, expecting: [.answer, .error])
                return (frames.next().map { ($0.header, Array($0.body)) }, frames.nextFrameBytes - received.count)
            }
            if let frame { return frame }
            guard missing > 0 else { return nil }
            let more = receive(missing)
            guard more.count == missing else { return nil }
            bytes += more
        }
    }

    /// The error in the next frame.
    func readError() throws -> (header: FrameHeader, error: ServiceError)? {
        guard let (header, body) = readFrame(), header.kind == .error else { return nil }
        return (header, try body.withRawBytes { bytes throws(ServiceError) in try FrameWriter.decodeError(bytes) })
    }

    /// Whether the service closes the connection now.
    var isClosed: Bool { receive(1).isEmpty }
}
