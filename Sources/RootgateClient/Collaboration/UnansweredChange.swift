import Collaboration
import Core

/// Why a request that changes something has no receipt.
struct UnansweredChange: Error {
    let cause: ServiceError
    /// Whether the change may have been made all the same, or may still be made.
    let isOpen: Bool
}

extension ServiceError {
    /// Whether the change that was asked for may have been made all the same. The same request with the same identifier
    /// tells.
    var leavesChangeOpen: Bool {
        switch (origin, code) {
        // The client says so before it sends anything.
        case (.local, .limitExceeded), (.local, .malformedRequest): false
        case (.local, _): true
        // The change is made, and the audit has no room for its line.
        case (.service, .storageFull): true
        case (.service, .storageFailed), (.service, .storageDamaged), (.service, .internalFault): true
        case (.service, _): false
        }
    }

    /// This error, or else that the connection was lost: if an earlier sending of the change may have arrived, and this
    /// error says that the last one was not decided. `lost`: what the earlier sending got.
    func told(after lost: ServiceError?) -> ServiceError {
        guard let lost, origin == .service, !leavesChangeOpen, !tellsOfNoChange(after: nil) else { return self }
        return lost
    }

    /// Whether this answer to a repetition tells that the request has no effect and will have none. `first`: what the
    /// request got before; `nil`: nothing yet.
    ///
    /// A service looks for the first request before it decides about its repetition, and before it looks for room.
    func tellsOfNoChange(after first: ServiceError?) -> Bool {
        guard origin == .service else { return false }
        if code == .storageFull { return first?.origin == .service && first?.code == .storageFull }
        // A conflict is the answer when the effect of the first request is gone.
        return code.isAboutData || code == .mutationConflict
    }
}

extension RootgateClient {
    /// Sends a request that changes something, and once more with the same identifier when the error leaves open
    /// whether the change was made.
    func sendAgainIfOpen<Request: CollaborationRequest>(
        _ request: Request
    ) async throws(UnansweredChange) -> Request.Answer {
        let identifier = MutationIdentifier.random()
        let first: ServiceError
        do throws(ServiceError) {
            return try await send(request, identifier: identifier)
        } catch {
            first = error
        }
        guard first.leavesChangeOpen else { throw UnansweredChange(cause: first, isOpen: false) }
        do throws(ServiceError) {
            return try await send(request, identifier: identifier)
        } catch {
            guard error.tellsOfNoChange(after: first) else { throw UnansweredChange(cause: first, isOpen: true) }
            throw UnansweredChange(cause: error, isOpen: false)
        }
    }
}
