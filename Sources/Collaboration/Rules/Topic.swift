package import Core

/// Something whose changes a query can wait for.
package enum Topic: Hashable, Sendable {
    /// A collaboration's notices and participants.
    case collaboration(CollaborationIdentifier)
    /// Which collaborations an account is linked to.
    case account(Account)
    /// An account's shelf.
    case shelf(Account)
}
