import Foundation

/// A TCP socket or a local one, without encryption.
package final class PlainStream: ByteStream {
    package let descriptor: CInt

    /// Takes over `descriptor`, which must be non-blocking.
    package init(_ descriptor: CInt) {
        self.descriptor = descriptor
    }

    package var holdsBytes: Bool { false }
    package var peerCertificate: PeerCertificate? { nil }
    package var failure: String? { nil }

    package func receive(into room: UnsafeMutableRawBufferPointer) -> Transfer {
        Socket.receive(descriptor, into: room)
    }

    package func send(_ bytes: UnsafeRawBufferPointer) -> Transfer { Socket.send(descriptor, bytes) }

    package func endSending() { shutdown(descriptor, CInt(SHUT_WR)) }

    package func close() { Foundation.close(descriptor) }
}
