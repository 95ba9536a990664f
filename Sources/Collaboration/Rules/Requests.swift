package import Core

/// All requests, by their names.
package enum Requests {
    package static let all: [any RuledRequest.Type] = [
        PrepareCollaboration.self, PrepareCollaborationAs.self, AbandonCollaboration.self, FindHighlight.self,
        UpdateShareOptions.self, StopSharing.self, ClaimOwnership.self, TransferOwnership.self,
        AddParticipants.self, RemoveParticipants.self, UpdateParticipants.self, UpdateParticipant.self,
        ListParticipants.self, FindParticipants.self, LinkAccount.self,
        PostNotices.self, ReadNotices.self, ClearNotices.self,
        RecordShare.self, ReadShelf.self, ReadThumbnail.self, PinHighlight.self, RemoveHighlight.self,
        SignalHighlight.self,
        SetConsent.self, ReadConsent.self, ReadAttribution.self,
        ReadDetails.self, CustomizeDetails.self,
        CreateInvitation.self, ReadInvitation.self, AcceptInvitation.self, WithdrawAcceptance.self,
        ListInvitations.self, RevokeInvitation.self, ListShares.self,
        CreatePrincipal.self, UpdatePrincipal.self, RemovePrincipal.self, AddKey.self, RemoveKey.self,
        ListPrincipals.self,
    ]

    private static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// Reads the request of that name.
    ///
    /// Throws `unknownOperation` or `malformedRequest`.
    package static func parse(_ name: String, _ json: [UInt8]) throws(ServiceError) -> any RuledRequest {
        guard let request = byName[name] else {
            throw ServiceError(.unknownOperation, "the collaboration layer has no request “\(name.prefix(64))”")
        }
        return try JSON.decodeStrictly(request, from: json)
    }
}
