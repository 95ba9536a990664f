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
