import CLibSSL
import Core

/// How many records without data of the application a connection takes from its peer: updates of keys, session tickets,
/// alerts, refused renegotiations. libssl works off any number of them in one call, for which it computes much more
/// than the peer, and nothing else sees them.
///
/// Sendable without the compiler's proof: it is used under the lock of its stream only.
final class RecordAllowance: @unchecked Sendable {
    private var left = Limits.recordsWithoutDataMax
    /// Bytes of data for which no further record was allowed yet.
    private var bytes = 0
    /// Whether the peer has sent more of them.
    private(set) var isExceeded = false

    /// Lets the connections of a context be counted. To be called before there are any: libssl asks once, as it begins
    /// to read, whether anybody wants to know.
    static func prepare(_ context: OpaquePointer) { SSL_CTX_set_msg_callback(context, note) }

    /// From now on the records that `ssl` reads are counted, which must be freed before this object.
    func count(_ ssl: OpaquePointer) {
        tls_set_message_argument(ssl, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The peer has sent so much data of the application.
    func received(_ count: Int) {
        bytes += count
        left = min(Limits.recordsWithoutDataMax, left + bytes / Limits.bytesPerRecordWithoutData)
        bytes %= Limits.bytesPerRecordWithoutData
    }

    /// Called by libssl for each record and message; without a place before the stream is made. In TLS 1.3 the header
    /// of a record says nothing. The kind comes from within (RFC 8446, section 5.2).
    private static let note:
        @convention(c) (
            CInt, CInt, CInt, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?
        ) -> Void = { isSent, _, part, bytes, count, ssl, place in
            guard isSent == 0, part == SSL3_RT_HEADER || part == SSL3_RT_INNER_CONTENT_TYPE, count > 0, let bytes,
                let ssl, let place, CInt(bytes.load(as: UInt8.self)) != SSL3_RT_APPLICATION_DATA
            else { return }
            let allowance = Unmanaged<RecordAllowance>.fromOpaque(place).takeUnretainedValue()
            allowance.left -= 1
            guard allowance.left < 0 else { return }
            allowance.isExceeded = true
            // libssl reads nothing behind this record.
            SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN)
        }
}
