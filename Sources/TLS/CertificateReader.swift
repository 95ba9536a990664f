import CLibSSL
import Core
import Foundation
import Transport

/// Reads what a peer's certificate says.
enum CertificateReader {
    /// The certificate that the peer of `ssl` has proved to own; `nil` when it has none.
    ///
    /// Throws a refusal when a name in it has a byte 0: programs that stop there would read another name.
    static func read(from ssl: OpaquePointer) throws(HandshakeFailure) -> PeerCertificate? {
        guard let certificate = SSL_get0_peer_certificate(ssl) else { return nil }
        // A resumed session was verified earlier.
        if X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0 { throw .refused("its certificate has expired") }
        let names = try names(of: certificate)
        guard let subject = subject(of: certificate), let fingerprint = fingerprint(of: certificate),
            let endsAt = end(of: certificate)
        else {
            throw .refused("its certificate can't be read")
        }
        return PeerCertificate(
            uris: names.uris, dnsNames: names.dnsNames, subject: subject, fingerprint: fingerprint,
            endsAt: endsAt)
    }

    private static func names(
        of certificate: OpaquePointer
    ) throws(HandshakeFailure) -> (uris: [String], dnsNames: [String]) {
        try checkSubject(of: certificate)
        guard let raw = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return ([], []) }
        let list = OpaquePointer(raw)
        defer { GENERAL_NAMES_free(list) }
        var uris: [String] = []
        var dnsNames: [String] = []
        for index in 0..<tls_name_count(list) {
            guard let name = tls_name(list, index) else { continue }
            switch name.pointee.type {
            case GEN_URI: uris.append(try text(of: name.pointee.d.uniformResourceIdentifier))
            case GEN_DNS: dnsNames.append(try text(of: name.pointee.d.dNSName))
            case GEN_EMAIL: _ = try text(of: name.pointee.d.rfc822Name)
            default: continue
            }
        }
        return (uris, dnsNames)
    }

    /// The text of a name, which is ASCII.
    private static func text(of string: UnsafeMutablePointer<ASN1_STRING>?) throws(HandshakeFailure) -> String {
        let bytes = UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string)))
        guard !bytes.contains(0) else { throw .refused("its certificate has a name with a byte 0") }
        guard bytes.allSatisfy({ $0 < 0x80 }) else { throw .refused("its certificate has a name that is not ASCII") }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Throws a refusal when a part of the subject has a byte 0.
    private static func checkSubject(of certificate: OpaquePointer) throws(HandshakeFailure) {
        let subject = X509_get_subject_name(certificate)
        for index in 0..<X509_NAME_entry_count(subject) {
            var bytes: UnsafeMutablePointer<UInt8>?
            let count = ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)))
            guard count >= 0, let bytes else { throw .refused("its certificate has a subject that can't be read") }
            defer { CRYPTO_free(bytes, #file, #line) }
            guard !UnsafeBufferPointer(start: bytes, count: Int(count)).contains(0) else {
                throw .refused("its certificate has a name with a byte 0")
            }
        }
    }

    /// The subject's distinguished name as RFC 2253 writes it.
    static func subject(of certificate: OpaquePointer) -> String? {
        text { X509_NAME_print_ex($0, X509_get_subject_name(certificate), 0, tls_rfc2253_flags()) }
    }

    private static func fingerprint(of certificate: OpaquePointer) -> Digest? {
        var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard X509_digest(certificate, EVP_sha256(), &bytes, &count) == 1 else { return nil }
        return Digest(Array(bytes[..<Int(count)]))
    }

    /// When the certificate ends to be valid, in seconds since 1970; `nil`: its time can't be read.
    static func end(of certificate: OpaquePointer) -> Int64? {
        var parts = tm()
        guard ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) == 1 else { return nil }
        return Int64(timegm(&parts))
    }

    /// What `write` writes to a buffer in memory; `nil` when it returns a negative number.
    static func text(_ write: (OpaquePointer) -> CInt) -> String? {
        guard let buffer = BIO_new(BIO_s_mem()) else { return nil }
        defer { BIO_free(buffer) }
        guard write(buffer) >= 0 else {
            ERR_clear_error()
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(buffer)))
        let count = BIO_read(buffer, &bytes, CInt(bytes.count))
        return String(decoding: bytes.prefix(max(0, Int(count))), as: UTF8.self)
    }
}
