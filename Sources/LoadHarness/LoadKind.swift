import Core
import Wire

/// What a request of a load does.
package enum LoadKind: String, CaseIterable, Sendable {
    /// Verifies proofs.
    case verify
    /// Verifies proofs without signatures.
    case inclusion
    /// Verifies proofs, which get grants.
    case open
    /// Checks grants.
    case check
    /// Adds root hashes to a set, or removes them.
    case mutate
    /// Posts notices.
    case post

    /// Whether the requests have proofs.
    package var hasProofs: Bool { self == .open || self == .verify || self == .inclusion }

    /// Whether the requests have proofs that sign a challenge each.
    package var needsChallenges: Bool { self == .open || self == .verify }

    /// Whether the requests need people who take part in collaborations of the collaboration layer.
    package var needsParticipants: Bool { self == .open || needsGrants }

    /// Whether the requests need grants.
    package var needsGrants: Bool { self == .check || self == .post }

    var place: Int {
        switch self {
        case .verify: 0
        case .inclusion: 1
        case .open: 2
        case .check: 3
        case .mutate: 4
        case .post: 5
        }
    }

    /// The length of the answer's body to a request with so many proofs or grants; `nil`: any.
    func answerBytes(_ items: Int) -> Int? {
        switch self {
        case .verify, .inclusion: VerdictList.byteCount(items, hasRoots: false)
        case .open: VerdictList.byteCount(items, hasRoots: false) + items * Limits.grantBytes
        case .check: LoadKind.resultsStart + items * GrantAnswer.byteCount
        case .mutate: LoadKind.receiptBytes
        case .post: nil
        }
    }

    /// Where the results of the proofs or grants begin in the answer's body.
    static let resultsStart = 8
    /// From one result to the next.
    var resultBytes: Int { self == .check ? GrantAnswer.byteCount : 1 }

    /// Sequence, changed and repeat of a receipt.
    private static let receiptBytes = 17
}
