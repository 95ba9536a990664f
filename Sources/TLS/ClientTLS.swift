import Core
import Foundation
import Platform
import Transport

/// A client's side of TLS: certificates that are read again when their files have changed, sessions, handshakes.
final class ClientTLS: Sendable {
    private struct State {
        var context: TLSContext
        var stamps: FileStamps
    }

    private let options: TLSOptions
    private let applicationProtocol: ApplicationProtocol
    private let resumesSessions: Bool
    private let state: Lock<State>

    /// Reads the files.
    ///
    /// Throws when a file can't be used.
    init(
        _ options: TLSOptions, for applicationProtocol: ApplicationProtocol, resumesSessions: Bool
    ) throws(TLSFailure) {
        self.options = options
        self.applicationProtocol = applicationProtocol
        self.resumesSessions = resumesSessions
        let stamps = FileStamps(of: options.paths)
        state = Lock(State(context: try ClientTLS.makeContext(options, applicationProtocol), stamps: stamps))
    }

    private static func makeContext(
        _ options: TLSOptions, _ applicationProtocol: ApplicationProtocol
    ) throws(TLSFailure) -> TLSContext {
        let context = try TLSContext(.client, for: applicationProtocol, demandsCertificate: true)
        if let path = options.authoritiesPath {
            try context.trust(authorities: path)
        } else {
            try context.trustSystem()
        }
        switch (options.certificatePath, options.keyPath) {
        case (let certificate?, let key?): try context.use(certificate: certificate, key: key)
        case (nil, nil): break
        case (_?, nil): throw TLSFailure("a client's certificate needs a key")
        case (nil, _?): throw TLSFailure("a client's key needs a certificate")
        }
        return context
    }

    /// The context for the next connection. When the files have changed since they were read, they are read again; if
    /// they can't be used, what was read before stays in use.
    private func currentContext() -> TLSContext {
        let stamps = FileStamps(of: options.paths)
        let (context, isCurrent) = state.withLock { ($0.context, $0.stamps == stamps) }
        guard !isCurrent, let fresh = try? ClientTLS.makeContext(options, applicationProtocol) else { return context }
        state.withLock { $0 = State(context: fresh, stamps: stamps) }
        return fresh
    }

    /// Performs the handshake on a connected socket, which it takes over, with the service on `host`. Blocks for up to
    /// `milliseconds`.
    ///
    /// Throws `tlsRefused` when one side refused the other, else `connectionRefused`.
    func secure(_ descriptor: CInt, to endpoint: Endpoint, milliseconds: Int) throws(ServiceError) -> TLSStream {
        do throws(HandshakeFailure) {
            return try handshake(descriptor, name: options.serverName ?? endpoint.host, milliseconds: milliseconds)
        } catch {
            switch error {
            case .refused(let reason):
                throw ServiceError(.tlsRefused, "can't trust or use the service at \(endpoint): \(reason)")
            case .ended, .timedOut:
                throw ServiceError(.connectionRefused, "can't connect to \(endpoint): \(error)")
            }
        }
    }

    private func handshake(
        _ descriptor: CInt, name: String, milliseconds: Int
    ) throws(HandshakeFailure) -> TLSStream {
        let handshake: Handshake
        do throws(TLSFailure) {
            handshake = try Handshake(descriptor, currentContext())
            try handshake.expect(name, resumes: resumesSessions)
        } catch {
            throw .refused(error.description)
        }
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        while true {
            switch try handshake.advance() {
            case .done(let stream): return stream
            case .waits(let interest):
                let left = (deadline - .now) / .milliseconds(1)
                guard left > 0 else { throw .timedOut }
                let events = interest == .reading ? POLLIN : POLLOUT
                var waiting = pollfd(fd: descriptor, events: Int16(events), revents: 0)
                poll(&waiting, 1, CInt(clamping: Int(left.rounded(.up))))
            }
        }
    }
}
