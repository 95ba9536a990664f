package import Core
import Foundation
import Platform
package import Transport

/// A blocking socket for tests that send what no client of ours would. It waits for bytes, and for room, for up to 30
/// seconds.
///
/// Sendable: one thread may send while another reads.
package final class RawPeer: Sendable {
    package let descriptor: CInt

    package convenience init(_ endpoint: Endpoint) throws(ServiceError) {
        self.init(descriptor: try Socket.connect(to: endpoint, milliseconds: 10_000))
    }

    /// Takes over a connected socket.
    package init(descriptor: CInt) {
        self.descriptor = descriptor
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
        close(descriptor)
    }

    /// Whether all bytes were taken.
    @discardableResult
    package func send(_ bytes: some Collection<UInt8>) -> Bool {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress?.advanced(by: sent), bytes.count - sent, System.sendFlags)
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// `count` bytes, or fewer when the connection ends before.
    package func receive(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = bytes.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress?.advanced(by: filled), count - filled, 0)
            }
            guard got > 0 else { break }
            filled += got
        }
        return Array(bytes[..<filled])
    }

    /// Waits for the end of the connection: whether it has come, in order or not, and no byte before it.
    package func hasEnded() -> Bool {
        var byte: UInt8 = 0
        let got = recv(descriptor, &byte, 1, 0)
        return got == 0 || (got < 0 && errno == ECONNRESET)
    }

    /// The same, but only an end in order counts.
    package func hasEndedInOrder() -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, 0) == 0
    }

    /// Whether no byte has come and the connection has not ended.
    package func isQuiet() -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, CInt(truncatingIfNeeded: Int(MSG_DONTWAIT))) < 0
            && (errno == EAGAIN || errno == EWOULDBLOCK)
    }
}
