import Foundation

extension Socket {
    /// The peer's numeric address and port, for a log; "an unknown address" when the connection has ended.
    package static func peerName(of descriptor: CInt) -> String {
        peer(of: descriptor)?.description ?? "an unknown address"
    }

    /// The numeric address and the port of the peer of a connected socket, as `127.0.0.1:40000` or `[::1]:40000`;
    /// `nil` when the system can't tell.
    static func peer(of descriptor: CInt) -> Endpoint? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { address -> Endpoint? in
                guard getpeername(descriptor, address.baseAddress, &length) == 0, let start = address.baseAddress else {
                    return nil
                }
                var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
                var port = [CChar](repeating: 0, count: Int(NI_MAXSERV))
                guard
                    getnameinfo(
                        start, length, &host, socklen_t(host.count), &port, socklen_t(port.count),
                        NI_NUMERICHOST | NI_NUMERICSERV) == 0
                else { return nil }
                func text(_ characters: [CChar]) -> String {
                    String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                }
                return UInt16(text(port)).map { Endpoint(host: text(host), port: $0) }
            }
        }
    }
}

extension Connection {
    /// The peer's address; `nil` when the system can't tell. Only for the loop's thread, while the connection is open.
    package var peer: Endpoint? {
        assertOnThread()
        return Socket.peer(of: descriptor)
    }
}
