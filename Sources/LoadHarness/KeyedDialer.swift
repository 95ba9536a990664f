package import Core
import Foundation
package import Principals
package import TLS
package import Transport
import Wire

/// Makes connections that have presented an API key, if there is one.
package struct KeyedDialer: Sendable {
    private let dialer: Dialer
    private let key: APIKey?

    /// Throws `tlsRefused` when a file of `tls` can't be used.
    package init(_ endpoint: Endpoint, tls: TLSOptions?, key: APIKey?) throws(ServiceError) {
        dialer = try Dialer(endpoint, tls: tls)
        self.key = key
    }

    /// Connects and presents the key. Blocks for up to `milliseconds` for each address of the host, as long for the
    /// handshake, and as long for the answer to the key.
    ///
    /// Throws `connectionRefused`, `tlsRefused`, `keyRefused`, `deadlineExceeded` or `connectionLost`.
    package func connect(milliseconds: CInt) throws(ServiceError) -> any ByteStream {
        let stream = try dialer.connect(milliseconds: milliseconds)
        guard let key else { return stream }
        do throws(ServiceError) {
            try KeyedDialer.present(key, on: stream, within: milliseconds)
            return stream
        } catch {
            stream.close()
            throw error
        }
    }

    private static func present(
        _ key: APIKey, on stream: any ByteStream, within milliseconds: CInt
    ) throws(ServiceError) {
        var bytes: [UInt8] = []
        let hello = Request.hello(minimum: protocolVersion, maximum: protocolVersion, key: Array(key.text.utf8))
        FrameWriter.append(.request, hello.operation.rawValue, requestID: 0, to: &bytes) { hello.append(to: &$0) }
        let deadline = ContinuousClock.now + .milliseconds(Int(milliseconds))
        var sent = 0
        while sent < bytes.count {
            let rest = bytes[sent...]
            sent += try transferred(stream, by: deadline) { rest.withUnsafeBytes { stream.send($0) } }
        }
        var received: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = try transferred(stream, by: deadline) {
                room.withUnsafeMutableBytes { stream.receive(into: $0) }
            }
            received += room[..<count]
            let isDone = try received.withRawBytes { bytes throws(ServiceError) -> Bool in
                var frames = FrameReader(bytes, expecting: [.answer, .error])
                guard let frame = frames.next() else { return false }
                if frame.header.kind == .error { throw try FrameWriter.decodeError(frame.body) }
                return true
            }
            if isDone { return }
        }
    }

    /// Repeats a transfer until it has moved bytes. Returns their number.
    private static func transferred(
        _ stream: any ByteStream, by deadline: ContinuousClock.Instant, _ transfer: () -> Transfer
    ) throws(ServiceError) -> Int {
        while true {
            switch transfer() {
            case .bytes(let count): return count
            case .ended: throw ServiceError(.connectionLost, "the connection was lost before the key was accepted")
            case .wouldBlock(let interest):
                guard ContinuousClock.now < deadline else {
                    throw ServiceError(.deadlineExceeded, "the service did not answer in time")
                }
                let events = interest == .writing ? POLLOUT : POLLIN
                var waiting = pollfd(fd: stream.descriptor, events: Int16(events), revents: 0)
                // Whether something came or the time is over: the next turn finds out.
                _ = poll(&waiting, 1, 50)
            }
        }
    }
}
