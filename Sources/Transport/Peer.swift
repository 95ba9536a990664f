import Foundation
package import Platform

/// Who is at the other end of a connection, as far as the system can tell.
package enum Peer: Hashable, Sendable {
    /// A numeric address and a port.
    case network(Endpoint)
    /// A process of this machine, over a local socket.
    case local(PeerCredentials)
}

extension Peer: CustomStringConvertible {
    /// `127.0.0.1:40000`, `[::1]:40000` or `unix:uid=1000,pid=42`.
    package var description: String {
        switch self {
        case .network(let endpoint): "\(endpoint)"
        case .local(let credentials): "unix:uid=\(credentials.user),pid=\(credentials.process)"
        }
    }
}

extension Peer {
    /// The network of the peer's address, for a log that names no single host: the first 24 bits of an address of
    /// IPv4, and the first 48 of one of IPv6. Loopback addresses and local sockets are given in full.
    package var network: String {
        guard case .network(let endpoint) = self, !endpoint.isLoopback else { return description }
        // Behind a percent sign is the name of an interface.
        var host = String(endpoint.host.prefix { $0 != "%" })
        if host.lowercased().hasPrefix("::ffff:"), host.contains(".") { host = String(host.dropFirst(7)) }
        let parts = host.split(separator: ".")
        if parts.count == 4 { return parts.prefix(3).joined(separator: ".") + ".0/24" }
        var address = in6_addr()
        guard inet_pton(AF_INET6, host, &address) == 1 else { return "an unknown address" }
        let words = withUnsafeBytes(of: address) { bytes in
            stride(from: 0, to: 6, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        }
        return words.map { String($0, radix: 16) }.joined(separator: ":") + "::/48"
    }
}
