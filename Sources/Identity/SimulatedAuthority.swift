import COpenSSL
import Foundation

/// A certificate with its key, in PEM format.
package struct SimulatedCertificate: Sendable {
    package let certificate: String
    package let key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }

    /// Writes both into a directory and returns their paths.
    package func write(to directory: String, as name: String) throws -> (certificate: String, key: String) {
        let paths = ("\(directory)/\(name).pem", "\(directory)/\(name).key")
        try Data(certificate.utf8).write(to: URL(fileURLWithPath: paths.0), options: .atomic)
        try Data(key.utf8).write(to: URL(fileURLWithPath: paths.1), options: .atomic)
        return paths
    }
}

/// Makes certificates for tests and benchmarks, with P-256 keys. Owns an `X509` and an `EVP_PKEY`.
package final class SimulatedAuthority {
    /// The certificates between one that this authority signs and the topmost authority, in PEM format.
    package let chain: String
    private let certificate: OpaquePointer
    private let key: OpaquePointer

    /// An authority whose certificate `parent` has signed; without a parent, it has signed its own. `adjust` changes
    /// what its certificate says.
    package init(
        _ name: String = "simulated authority", signedBy parent: SimulatedAuthority? = nil,
        _ adjust: (inout CertificatePlan) -> Void = { _ in }
    ) {
        key = SimulatedAuthority.makeKey()
        let plan = CertificatePlan {
            $0.commonName = name
            $0.names = []
            $0.usages = []
            $0.isAuthority = true
            adjust(&$0)
        }
        let made = SimulatedAuthority.make(plan, key, issuer: parent?.certificate, issuerKey: parent?.key ?? key)
        certificate = made
        chain = parent.map { SimulatedAuthority.pem("CERTIFICATE", SimulatedAuthority.encoded(made)) + $0.chain } ?? ""
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    /// The authority's own certificate, in PEM format.
    package var pem: String { SimulatedAuthority.pem("CERTIFICATE", SimulatedAuthority.encoded(certificate)) }

    /// Writes the authority's own certificate into a directory and returns its path.
    package func write(to directory: String, as name: String = "authority") throws -> String {
        let path = "\(directory)/\(name).pem"
        try Data(pem.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// A certificate that this authority has signed.
    package func issue(_ plan: CertificatePlan = CertificatePlan()) -> SimulatedCertificate {
        SimulatedAuthority.issue(plan, issuer: certificate, issuerKey: key)
    }

    /// A certificate that its own key has signed.
    package static func selfSigned(_ plan: CertificatePlan = CertificatePlan()) -> SimulatedCertificate {
        issue(plan, issuer: nil, issuerKey: nil)
    }

    private static func issue(
        _ plan: CertificatePlan, issuer: OpaquePointer?, issuerKey: OpaquePointer?
    ) -> SimulatedCertificate {
        let key = makeKey()
        defer { EVP_PKEY_free(key) }
        let certificate = make(plan, key, issuer: issuer, issuerKey: issuerKey ?? key)
        defer { X509_free(certificate) }
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = i2d_PrivateKey(key, &bytes)
        return SimulatedCertificate(
            certificate: pem("CERTIFICATE", encoded(certificate)),
            key: pem("EC PRIVATE KEY", taken(bytes, count)))
    }

    // MARK: Making

    private static func makeKey() -> OpaquePointer {
        guard let curve = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1), let key = EVP_PKEY_new() else {
            preconditionFailure("libcrypto has no memory")
        }
        defer { EC_KEY_free(curve) }
        precondition(EC_KEY_generate_key(curve) == 1 && EVP_PKEY_set1_EC_KEY(key, curve) == 1, "no key was made")
        return key
    }

    private static func make(
        _ plan: CertificatePlan, _ key: OpaquePointer, issuer: OpaquePointer?, issuerKey: OpaquePointer
    ) -> OpaquePointer {
        guard let made = X509_new(), let subject = X509_NAME_new() else { preconditionFailure("no memory") }
        defer { X509_NAME_free(subject) }
        let name = Array(plan.commonName.utf8)
        // 0x1000 says that the text is UTF-8.
        var isMade = X509_NAME_add_entry_by_txt(subject, "CN", 0x1000, name, CInt(name.count), -1, 0) == 1
        isMade = isMade && X509_set_version(made, 2) == 1
        isMade = isMade && ASN1_INTEGER_set(X509_get_serialNumber(made), Int.random(in: 1...0xffff_ffff)) == 1
        isMade = isMade && X509_gmtime_adj(X509_getm_notBefore(made), plan.validFrom) != nil
        isMade = isMade && X509_gmtime_adj(X509_getm_notAfter(made), plan.validTo) != nil
        isMade = isMade && X509_set_subject_name(made, subject) == 1
        isMade = isMade && X509_set_issuer_name(made, issuer.map { X509_get_subject_name($0) } ?? subject) == 1
        isMade = isMade && X509_set_pubkey(made, key) == 1
        for (number, content) in extensions(of: plan) { isMade = isMade && add(content, as: number, to: made) }
        isMade = isMade && X509_sign(made, issuerKey, EVP_sha256()) > 0
        precondition(isMade, "a certificate was not made")
        return made
    }

    private static func extensions(of plan: CertificatePlan) -> [(CInt, [UInt8])] {
        var extensions: [(CInt, [UInt8])] = []
        if plan.isAuthority {
            let bound: [UInt8] = plan.authoritiesMax.map { [0x02, 0x01, $0] } ?? []
            extensions.append((NID_basic_constraints, element(0x30, [0x01, 0x01, 0xff] + bound)))
        }
        if let domain = plan.permittedDomain {
            let subtree = element(0x30, element(0x82, Array(domain.utf8)))
            extensions.append((NID_name_constraints, element(0x30, element(0xa0, subtree))))
        }
        if !plan.names.isEmpty {
            extensions.append((NID_subject_alt_name, element(0x30, plan.names.flatMap(\.encoded))))
        }
        if !plan.usages.isEmpty {
            // id-kp-serverAuth and id-kp-clientAuth are 1.3.6.1.5.5.7.3.1 and .2.
            let list = plan.usages.flatMap { usage in
                element(0x06, [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, usage == .server ? 0x01 : 0x02])
            }
            extensions.append((NID_ext_key_usage, element(0x30, list)))
        }
        return extensions
    }

    private static func add(_ content: [UInt8], as number: CInt, to certificate: OpaquePointer) -> Bool {
        guard let octets = ASN1_OCTET_STRING_new() else { return false }
        defer { ASN1_OCTET_STRING_free(octets) }
        guard ASN1_OCTET_STRING_set(octets, content, CInt(content.count)) == 1,
            let made = X509_EXTENSION_create_by_NID(nil, number, number == NID_basic_constraints ? 1 : 0, octets)
        else { return false }
        defer { X509_EXTENSION_free(made) }
        return X509_add_ext(certificate, made, -1) == 1
    }

    /// A tag, a length and a content in DER.
    fileprivate static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        precondition(content.count < 256, "the length takes more than one byte")
        return [tag] + (content.count < 128 ? [UInt8(content.count)] : [0x81, UInt8(content.count)]) + content
    }

    private static func encoded(_ certificate: OpaquePointer) -> [UInt8] {
        var bytes: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(certificate, &bytes)
        return taken(bytes, count)
    }

    /// Copies bytes that libcrypto has allocated, and frees them.
    private static func taken(_ bytes: UnsafeMutablePointer<UInt8>?, _ count: CInt) -> [UInt8] {
        precondition(count > 0, "libcrypto has encoded nothing")
        defer { CRYPTO_free(bytes, #file, #line) }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }

    private static func pem(_ label: String, _ bytes: [UInt8]) -> String {
        let text = Data(bytes).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN \(label)-----\n\(text)\n-----END \(label)-----\n"
    }
}

extension CertificateName {
    /// The name as one element of the extension "subject alternative name" (RFC 5280, section 4.2.1.6).
    fileprivate var encoded: [UInt8] {
        switch self {
        case .dns(let text): SimulatedAuthority.element(0x82, Array(text.utf8))
        case .uri(let text): SimulatedAuthority.element(0x86, Array(text.utf8))
        case .address(let bytes): SimulatedAuthority.element(0x87, bytes)
        }
    }
}
