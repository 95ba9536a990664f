public import Foundation

/// Something that happened to shared content, to be told to its participants. Apple: `SWHighlightEvent`.
public struct HighlightEvent: Hashable, Sendable, Codable {
    /// Apple: `SWHighlightChangeEvent.Trigger`.
    public enum Change: String, Hashable, Sendable, Codable, CaseIterable { case edit, comment }
    /// Apple: `SWHighlightMembershipEvent.Trigger`.
    public enum Membership: String, Hashable, Sendable, Codable, CaseIterable {
        case addedCollaborator, removedCollaborator
    }
    /// Apple: `SWHighlightPersistenceEvent.Trigger`.
    public enum Persistence: String, Hashable, Sendable, Codable, CaseIterable { case created, deleted, renamed, moved }

    /// What happened.
    public enum Kind: Hashable, Sendable {
        /// Apple: `SWHighlightChangeEvent`.
        case change(trigger: Change)
        /// Apple: `SWHighlightMembershipEvent`. `person`: the one who was added or removed; `nil` when the event does
        /// not name the person. An author who names himself has joined or leaves.
        case membership(trigger: Membership, person: PersonIdentity?)
        /// Apple: `SWHighlightMentionEvent`. Only the mentioned person sees it.
        case mention(person: PersonIdentity)
        /// Apple: `SWHighlightPersistenceEvent`.
        case persistence(trigger: Persistence)
    }

    public var kind: Kind
    /// A universal link to the place in the content where it happened; `nil`: the event names no place. It is the
    /// collaboration's link or a deeper path below it. Apple: `SWHighlightEvent.highlightURL`.
    public var link: URL?

    public init(_ kind: Kind, link: URL? = nil) {
        self.kind = kind
        self.link = link
    }

    public static func change(trigger: Change, link: URL? = nil) -> HighlightEvent {
        HighlightEvent(.change(trigger: trigger), link: link)
    }

    public static func membership(
        trigger: Membership, person: PersonIdentity?, link: URL? = nil
    ) -> HighlightEvent {
        HighlightEvent(.membership(trigger: trigger, person: person), link: link)
    }

    public static func mention(person: PersonIdentity, link: URL? = nil) -> HighlightEvent {
        HighlightEvent(.mention(person: person), link: link)
    }

    public static func persistence(trigger: Persistence, link: URL? = nil) -> HighlightEvent {
        HighlightEvent(.persistence(trigger: trigger), link: link)
    }

    /// The only participant who sees the event; `nil` when all do.
    public var onlyReader: PersonIdentity? {
        if case .mention(let person) = kind { person } else { nil }
    }

    /// The person whom the event names.
    public var person: PersonIdentity? {
        switch kind {
        case .mention(let person): person
        case .membership(_, let person): person
        case .change, .persistence: nil
        }
    }

    private enum Key: String, CodingKey { case kind, trigger, person, link }
    private enum KindName: String, Codable { case change, membership, mention, persistence }

    /// Reads `{"kind": "change" | "membership" | "mention" | "persistence", "trigger": ..., "person": ..., "link":
    /// ...}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        switch try container.decode(KindName.self, forKey: .kind) {
        case .change: kind = .change(trigger: try container.decode(Change.self, forKey: .trigger))
        case .membership:
            kind = .membership(
                trigger: try container.decode(Membership.self, forKey: .trigger),
                person: try container.decodeIfPresent(PersonIdentity.self, forKey: .person))
        case .mention: kind = .mention(person: try container.decode(PersonIdentity.self, forKey: .person))
        case .persistence: kind = .persistence(trigger: try container.decode(Persistence.self, forKey: .trigger))
        }
        link = try container.decodeIfPresent(URL.self, forKey: .link)
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        switch kind {
        case .change(let trigger):
            try container.encode(KindName.change, forKey: .kind)
            try container.encode(trigger, forKey: .trigger)
        case .membership(let trigger, let person):
            try container.encode(KindName.membership, forKey: .kind)
            try container.encode(trigger, forKey: .trigger)
            try container.encodeIfPresent(person, forKey: .person)
        case .mention(let person):
            try container.encode(KindName.mention, forKey: .kind)
            try container.encode(person, forKey: .person)
        case .persistence(let trigger):
            try container.encode(KindName.persistence, forKey: .kind)
            try container.encode(trigger, forKey: .trigger)
        }
        try container.encodeIfPresent(link, forKey: .link)
    }
}
