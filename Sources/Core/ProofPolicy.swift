/// What the signed `data` of a collaboration's proofs must be.
public enum ProofPolicy: Hashable, Sendable, BitwiseCopyable {
    /// A challenge that this service issued and that has not expired. It is accepted once.
    case challenge
    /// A nonce that the device made. It is accepted once for each key within a window of that many seconds. This is
    /// weaker than a challenge: see PROTOCOL.md, "Policies".
    case deviceNonce(windowSeconds: UInt32)

    /// Whether the policy's window, if it has one, is within the limits.
    package var isValid: Bool {
        switch self {
        case .challenge: true
        case .deviceNonce(let seconds):
            (Limits.nonceWindowSecondsMin...Limits.nonceWindowSecondsMax).contains(seconds)
        }
    }

    /// The policy's byte on the wire and in storage, and its window (0 for challenges).
    package var code: (kind: UInt8, windowSeconds: UInt32) {
        switch self {
        case .challenge: (1, 0)
        case .deviceNonce(let seconds): (2, seconds)
        }
    }

    /// The policy with that byte and window; `nil` if there is none.
    package init?(kind: UInt8, windowSeconds: UInt32) {
        switch kind {
        case 1 where windowSeconds == 0: self = .challenge
        case 2: self = .deviceNonce(windowSeconds: windowSeconds)
        default: return nil
        }
        guard isValid else { return nil }
    }
}
