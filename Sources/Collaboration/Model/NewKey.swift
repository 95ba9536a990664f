public import Foundation
public import Principals

/// A key for a principal. The client makes the key and sends its hash, so that the service never has the key itself
/// before somebody presents it.
public struct NewKey: Hashable, Sendable, Codable {
    public var hash: KeyHash
    /// `nil`: the key is valid until it is removed.
    public var expiresAt: Date?

    public init(_ hash: KeyHash, expiresAt: Date? = nil) {
        self.hash = hash
        self.expiresAt = expiresAt
    }
}
