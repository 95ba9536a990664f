package import Core

/// Something that people wait for news of.
package enum Topic: Hashable, Sendable {
    /// A collaboration's notices and participants.
    case collaboration(CollaborationIdentifier)
    /// Which collaborations an account is linked to.
    case account(Account)
    /// What is on an account's shelf.
    case shelf(Account)
}
