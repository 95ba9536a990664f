package import Core

/// Who takes a place in a memory that is shared: a participant of a collaboration.
///
/// Both are hashes under a random key of the process. Holders with equal hashes share their shares.
package struct MemoryHolder: BitwiseCopyable, Sendable {
    let collaboration: UInt32
    let participant: UInt32

    package init(collaboration: UInt32, participant: UInt32) {
        self.collaboration = collaboration
        self.participant = participant
    }

    /// `root`: the participant's root hash. It stands for all of his keys, of which he can make as many as he likes.
    package init(collaboration identifier: UnsafeRawBufferPointer, root: Digest) {
        var hasher = Hasher()
        hasher.combine(bytes: identifier)
        let collaboration = hasher.finalize()
        hasher = Hasher()
        hasher.combine(collaboration)
        root.withUnsafeBytes { hasher.combine(bytes: $0) }
        self.init(
            collaboration: UInt32(truncatingIfNeeded: collaboration),
            participant: UInt32(truncatingIfNeeded: hasher.finalize()))
    }
}
