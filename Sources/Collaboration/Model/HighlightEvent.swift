/// Something that happened to shared content, to be told to its participants. Apple: `SWHighlightEvent`.
public enum HighlightEvent: Hashable, Sendable, Codable {
    /// Apple: `SWHighlightChangeEvent.Trigger`.
    public enum Change: String, Hashable, Sendable, Codable, CaseIterable { case edit, comment }
    /// Apple: `SWHighlightMembershipEvent.Trigger`.
    public enum Membership: String, Hashable, Sendable, Codable, CaseIterable {
        case addedCollaborator, removedCollaborator
    }
    /// Apple: `SWHighlightPersistenceEvent.Trigger`.
    public enum Persistence: String, Hashable, Sendable, Codable, CaseIterable { case created, deleted, renamed, moved }

    /// Apple: `SWHighlightChangeEvent`.
    case change(trigger: Change)
    /// Apple: `SWHighlightMembershipEvent`. `person`: the one who was added or removed; `nil` when the event does not
    /// name the person.
    case membership(trigger: Membership, person: PersonIdentity?)
    /// Apple: `SWHighlightMentionEvent`. Only the mentioned person sees it.
    case mention(person: PersonIdentity)
    /// Apple: `SWHighlightPersistenceEvent`.
    case persistence(trigger: Persistence)

    /// The only participant who sees the event; `nil` when all do.
    public var onlyReader: PersonIdentity? {
        if case .mention(let person) = self { person } else { nil }
    }

    /// The event in a sentence for people.
    ///
    /// `author` and `person`: their names, where they are known; `isReader`: whether the named person reads it.
    public func sentence(author: String?, person: String?, title: String?, isReader: Bool = false) -> String {
        let who = author ?? "Somebody"
        let what = title.map { "“\($0)”" } ?? "the shared content"
        let whom = isReader ? "you" : person ?? "somebody"
        switch self {
        case .change(.edit): return "\(who) edited \(what)"
        case .change(.comment): return "\(who) commented in \(what)"
        case .membership(.addedCollaborator, _): return "\(who) added \(whom) to \(what)"
        case .membership(.removedCollaborator, _): return "\(who) removed \(whom) from \(what)"
        case .mention: return "\(who) mentioned \(whom) in \(what)"
        case .persistence(let trigger): return "\(who) \(trigger.rawValue) \(what)"
        }
    }

    private enum Key: String, CodingKey { case kind, trigger, person }
    private enum Kind: String, Codable { case change, membership, mention, persistence }

    /// Reads `{"kind": "change" | "membership" | "mention" | "persistence", "trigger": ..., "person": ...}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        switch try container.decode(Kind.self, forKey: .kind) {
        case .change: self = .change(trigger: try container.decode(Change.self, forKey: .trigger))
        case .membership:
            self = .membership(
                trigger: try container.decode(Membership.self, forKey: .trigger),
                person: try container.decodeIfPresent(PersonIdentity.self, forKey: .person))
        case .mention: self = .mention(person: try container.decode(PersonIdentity.self, forKey: .person))
        case .persistence: self = .persistence(trigger: try container.decode(Persistence.self, forKey: .trigger))
        }
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        switch self {
        case .change(let trigger):
            try container.encode(Kind.change, forKey: .kind)
            try container.encode(trigger, forKey: .trigger)
        case .membership(let trigger, let person):
            try container.encode(Kind.membership, forKey: .kind)
            try container.encode(trigger, forKey: .trigger)
            try container.encodeIfPresent(person, forKey: .person)
        case .mention(let person):
            try container.encode(Kind.mention, forKey: .kind)
            try container.encode(person, forKey: .person)
        case .persistence(let trigger):
            try container.encode(Kind.persistence, forKey: .kind)
            try container.encode(trigger, forKey: .trigger)
        }
    }
}
