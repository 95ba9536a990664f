public import Core

/// The result of checking a grant. As with verdicts, values below 16 accept, values from 16 refuse, and 0 means
/// nothing.
public enum GrantStatus: UInt8, StableCode {
    /// The grant is valid now.
    case valid = 1

    /// The service did not issue the grant, or its secret is no longer valid.
    case forged = 16
    case expired = 17
    /// The grant was issued for another collaboration.
    case otherCollaboration = 18
    /// The grant was issued to another device.
    case otherDevice = 19
    /// The participant was removed or got another permission after the grant was issued, or the collaboration is no
    /// longer shared.
    case revoked = 20

    /// A client's name for a byte that it does not know. No service sends it.
    case unknown = 255

    public static let names = StableNames<GrantStatus>()

    /// The status of a byte that a service has sent: a byte that is not known refuses.
    package init(received byte: UInt8) { self = GrantStatus(rawValue: byte) ?? .unknown }
}
