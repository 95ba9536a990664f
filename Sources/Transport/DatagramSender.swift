import Foundation
package import Platform

/// A local socket on which messages are sent to another process. It receives none.
package final class DatagramSender: Sendable {
    private let descriptor: CInt

    /// Connects to the socket of another process: an absolute path, or `@` and a name that has no file (on Linux only).
    /// A message waits up to `milliseconds` while the other process does not read.
    ///
    /// Throws EINVAL for an address of another kind, and what the system says.
    package init(to address: String, milliseconds: Int) throws(SystemFailure) {
        let descriptor = socket(AF_UNIX, System.datagramSocket, 0)
        guard descriptor >= 0 else { throw SystemFailure("socket") }
        do throws(SystemFailure) {
            guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) != -1 else { throw SystemFailure("fcntl") }
            System.silenceBrokenPipe(descriptor)
            var limit = timeval(tv_sec: milliseconds / 1000, tv_usec: .init(milliseconds % 1000) * 1000)
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            func connect(_ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> CInt {
                Foundation.connect(descriptor, address, length) == 0 ? 0 : errno
            }
            let outcome =
                address.hasPrefix("@")
                ? try Socket.withAbstractAddress(String(address.dropFirst()), connect)
                : try Socket.withLocalAddress(address, connect)
            guard outcome == 0 else { throw SystemFailure("connect", number: outcome) }
        } catch {
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Sends one message. May be called on any thread.
    ///
    /// Throws what the system says; EAGAIN when the time is over.
    package func send(_ message: String) throws(SystemFailure) {
        let bytes = Array(message.utf8)
        while true {
            if Foundation.send(descriptor, bytes, bytes.count, System.sendFlags) == bytes.count { return }
            guard errno == EINTR else { throw SystemFailure("send") }
        }
    }
}
