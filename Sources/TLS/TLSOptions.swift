/// How a client encrypts its connections, whom it trusts, and who it is. The files are in PEM format.
public struct TLSOptions: Hashable, Sendable {
    /// The file of the authorities that the service's certificate must come from; `nil`: those that the system trusts.
    public var authoritiesPath: String?
    /// The client's own certificate, and behind it those of the authorities between it and a root. Needs a key.
    public var certificatePath: String?
    /// The private key of the client's certificate, without a password.
    public var keyPath: String?
    /// The name that the service's certificate must be for; `nil`: the host that the client connects to.
    public var serverName: String?

    /// Trusts the system's authorities, expects the name of the host, and has no certificate, unless it is told
    /// otherwise.
    public init(
        authoritiesPath: String? = nil, certificatePath: String? = nil, keyPath: String? = nil,
        serverName: String? = nil
    ) {
        self.authoritiesPath = authoritiesPath
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.serverName = serverName
    }

    var paths: [String] { [authoritiesPath, certificatePath, keyPath].compactMap { $0 } }
}
