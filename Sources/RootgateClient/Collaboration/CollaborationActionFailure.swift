import Synchronization

/// How an action can fail.
public enum CollaborationActionFailure: Error, Hashable, Sendable {
    /// The handler failed the action.
    case failed
    /// The handler did not end the action before its deadline.
    case deadlineExceeded
    /// There is no handler.
    case noHandler
}
