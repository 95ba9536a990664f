import Core

/// A name that a client's certificate has, by which a principal is known. It is compared whole and byte by byte: there
/// are no patterns, and a common name never stands for a host.
///
/// As text: `spiffe://trust-domain/path` (SPIFFE-ID, section 2), `dns:` with a host name, `subject:` with a
/// distinguished name as RFC 2253 writes it. All are ASCII.
public struct CertificateName: Hashable, Sendable {
    enum Kind: Hashable, Sendable { case spiffe, dns, subject }

    let kind: Kind
    /// The bytes that the certificate has to have.
    let utf8: [UInt8]

    /// `nil` unless `text` is such a name.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Limits.certificateNameBytesMax, bytes.allSatisfy({ (0x20...0x7e).contains($0) }) else {
            return nil
        }
        if bytes.starts(with: CertificateName.spiffe) {
            guard CertificateName.isIdentity(bytes.dropFirst(CertificateName.spiffe.count)) else { return nil }
            (kind, utf8) = (.spiffe, bytes)
        } else if bytes.starts(with: CertificateName.dns) {
            let host = bytes.dropFirst(CertificateName.dns.count)
            guard CertificateName.isHost(host) else { return nil }
            (kind, utf8) = (.dns, Array(host))
        } else if bytes.starts(with: CertificateName.subject), bytes.contains(UInt8(ascii: "=")) {
            (kind, utf8) = (.subject, Array(bytes.dropFirst(CertificateName.subject.count)))
        } else {
            return nil
        }
    }

    init(_ kind: Kind, _ utf8: [UInt8]) {
        self.kind = kind
        self.utf8 = utf8
    }

    /// All names that a certificate has. A certificate with several URIs has no SPIFFE identity (X509-SVID, section 2).
    package static func all(uris: [String], dnsNames: [String], subject: String) -> [CertificateName] {
        var names = dnsNames.map { CertificateName(.dns, Array($0.utf8)) }
        if uris.count == 1 { names.append(CertificateName(.spiffe, Array(uris[0].utf8))) }
        names.append(CertificateName(.subject, Array(subject.utf8)))
        return names
    }

    private static let spiffe = Array("spiffe://".utf8)
    private static let dns = Array("dns:".utf8)
    private static let subject = Array("subject:".utf8)

    /// Whether this is a trust domain with a path: segments of letters, digits, dots, hyphens and underscores, none of
    /// them empty, `.` or `..`.
    private static func isIdentity(_ bytes: ArraySlice<UInt8>) -> Bool {
        let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard let domain = parts.first, parts.count > 1, domain.count <= 255 else { return false }
        return isWord(domain, hasCapitals: false)
            && parts.dropFirst().allSatisfy { part in
                isWord(part, hasCapitals: true) && !part.allSatisfy { $0 == UInt8(ascii: ".") }
            }
    }

    private static func isHost(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count <= 253
            && bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy {
                isWord($0, hasCapitals: true)
            }
    }

    private static func isWord(_ bytes: ArraySlice<UInt8>, hasCapitals: Bool) -> Bool {
        !bytes.isEmpty
            && bytes.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                    true
                case UInt8(ascii: "A")...UInt8(ascii: "Z"): hasCapitals
                default: false
                }
            }
    }
}

extension CertificateName: CustomStringConvertible {
    public var description: String {
        let text = String(decoding: utf8, as: UTF8.self)
        return switch kind {
        case .spiffe: text
        case .dns: "dns:" + text
        case .subject: "subject:" + text
        }
    }
}

extension CertificateName: Codable {
    /// Reads a string.
    public init(from decoder: any Decoder) throws {
        self = try decoder.value(orElse: "not “spiffe://…”, “dns:…” or “subject:…”, whole and without patterns") {
            CertificateName($0)
        }
    }

    /// Writes a string.
    public func encode(to encoder: any Encoder) throws {
        try encoder.write(description)
    }
}
