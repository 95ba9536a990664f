import Core
import CLibSSL
import Foundation
import Platform
package import Transport

/// A connection that TLS encrypts. Owns the socket and an `SSL` object.
///
/// libssl lets one thread at a time use an `SSL` object, so one lock guards it: sending waits while another thread
/// decrypts what it has received, which is at most the room of one call.
package final class TLSStream: ByteStream {
    /// Sendable without the compiler's proof: the pointer is used under the lock only.
    private struct State: @unchecked Sendable {
        /// `nil` after `close`.
        var ssl: OpaquePointer?
        /// Whether an error has ended the connection: then libssl must not be called any more.
        var isBroken = false
        var failure: String?
        /// Whether another call of `receive` may find something for which the socket is not readable.
        var holdsBytes: Bool
    }

    /// Bytes of the longest record (RFC 8446, section 5.1).
    private static let recordBytesMax = 16_384

    package let descriptor: CInt
    /// Kept while the `SSL` object lives, which refers to what the context owns.
    private let context: TLSContext
    private let state: Lock<State>
    /// What the peer may send besides data. libssl uses it for as long as there is the `SSL` object.
    private let allowance = RecordAllowance()
    package let peerCertificate: PeerCertificate?
    /// Whether the handshake has resumed an earlier session.
    package let isResumed: Bool
    /// The agreed version: "TLSv1.3".
    package let version: String

    /// Takes over an `SSL` object whose handshake is done, with its socket.
    init(_ ssl: OpaquePointer, _ context: TLSContext, _ certificate: PeerCertificate?) {
        descriptor = SSL_get_fd(ssl)
        precondition(descriptor >= 0, "a stream needs a socket")
        self.context = context
        peerCertificate = certificate
        isResumed = SSL_session_reused(ssl) == 1
        version = String(cString: SSL_get_version(ssl))
        state = Lock(State(ssl: ssl, holdsBytes: SSL_has_pending(ssl) == 1))
        allowance.count(ssl)
    }

    deinit {
        state.withLock { TLSStream.free(&$0) }
    }

    package var holdsBytes: Bool { state.withLock { $0.holdsBytes } }

    package var failure: String? { state.withLock { $0.failure } }

    package func receive(into room: UnsafeMutableRawBufferPointer) -> Transfer {
        state.withLock { state in
            state.holdsBytes = false
            guard let ssl = state.ssl, !state.isBroken else { return .ended }
            var filled = 0
            while filled < room.count {
                ERR_clear_error()
                var count = 0
                let result = SSL_read_ex(
                    ssl, room.baseAddress?.advanced(by: filled), room.count - filled, &count)
                guard result == 1 else {
                    var transfer = TLSStream.outcome(of: result, &state)
                    if allowance.isExceeded {
                        (state.isBroken, transfer) = (true, .ended)
                        state.failure = "it sends too many TLS records without data"
                    }
                    guard filled > 0 else { return transfer }
                    // The next call finds the end again.
                    state.holdsBytes = transfer == .ended
                    return .bytes(filled)
                }
                precondition(count > 0 && count <= room.count - filled, "libssl has read beyond the room")
                filled += count
                allowance.received(count)
                // The poller tells of more bytes. Asking the socket for them now would cost a call each time.
                state.holdsBytes = SSL_has_pending(ssl) == 1
                if !state.holdsBytes { break }
            }
            return .bytes(filled)
        }
    }

    package func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        state.withLock { state in
            guard let ssl = state.ssl, !state.isBroken else { return .ended }
            // A record is one call of send(2). The peer would wake up for each of them, and find a part of a frame.
            let isLong = bytes.count > TLSStream.recordBytesMax
            if isLong { System.holdBack(descriptor, true) }
            defer { if isLong { System.holdBack(descriptor, false) } }
            var sent = 0
            while sent < bytes.count {
                ERR_clear_error()
                var count = 0
                let result = SSL_write_ex(ssl, bytes.baseAddress?.advanced(by: sent), bytes.count - sent, &count)
                guard result == 1 else {
                    let transfer = TLSStream.outcome(of: result, &state)
                    return sent > 0 ? .bytes(sent) : transfer
                }
                precondition(count > 0 && count <= bytes.count - sent, "libssl has sent more than there is")
                sent += count
            }
            return .bytes(sent)
        }
    }

    /// What a call means that has transferred nothing. Notes a failure.
    private static func outcome(of result: CInt, _ state: inout State) -> Transfer {
        guard let ssl = state.ssl else { return .ended }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .wouldBlock(.reading)
        case SSL_ERROR_WANT_WRITE: return .wouldBlock(.writing)
        case SSL_ERROR_ZERO_RETURN: return .ended
        case SSL_ERROR_SSL:
            state.isBroken = true
            // Other errors say nothing about why the peer wants no connection. A peer that closes without saying so
            // does no harm either: every frame says how long it is.
            if let error = ErrorQueue.drain(), error.isAlert { state.failure = RefusalReason.text(ssl, error) }
            return .ended
        default:
            state.isBroken = true
            ERR_clear_error()
            return .ended
        }
    }

    package func endSending() {
        state.withLock { state in
            guard let ssl = state.ssl else { return }
            if !state.isBroken {
                ERR_clear_error()
                // The alert is lost when the socket takes no bytes. The end of the socket's bytes then tells the same.
                if SSL_shutdown(ssl) < 0 { ERR_clear_error() }
            }
            shutdown(descriptor, CInt(SHUT_WR))
        }
    }

    package func close() {
        state.withLock { state in
            TLSStream.free(&state)
        }
    }

    /// Frees the `SSL` object and closes the socket, once.
    private static func free(_ state: inout State) {
        guard let ssl = state.ssl else { return }
        state.ssl = nil
        state.holdsBytes = false
        let descriptor = SSL_get_fd(ssl)
        // Without this libssl would forget the session, and the next connection could not resume it.
        if !state.isBroken { SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        SSL_free(ssl)
        Foundation.close(descriptor)
    }
}
