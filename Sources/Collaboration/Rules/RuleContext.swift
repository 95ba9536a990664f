package import Core
package import Foundation

/// What a request finds around it, apart from records. Time and randomness come from here, so that tests replay.
package struct RuleContext: Sendable {
    /// In whole milliseconds.
    package let now: Date
    package let random: RandomSource
    package let sha256: @Sendable ([UInt8]) -> Digest
    package let settings: CollaborationSettings
    /// The sequence with which the same request was carried out before, if it was.
    package let earlier: UInt64?
    /// What a genuine grant says that has not expired, or why it isn't one.
    package let open: @Sendable (AccessGrant) -> Result<GrantClaim, GrantRefusal>

    package init(
        now: Date, random: RandomSource, sha256: @escaping @Sendable ([UInt8]) -> Digest,
        settings: CollaborationSettings, earlier: UInt64? = nil,
        open: @escaping @Sendable (AccessGrant) -> Result<GrantClaim, GrantRefusal>
    ) {
        self.now = Date(timeIntervalSince1970: (now.timeIntervalSince1970 * 1000).rounded(.down) / 1000)
        self.random = random
        self.sha256 = sha256
        self.settings = settings
        self.earlier = earlier
        self.open = open
    }

    /// The first bytes of the SHA-256 of a text.
    func fingerprint(_ text: String, count: Int = 16) -> [UInt8] {
        Array(sha256(Array(text.utf8)).bytes.prefix(count))
    }
}

/// Why a grant is worth nothing.
package struct GrantRefusal: Error {
    package let status: GrantStatus

    package init(_ status: GrantStatus) {
        self.status = status
    }
}
