/// The scope of one answer about automatic sharing.
public enum ConsentLevel: Hashable, Sendable, Codable {
    /// Everything, from all conversations, in all apps.
    case everything
    /// What one app opens.
    case app(String)
    /// Links that are shared in one conversation.
    case conversation(String)

    private enum Key: String, CodingKey { case everything, app, conversation }

    /// Reads `{"everything": true}`, `{"app": ...}` or `{"conversation": ...}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        let app = try container.decodeIfPresent(String.self, forKey: .app)
        let conversation = try container.decodeIfPresent(String.self, forKey: .conversation)
        switch (try container.decodeIfPresent(Bool.self, forKey: .everything), app, conversation) {
        case (true?, nil, nil): self = .everything
        case (nil, let app?, nil): self = .app(app)
        case (nil, nil, let conversation?): self = .conversation(conversation)
        default:
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "not a level: exactly one of everything (which is true), app and conversation"))
        }
    }

    /// Writes what `init(from:)` reads.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        switch self {
        case .everything: try container.encode(true, forKey: .everything)
        case .app(let app): try container.encode(app, forKey: .app)
        case .conversation(let conversation): try container.encode(conversation, forKey: .conversation)
        }
    }
}
