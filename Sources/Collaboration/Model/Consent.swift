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
