package import Core
package import Transport

/// Makes connections to one service, plain or with TLS.
package final class Dialer: Sendable {
    package let endpoint: Endpoint
    private let tls: ClientTLS?

    /// `tls`: `nil` when connections are plain. Without `resumesSessions` every handshake is a full one.
    ///
    /// Throws `tlsRefused` when a file of `tls` can't be used, or when `endpoint` is a local socket, which has no TLS.
    package init(
        _ endpoint: Endpoint, tls: TLSOptions?, for applicationProtocol: ApplicationProtocol = .rootgate,
        resumesSessions: Bool = true
    ) throws(ServiceError) {
        self.endpoint = endpoint
        guard tls == nil || endpoint.path == nil else { throw ServiceError(.tlsRefused, "a local socket has no TLS") }
        do throws(TLSFailure) {
            self.tls = try tls.map { options throws(TLSFailure) in
                try ClientTLS(options, for: applicationProtocol, resumesSessions: resumesSessions)
            }
        } catch {
            throw ServiceError(.tlsRefused, error.description)
        }
    }

    /// Connects. Blocks for up to `milliseconds`, the handshake included. How long the system looks for a host's
    /// addresses is its own setting, and comes on top.
    ///
    /// Throws `connectionRefused`, or `tlsRefused` when one side refused the other in the handshake.
    package func connect(milliseconds: CInt) throws(ServiceError) -> any ByteStream {
        let begin = MonotonicClock.system.milliseconds
        let descriptor = try Socket.connect(to: endpoint, milliseconds: milliseconds)
        guard let tls else { return PlainStream(descriptor) }
        let elapsed = Int(MonotonicClock.system.milliseconds - begin)
        return try tls.secure(descriptor, to: endpoint, milliseconds: max(1, Int(milliseconds) - elapsed))
    }
}
