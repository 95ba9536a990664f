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
        if let app = try container.decodeIfPresent(String.self, forKey: .app) {
            self = .app(app)
        } else if let conversation = try container.decodeIfPresent(String.self, forKey: .conversation) {
            self = .conversation(conversation)
        } else if try container.decode(Bool.self, forKey: .everything) {
            self = .everything
        } else {
            throw DecodingError.dataCorruptedError(
                forKey: .everything, in: container,
                debugDescription: "not true: a level is everything, app or conversation")
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
