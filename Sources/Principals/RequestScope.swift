package import Core

/// What a request is about, as far as a role may be limited.
package enum RequestScope: Hashable, Sendable {
    /// Nothing that belongs to one collaboration; or what the caller may not see is left out of the answer.
    case nothing
    case collaboration(CollaborationIdentifier)
    /// The part of a shelf that belongs to an app; `nil`: the whole shelf, or a conversation.
    case shelf(app: String?)
    /// More than one collaboration, or one that the request does not name.
    case everything
}
