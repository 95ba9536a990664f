import Core
import Hashing
import Identity
import Merkle
import Signatures
import TestSupport
import Testing

@Suite struct IdentityTests {
    private func collaboration(_ name: String) throws -> CollaborationIdentifier {
        try #require(CollaborationIdentifier(name))
    }

    @Test func aDeviceHasAnotherKeyInEveryCollaborationAndTheSameOneEachTime() throws {
        let device = Device()
        let first = try device.key(in: collaboration("a")).uncompressedPoint
        #expect(try device.key(in: collaboration("a")).uncompressedPoint == first)
        #expect(try device.key(in: collaboration("b")).uncompressedPoint != first)
        #expect(try Device().key(in: collaboration("a")).uncompressedPoint != first)
    }

    @Test func aSeedMakesTheSamePeopleAgain() throws {
        let name = try collaboration("a")
        func root(_ seed: UInt64) throws -> Digest {
            let random = RandomSource.seeded(seed)
            return try Person(deviceCount: 2, random: random).identity(in: name, random: random).rootHash
        }
        #expect(try root(5) == root(5))
        #expect(try root(5) != root(7))
    }

    @Test(arguments: KeyEncoding.allCases, SignatureFormat.allCases)
    func everyDevicesProofLeadsToTheRootAndItsSignatureVerifies(_ encoding: KeyEncoding, _ format: SignatureFormat) throws {
        let identity = try Person(deviceCount: 5).identity(in: collaboration("a"), encoding: encoding)
        #expect(identity.tree.leafCount == 8)
        let verifier = try SignatureVerifier()
        for device in 0..<5 {
            let proof = try identity.proof(ofDevice: device, signing: [1, 2, 3], format: format)
            #expect(proof.signatureFormat == format)
            let path = InclusionProof(index: proof.publicKeyIndex, siblings: proof.inclusionHashes)
            #expect(path.root(from: SHA256.hash(proof.publicKey)) == identity.rootHash)
            let outcome = try proof.publicKey.withUnsafeBytes { key in
                let scalars = proof.signature.withUnsafeBytes { SignatureEncoding.scalars(in: $0, format: format) }
                return try verifier.verify(
                    SignatureCheck(
                        point: #require(PublicKeyEncoding.point(in: key)), scalars: #require(scalars),
                        digest: SHA256.hash([1, 2, 3])))
            }
            #expect(outcome == .valid)
        }
        #expect(throws: ServiceError.self) { try identity.proof(ofDevice: 5, signing: []) }
    }

    @Test(arguments: Forgery.allCases)
    func everyForgeryChangesTheProof(_ forgery: Forgery) throws {
        let genuine = try Person(deviceCount: 2).identity(in: collaboration("a"))
            .proof(ofDevice: 0, signing: RandomSource.system.bytes(48))
        #expect(try forgery.spoil(genuine, stranger: PrivateKey()) != genuine)
        #expect(forgery.verdict.isRefusal)
    }
}
