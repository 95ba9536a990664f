/// What the service says of a grant. Like verdicts: zero is none, values below 16 let pass.
public enum GrantStatus: UInt8, CaseIterable, Sendable, Hashable {
    /// It holds now.
    case valid = 1

    /// No grant of this service, or of an earlier life of it.
    case forged = 16
    case expired = 17
    /// For another collaboration than the one it was shown for.
    case otherCollaboration = 18
    /// Of another device than the one that shows it.
    case otherDevice = 19
    /// The participant was removed or has another permission since, or the collaboration is no longer shared.
    case revoked = 20

    /// The stable name: lower-case words joined by hyphens.
    public var name: String {
        switch self {
        case .valid: "valid"
        case .forged: "forged"
        case .expired: "expired"
        case .otherCollaboration: "other-collaboration"
        case .otherDevice: "other-device"
        case .revoked: "revoked"
        }
    }

    /// Whether the grant was turned away.
    public var isRefusal: Bool { rawValue >= 16 }
}
