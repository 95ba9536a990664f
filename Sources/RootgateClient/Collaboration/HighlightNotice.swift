public import Foundation

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

    /// The content was changed or commented on. `link`: to the place in the content.
    public init(highlight: CollaborationHighlight, trigger: HighlightEvent.Change, link: URL? = nil) {
        self.highlight = highlight
        event = .change(trigger: trigger, link: link)
    }
}

/// A participant was added or removed. Apple: `SWHighlightMembershipEvent`.
public struct HighlightMembershipEvent: HighlightNotice {
    /// The content that the notice is about.
    public let highlight: CollaborationHighlight
    /// What happened to it.
    public let event: HighlightEvent

    /// A participant was added or removed. `person`: that participant, if known; the author himself when he joins or
    /// leaves. `link`: to the place in the content.
    public init(
        highlight: CollaborationHighlight, trigger: HighlightEvent.Membership, person: PersonIdentity? = nil,
        link: URL? = nil
    ) {
        self.highlight = highlight
        event = .membership(trigger: trigger, person: person, link: link)
    }
}

/// A participant was mentioned. Apple: `SWHighlightMentionEvent`.
public struct HighlightMentionEvent: HighlightNotice {
    /// The content that the notice is about.
    public let highlight: CollaborationHighlight
    /// What happened to it.
    public let event: HighlightEvent

    /// A participant was mentioned. Only that person sees the notice. `link`: to the place in the content.
    public init(highlight: CollaborationHighlight, mentionedPersonIdentity: PersonIdentity, link: URL? = nil) {
        self.highlight = highlight
        event = .mention(person: mentionedPersonIdentity, link: link)
    }
}

/// The content was created, deleted, renamed or moved. Apple: `SWHighlightPersistenceEvent`.
public struct HighlightPersistenceEvent: HighlightNotice {
    /// The content that the notice is about.
    public let highlight: CollaborationHighlight
    /// What happened to it.
    public let event: HighlightEvent

    /// The content was created, deleted, renamed or moved. `link`: to the place in the content.
    public init(highlight: CollaborationHighlight, trigger: HighlightEvent.Persistence, link: URL? = nil) {
        self.highlight = highlight
        event = .persistence(trigger: trigger, link: link)
    }
}
