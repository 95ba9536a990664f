import Synchronization

/// An event to be posted, with its collaboration.
public protocol HighlightNotice: Sendable {
    /// The content that the notice is about.
    var highlight: CollaborationHighlight { get }
    /// What happened to it.
    var event: HighlightEvent { get }
}

/// The content changed, or was commented on. Apple: `SWHighlightChangeEvent`.
public struct HighlightChangeEvent: HighlightNotice {
    /// The content that the notice is about.
    public let highlight: CollaborationHighlight
    /// What happened to it.
    public let event: HighlightEvent

    /// The content was changed or commented on.
    public init(highlight: CollaborationHighlight, trigger: HighlightEvent.Change) {
        self.highlight = highlight
        event = .change(trigger: trigger)
    }
}

/// A participant was added or removed. Apple: `SWHighlightMembershipEvent`.
public struct HighlightMembershipEvent: HighlightNotice {
    /// The content that the notice is about.
    public let highlight: CollaborationHighlight
    /// What happened to it.
    public let event: HighlightEvent

    /// A participant was added or removed. `person`: that participant, if known.
    public init(
        highlight: CollaborationHighlight, trigger: HighlightEvent.Membership, person: PersonIdentity? = nil
    ) {
        self.highlight = highlight
        event = .membership(trigger: trigger, person: person)
    }
}

/// A participant was mentioned. Apple: `SWHighlightMentionEvent`.
public struct HighlightMentionEvent: HighlightNotice {
    /// The content that the notice is about.
    public let highlight: CollaborationHighlight
    /// What happened to it.
    public let event: HighlightEvent

    /// A participant was mentioned. Only that person sees the notice.
    public init(highlight: CollaborationHighlight, mentionedPersonIdentity: PersonIdentity) {
        self.highlight = highlight
        event = .mention(person: mentionedPersonIdentity)
    }
}

/// The content was created, deleted, renamed or moved. Apple: `SWHighlightPersistenceEvent`.
public struct HighlightPersistenceEvent: HighlightNotice {
    /// The content that the notice is about.
    public let highlight: CollaborationHighlight
    /// What happened to it.
    public let event: HighlightEvent

    /// The content was created, deleted, renamed or moved.
    public init(highlight: CollaborationHighlight, trigger: HighlightEvent.Persistence) {
        self.highlight = highlight
        event = .persistence(trigger: trigger)
    }
}
