/// What the gate says of one proof. The raw value is the byte on the wire, the
/// name is the text everywhere else; both are stable and listed in PROTOCOL.md.
///
/// Zero is no verdict, so that memory nobody wrote to grants nothing. Values
/// below 16 say that the proof holds as far as it was asked; all others refuse.
public enum Verdict: UInt8, CaseIterable, Sendable, BitwiseCopyable {
    /// Everything holds: challenge or nonce, root hash, membership and signature.
    case granted = 1
    /// Inclusion-only: the root hash is in the collaboration's set. No signature was looked at.
    case included = 2
    /// Without a set of root hashes to look in: the signature verifies, the root hash was computed.
    case unlisted = 3

    /// A length or a count breaks the rules of a proof, or the signature format is unknown.
    case malformed = 16
    /// The public key is not a point of P-256 in an accepted encoding.
    case badKey = 17
    /// The key's index is not below 2^count(inclusionHashes).
    case badIndex = 18
    /// The signature is not strict DER, or not 64 bytes when raw, or has an integer longer than 32 bytes.
    case badSignatureEncoding = 19
    /// The signed data is not a challenge that this service issued since it started.
    case challengeForged = 20
    /// The challenge is genuine but too old.
    case challengeExpired = 21
    /// The challenge was spent by an earlier granted proof.
    case challengeReplayed = 22
    /// The device nonce is shorter than 16 bytes.
    case badNonce = 23
    /// The same key was granted with this nonce within the window.
    case nonceReplayed = 24
    /// The memory of spent challenges or nonces is full: refused rather than forgotten.
    case replayMemoryFull = 25
    /// There is no collaboration of that identifier.
    case unknownCollaboration = 26
    /// The root hash is not in the collaboration's set.
    case notParticipant = 27
    /// The signature does not verify.
    case badSignature = 28

    /// The stable name: lower-case words joined by hyphens.
    public var name: String {
        switch self {
        case .granted: "granted"
        case .included: "included"
        case .unlisted: "unlisted"
        case .malformed: "malformed"
        case .badKey: "bad-key"
        case .badIndex: "bad-index"
        case .badSignatureEncoding: "bad-signature-encoding"
        case .challengeForged: "challenge-forged"
        case .challengeExpired: "challenge-expired"
        case .challengeReplayed: "challenge-replayed"
        case .badNonce: "bad-nonce"
        case .nonceReplayed: "nonce-replayed"
        case .replayMemoryFull: "replay-memory-full"
        case .unknownCollaboration: "unknown-collaboration"
        case .notParticipant: "not-participant"
        case .badSignature: "bad-signature"
        }
    }

    /// Whether the proof was turned away.
    public var isRefusal: Bool { rawValue >= 16 }

    /// The verdict of that stable name.
    public init?(name: some StringProtocol) {
        guard let verdict = Verdict.allCases.first(where: { $0.name == name }) else { return nil }
        self = verdict
    }
}

extension Verdict: CustomStringConvertible {
    public var description: String { name }
}
