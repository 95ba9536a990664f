package import Core
package import Principals

/// What a request that changes something is about. Mutation identifiers belong to it: the same identifier for another
/// subject names another request.
package enum RequestSubject: Hashable, Sendable {
    case collaboration(CollaborationIdentifier)
    /// The owner, for requests that start a collaboration; else the account whose data change.
    case account(Account)
    /// The conversation in which something is shared.
    case conversation(String)
    case principal(PrincipalName)
    /// An API key.
    case key(KeyIdentifier)

    /// A byte for the kind, then the name. No two subjects have the same bytes.
    package var bytes: [UInt8] {
        switch self {
        case .collaboration(let identifier): [1] + identifier.utf8
        case .account(let account): [2] + account.name.utf8
        case .conversation(let name): [3] + name.utf8
        case .principal(let name): [4] + name.text.utf8
        case .key(let identifier): [5] + identifier.description.utf8
        }
    }
}

// The subjects of all requests that change something. Queries have none.

extension PrepareCollaboration {
    package var subject: RequestSubject? { .account(owner) }
}

extension PrepareCollaborationAs {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension AbandonCollaboration {
    package var subject: RequestSubject? { .account(owner) }
}

extension UpdateShareOptions {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension StopSharing {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension ClaimOwnership {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension TransferOwnership {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension UpdateParticipants {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension AddParticipants {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension RemoveParticipants {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension UpdateParticipant {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension LinkAccount {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension PostNotices {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension ClearNotices {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension RecordShare {
    package var subject: RequestSubject? { .conversation(conversation.identifier) }
}

extension PinHighlight {
    package var subject: RequestSubject? { .account(account) }
}

extension RemoveHighlight {
    package var subject: RequestSubject? { .account(account) }
}

extension SignalHighlight {
    package var subject: RequestSubject? { .account(account) }
}

extension SetConsent {
    package var subject: RequestSubject? { .account(account) }
}

extension CustomizeDetails {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension CreateInvitation {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension AcceptInvitation {
    package var subject: RequestSubject? { .account(account) }
}

extension WithdrawAcceptance {
    package var subject: RequestSubject? { .account(account) }
}

extension RevokeInvitation {
    package var subject: RequestSubject? { .collaboration(collaboration) }
}

extension CreatePrincipal {
    package var subject: RequestSubject? { .principal(name) }
}

extension UpdatePrincipal {
    package var subject: RequestSubject? { .principal(name) }
}

extension RemovePrincipal {
    package var subject: RequestSubject? { .principal(name) }
}

extension AddKey {
    package var subject: RequestSubject? { .principal(name) }
}

extension RemoveKey {
    package var subject: RequestSubject? { .key(identifier) }
}
