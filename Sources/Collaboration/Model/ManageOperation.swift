/// What a person may do to a collaboration.
public enum ManageOperation: String, Hashable, Sendable, Codable, CaseIterable {
    case changeOptions, addParticipants, changeParticipants, removeParticipants, stopSharing

    /// What a participant of that role may do. The owner may do everything, an administrator everything but stop the
    /// sharing. A member may add participants while the share options say so.
    static func permitted(to role: ParticipantRole, by options: ShareOptions) -> [ManageOperation] {
        switch role {
        case .owner: allCases
        case .administrator: allCases.filter { $0 != .stopSharing }
        case .member: options.allows(.addParticipants) == true ? [.addParticipants] : []
        }
    }
}
