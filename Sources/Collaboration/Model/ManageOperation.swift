/// What a person may do to a collaboration.
public enum ManageOperation: String, Hashable, Sendable, Codable, CaseIterable {
    case changeOptions, addParticipants, removeParticipants, stopSharing
}
