/// A collaboration's identifier, chosen by the app: 1 to 128 bytes of UTF-8 without control characters (U+0000 to
/// U+001F, U+007F).
///
/// The storage ends an identifier with a control byte, which is unambiguous because identifiers contain none.
public struct CollaborationIdentifier: Hashable, Sendable {
    /// The identifier's UTF-8 bytes.
    public let utf8: [UInt8]

    /// `nil` unless `utf8` is a valid identifier.
    public init?(utf8: some Collection<UInt8>) {
        guard CollaborationIdentifier.isValid(utf8), String(validating: Array(utf8), as: UTF8.self) != nil else {
            return nil
        }
        self.utf8 = Array(utf8)
    }

    /// `nil` unless `text` is a valid identifier.
    public init?(_ text: String) {
        self.init(utf8: Array(text.utf8))
    }

    /// Whether `bytes` have a valid length and no control characters. This is enough for a look-up: bytes that are not
    /// UTF-8 are never stored, so they are never found.
    @inlinable
    package static func isValid(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.count <= Limits.collaborationBytesMax
            && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }
}

extension CollaborationIdentifier: CustomStringConvertible {
    public var description: String { String(decoding: utf8, as: UTF8.self) }
}

extension CollaborationIdentifier: Comparable {
    /// Compares the bytes in order.
    public static func < (a: CollaborationIdentifier, b: CollaborationIdentifier) -> Bool {
        a.utf8.lexicographicallyPrecedes(b.utf8)
    }
}

/// Names one mutation; the client chooses it. A repeated mutation with the same identifier and content changes nothing
/// and gets the first receipt again.
public struct MutationIdentifier: Hashable, Sendable {
    /// The identifier's 16 bytes, the first in the low bits.
    public let value: UInt128

    public init(_ value: UInt128) {
        self.value = value
    }

    /// Makes a fresh identifier from the system's random source.
    public static func random() -> MutationIdentifier {
        MutationIdentifier(UInt128.random(in: .min ... .max))
    }
}

extension MutationIdentifier: CustomStringConvertible {
    public var description: String {
        Swift.withUnsafeBytes(of: value.littleEndian) { Array($0).hexadecimal }
    }
}

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
