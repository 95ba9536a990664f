import CLibSSL
import Foundation
import Platform
import Transport

/// A handshake that is under way. Owns the socket and the `SSL` object until a stream takes them over.
///
/// One thread uses it, which the caller asserts: `HandshakeLoop` by its confinement. `ClientTLS.secure` makes, uses and
/// drops it in one call.
final class Handshake {
    enum Progress {
        case waits(Interest)
        case done(TLSStream)
    }

    let descriptor: CInt
    private let context: TLSContext
    /// `nil` when a stream has taken it over.
    private var ssl: OpaquePointer?

    /// Throws when there is no memory; then the socket is closed.
    init(_ descriptor: CInt, _ context: TLSContext) throws(TLSFailure) {
        precondition(descriptor >= 0, "a handshake needs a socket")
        self.descriptor = descriptor
        self.context = context
        ERR_clear_error()
        ssl = context.makeConnection()
        guard let ssl, SocketMethod.attach(ssl, to: descriptor) else {
            SSL_free(ssl)
            self.ssl = nil
            close(descriptor)
            throw TLSContext.failure("libssl has no memory for a connection")
        }
        switch context.role {
        case .server: SSL_set_accept_state(ssl)
        case .client: SSL_set_connect_state(ssl)
        }
    }

    deinit {
        guard let ssl else { return }
        SSL_free(ssl)
        close(descriptor)
    }

    /// Demands that the server's certificate is for `name`, a host name or a numeric address, and sends a host name.
    /// With `resumes` it offers to resume a session.
    ///
    /// Throws when the name can't be one of a certificate.
    func expect(_ name: String, resumes: Bool) throws(TLSFailure) {
        guard let ssl else { return }
        ERR_clear_error()
        SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        let isSet =
            Handshake.isAddress(name)
            ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1
            : SSL_set1_host(ssl, name) == 1 && tls_set_sent_name(ssl, name) == 1
        guard isSet else { throw TLSContext.failure("\(name) can't be the name of a server") }
        guard resumes, let session = context.sessions?.take() else { return }
        // Without the session the handshake is a full one.
        if SSL_set_session(ssl, session.pointer) != 1 { ERR_clear_error() }
    }

    static func isAddress(_ name: String) -> Bool {
        var four = in_addr()
        var six = in6_addr()
        return inet_pton(AF_INET, name, &four) == 1 || inet_pton(AF_INET6, name, &six) == 1
    }

    /// Goes on as far as it can without waiting.
    ///
    /// Throws when the handshake has failed.
    func advance() throws(HandshakeFailure) -> Progress {
        guard let ssl else { throw .ended }
        ERR_clear_error()
        errno = 0
        let result = SSL_do_handshake(ssl)
        guard result == 1 else {
            switch SSL_get_error(ssl, result) {
            case SSL_ERROR_WANT_READ: return .waits(.reading)
            case SSL_ERROR_WANT_WRITE: return .waits(.writing)
            case SSL_ERROR_SSL:
                let error = ErrorQueue.drain()
                if error?.reason == SSL_R_UNEXPECTED_EOF_WHILE_READING { throw .ended }
                // The client-hello callback has refused, and nobody else does.
                if error?.reason == SSL_R_CALLBACK_FAILED || error?.reason == SSL_R_NO_APPLICATION_PROTOCOL {
                    throw .refused(
                        "it does not offer the application protocol \(context.applicationProtocol.rawValue) (ALPN)")
                }
                throw .refused(RefusalReason.text(ssl, error))
            default:
                ERR_clear_error()
                throw .ended
            }
        }
        try checkProtocol(ssl)
        let certificate = try CertificateReader.read(from: ssl)
        if context.demandsCertificate, certificate == nil { throw .refused("it has no certificate") }
        self.ssl = nil
        return .done(TLSStream(ssl, context, certificate))
    }

    private func checkProtocol(_ ssl: OpaquePointer) throws(HandshakeFailure) {
        var chosen: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &chosen, &count)
        let name = UnsafeBufferPointer(start: chosen, count: Int(count))
        let expected = context.applicationProtocol
        if chosen == nil, expected.isImplied { return }
        guard name.elementsEqual(expected.rawValue.utf8) else {
            throw .refused("it does not agree on the application protocol \(expected.rawValue) (ALPN)")
        }
    }
}
