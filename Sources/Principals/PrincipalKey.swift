package import Foundation

/// A key of a principal, as it is stored.
package struct PrincipalKey: Hashable, Sendable, Codable {
    package let hash: KeyHash
    package let createdAt: Date
    /// `nil`: it is valid until it is removed.
    package let expiresAt: Date?

    package init(_ hash: KeyHash, createdAt: Date, expiresAt: Date?) {
        self.hash = hash
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }

    /// Whether the key is valid at that time.
    package func isValid(at date: Date) -> Bool { expiresAt.map { date < $0 } ?? true }
}
