/// The person who shared an item.
public struct Sharer: Hashable, Sendable, Codable {
    public var account: Account?
    public var name: String
    /// Where the person's picture is: a link of the web, or a name that the app understands, which has no colon.
    public var avatar: String?

    public init(name: String, account: Account? = nil, avatar: String? = nil) {
        self.account = account
        self.name = name
        self.avatar = avatar
    }
}
