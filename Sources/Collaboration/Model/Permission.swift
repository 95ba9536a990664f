/// What a participant may do with the content.
public enum Permission: String, Hashable, Sendable, Codable, CaseIterable {
    case readOnly
    case readWrite

    /// The permission's byte in grants and records.
    package var code: UInt8 {
        switch self {
        case .readOnly: 1
        case .readWrite: 2
        }
    }

    /// The permission of that byte; `nil` if there is none.
    package init?(code: UInt8) {
        switch code {
        case 1: self = .readOnly
        case 2: self = .readWrite
        default: return nil
        }
    }
}
