import Core

/// The root hash and the collaboration of a number. They are computed, so that no list of millions is kept; a
/// bijective mix of 64-bit words replaces SHA-256, which would only make set-up slower.
enum Synthetic {
    static let rootsPerCollaboration = 5

    static func root(_ number: Int) -> Digest {
        var words: [UInt64] = []
        var state = UInt64(number)
        for _ in 0..<4 {
            words.append(mix(state))
            state &+= increment
        }
        return words.withUnsafeBytes { Digest($0) } ?? .zero
    }

    private static let increment: UInt64 = 0x9e37_79b9_7f4a_7c15

    /// A bijection of 64-bit words (the step of SplitMix64).
    static func mix(_ state: UInt64) -> UInt64 {
        var z = state &+ increment
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    static func collaboration(_ number: Int) throws -> CollaborationIdentifier {
        guard let identifier = CollaborationIdentifier("collaboration-\(number)") else {
            throw ServiceError(.internalFault, "an identifier is not valid")
        }
        return identifier
    }
}
