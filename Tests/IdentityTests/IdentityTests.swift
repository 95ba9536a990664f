import Core
import Hashing
import Identity
import Merkle
import Signatures
import TestSupport
import Testing

/// Whether the proof's signature verifies under its own key.
private func signatureHolds(_ proof: SignedIdentityProof) throws -> Bool {
    try proof.publicKey.withUnsafeBytes { key in
        try proof.signature.withUnsafeBytes { signature in
            guard let point = PublicKeyEncoding.point(in: key),
                let scalars = SignatureEncoding.scalars(in: signature, format: proof.signatureFormat)
            else { return false }
            let check = SignatureCheck(point: point, scalars: scalars, digest: SHA256.hash(proof.data))
            return try SignatureVerifier().verify(check) == .valid
        }
    }
}

/// The root hash by the reference alone.
private func referenceRoot(_ proof: SignedIdentityProof) -> [UInt8] {
    ReferenceMerkle.climb(
        from: ReferenceSHA256.hash(proof.publicKey), index: proof.publicKeyIndex,
        siblings: proof.inclusionHashes.map(\.bytes))
}

struct DeviceTests {
    private let decks: CollaborationIdentifier
    private let notes: CollaborationIdentifier

    init() throws {
        decks = try #require(CollaborationIdentifier("decks"))
        notes = try #require(CollaborationIdentifier("notes"))
    }

    @Test("A device has the same key in a collaboration every time, and another one in every other")
    func keys() throws {
        let device = Device(random: .seeded(runSeed))
        let key = try device.key(in: decks).uncompressedPoint
        #expect(try device.key(in: decks).uncompressedPoint == key)
        #expect(try device.key(in: notes).uncompressedPoint != key)
        var points: Set<[UInt8]> = []
        for index in 0..<50 {
            let collaboration = try #require(CollaborationIdentifier("c\(index)"))
            points.insert(try device.key(in: collaboration).uncompressedPoint)
        }
        #expect(points.count == 50)
    }

    @Test("Two devices have different keys in one collaboration")
    func devices() throws {
        let a = try Device().key(in: decks).uncompressedPoint
        let b = try Device().key(in: decks).uncompressedPoint
        #expect(a != b)
    }

    @Test("Each encoding of a key is what its name says", arguments: KeyEncoding.allCases)
    func encodings(encoding: KeyEncoding) throws {
        let key = try Device(random: .seeded(runSeed)).key(in: decks)
        let encoded = encoding.bytes(of: key)
        let x = Array(key.uncompressedPoint[1...32])
        switch encoding {
        case .uncompressed: #expect(encoded.count == 65 && encoded[0] == 4 && Array(encoded[1...32]) == x)
        case .compressed: #expect(encoded.count == 33 && encoded[0] & 0xfe == 2 && Array(encoded[1...]) == x)
        case .subjectPublicKeyInfo: #expect(encoded.count == 91 && encoded.suffix(65) == key.uncompressedPoint[...])
        }
        #expect(encoded.withUnsafeBytes { PublicKeyEncoding.point(in: $0) != nil })
    }
}

struct PersonTests {
    private let decks: CollaborationIdentifier

    init() throws {
        decks = try #require(CollaborationIdentifier("decks"))
    }

    @Test("Every device's proof leads to the root hash and verifies", arguments: KeyEncoding.allCases)
    func proofs(encoding: KeyEncoding) throws {
        for deviceCount in [1, 3, 8, 9] {
            let person = Person(deviceCount: deviceCount, random: .seeded(runSeed &+ UInt64(deviceCount)))
            let identity = try person.identity(in: decks, encoding: encoding, random: .seeded(runSeed))
            #expect(identity.tree.leafCount == (deviceCount > 8 ? 16 : 8))
            for device in 0..<deviceCount {
                let context: Comment = "seed \(runSeed), device \(device) of \(deviceCount)"
                for format in SignatureFormat.allCases {
                    let data = Array("challenge \(device)".utf8)
                    let proof = try identity.proof(ofDevice: device, signing: data, format: format)
                    #expect(proof.data == data, context)
                    #expect(proof.signatureFormat == format, context)
                    #expect(proof.publicKey == encoding.bytes(of: try person.devices[device].key(in: decks)), context)
                    #expect(proof.publicKeyIndex == UInt64(device), context)
                    #expect(referenceRoot(proof) == identity.rootHash.bytes, context)
                    #expect(try signatureHolds(proof), context)
                }
            }
        }
    }

