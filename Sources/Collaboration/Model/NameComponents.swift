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

    /// The parts of a name as people write it: the last of several words is the family name. `nil` when there is no
    /// word. Apple: `PersonNameComponentsFormatter`.
    public init?(from name: String) {
        let words = name.split(whereSeparator: \.isWhitespace)
        guard let last = words.last else { return nil }
        guard words.count > 1 else {
            self.init(givenName: String(last))
            return
        }
        self.init(givenName: words.dropLast().joined(separator: " "), familyName: String(last))
    }

    /// The name as people read it: the nickname if there is one, else given and family name.
    public var formatted: String {
        nickname ?? [givenName, familyName].compactMap { $0 }.joined(separator: " ")
    }
}
