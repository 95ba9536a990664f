import Identity
import TLS

/// A certificate for services on the loopback interface, and what a client of them needs.
struct BenchCertificates {
    let settings: ServerTLSSettings
    let options: TLSOptions
    /// Removed with the last copy of this value.
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
        let authority = SimulatedAuthority()
        let paths = try authority.issue().write(to: directory.path, as: "service")
        settings = ServerTLSSettings(certificatePath: paths.certificate, keyPath: paths.key)
        options = TLSOptions(authoritiesPath: try authority.write(to: directory.path))
    }
}
