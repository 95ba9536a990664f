/// The parts of a person's name.
public struct NameComponents: Hashable, Sendable, Codable {
    public var givenName: String?
    public var familyName: String?
    public var nickname: String?

    public init(givenName: String? = nil, familyName: String? = nil, nickname: String? = nil) {
        self.givenName = givenName
        self.familyName = familyName
        self.nickname = nickname
    }

    /// The name as people read it: the nickname if there is one, else given and family name.
    public var formatted: String {
        nickname ?? [givenName, familyName].compactMap { $0 }.joined(separator: " ")
    }
}
