import Collaboration
import Core
import Wire

/// Which requests may use the reserve of the memory: those that decide who may open what, take a right away, or tell
/// how the service is.
enum Urgency {
    /// Requests of the collaboration layer that take something away from somebody.
    private static let names: Set<String> = [
        RemoveParticipants.name, UpdateParticipants.name, UpdateParticipant.name, StopSharing.name,
        AbandonCollaboration.name, RevokeInvitation.name, WithdrawAcceptance.name, RemovePrincipal.name,
        RemoveKey.name, UpdatePrincipal.name,
    ]
    private static let namesUTF8 = Set(names.map { Array($0.utf8) })

    /// Whether a request of this operation takes something away from somebody, as far as its name tells. `body`: as
    /// much of it as has arrived.
    static func isRemoval(_ operation: UInt16, _ body: UnsafeRawBufferPointer) -> Bool {
        switch Operation(rawValue: operation) {
        case .removeRoots, .dropCollaboration: true
        case .collaborate: isUrgent(operation, body)
        default: false
        }
    }

    /// Whether a request of the collaboration layer takes something away from somebody. One that lets somebody in at
    /// the same time is none.
    static func isRemoval(_ request: any RuledRequest) -> Bool {
        if let update = request as? UpdateParticipants, !update.added.isEmpty { return false }
        return names.contains(type(of: request).name)
    }

    /// Whether a request of this operation is urgent. `body`: as much of it as has arrived.
    static func isUrgent(_ operation: UInt16, _ body: UnsafeRawBufferPointer) -> Bool {
        switch Operation(rawValue: operation) {
        case .hello, .ping, .statistics, .issueChallenges, .verify, .verifyInclusion, .open, .checkGrants,
            .removeRoots, .dropCollaboration, .confirmEverywhere:
            true
        case .collaborate: CollaborationCall.name(in: body).map { namesUTF8.contains(Array($0)) } ?? false
        case .addRoots, .testRoots, .listRoots, .countRoots, .createCollaboration, .listCollaborations, .edit,
            .readChanges, .readSnapshot, nil:
            false
        }
    }
}
