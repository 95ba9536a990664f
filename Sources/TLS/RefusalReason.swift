import CLibSSL

/// Texts about refused handshakes. Each continues a sentence whose subject is the peer.
enum RefusalReason {
    /// The reason why the handshake of `ssl` failed: the peer's certificate, an alert of the peer, or its bytes.
    static func text(_ ssl: OpaquePointer, _ error: ErrorQueue.Entry?) -> String {
        guard let error, error.isOfLibSSL else {
            // A wrong signature of a certificate leaves libcrypto's error before libssl's.
            let verification = SSL_get_verify_result(ssl)
            if verification != X509_V_OK { return text(ofVerification: verification, ssl) }
            return "its handshake failed: \(error?.text ?? "no reason is known")"
        }
        if error.reason == SSL_R_CERTIFICATE_VERIFY_FAILED {
            return text(ofVerification: SSL_get_verify_result(ssl), ssl)
        }
        if error.isAlert { return text(ofAlert: error.reason - ErrorQueue.Entry.alertBase) }
        return text(ofReason: error.reason) ?? "its handshake failed: \(error.text)"
    }

    private static func text(ofVerification result: Int, _ ssl: OpaquePointer) -> String {
        switch CInt(truncatingIfNeeded: result) {
        case X509_V_ERR_CERT_HAS_EXPIRED: "its certificate has expired"
        case X509_V_ERR_CERT_NOT_YET_VALID: "its certificate is not valid yet"
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed and not a trusted authority"
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            "its certificate is from an unknown authority"
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            "its certificate is for another name\(expectedName(ssl).map { " than \($0)" } ?? "")"
        case X509_V_ERR_INVALID_PURPOSE: "its certificate is not for this usage (extended key usage)"
        case X509_V_ERR_CERT_SIGNATURE_FAILURE: "its certificate's signature is wrong"
        case X509_V_ERR_INVALID_CA: "its certificate is signed by one that is no authority"
        case X509_V_ERR_CERT_CHAIN_TOO_LONG: "its chain of certificates is too long"
        case X509_V_ERR_PATH_LENGTH_EXCEEDED: "its chain has more authorities than one of them allows (path length)"
        case X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION:
            "its certificate has a name that its authority may not sign (name constraints)"
        default: "its certificate is refused: " + String(cString: X509_verify_cert_error_string(result))
        }
    }

    /// The host name or address that this side expects in the peer's certificate.
    private static func expectedName(_ ssl: OpaquePointer) -> String? {
        let parameters = SSL_get0_param(ssl)
        if let host = X509_VERIFY_PARAM_get0_host(parameters, 0) { return String(cString: host) }
        guard let address = X509_VERIFY_PARAM_get1_ip_asc(parameters) else { return nil }
        defer { CRYPTO_free(address, nil, 0) }
        return String(cString: address)
    }

    private static func text(ofAlert alert: CInt) -> String {
        switch alert {
        case 40: "it refused the handshake: nothing in common to encrypt with"
        case 42, 46: "it refused this side's certificate"
        case 43: "it refused this side's certificate: not for this usage (unsupported certificate)"
        case 44: "it refused this side's certificate: revoked"
        case 45: "it refused this side's certificate: expired"
        case 48: "it refused this side's certificate: unknown authority"
        case 49: "it refused access"
        case 70: "it refused the protocol version"
        case 86: "it refused the handshake: a fallback to an older version"
        case 112: "it does not know this server name"
        case 116: "it demands a certificate of this side"
        case 120: "it refused the application protocol (ALPN)"
        default: "it refused the handshake: " + String(cString: SSL_alert_desc_string_long(alert))
        }
    }

    private static func text(ofReason reason: CInt) -> String? {
        switch reason {
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: "it has no certificate"
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_VERSION_TOO_LOW, SSL_R_VERSION_TOO_HIGH,
            SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_UNKNOWN_PROTOCOL:
            "its TLS version is not allowed"
        case SSL_R_INAPPROPRIATE_FALLBACK: "it fell back to an older TLS version (downgrade)"
        case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST, SSL_R_WRONG_VERSION_NUMBER, SSL_R_BAD_RECORD_TYPE,
            SSL_R_UNEXPECTED_MESSAGE, SSL_R_RECORD_LENGTH_MISMATCH, SSL_R_PACKET_LENGTH_TOO_LONG:
            "it does not speak TLS"
        case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SUITABLE_KEY_SHARE, SSL_R_NO_SHARED_GROUPS,
            SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
            "it has no cipher, group or signature in common with this side"
        case SSL_R_EXCESSIVE_MESSAGE_SIZE, SSL_R_CERT_LENGTH_MISMATCH: "its chain of certificates is too large"
        default: nil
        }
    }
}
