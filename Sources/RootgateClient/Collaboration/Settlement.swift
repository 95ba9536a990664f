import Core

/// The state of an action. Only the first end of an action counts; later ones are ignored.
final class Settlement<Value: Sendable>: Sendable {
    private enum State {
        case unsettled([CheckedContinuation<Result<Value, CollaborationActionFailure>, Never>])
        case ended(Result<Value, CollaborationActionFailure>)
    }

    private let state = Lock(State.unsettled([]))

    var isEnded: Bool {
        state.withLock { if case .ended = $0 { true } else { false } }
    }

    /// Ends the action; false when it had already ended.
    @discardableResult
    func end(_ result: Result<Value, CollaborationActionFailure>) -> Bool {
        let waiters = state.withLock {
            state -> [CheckedContinuation<Result<Value, CollaborationActionFailure>, Never>]? in
            guard case .unsettled(let waiters) = state else { return nil }
            state = .ended(result)
            return waiters
        }
        for waiter in waiters ?? [] { waiter.resume(returning: result) }
        return waiters != nil
    }

    func result() async -> Result<Value, CollaborationActionFailure> {
        await withCheckedContinuation { waiter in
            let ended = state.withLock { state -> Result<Value, CollaborationActionFailure>? in
                switch state {
                case .ended(let result): return result
                case .unsettled(let waiters):
                    state = .unsettled(waiters + [waiter])
                    return nil
                }
            }
            if let ended { waiter.resume(returning: ended) }
        }
    }
}
