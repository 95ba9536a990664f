import CLibSSL
import Foundation

/// What a context reads from files.
extension TLSContext {
    /// Uses a certificate with its chain, and the certificate's key.
    ///
    /// Throws when a file can't be used, or when the key belongs to another certificate.
    func use(certificate: String, key: String) throws(TLSFailure) {
        try TLSContext.checkReadable(certificate, "certificate")
        try TLSContext.checkReadable(key, "key")
        try withPointer { context throws(TLSFailure) in
            ERR_clear_error()
            guard SSL_CTX_use_certificate_chain_file(context, certificate) == 1 else {
                throw TLSContext.failure("the certificate \(certificate) can't be used")
            }
            guard SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 else {
                if ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH {
                    ERR_clear_error()
                    throw TLSFailure("the key \(key) belongs to another certificate than \(certificate)")
                }
                throw TLSContext.failure("the key \(key) can't be used")
            }
            guard SSL_CTX_check_private_key(context) == 1 else {
                throw TLSContext.failure("the key \(key) belongs to another certificate than \(certificate)")
            }
        }
    }

    /// Trusts the authorities in a file. A server names them to its clients.
    ///
    /// Throws when the file can't be read or has no certificate.
    func trust(authorities path: String) throws(TLSFailure) {
        try TLSContext.checkReadable(path, "file of authorities")
        try withPointer { context throws(TLSFailure) in
            ERR_clear_error()
            guard SSL_CTX_load_verify_file(context, path) == 1 else {
                throw TLSContext.failure("the authorities in \(path) can't be used")
            }
            guard role == .server else { return }
            guard let names = SSL_load_client_CA_file(path) else {
                throw TLSContext.failure("the authorities in \(path) can't be used")
            }
            // The context owns the names from here on.
            SSL_CTX_set_client_CA_list(context, names)
        }
    }

    /// Trusts the authorities that the system trusts.
    func trustSystem() throws(TLSFailure) {
        try withPointer { context throws(TLSFailure) in
            ERR_clear_error()
            guard SSL_CTX_set_default_verify_paths(context) == 1 else {
                throw TLSContext.failure("the system's authorities can't be read")
            }
        }
    }

    /// The subject of this side's certificate and the time in which it is valid, for a log.
    var certificateSummary: String {
        let found = try? withPointer { context throws(TLSFailure) -> String in
            guard let certificate = SSL_CTX_get0_certificate(context) else { return "no certificate" }
            let subject = CertificateReader.subject(of: certificate)
            let end = CertificateReader.text { ASN1_TIME_print($0, X509_get0_notAfter(certificate)) }
            return "\(subject ?? "a subject that can't be read"), valid until \(end ?? "an unknown time")"
        }
        return found ?? "no certificate"
    }

    /// What is wrong with the time of this side's certificate; `nil` when it is valid now.
    var certificateTimeFault: String? {
        let found = try? withPointer { context throws(TLSFailure) -> String? in
            guard let certificate = SSL_CTX_get0_certificate(context) else { return nil }
            if X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0 { return "has expired" }
            if X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0 { return "is not valid yet" }
            return nil
        }
        return found ?? nil
    }

    private static func checkReadable(_ path: String, _ what: String) throws(TLSFailure) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw TLSFailure("the \(what) \(path) can't be read: \(String(cString: strerror(errno)))")
        }
        close(descriptor)
    }
}
