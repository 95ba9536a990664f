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
