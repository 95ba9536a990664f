/// The service's verdict on one proof. The raw value is the byte on the wire; the name is the text everywhere else.
///
/// Zero is no verdict, so that memory that was never written grants nothing. Values below 16 mean that every requested
/// check passed. All other values are refusals.
public enum Verdict: UInt8, StableCode, BitwiseCopyable {
    /// Everything holds: challenge or nonce, root hash, membership and signature.
    case granted = 1
    /// Inclusion-only: the root hash is in the collaboration's set. The signature was not checked.
    case included = 2
    /// The signature verifies and the root hash was computed, but there was no set of root hashes to compare it with.
    case unlisted = 3

    /// A length or a count breaks the rules of a proof, or the signature format is unknown.
    case malformed = 16
    /// The public key is not a point of P-256 in an accepted encoding.
    case badKey = 17
    /// The key's index is not below 2^count(inclusionHashes).
    case badIndex = 18
    /// The signature is not strict DER, or not 64 bytes when raw, or has an integer longer than 32 bytes.
    case badSignatureEncoding = 19
    /// The signed data is not a challenge that this service issued, or its secret is no longer valid.
    case challengeForged = 20
    /// The challenge is genuine but too old.
    case challengeExpired = 21
    /// The challenge was spent by an earlier granted proof.
    case challengeReplayed = 22
    /// The device nonce is shorter than 16 bytes.
    case badNonce = 23
    /// The same key was granted with this nonce within the window.
    case nonceReplayed = 24
    /// The memory of spent challenges or nonces is full. The service refuses the proof rather than forget one of them.
    case replayMemoryFull = 25
    /// No collaboration has that identifier.
    case unknownCollaboration = 26
    /// The root hash is not in the collaboration's set.
    case notParticipant = 27
    /// The signature does not verify.
    case badSignature = 28
    /// The challenge is genuine, but another service of the cluster has issued it, or this one before it was restarted:
    /// only its issuer knows whether it was spent.
    case challengeElsewhere = 29

    /// A client's name for a byte that it does not know. No service sends it.
    case unknown = 255

    public static let names = StableNames<Verdict>()

    /// The verdict of a byte that a service has sent: a byte that is not known refuses.
    package init(received byte: UInt8) { self = Verdict(rawValue: byte) ?? .unknown }
}
