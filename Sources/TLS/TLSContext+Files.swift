import CLibSSL
import Foundation
import Platform

/// What a context reads from files.
///
/// The files are read here and not by libssl. For libssl a read that fails is the end of the file, so that it would go
/// on with a part of a chain, or with some of the authorities.
extension TLSContext {
    /// Uses a certificate with its chain, and the certificate's key.
    ///
    /// Throws when a file can't be used, or when the key belongs to another certificate.
    func use(certificate: String, key: String) throws(TLSFailure) {
        let chain = try contents(of: certificate, "certificate")
        let keyBytes = try contents(of: key, "key")
        let another = "the key \(key) belongs to another certificate than \(certificate)"
        try withPointer { context throws(TLSFailure) in
            ERR_clear_error()
            guard TLSContext.use(chain: chain, context) else {
                throw TLSContext.failure("the certificate \(certificate) can't be used")
            }
            guard TLSContext.use(key: keyBytes, context) else {
                if ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH {
                    ERR_clear_error()
                    throw TLSFailure(another)
                }
                throw TLSContext.failure("the key \(key) can't be used")
            }
            guard SSL_CTX_check_private_key(context) == 1 else { throw TLSContext.failure(another) }
        }
    }

    /// Trusts the authorities in a file. A server names them to its clients.
    ///
    /// Throws when the file can't be read or has no certificate.
    func trust(authorities path: String) throws(TLSFailure) {
        let contents = try contents(of: path, "file of authorities")
        try withPointer { context throws(TLSFailure) in
            ERR_clear_error()
            var names: [OpaquePointer] = []
            let isWhole = TLSContext.eachCertificate(in: contents) { certificate in
                guard X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1 else { return false }
                // The store keeps the certificate, and the certificate its name.
                guard role == .server, let name = X509_get_subject_name(certificate),
                    !names.contains(where: { X509_NAME_cmp($0, name) == 0 })
                else { return true }
                names.append(name)
                return SSL_CTX_add_client_CA(context, certificate) == 1
            }
            guard isWhole else { throw TLSContext.failure("the authorities in \(path) can't be used") }
        }
    }

    /// Uses the first of the certificates, and sends the others behind it. Returns false when there is none or one of
    /// them can't be used; the thread's queue has the error.
    private static func use(chain: Data, _ context: OpaquePointer) -> Bool {
        var isFirst = true
        return eachCertificate(in: chain) { certificate in
            if isFirst {
                isFirst = false
                // A key of another certificate, which was there before, is no failure but leaves an error.
                return SSL_CTX_use_certificate(context, certificate) == 1 && ERR_peek_error() == 0
                    && tls_clear_chain(context) == 1
            }
            guard X509_up_ref(certificate) == 1 else { return false }
            guard tls_add_to_chain(context, certificate) == 1 else {
                X509_free(certificate)
                return false
            }
            return true
        }
    }

    private static func use(key: Data, _ context: OpaquePointer) -> Bool {
        withReader(of: key) { reader in
            guard let found = PEM_read_bio_PrivateKey(reader, nil, SSL_CTX_get_default_passwd_cb(context), nil) else {
                return false
            }
            defer { EVP_PKEY_free(found) }
            return SSL_CTX_use_PrivateKey(context, found) == 1
        }
    }

    /// Calls `body` with each certificate in a text in PEM, lent for the call, until `body` returns false. Returns
    /// false then, and when there is no certificate or one can't be read; the thread's queue has the error.
    private static func eachCertificate(in pem: Data, _ body: (OpaquePointer) -> Bool) -> Bool {
        withReader(of: pem) { reader in
            var count = 0
            while let certificate = PEM_read_bio_X509_AUX(reader, nil, nil, nil) {
                defer { X509_free(certificate) }
                guard body(certificate) else { return false }
                count += 1
            }
            let error = ERR_peek_last_error()
            let isEnd = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE
            guard isEnd, count > 0 else { return false }
            ERR_clear_error()
            return true
        }
    }

    /// Calls `body` with what reads these bytes. Returns false when there is no memory.
    private static func withReader(of bytes: Data, _ body: (OpaquePointer) -> Bool) -> Bool {
        // No bytes have no address.
        (bytes + [UInt8(ascii: "\n")]).withUnsafeBytes { bytes in
            guard let reader = BIO_new_mem_buf(bytes.baseAddress, CInt(clamping: bytes.count)) else { return false }
            defer { BIO_free(reader) }
            return body(reader)
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

    /// When this side's certificate ends to be valid, in seconds since 1970; `nil`: there is none, or its time can't be
    /// read.
    var certificateEnd: Int64? {
        let found = try? withPointer { context throws(TLSFailure) -> Int64? in
            SSL_CTX_get0_certificate(context).flatMap { CertificateReader.end(of: $0) }
        }
        return found ?? nil
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

    /// A server reads its files again while it runs, and must not wait for whoever writes to a pipe.
    private func contents(of path: String, _ what: String) throws(TLSFailure) -> Data {
        do throws(SystemFailure) {
            return try role == .server ? System.contents(ofFile: path) : System.contents(of: path)
        } catch {
            throw TLSFailure("the \(what) \(path) can't be read: \(error.reason)", mayPass: error.number == EIO)
        }
    }
}
