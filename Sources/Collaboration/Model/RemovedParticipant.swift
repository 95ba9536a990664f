/// A person who takes no part any more.
public struct RemovedParticipant: Hashable, Sendable, Codable {
    public let identity: PersonIdentity
    /// The account that the person was linked to when he was removed, or that had accepted the invitation by which he
    /// came in; `nil` when there was none.
    public let account: Account?

    package init(identity: PersonIdentity, account: Account?) {
        self.identity = identity
        self.account = account
    }
}
