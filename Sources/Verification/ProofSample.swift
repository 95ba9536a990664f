package import Core

/// The last signed proofs that were refused, for whoever has to find out why. A service has one only when its operator
/// asks for it: a proof has a device's key, and its root hash stands for a person in a collaboration.
package final class ProofSample: Sendable {
    /// A refused proof, as it was sent.
    package struct Entry: Sendable {
        /// Tells the proof from every other one that was kept since the start.
        package let number: UInt64
        /// When it was refused, in milliseconds of the sample's clock.
        package let milliseconds: UInt64
        package let verdict: Verdict
        /// Of the collaboration that its request named; it need not be a valid identifier.
        package let collaboration: [UInt8]
        package let proof: SignedIdentityProof
    }

    private struct State {
        var entries: [Entry] = []
        var count: UInt64 = 0
    }

    /// Proofs that are kept at most.
    package let capacity: Int
    private let clock: MonotonicClock
    private let state = Lock(State())

    package init(capacity: Int, clock: MonotonicClock) {
        precondition((1...Limits.sampledProofsMax).contains(capacity), "a sample keeps too many proofs, or none")
        self.capacity = capacity
        self.clock = clock
    }

    /// What is kept, the newest first.
    package var entries: [Entry] { state.withLock { $0.entries }.reversed() }

    /// How long ago something was kept, in milliseconds.
    package func age(of entry: Entry) -> UInt64 { clock.milliseconds - min(clock.milliseconds, entry.milliseconds) }

    /// Keeps the refused ones of a pass, and forgets as many old ones as there is no place for. A proof with a part
    /// that is longer than any that can be valid is not kept.
    func note(_ proofs: UnsafeBufferPointer<BorrowedProof>, _ verdicts: UnsafeMutableBufferPointer<Verdict>) {
        let refused = verdicts.indices.filter { verdicts[$0].isRefusal && proofs[$0].fitsSample }.suffix(capacity)
        guard !refused.isEmpty else { return }
        let now = clock.milliseconds
        // Copied before the lock is taken: other workers have passes, too.
        let copies = refused.map { (verdicts[$0], proofs[$0]) }.map { verdict, proof in
            (verdict, Array(proof.collaboration), proof.copy)
        }
        state.withLock { state in
            for (verdict, collaboration, proof) in copies {
                state.count += 1
                state.entries.append(
                    Entry(
                        number: state.count, milliseconds: now, verdict: verdict, collaboration: collaboration,
                        proof: proof))
            }
            state.entries.removeFirst(max(0, state.entries.count - capacity))
        }
    }
}

extension BorrowedProof {
    /// Whether no part is longer than one of a valid proof, and its signature has a format that there is.
    fileprivate var fitsSample: Bool {
        collaboration.count <= Limits.collaborationBytesMax && publicKey.count <= Limits.publicKeyBytesMax
            && inclusionHashCount <= Limits.inclusionHashesMax && signature.count <= Limits.signatureBytesMax
            && data.count <= Limits.signedDataBytesMax && SignatureFormat(rawValue: signatureFormat) != nil
    }

    fileprivate var copy: SignedIdentityProof {
        let siblings = (0..<inclusionHashCount).map { Digest(at: inclusionHashes + $0 * Digest.byteCount) }
        return SignedIdentityProof(
            publicKey: Array(publicKey), publicKeyIndex: publicKeyIndex, inclusionHashes: siblings,
            signature: Array(signature), signatureFormat: SignatureFormat(rawValue: signatureFormat) ?? .der,
            data: Array(data))
    }
}
