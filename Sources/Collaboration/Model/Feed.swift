public import Core

/// The reader of a feed and the collaborations in it.
public enum Feed: Hashable, Sendable, Codable {
    /// What every participant of the collaboration sees.
    case collaboration(CollaborationIdentifier)
    /// What one participant sees of the collaboration: mentions of the person too.
    case participant(PersonIdentity, of: CollaborationIdentifier)
    /// What an account sees of all collaborations that it is linked to.
    case account(Account)

    private enum Key: String, CodingKey { case collaboration, participant, account }

    /// Reads `{"collaboration": ...}`, `{"collaboration": ..., "participant": ...}` or `{"account": ...}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let collaboration = try container.decodeIfPresent(CollaborationIdentifier.self, forKey: .collaboration)
        let participant = try container.decodeIfPresent(PersonIdentity.self, forKey: .participant)
        switch (try container.decodeIfPresent(Account.self, forKey: .account), collaboration, participant) {
        case (let account?, nil, nil): self = .account(account)
        case (nil, let collaboration?, let person?): self = .participant(person, of: collaboration)
        case (nil, let collaboration?, nil): self = .collaboration(collaboration)
        default:
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "not a feed: either account, or collaboration with or without participant"))
        }
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        switch self {
        case .collaboration(let collaboration):
            try container.encode(collaboration, forKey: .collaboration)
        case .participant(let person, let collaboration):
            try container.encode(collaboration, forKey: .collaboration)
            try container.encode(person, forKey: .participant)
        case .account(let account):
            try container.encode(account, forKey: .account)
        }
    }
}
