import CLibSSL
import Core
import Synchronization

/// What several connections share: certificates, trusted authorities, allowed versions and ciphers. Owns an `SSL_CTX`.
///
/// Sendable without the compiler's proof: it is set up before it is shared, and libssl counts references and locks
/// what connections change in it.
final class TLSContext: @unchecked Sendable {
    /// Which side of a handshake this process is.
    enum Role {
        case server
        case client
    }

    let role: Role
    let applicationProtocol: ApplicationProtocol
    /// Whether the peer has to prove that it owns a certificate.
    let demandsCertificate: Bool
    /// Sessions that can be resumed, the newest last. Only a client keeps them.
    let sessions: SessionStore?
    private let context: OpaquePointer

    /// Mozilla's "modern" profile for TLS 1.3, and the part of its "intermediate" profile for TLS 1.2 that has forward
    /// secrecy on elliptic curves.
    private static let suitesOf13 = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    private static let suitesOf12 =
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
        + "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
    private static let groups = "X25519:P-256:P-384"
    private static let securityLevel: CInt = 2

    /// `demandsCertificate`: whether the peer must have a certificate of a trusted authority.
    init(
        _ role: Role, for applicationProtocol: ApplicationProtocol = .rootgate, allowsTLS12: Bool = false,
        demandsCertificate: Bool
    ) throws(TLSFailure) {
        ERR_clear_error()
        guard let context = SSL_CTX_new(role == .server ? TLS_server_method() : TLS_client_method()) else {
            throw TLSContext.failure("libssl has no memory for a context")
        }
        self.context = context
        self.role = role
        self.applicationProtocol = applicationProtocol
        self.demandsCertificate = demandsCertificate
        sessions = role == .client ? SessionStore() : nil
        SSL_CTX_set_security_level(context, TLSContext.securityLevel)
        tls_set_modes(context)
        RecordAllowance.prepare(context)
        tls_set_options(context, role == .server ? 1 : 0)
        tls_set_certificates_max(context, Limits.certificateListBytesMax)
        let isSet =
            tls_set_minimum_version(context, allowsTLS12 ? TLS1_2_VERSION : TLS1_3_VERSION) == 1
            && SSL_CTX_set_ciphersuites(context, TLSContext.suitesOf13) == 1
            && SSL_CTX_set_cipher_list(context, TLSContext.suitesOf12) == 1
            && tls_set_groups(context, TLSContext.groups) == 1
        guard isSet else { throw TLSContext.failure("libssl lacks a cipher or a version") }
        SSL_CTX_set_verify_depth(context, CInt(Limits.certificateChainMax))
        // A prompt for the password of a key would stop the process.
        SSL_CTX_set_default_passwd_cb(context) { _, _, _, _ in -1 }
        if demandsCertificate {
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        }
        try setUpProtocol()
        try setUpSessions()
    }

    deinit {
        SSL_CTX_free(context)
    }

    /// The error of this thread's queue as a failure, behind what failed.
    static func failure(_ what: String) -> TLSFailure {
        TLSFailure(ErrorQueue.drain().map { "\(what): \($0.text)" } ?? what)
    }

    /// Calls `body` with the `SSL_CTX`, which it must not keep.
    func withPointer<R>(_ body: (OpaquePointer) throws(TLSFailure) -> R) throws(TLSFailure) -> R { try body(context) }

    /// A new connection's `SSL` object, which the caller has to free; `nil` when there is no memory.
    func makeConnection() -> OpaquePointer? { SSL_new(context) }

    // MARK: The application protocol

    private func setUpProtocol() throws(TLSFailure) {
        switch role {
        case .client:
            let list = applicationProtocol.listed
            // This function returns 0 on success.
            guard SSL_CTX_set_alpn_protos(context, list, UInt32(list.count)) == 0
            else { throw TLSContext.failure("libssl does not take the application protocol") }
        case .server:
            if !applicationProtocol.isImplied { refuseSilence() }
            // A function of C has no context, so each protocol has its own.
            switch applicationProtocol {
            case .rootgate:
                SSL_CTX_set_alpn_select_cb(
                    context,
                    { _, chosen, chosenCount, offered, count, _ in
                        TLSContext.choose(.rootgate, chosen, chosenCount, offered: offered, count: count)
                    }, nil)
            case .http:
                SSL_CTX_set_alpn_select_cb(
                    context,
                    { _, chosen, chosenCount, offered, count, _ in
                        TLSContext.choose(.http, chosen, chosenCount, offered: offered, count: count)
                    }, nil)
            }
        }
    }

    /// Refuses a client that offers no protocol at all before anything is computed for it.
    private func refuseSilence() {
        SSL_CTX_set_client_hello_cb(
            context,
            { ssl, alert, _ in
                var offered: UnsafePointer<UInt8>?
                var count = 0
                let isThere = SSL_client_hello_get0_ext(
                    ssl, UInt32(TLSEXT_TYPE_application_layer_protocol_negotiation), &offered, &count)
                if isThere == 1 { return SSL_CLIENT_HELLO_SUCCESS }
                alert?.pointee = tls_fatal_alert_of_no_protocol()
                return SSL_CLIENT_HELLO_ERROR
            }, nil)
    }

    /// Points at the protocol in the list that a client offers.
    private static func choose(
        _ applicationProtocol: ApplicationProtocol, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
        _ chosenCount: UnsafeMutablePointer<UInt8>?, offered: UnsafePointer<UInt8>?, count: UInt32
    ) -> CInt {
        guard let chosen, let chosenCount, let offered else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        let list = UnsafeBufferPointer(start: offered, count: Int(count))
        guard let place = applicationProtocol.place(in: list) else { return SSL_TLSEXT_ERR_ALERT_FATAL }
        chosen.pointee = offered + place + 1
        chosenCount.pointee = offered[place]
        return SSL_TLSEXT_ERR_OK
    }

    // MARK: Resumption

    private func setUpSessions() throws(TLSFailure) {
        SSL_CTX_set_timeout(context, Limits.sessionSecondsMax)
        switch role {
        case .server:
            // The session is in the ticket, so the service keeps nothing. The keys of the tickets are the context's.
            tls_set_session_cache_mode(context, Int(SSL_SESS_CACHE_OFF))
            let name = Array(applicationProtocol.rawValue.utf8)
            guard SSL_CTX_set_session_id_context(context, name, UInt32(name.count)) == 1,
                SSL_CTX_set_num_tickets(context, 1) == 1,
                // Early data could be sent again by whoever has recorded it. libssl's default is the same.
                SSL_CTX_set_max_early_data(context, 0) == 1
            else { throw TLSContext.failure("libssl does not take the settings of sessions") }
        case .client:
            guard let sessions,
                SSL_CTX_set_ex_data(context, 0, Unmanaged.passUnretained(sessions).toOpaque()) == 1
            else { throw TLSContext.failure("libssl has no memory for sessions") }
            tls_set_session_cache_mode(
                context, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL | SSL_SESS_CACHE_NO_AUTO_CLEAR))
            // Connections keep the context, and the context keeps the store.
            SSL_CTX_sess_set_new_cb(context) { ssl, session in
                guard let session, let data = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), 0) else { return 0 }
                Unmanaged<SessionStore>.fromOpaque(data).takeUnretainedValue().add(session)
                return 1
            }
        }
    }
}
