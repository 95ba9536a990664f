import Core
import Foundation
import Platform

/// A socket that a test opens, as a supervisor does. Closed with this object.
final class TestSocket {
    let descriptor: CInt
    /// 0 for a local socket.
    let port: UInt16

    /// A local socket with a file of that mode; without one when `path` begins with `@`.
    init(path: String, mode: mode_t, isStream: Bool = true, listens: Bool = true) throws {
        let descriptor = socket(AF_UNIX, isStream ? System.streamSocket : System.datagramSocket, 0)
        (self.descriptor, port) = (descriptor, 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(path.utf8)
        if path.hasPrefix("@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length =
            path.hasPrefix("@") ? MemoryLayout<sa_family_t>.size + bytes.count : MemoryLayout<sockaddr_un>.size
        try TestSocket.bind(descriptor, to: address, length)
        guard path.hasPrefix("@") || chmod(path, mode) == 0 else { throw SystemFailure("chmod") }
        if isStream, listens { guard listen(descriptor, 16) == 0 else { throw SystemFailure("listen") } }
    }

    /// A socket that listens on a free port of a numeric address.
    init(host: String) throws {
        let isV6 = host.contains(":")
        let descriptor = socket(isV6 ? AF_INET6 : AF_INET, System.streamSocket, 0)
        self.descriptor = descriptor
        if isV6 {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            inet_pton(AF_INET6, host, &address.sin6_addr)
            try TestSocket.bind(descriptor, to: address, MemoryLayout<sockaddr_in6>.size)
        } else {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            inet_pton(AF_INET, host, &address.sin_addr)
            try TestSocket.bind(descriptor, to: address, MemoryLayout<sockaddr_in>.size)
        }
        guard listen(descriptor, 16) == 0 else { throw SystemFailure("listen") }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        // The port stands at byte 2 of both kinds of addresses.
        port = withUnsafeMutableBytes(of: &storage) { bytes in
            _ = bytes.withMemoryRebound(to: sockaddr.self) { getsockname(descriptor, $0.baseAddress, &length) }
            return UInt16(bytes[2]) << 8 | UInt16(bytes[3])
        }
    }

    private static func bind<Address>(_ descriptor: CInt, to address: Address, _ length: Int) throws {
        let isBound = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Foundation.bind(descriptor, $0, socklen_t(length)) == 0
            }
        }
        guard isBound else { throw SystemFailure("bind") }
    }

    deinit {
        close(descriptor)
    }
}
