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