    @Test("The same person has different root hashes in different collaborations")
    func unlinkable() throws {
        let notes = try #require(CollaborationIdentifier("notes"))
        let person = Person(deviceCount: 8)
        let here = try person.identity(in: decks)
        let there = try person.identity(in: notes)
        #expect(here.rootHash != there.rootHash)
        #expect(Set(here.publicKeys).isDisjoint(with: there.publicKeys))
    }

    @Test("The encoding decides on the root hash: the leaf is the hash of the bytes sent")
    func encodingCounts() throws {
        let person = Person(deviceCount: 8)
        let roots = try KeyEncoding.allCases.map { try person.identity(in: decks, encoding: $0).rootHash }
        #expect(Set(roots).count == 3)
    }

    @Test("A person has at least one device")
    func noDevices() {
        #expect(Person(deviceCount: 0).devices.count == 1)
        #expect(Person(deviceCount: -1).devices.count == 1)
    }

    @Test("A device that the person does not have gives no proof")
    func unknownDevice() throws {
        let identity = try Person(deviceCount: 2).identity(in: decks)
        for index in [-1, 2, 8] {
            #expect(throws: ServiceError(.internalFault, "")) { try identity.proof(ofDevice: index, signing: [1]) }
        }
    }
}

struct ForgeryTests {
    private let genuine: SignedIdentityProof
    private let stranger: PrivateKey

    init() throws {
        let decks = try #require(CollaborationIdentifier("decks"))
        let identity = try Person(deviceCount: 3, random: .seeded(runSeed))
            .identity(in: decks, random: .seeded(runSeed &+ 2))
        var generator = SeededGenerator(seed: runSeed)
        genuine = try identity.proof(ofDevice: 1, signing: generator.bytes(48))
        stranger = try PrivateKey(random: .seeded(runSeed &+ 4))
    }

    @Test("The genuine proof holds")
    func control() throws {
        #expect(try signatureHolds(genuine))
    }

    @Test("Every forgery differs from the genuine proof and is a refusal", arguments: Forgery.allCases)
    func differs(forgery: Forgery) throws {
        let spoiled = try forgery.spoil(genuine, stranger: stranger)
        #expect(spoiled != genuine)
        #expect(forgery.verdict.isRefusal)
    }

    @Test("No two forgeries of one proof are the same")
    func distinct() throws {
        let spoiled = try Forgery.allCases.map { try $0.spoil(genuine, stranger: stranger) }
        #expect(Set(spoiled).count == Forgery.allCases.count)
        #expect(Set(Forgery.allCases.map(\.rawValue)).count == Forgery.allCases.count)
    }

    @Test("A forgery spoils the part that its verdict names", arguments: Forgery.allCases)
    func fitsVerdict(forgery: Forgery) throws {
        let proof = try forgery.spoil(genuine, stranger: stranger)
        let keepsShape = proof.inclusionHashes.count <= 32 && proof.data.count <= 4096
        let keepsKey = proof.publicKey.withUnsafeBytes { PublicKeyEncoding.point(in: $0) != nil }
        let keepsIndex = proof.publicKeyIndex >> UInt64(min(proof.inclusionHashes.count, 63)) == 0
        let keepsEncoding = proof.signature.withUnsafeBytes {
            SignatureEncoding.scalars(in: $0, format: proof.signatureFormat) != nil
        }
        let keepsData = proof.data == genuine.data
        let keepsRoot = referenceRoot(proof) == referenceRoot(genuine)
        let keepsSignature = try signatureHolds(proof)
        switch forgery.verdict {
        case .malformed: #expect(!keepsShape)
        case .badKey: #expect(keepsShape && !keepsKey)
        case .badIndex: #expect(keepsShape && keepsKey && !keepsIndex)
        case .badSignatureEncoding: #expect(keepsShape && keepsKey && keepsIndex && !keepsEncoding)
        case .challengeForged: #expect(keepsShape && keepsKey && keepsIndex && keepsEncoding && !keepsData)
        case .notParticipant:
            #expect(keepsShape && keepsKey && keepsIndex && keepsEncoding && keepsData && !keepsRoot)
        case .badSignature:
            #expect(keepsShape && keepsKey && keepsIndex && keepsEncoding && keepsData && keepsRoot && !keepsSignature)
        default: Issue.record("nothing is known of \(forgery.verdict)")
        }
    }
}
