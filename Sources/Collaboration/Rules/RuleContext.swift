package import Core
package import Foundation

/// What a decision depends on besides the records. Time and randomness are injected, so that a test can repeat a
/// decision.
package struct RuleContext: Sendable {
    /// In whole milliseconds, and not before 1970, whatever the system's date is.
    package let now: Date
    package let random: RandomSource
    package let sha256: @Sendable ([UInt8]) -> Digest
    package let settings: CollaborationSettings
    /// The sequence at which the same request was applied before; `nil` when it was not.
    package let earlier: UInt64?
    /// Recognizes the service's grants.
    package let grants: any GrantAuthority
    /// Whether other services issue grants, too, whose participants may not be known here yet.
    package let isShared: Bool

    package init(
        now: Date, random: RandomSource, sha256: @escaping @Sendable ([UInt8]) -> Digest,
        settings: CollaborationSettings, earlier: UInt64? = nil,
        grants: any GrantAuthority, isShared: Bool = false
    ) {
        self.now = Date(timeIntervalSince1970: max(0, (now.timeIntervalSince1970 * 1000).rounded(.down)) / 1000)
        self.random = random
        self.sha256 = sha256
        self.settings = settings
        self.earlier = earlier
        self.grants = grants
        self.isShared = isShared
    }

    /// The time by which invitations, principals and keys expire. Unlike the date it does not go back, so what has
    /// expired stays so when the date is corrected.
    var expiryTime: Date { max(now, Date(timeIntervalSince1970: Double(grants.now) / 1000)) }

    /// The first `count` bytes of the SHA-256 of a text.
    func fingerprint(_ text: String, count: Int) -> [UInt8] {
        precondition(count <= Digest.byteCount, "a SHA-256 has 32 bytes")
        return Array(sha256(Array(text.utf8)).bytes.prefix(count))
    }
}
