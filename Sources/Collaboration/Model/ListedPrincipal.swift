public import Foundation
public import Principals

/// A principal as it is listed. What its keys hash to is not told.
public struct ListedPrincipal: Hashable, Sendable, Codable {
    /// A key.
    public struct Key: Hashable, Sendable, Codable {
        public let identifier: KeyIdentifier
        public let createdAt: Date
        public let expiresAt: Date?
        /// When it was last presented or used, up to an hour too early; `nil`: never.
        public let lastUsedAt: Date?
    }

    public let name: PrincipalName
    public let roles: [LimitedRole]
    public let keys: [Key]
    public let certificates: [CertificateName]
    /// The number of a user of the service's machine.
    public let localUser: UInt32?
    public let limits: PrincipalLimits
    public let createdAt: Date
    public let expiresAt: Date?
    /// When it was last known by a certificate or a local user, up to an hour too early; `nil`: never.
    public let lastUsedAt: Date?
}
