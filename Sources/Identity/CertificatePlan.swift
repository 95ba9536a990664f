/// A name that a certificate is for.
package enum CertificateName: Sendable {
    case dns(String)
    case uri(String)
    /// Four or sixteen bytes.
    case address([UInt8])

    package static let loopback: [CertificateName] = [.dns("localhost"), .address([127, 0, 0, 1])]
}

/// What a certificate says.
package struct CertificatePlan: Sendable {
    /// What a certificate may be used for (extended key usage).
    package enum Usage: Sendable {
        case server
        case client
    }

    package var commonName = "a test"
    package var names: [CertificateName] = CertificateName.loopback
    /// Seconds from now.
    package var validFrom = -3600
    package var validTo = 3600
    package var usages: [Usage] = [.server, .client]
    package var isAuthority = false
    /// How many authorities may stand between this one and a certificate; `nil`: any number. For authorities only.
    package var authoritiesMax: UInt8?
    /// The domain in which this authority may sign names; `nil`: everywhere.
    package var permittedDomain: String?

    package init(_ adjust: (inout CertificatePlan) -> Void = { _ in }) {
        adjust(&self)
    }
}
