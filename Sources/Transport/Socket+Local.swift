import Core
import Foundation
package import Platform

extension Socket {
    /// The permissions of a local socket's file, unless others are asked for: only processes of the service's own user,
    /// and of root, may connect. Who may connect may change everything, so others have to be let in expressly.
    package static let standardMode: UInt32 = 0o600

    /// Listens on a local socket.
    static func listen(at path: String, mode: UInt32, backlog: CInt) throws(SystemFailure) -> Listener {
        let descriptor = socket(AF_UNIX, System.streamSocket, 0)
        guard descriptor >= 0 else { throw SystemFailure("socket") }
        do throws(SystemFailure) {
            guard stopBlocking(descriptor) else { throw SystemFailure("fcntl") }
            let file = try SocketFile(listening: descriptor, at: path, mode: mode_t(mode), backlog: backlog)
            return Listener(descriptor, Endpoint(path: path), file: file)
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Connects to a local socket. Waits up to `milliseconds` while its queue of connections is full. The returned
    /// descriptor is non-blocking.
    static func connect(toPath path: String, milliseconds: CInt) throws(SystemFailure) -> CInt {
        let descriptor = socket(AF_UNIX, System.streamSocket, 0)
        guard descriptor >= 0 else { throw SystemFailure("socket") }
        // A socket that does not block is refused at once when the queue is full. One that blocks waits so long.
        var limit = timeval(tv_sec: Int(milliseconds) / 1000, tv_usec: .init(milliseconds % 1000) * 1000)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        do throws(SystemFailure) {
            let outcome = try withLocalAddress(path) { Foundation.connect(descriptor, $0, $1) == 0 ? 0 : errno }
            guard outcome == 0 else {
                throw SystemFailure("connect", number: outcome == EAGAIN ? ETIMEDOUT : outcome)
            }
            guard prepare(descriptor, isLocal: true) else { throw SystemFailure("fcntl") }
            return descriptor
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Calls `body` with the address of a local socket.
    ///
    /// Throws what `checkLocalPath` throws.
    static func withLocalAddress<R>(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
    ) throws(SystemFailure) -> R {
        try checkLocalPath(path)
        return withLocalAddress(of: Array(path.utf8), length: MemoryLayout<sockaddr_un>.size, body)
    }

    /// Throws ENAMETOOLONG when a path has more than `Limits.localSocketPathBytesMax` bytes, and EINVAL when it is not
    /// absolute or contains a zero.
    package static func checkLocalPath(_ path: String) throws(SystemFailure) {
        let bytes = path.utf8
        guard bytes.count <= Limits.localSocketPathBytesMax else {
            let most = Limits.localSocketPathBytesMax
            throw SystemFailure(
                "unix", number: ENAMETOOLONG, reason: "the path has \(bytes.count) bytes, and \(most) are allowed")
        }
        guard bytes.first == UInt8(ascii: "/"), !bytes.contains(0) else {
            throw SystemFailure("unix", number: EINVAL, reason: "the path is not absolute, or contains a zero")
        }
    }

    /// Calls `body` with the address of a local socket that has a name of the system's own instead of a file (on Linux
    /// only: an abstract one).
    ///
    /// Throws ENAMETOOLONG when `name` has more than `Limits.localSocketPathBytesMax` bytes.
    static func withAbstractAddress<R>(
        _ name: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
    ) throws(SystemFailure) -> R {
        guard name.utf8.count <= Limits.localSocketPathBytesMax else {
            throw SystemFailure("unix", number: ENAMETOOLONG)
        }
        let bytes = [0] + Array(name.utf8)
        return withLocalAddress(of: bytes, length: Socket.localPathOffset + bytes.count, body)
    }

    /// Where the path begins in the address of a local socket.
    static let localPathOffset = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: sockaddr_un().sun_path)

    private static func withLocalAddress<R>(
        of bytes: [UInt8], length: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R
    ) -> R {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return withUnsafeBytes(of: address) { raw in
            raw.withMemoryRebound(to: sockaddr.self) { typed in
                guard let start = typed.baseAddress else { preconditionFailure("an address has no bytes") }
                return body(start, socklen_t(length))
            }
        }
    }
}
