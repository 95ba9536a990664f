/// What a participant is to the collaboration.
public enum ParticipantRole: String, Hashable, Sendable, Codable, CaseIterable {
    case owner
    /// May manage the collaboration beside the owner.
    case administrator
    case member

    /// The role's byte in grants and records.
    package var code: UInt8 {
        switch self {
        case .owner: 1
        case .administrator: 2
        case .member: 3
        }
    }

    /// The role of that byte; `nil` if there is none.
    package init?(code: UInt8) {
        switch code {
        case 1: self = .owner
        case 2: self = .administrator
        case 3: self = .member
        default: return nil
        }
    }
}
