package import Core

/// What a peer's certificate says. The certificate was valid when the connection was made, an authority that this side
/// trusts has signed it, and the peer has its private key.
package struct PeerCertificate: Hashable, Sendable {
    /// Uniform resource identifiers in the order of the certificate; a SPIFFE identity is one.
    package let uris: [String]
    /// Host names in the order of the certificate.
    package let dnsNames: [String]
    /// The subject's distinguished name as RFC 2253 writes it.
    package let subject: String
    /// SHA-256 of the certificate's DER encoding.
    package let fingerprint: Digest
    /// When the certificate ends to be valid (notAfter), in seconds since 1970.
    package let endsAt: Int64

    package init(uris: [String], dnsNames: [String], subject: String, fingerprint: Digest, endsAt: Int64) {
        self.uris = uris
        self.dnsNames = dnsNames
        self.subject = subject
        self.fingerprint = fingerprint
        self.endsAt = endsAt
    }
}
