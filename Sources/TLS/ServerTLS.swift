package import Core

/// The service's side of TLS: certificates that are read again when their files change, and handshakes.
package final class ServerTLS: Sendable {
    private struct State {
        var context: TLSContext
        /// The files as they were when they were last read, with or without success.
        var stamps: FileStamps
        /// Why they could not be read the last time. They are read again at the next look, and the same line is not
        /// logged again.
        var unread: String?
    }

    private let settings: ServerTLSSettings
    private let applicationProtocol: ApplicationProtocol
    private let log: Log
    private let state: Lock<State>

    /// Reads the files. Calls `log` with a line whenever they were read again, and when a certificate is out of time.
    ///
    /// Throws when a file can't be used.
    package init(
        _ settings: ServerTLSSettings, for applicationProtocol: ApplicationProtocol = .rootgate, log: Log = .none
    ) throws(TLSFailure) {
        self.settings = settings
        self.applicationProtocol = applicationProtocol
        self.log = log
        // The stamps come first: a file that changes while it is read has other stamps at the next look.
        let stamps = FileStamps(of: settings.paths)
        let context = try ServerTLS.makeContext(settings, applicationProtocol)
        state = Lock(State(context: context, stamps: stamps, unread: nil))
        warn(of: context)
    }

    private static func makeContext(
        _ settings: ServerTLSSettings, _ applicationProtocol: ApplicationProtocol
    ) throws(TLSFailure) -> TLSContext {
        let context = try TLSContext(
            .server, for: applicationProtocol, allowsTLS12: settings.allowsTLS12,
            demandsCertificate: settings.clientAuthoritiesPath != nil)
        try context.use(certificate: settings.certificatePath, key: settings.keyPath)
        if let path = settings.clientAuthoritiesPath { try context.trust(authorities: path) }
        return context
    }

    private func warn(of context: TLSContext) {
        guard let fault = context.certificateTimeFault else { return }
        log(.warning, "the certificate \(settings.certificatePath) \(fault): clients will refuse it")
    }

    /// Reads the files again. New connections get the new certificates. When a file can't be used, the certificates
    /// that were in use stay in use, and the log says so.
    package func reload() {
        let stamps = FileStamps(of: settings.paths)
        do throws(TLSFailure) {
            // New keys of tickets come with the new context: sessions of the old one are not resumed.
            let context = try ServerTLS.makeContext(settings, applicationProtocol)
            state.withLock { $0 = State(context: context, stamps: stamps, unread: nil) }
            log(.info, "the certificates were read again: \(context.certificateSummary)")
            warn(of: context)
        } catch {
            let isKnown = state.withLock { state in
                defer { state.unread = error.mayPass ? error.description : nil }
                state.stamps = stamps
                return error.mayPass && state.unread == error.description
            }
            if !isKnown { log(.warning, "\(error); the certificates that were in use stay in use") }
        }
    }

    /// Reads the files again if one of them has changed since they were read, or if the disk has failed to read them.
    package func reloadIfChanged() {
        let stamps = FileStamps(of: settings.paths)
        if state.withLock({ $0.stamps != stamps || $0.unread != nil }) { reload() }
    }

    /// When the certificate in use ends to be valid, in seconds since 1970; `nil`: its time can't be read.
    package var certificateEnd: Int64? { state.withLock { $0.context }.certificateEnd }

    /// Begins the handshake on a socket that was accepted. The handshake takes over the socket.
    ///
    /// Throws a failure when there is no memory; then the socket is closed.
    func beginHandshake(on descriptor: CInt) throws(TLSFailure) -> Handshake {
        let context = state.withLock { $0.context }
        return try Handshake(descriptor, context)
    }
}
