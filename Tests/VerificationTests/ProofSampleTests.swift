import Core
import Foundation
import Identity
import TestSupport
import Testing

@testable import Verification

/// The refused proofs that a service keeps when it is asked to.
@Suite struct ProofSampleTests {
    private func note(
        _ sample: ProofSample, _ entries: [(collaboration: String, proof: SignedIdentityProof)], _ verdicts: [Verdict]
    ) {
        let packed = PackedProofs(entries)
        var verdicts = verdicts
        packed.proofs.withUnsafeBufferPointer { proofs in
            verdicts.withUnsafeMutableBufferPointer { sample.note(proofs, $0) }
        }
        withExtendedLifetime(packed) {}
    }

    @Test("The last refused proofs are kept as they were sent, the newest first, and no granted one")
    func lastOnes() throws {
        let fixture = try Fixture()
        let sample = ProofSample(capacity: 3, clock: fixture.time.clock)
        let proofs = try (0..<3).map { try fixture.proof(device: $0) }
        note(sample, proofs.map { ("a", $0) }, [.badSignature, .granted, .notParticipant])
        #expect(sample.entries.map(\.verdict) == [.notParticipant, .badSignature])
        #expect(sample.entries.map(\.proof) == [proofs[2], proofs[0]])
        #expect(sample.entries.map(\.number) == [2, 1] && sample.entries[0].collaboration == Array("a".utf8))
        fixture.time.advance(500)
        #expect(sample.age(of: sample.entries[0]) == 500)
        note(sample, [("b", proofs[0]), ("c", proofs[1])], [.badKey, .badIndex])
        #expect(sample.entries.map(\.number) == [4, 3, 2])
        // A pass with more than there are places for keeps its last ones.
        note(sample, (0..<9).map { ("\($0)", proofs[0]) }, [Verdict](repeating: .malformed, count: 9))
        #expect(sample.entries.map(\.collaboration) == ["8", "7", "6"].map { Array($0.utf8) })
    }

    @Test("A proof with a part that is too long to be valid is not kept, and one at all limits has few bytes")
    func longParts() throws {
        let fixture = try Fixture()
        let sample = ProofSample(capacity: 8, clock: fixture.time.clock)
        let name = String(repeating: "n", count: Limits.collaborationBytesMax)
        let hashes = [Digest](repeating: .zero, count: Limits.inclusionHashesMax)
        let longest = SignedIdentityProof(
            publicKey: [UInt8](repeating: 1, count: Limits.publicKeyBytesMax), publicKeyIndex: 1,
            inclusionHashes: hashes, signature: [UInt8](repeating: 2, count: Limits.signatureBytesMax),
            signatureFormat: .der, data: [UInt8](repeating: 3, count: Limits.signedDataBytesMax))
        note(sample, [(name, longest)], [.badKey])
        #expect(sample.entries.map(\.proof) == [longest])
        let bytes = name.utf8.count + longest.publicKey.count + 32 * hashes.count + longest.signature.count
        #expect(bytes + longest.data.count + 5 * 64 <= Limits.sampledProofBytesMax)
        for part in 0..<5 {
            var proof = longest
            switch part {
            case 0: proof.publicKey.append(1)
            case 1: proof.inclusionHashes.append(.zero)
            case 2: proof.signature.append(1)
            case 3: proof.data.append(1)
            default: break
            }
            note(sample, [(part == 4 ? name + "n" : name, proof)], [.badKey])
            #expect(sample.entries.count == 1, "part \(part)")
        }
    }

    @Test("A pool keeps refused proofs with a sample, and proofs without a signature never")
    func pool() throws {
        let fixture = try Fixture()
        let sample = ProofSample(capacity: 4, clock: fixture.time.clock)
        let resources = VerificationResources(
            rootSets: fixture.resources.rootSets, challenges: fixture.resources.challenges,
            nonces: fixture.resources.nonces, sample: sample)
        let pool = try WorkerPool(resources, workerCount: 1, waitingItemsMax: 64)
        defer { pool.close() }
        let good = try fixture.proof()
        var bad = try fixture.proof()
        bad.data[0] ^= 1
        for isSigned in [false, true] {
            let packed = PackedProofs([(Fixture.challenged, good), ("nobody", good), (Fixture.challenged, bad)])
            let done = Shared(false)
            let request = VerificationRequest(count: 3, isSigned: isSigned, wantsRoots: false) { range, proofs in
                _ = proofs.initialize(from: packed.proofs[range])
            } completion: { _, _ in
                done.with { $0 = true }
            }
            #expect(pool.submit(request, from: WorkSource()))
            #expect(becomesTrue { done.value })
            withExtendedLifetime(packed) {}
        }
        #expect(sample.entries.map(\.verdict) == [.challengeForged, .unknownCollaboration])
    }
}
