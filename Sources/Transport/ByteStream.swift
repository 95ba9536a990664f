package import Platform

/// The bytes of one connection in both directions: a plain socket, or a socket with encryption on it.
///
/// `receive` is called by one thread at a time, and so is `send`; the two may be called at the same time. `close` is
/// called once, and neither of them after it.
package protocol ByteStream: AnyObject, Sendable {
    /// The socket, for a poller. It is non-blocking and belongs to the stream.
    var descriptor: CInt { get }
    /// Whether another call of `receive` may find bytes or the end although the descriptor is not readable.
    var holdsBytes: Bool { get }
    /// The certificate that the peer has proved to own; `nil` when there is none.
    var peerCertificate: PeerCertificate? { get }
    /// Who is at the other end; `nil` when the system can't tell.
    var peer: Peer? { get }
    /// Why the stream has ended, in one line for people; `nil` when nothing more is known than that it has.
    var failure: String? { get }

    /// Receives into `room`, which is not empty.
    func receive(into room: UnsafeMutableRawBufferPointer) -> Transfer
    /// Sends as many of `bytes` as it can without waiting. After `wouldBlock` the next call must begin with the same
    /// bytes.
    func send(_ bytes: UnsafeRawBufferPointer) -> Transfer
    /// Tells the peer that no more bytes are sent. May be called after a failure.
    func endSending()
    /// Closes the socket.
    func close()
}

extension ByteStream {
    package var peer: Peer? { Socket.peer(of: descriptor) }
}

/// The result of receiving or sending without waiting.
package enum Transfer: Sendable, Equatable {
    case bytes(Int)
    /// Nothing was transferred. Encryption may have to write before it can read, and the reverse, so the stream says
    /// what it waits for.
    case wouldBlock(Interest)
    /// The connection has ended.
    case ended
}
