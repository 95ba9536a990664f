import Foundation
package import Platform

extension Socket {
    /// The listener of a socket that listened before this process started. The file of a local socket is not this
    /// process's: it is never removed.
    ///
    /// Throws unless the descriptor is a socket of TCP or a local one with a file, is of streams, and listens. Throws
    /// EPERM when the permissions of a local socket's file allow more than `mode`: whoever may write to it may connect.
    package static func listener(inheriting descriptor: CInt, mode: UInt32) throws(SystemFailure) -> Listener {
        guard try option(SO_TYPE, of: descriptor) == System.streamSocket else {
            throw SystemFailure("inherit", number: EPROTOTYPE, reason: "it is no stream socket")
        }
        guard try option(SO_ACCEPTCONN, of: descriptor) != 0 else {
            throw SystemFailure("inherit", number: EINVAL, reason: "it does not listen")
        }
        let endpoint = try ownEndpoint(of: descriptor)
        if let path = endpoint.path { try checkPermissions(of: path, mode: mode) }
        guard stopBlocking(descriptor) else { throw SystemFailure("fcntl") }
        return Listener(descriptor, endpoint)
    }

    private static func option(_ name: CInt, of descriptor: CInt) throws(SystemFailure) -> CInt {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        guard getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 else { throw SystemFailure("getsockopt") }
        return value
    }

    /// The address at which a socket listens.
    private static func ownEndpoint(of descriptor: CInt) throws(SystemFailure) -> Endpoint {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let found = withUnsafeMutableBytes(of: &storage) { bytes -> Endpoint? in
            let isTold = bytes.withMemoryRebound(to: sockaddr.self) {
                getsockname(descriptor, $0.baseAddress, &length) == 0
            }
            guard isTold, Int(length) <= bytes.count else { return nil }
            switch bytes.withMemoryRebound(to: sockaddr.self, { CInt($0[0].sa_family) }) {
            case AF_INET, AF_INET6:
                return bytes.withMemoryRebound(to: sockaddr.self) { addresses in
                    addresses.baseAddress.flatMap { endpoint(of: $0, length) }
                }
            case AF_UNIX:
                // A socket without a name has no path, and that of an abstract one begins with a zero.
                let path = bytes[..<Int(length)].dropFirst(localPathOffset).prefix { $0 != 0 }
                return path.first == UInt8(ascii: "/") ? Endpoint(path: String(decoding: path, as: UTF8.self)) : nil
            default: return nil
            }
        }
        guard let found else {
            throw SystemFailure(
                "inherit", number: EAFNOSUPPORT,
                reason: "it is neither a socket of TCP nor a local one with an absolute path")
        }
        return found
    }

    private static func checkPermissions(of path: String, mode: UInt32) throws(SystemFailure) {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw SystemFailure("lstat") }
        let permissions = UInt32(status.st_mode) & 0o777
        guard permissions & ~mode == 0 else {
            throw SystemFailure(
                "inherit", number: EPERM,
                reason: "the permissions of its file are \(String(permissions, radix: 8)), and --listen-mode allows "
                    + "\(String(mode, radix: 8)) at most (SocketMode= in a systemd unit)")
        }
    }
}
