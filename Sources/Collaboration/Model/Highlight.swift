public import Foundation

/// A conversation in which links are shared.
public struct Conversation: Hashable, Sendable, Codable {
    /// 1 to 128 bytes of UTF-8, as the app's backend names it.
    public var identifier: String
    public var name: String?
    /// Whether it has more than two participants.
    public var isGroup: Bool

    public init(identifier: String, name: String? = nil, isGroup: Bool = false) {
        self.identifier = identifier
        self.name = name
        self.isGroup = isGroup
    }
}

/// The person who shared an item.
public struct Sharer: Hashable, Sendable, Codable {
    public var account: Account?
    public var name: String
    /// Where the person's picture is: a link, or a name that the app understands.
    public var avatar: String?

    public init(name: String, account: Account? = nil, avatar: String? = nil) {
        self.account = account
        self.name = name
        self.avatar = avatar
    }
}

/// A person on whose shelf a shared item may appear.
public struct ShareRecipient: Hashable, Sendable, Codable {
    public var account: Account
    /// Whether at least one other participant of the conversation is a contact of this person's.
    public var knowsSomebody: Bool

    public init(_ account: Account, knowsSomebody: Bool = true) {
        self.account = account
        self.knowsSomebody = knowsSomebody
    }
}

/// One share of an item, as attribution shows it. Apple: what `SWAttributionView` displays.
public struct Attribution: Hashable, Sendable, Codable {
    public let sharer: Sharer
    public let conversation: Conversation
    public let date: Date
    public let isPinned: Bool
}

/// One item of a shelf. Apple: `SWHighlight`.
public struct Highlight: Hashable, Sendable, Codable, Identifiable {
    public let url: URL
    public let title: String?
    /// Where it is shown: the bundle identifier of the app that opens it.
    public let app: String
    /// When it was last shared.
    public let date: Date
    public let isPinned: Bool
    /// Whether it is the suggested item: the one that the person most likely looks for. It is the first of the shelf.
    public let isSuggested: Bool
    /// The latest share in each conversation whose shares count, newest first. With more than one, the app lets the
    /// person choose a conversation.
    public let attributions: [Attribution]

    public var id: URL { url }
}

/// One page of a person's shelf.
public struct Shelf: Hashable, Sendable, Codable {
    public let highlights: [Highlight]
    /// All items of the shelf.
    public let count: Int
    /// The sequence of the last mutation that may have changed the shelf.
    public let version: UInt64
}

/// Something that a person did with an item. The suggestion is computed from these signals.
public enum HighlightSignal: String, Hashable, Sendable, Codable, CaseIterable {
    case viewed
    case interacted
    /// The item was shown where the app shows what was shared.
    case shown
}

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

/// A person's consent to automatic sharing. A level without an answer is allowed. An item appears when all three levels
/// allow it, or when it is pinned.
public struct Consent: Hashable, Sendable, Codable {
    public internal(set) var everything: Bool?
    public internal(set) var apps: [String: Bool] = [:]
    public internal(set) var conversations: [String: Bool] = [:]

    public init() {}

    /// Whether links that are shared in a conversation appear in an app without a pin.
    public func allows(app: String, conversation: String) -> Bool {
        everything ?? true && apps[app] ?? true && conversations[conversation] ?? true
    }
}

/// Everything that an attribution view and its menu need for one item.
public struct AttributionDetails: Hashable, Sendable, Codable {
    /// One entry of the menu.
    public struct MenuAction: Hashable, Sendable, Codable {
        public enum Kind: String, Hashable, Sendable, Codable { case reply, remove }

        public let kind: Kind
        public let title: String
        /// With `reply`: the conversation.
        public let conversation: String?
    }

    public let url: URL
    /// “From Ana and 2 others”.
    public let summary: String
    public let isPinned: Bool
    /// Newest first.
    public let attributions: [Attribution]
    /// The conversations to reply to, and removing.
    public let menu: [MenuAction]
}

/// How an item is shown with its attribution. Being shown in detail is a stronger signal of a person's interest.
public enum DisplayContext: String, Hashable, Sendable, Codable, CaseIterable {
    case summary, detail
}
