import Core
import Foundation
import Transport
import Wire

/// A blocking socket for tests that send what no client of ours would.
///
/// Sendable: one thread may send while another reads.
final class RawPeer: Sendable {
    private let descriptor: CInt

    init(_ endpoint: Endpoint) throws {
        descriptor = try Socket.connect(to: endpoint, milliseconds: 2000)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
        var time = timeval(tv_sec: 10, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
        Foundation.close(descriptor)
    }

    func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            sent += count
        }
    }

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

    /// Fewer than `count` bytes when the connection ended.
    func read(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var buffer = [UInt8](repeating: 0, count: count - bytes.count)
            let received = recv(descriptor, &buffer, buffer.count, 0)
            guard received > 0 else { break }
            bytes += buffer[..<received]
        }
        return bytes
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
            let more = read(missing)
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
    var isClosed: Bool { read(1).isEmpty }
}
