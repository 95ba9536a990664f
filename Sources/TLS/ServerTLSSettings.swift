/// The files and choices of a service's TLS. The files are in PEM format.
package struct ServerTLSSettings: Hashable, Sendable {
    /// The service's certificate, and behind it those of the authorities between it and a root.
    package var certificatePath: String
    /// The certificate's private key, without a password.
    package var keyPath: String
    /// The authorities whose certificates clients must have; `nil`: clients need none.
    package var clientAuthoritiesPath: String?
    /// Whether TLS 1.2 is allowed beside 1.3.
    package var allowsTLS12: Bool

    package init(
        certificatePath: String, keyPath: String, clientAuthoritiesPath: String? = nil, allowsTLS12: Bool = false
    ) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.clientAuthoritiesPath = clientAuthoritiesPath
        self.allowsTLS12 = allowsTLS12
    }

    var paths: [String] { [certificatePath, keyPath] + [clientAuthoritiesPath].compactMap { $0 } }
}
