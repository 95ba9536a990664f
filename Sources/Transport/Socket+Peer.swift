import Foundation

extension Socket {
    /// The peer's numeric address and port, for a log; "an unknown address" when the connection has ended.
    package static func peerName(of descriptor: CInt) -> String {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        var port = [CChar](repeating: 0, count: Int(NI_MAXSERV))
        let isFound = withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { typed in
                guard let address = typed.baseAddress, getpeername(descriptor, address, &length) == 0 else {
                    return false
                }
                return getnameinfo(
                    address, length, &host, socklen_t(host.count), &port, socklen_t(port.count),
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0
            }
        }
        guard isFound else { return "an unknown address" }
        return Endpoint(host: text(host), port: UInt16(text(port)) ?? 0).description
    }

    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
