import Synchronization

/// How an action can fail.
public enum CollaborationActionFailure: Error, Hashable, Sendable {
    /// The handler failed the action, or the people to share with could not be told.
    case failed
    /// The handler did not end the action before its deadline.
    case deadlineExceeded
    /// There is no handler.
    case noHandler
    /// The handler prepared one collaboration and fulfilled the action with another one.
    case otherCollaboration
    /// The action failed, and the service did not take back what the action had changed, or it is not known whether it
    /// has.
    case notUndone
}
