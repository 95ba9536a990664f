/// Why certificates can't be used, in one line that names the file.
package struct TLSFailure: Error, CustomStringConvertible {
    package let description: String
    /// Whether the disk has failed to read a file: the same file may be read later.
    let mayPass: Bool

    init(_ description: String, mayPass: Bool = false) {
        (self.description, self.mayPass) = (description, mayPass)
    }
}

/// How a handshake failed.
package enum HandshakeFailure: Error, Equatable {
    /// The peer closed the connection in the middle of the handshake.
    case ended
    /// The handshake took too long.
    case timedOut
    /// This side or the peer refused the other one. The text continues a sentence about the peer: "its certificate has
    /// expired".
    case refused(String)
}

extension HandshakeFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .ended: "it closed the connection during the handshake"
        case .timedOut: "it took too long for the handshake"
        case .refused(let reason): reason
        }
    }
}
