/// The state of a participant.
public enum ParticipantState: String, Hashable, Sendable, Codable, CaseIterable {
    case invited
    /// A proof of one of the person's devices was granted.
    case joined
    case removed
}
