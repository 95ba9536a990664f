import Collaboration
import Core
import Hashing
import Verification

@testable import Server

/// Grants and challenges from the wire: what this service did not issue is never taken for its own. The first byte says
/// which of them it is.
enum FuzzedTokens {
    static let subject = FuzzSubject("tokens", bytesMax: 128, seeds: seeds) { input in
        guard let first = input.first else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
        if first & 1 == 0 { try grant(bytes) } else { try challenge(bytes) }
    }

    private static let keys = RotatingKeys(KeyPair(current: MessageAuthenticator(key: Array("keys of tokens".utf8))))
    private static let clock = MonotonicClock { 5_000_000 }
    private static let grants = GrantBook(validMilliseconds: 60_000, clock: clock, keys: keys)
    private static let challenges = ChallengeBook(keys: keys, clock: clock, random: .seeded(3))

    private static let issuedGrants: Set<[UInt8]> = [
        appended { bytes in grants.issue(claim(.readWrite, .owner, expiry: 5_060_000), to: &bytes) },
        appended { bytes in grants.issue(claim(.readOnly, .member, expiry: 4_999_999), to: &bytes) },
    ]

    private static let issuedChallenges: Set<[UInt8]> = {
        var bytes = [UInt8](repeating: 0, count: 2 * ChallengeBook.challengeBytes)
        let maker = challenges.makeTagMaker()
        bytes.withUnsafeMutableBytes { if let start = $0.baseAddress { challenges.issue(2, to: start, with: maker) } }
        return [Array(bytes.prefix(ChallengeBook.challengeBytes)), Array(bytes.suffix(ChallengeBook.challengeBytes))]
    }()

    private static let deck = Fingerprint(Digest([UInt8](repeating: 1, count: 32)) ?? .zero)

    private static func claim(_ permission: Permission, _ role: ParticipantRole, expiry: UInt64) -> GrantClaim {
        GrantClaim(
            permission: permission, role: role, expiry: expiry, sequence: 7, collaboration: deck,
            deviceKey: Fingerprint(Digest([UInt8](repeating: 2, count: 32)) ?? .zero),
            rootHash: Digest([UInt8](repeating: 3, count: 32)) ?? .zero)
    }

    private static func grant(_ bytes: UnsafeRawBufferPointer) throws {
        if let claim = GrantClaim(bytes) {
            try demand(
                appended { claim.append(to: &$0) }.elementsEqual(bytes.prefix(GrantLayout.tag)),
                "a claim is written in another way than it was read")
        }
        guard let grant = AccessGrant(bytes: Array(bytes)) else { return }
        let isGenuine = grants.isGenuine(grant)
        try demand(isGenuine == issuedGrants.contains(grant.bytes), "a grant is genuine that was not issued, or not")
        // Whatever its tag is: a grant that has expired or is for another collaboration is refused.
        let presentation = GrantPresentation(
            collaboration: deck, defaultPermission: nil, deviceKey: nil, now: clock.milliseconds)
        let finding = try presentation.check(bytes, isGenuine: true, own: { _ in nil }, isMember: { _ in true })
        guard case .refused = finding else { throw Finding("a grant of a person without access is valid") }
    }

    private static func challenge(_ bytes: UnsafeRawBufferPointer) throws {
        let standing = challenges.standing(of: bytes)
        guard issuedChallenges.contains(Array(bytes)) else {
            return try demand(standing == .forged, "a challenge that was not issued is \(standing)")
        }
        guard case .usable(let token) = standing else { throw Finding("a challenge that was issued is \(standing)") }
        try demand(token.expiry > clock.milliseconds, "a challenge is usable that has expired")
    }

    private static func seeds() -> [[UInt8]] {
        issuedGrants.sorted { $0.lexicographicallyPrecedes($1) }.map { [0] + $0 }
            + issuedChallenges.sorted { $0.lexicographicallyPrecedes($1) }.map { [1] + $0 }
    }
}
