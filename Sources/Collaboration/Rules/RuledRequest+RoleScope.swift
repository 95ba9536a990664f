package import Principals

// What every request is about, for roles that are limited. A request that names an account, a token or a link is about
// more than one collaboration, or about one that it does not name.

extension RuledRequest {
    /// The scope of a request about a shelf. A request that is for every app, or says nothing, is about the whole
    /// shelf.
    fileprivate func shelf(_ app: String?, _ everyApp: Bool?) -> RequestScope {
        .shelf(app: everyApp == true ? nil : app)
    }
}

extension UpdateShareOptions {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension StopSharing {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension ClaimOwnership {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension TransferOwnership {
    // It moves records of two accounts, and could give an account a start that it has not made.
    package var roleScope: RequestScope { .everything }
}

extension AddParticipants {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension RemoveParticipants {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension UpdateParticipants {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension UpdateParticipant {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension ListParticipants {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension FindParticipants {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension LinkAccount {
    // Without an account it only takes a link away.
    package var roleScope: RequestScope { account == nil ? .collaboration(collaboration) : .everything }
}

extension PostNotices {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension ClearNotices {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension ReadDetails {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension CustomizeDetails {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension CreateInvitation {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension ListInvitations {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension RevokeInvitation {
    package var roleScope: RequestScope { .collaboration(collaboration) }
}

extension FindHighlight {
    package var roleScope: RequestScope {
        // With both fields the request is refused.
        url == nil ? collaboration.map { .collaboration($0) } ?? .everything : .everything
    }
}

extension ReadNotices {
    package var roleScope: RequestScope {
        switch feed {
        case .collaboration(let collaboration), .participant(_, of: let collaboration): .collaboration(collaboration)
        case .account: .everything
        }
    }
}

extension ReadShelf {
    package var roleScope: RequestScope { shelf(app, everyApp) }
}

extension ReadThumbnail {
    package var roleScope: RequestScope { shelf(app, everyApp) }
}

extension PinHighlight {
    package var roleScope: RequestScope { shelf(app, everyApp) }
}

extension RemoveHighlight {
    package var roleScope: RequestScope { shelf(app, everyApp) }
}

extension SignalHighlight {
    package var roleScope: RequestScope { shelf(app, everyApp) }
}

extension ReadAttribution {
    package var roleScope: RequestScope { shelf(app, everyApp) }
}

extension RecordShare {
    package var roleScope: RequestScope { .shelf(app: nil) }
}

extension SetConsent {
    package var roleScope: RequestScope { .shelf(app: nil) }
}

extension ReadConsent {
    package var roleScope: RequestScope { .shelf(app: nil) }
}

extension PrepareCollaboration {
    package var roleScope: RequestScope { .everything }
}

extension PrepareCollaborationAs {
    // It gives an account a start.
    package var roleScope: RequestScope { .everything }
}

extension AbandonCollaboration {
    package var roleScope: RequestScope { .everything }
}

extension ReadInvitation {
    package var roleScope: RequestScope { .everything }
}

extension AcceptInvitation {
    package var roleScope: RequestScope { .everything }
}

extension WithdrawAcceptance {
    package var roleScope: RequestScope { .everything }
}

extension ListShares {
    package var roleScope: RequestScope { .everything }
}

extension CreatePrincipal {
    package var roleScope: RequestScope { .everything }
}

extension UpdatePrincipal {
    package var roleScope: RequestScope { .everything }
}

extension RemovePrincipal {
    package var roleScope: RequestScope { .everything }
}

extension AddKey {
    package var roleScope: RequestScope { .everything }
}

extension RemoveKey {
    package var roleScope: RequestScope { .everything }
}

extension ListPrincipals {
    package var roleScope: RequestScope { .everything }
}
