import Foundation
package import Platform

extension Socket {
    /// Who the peer is, for a log; "an unknown address" when the connection has ended. `isFull`: whether the log may
    /// have the address and not only its network.
    package static func peerName(of descriptor: CInt, isFull: Bool) -> String {
        guard let peer = peer(of: descriptor) else { return "an unknown address" }
        return isFull ? peer.description : peer.network
    }

    /// The numeric address and the port of the peer of a connected socket, or the process at the other end of a local
    /// one; `nil` when the system can't tell.
    static func peer(of descriptor: CInt) -> Peer? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { address -> Peer? in
                guard getpeername(descriptor, address.baseAddress, &length) == 0, let start = address.baseAddress else {
                    return nil
                }
                if CInt(start.pointee.sa_family) == AF_UNIX {
                    return System.peerCredentials(of: descriptor).map { .local($0) }
                }
                return endpoint(of: start, length).map { .network($0) }
            }
        }
    }

    /// The numeric address and the port; `nil` for an address of another family.
    static func endpoint(of address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Endpoint? {
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        var port = [CChar](repeating: 0, count: Int(NI_MAXSERV))
        guard
            getnameinfo(
                address, length, &host, socklen_t(host.count), &port, socklen_t(port.count),
                NI_NUMERICHOST | NI_NUMERICSERV) == 0
        else { return nil }
        func text(_ characters: [CChar]) -> String {
            String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        return UInt16(text(port)).map { Endpoint(host: text(host), port: $0) }
    }
}

extension Connection {
    /// The peer's address, or the process at the other end of a local socket; `nil` when the system can't tell. Only
    /// for the loop's thread, while the connection is open.
    package var peer: Peer? {
        assertOnThread()
        return stream.peer
    }

    /// The process at the other end of a local socket; `nil` for every other connection. Only for the loop's thread,
    /// while the connection is open.
    package var peerCredentials: PeerCredentials? {
        guard case .local(let credentials) = peer else { return nil }
        return credentials
    }
}
