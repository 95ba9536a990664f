import CLibSSL
import Core

/// The sessions that a client may resume. Each is used once, so that an observer can't tell that two connections are of
/// one client.
final class SessionStore: Sendable {
    /// An `SSL_SESSION`, freed with this object.
    ///
    /// Sendable without the compiler's proof: libssl counts references under a lock.
    final class Session: @unchecked Sendable {
        let pointer: OpaquePointer

        /// Takes over a reference.
        init(_ pointer: OpaquePointer) {
            self.pointer = pointer
        }

        deinit {
            SSL_SESSION_free(pointer)
        }
    }

    private let sessions = Lock<[Session]>([])

    /// Takes over a reference to a session.
    func add(_ session: OpaquePointer) {
        let session = Session(session)
        sessions.withLock { sessions in
            if sessions.count == Limits.sessionsKeptMax { sessions.removeFirst() }
            sessions.append(session)
            precondition(sessions.count <= Limits.sessionsKeptMax, "more sessions are kept than may be")
        }
    }

    /// The newest session, which is not kept any more.
    func take() -> Session? { sessions.withLock { $0.popLast() } }
}
