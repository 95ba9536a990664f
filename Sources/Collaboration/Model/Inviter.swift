/// The person who invites. The name and the handle are shown to the invited person; the account is not.
public struct Inviter: Hashable, Sendable, Codable {
    public var account: Account?
    public var name: String?
    /// An address or a telephone number, by which the invited person knows the inviting one.
    public var handle: String?

    public init(account: Account? = nil, name: String? = nil, handle: String? = nil) {
        self.account = account
        self.name = name
        self.handle = handle
    }
}
