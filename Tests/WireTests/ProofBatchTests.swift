import Core
import TestSupport
import Testing
import Wire

struct ProofBatchTests {
    private let names: [CollaborationIdentifier]

    init() throws {
        names = [try #require(CollaborationIdentifier("decks")), try #require(CollaborationIdentifier("s"))]
    }

    private func body(
        _ entries: [ProofBatch.Entry], signed: Bool = true, wantsRoots: Bool = false, atLeast: UInt64 = 0
    ) throws -> [UInt8] {
        try bytes {
            try ProofBatch.append(
                entries, of: names, isSigned: signed, wantsRoots: wantsRoots, atLeast: atLeast, to: &$0)
        }
    }

    private func error(_ body: [UInt8], signed: Bool = true) -> ServiceError? {
        thrownServiceError { _ = try body.withUnsafeBytes { try ProofBatch($0, isSigned: signed) } }
    }

    /// The first 16 bytes of a body that demands no sequence and has no flags.
    private func head(_ collaborations: UInt16, _ proofs: UInt32) -> [UInt8] {
        [UInt8](repeating: 0, count: 10) + field(collaborations) + field(proofs)
    }

    private func small() -> SignedIdentityProof {
        SignedIdentityProof(
            publicKey: [4, 5], publicKeyIndex: 1, inclusionHashes: [.zero], signature: [6], signatureFormat: .der,
            data: [7, 8])
    }

    @Test("Random batches come back proof by proof", arguments: [true, false])
    func roundTrip(signed: Bool) throws {
        for iteration in 0..<50 {
            var generator = SeededGenerator(seed: runSeed &+ UInt64(iteration))
            let context: Comment = "seed \(runSeed), iteration \(iteration)"
            let entries = (0..<Int.random(in: 0...9, using: &generator)).map { _ -> ProofBatch.Entry in
                (Int.random(in: 0...1, using: &generator), generator.proof())
            }
            let wantsRoots = Bool.random(using: &generator)
            let atLeast = Bool.random(using: &generator) ? UInt64.random(in: 1 ... .max, using: &generator) : 0
            let body = try body(entries, signed: signed, wantsRoots: wantsRoots, atLeast: atLeast)
            let batch = try body.withUnsafeBytes { try ProofBatch($0, isSigned: signed) }
            #expect(batch.count == entries.count, context)
            #expect(batch.wantsRoots == wantsRoots, context)
            #expect(batch.isSigned == signed, context)
            #expect(batch.atLeast == atLeast, context)
            for (index, entry) in entries.enumerated() {
                let proof = copy(batch, at: index, in: body)
                #expect(proof.collaboration == names[entry.collaboration].utf8, context)
                #expect(proof.index == entry.proof.publicKeyIndex, context)
                #expect(proof.key == entry.proof.publicKey, context)
                #expect(proof.siblings == entry.proof.inclusionHashes.flatMap(\.bytes), context)
                #expect(proof.format == (signed ? entry.proof.signatureFormat.rawValue : 0), context)
                #expect(proof.signature == (signed ? entry.proof.signature : []), context)
                #expect(proof.data == (signed ? entry.proof.data : []), context)
            }
        }
    }

    @Test("Proofs that name the same collaboration have the same address")
    func sameAddress() throws {
        let body = try body([(0, small()), (1, small()), (0, small())])
        try body.withUnsafeBytes { bytes in
            let batch = try ProofBatch(bytes, isSigned: true)
            let addresses = (0..<3).map { batch.proof(at: $0, in: bytes).collaboration.baseAddress }
            #expect(addresses[0] == addresses[2])
            #expect(addresses[0] != addresses[1])
        }
    }

    @Test("Every truncation is malformed", arguments: [true, false], [0, 9] as [UInt64])
    func truncations(signed: Bool, atLeast: UInt64) throws {
        let whole = try body([(0, small()), (1, small()), (0, small())], signed: signed, atLeast: atLeast)
        #expect(error(whole, signed: signed) == nil)
        for length in 0..<whole.count {
            #expect(
                error(Array(whole.prefix(length)), signed: signed)?.code == .malformedRequest,
                "\(length) of \(whole.count) bytes")
        }
    }

    @Test("A byte behind the last proof is malformed", arguments: [true, false])
    func trailing(signed: Bool) throws {
        #expect(error(try body([(0, small())], signed: signed) + [0], signed: signed)?.code == .malformedRequest)
        #expect(error(try body([], signed: signed) + [0], signed: signed)?.code == .malformedRequest)
    }

    @Test("A reserved bit of the flags or of the zero byte is malformed")
    func reserved() throws {
        let whole = try body([(0, small())])
        for bit in 0..<16 {
            var changed = whole
            changed[8 + bit / 8] ^= 1 << UInt8(bit % 8)
            #expect((error(changed)?.code == .malformedRequest) == (bit != 0), "bit \(bit)")
        }
    }

    @Test("A position that names no collaboration makes the whole request malformed")
    func position() throws {
        for position in [2, 3, 65_535] {
            #expect(error(try body([(0, small()), (position, small())]))?.code == .malformedRequest, "\(position)")
        }
        // Without collaborations there is nothing to name.
        let proof = field(UInt16(0)) + [UInt8](repeating: 0, count: 14)
        #expect(error(head(0, 1) + proof)?.code == .malformedRequest)
        #expect(error(head(0, 0)) == nil)
    }

    @Test("4,096 proofs are the most, 4,097 are over the limit", arguments: [true, false])
    func proofs(signed: Bool) throws {
        let proof = [UInt8](repeating: 0, count: signed ? 16 : 12)
        func body(_ count: Int) -> [UInt8] {
            head(1, UInt32(count)) + [1, 0x61] + Array(repeatElement(proof, count: count).joined())
        }
        #expect(try body(4096).withUnsafeBytes { try ProofBatch($0, isSigned: signed).count } == 4096)
        for over in [body(4097), head(1, .max)] {
            #expect(error(over, signed: signed)?.code == .limitExceeded)
            #expect(error(over, signed: signed)?.detail == 4096)
        }
    }

    @Test("4,096 collaborations are the most, 4,097 are over the limit")
    func collaborations() {
        func body(_ count: Int) -> [UInt8] {
            head(UInt16(count), 0) + Array(repeatElement([1, 0x61], count: count).joined())
        }
        #expect(error(body(4096)) == nil)
        #expect(error(body(4097))?.code == .limitExceeded)
        #expect(error(body(4097))?.detail == 4096)
        #expect(error(body(65_535))?.code == .limitExceeded)
    }

    @Test("An identifier that breaks the rules is left for the verdict")
    func brokenIdentifier() throws {
        let body: [UInt8] = head(1, 1) + [0] + [UInt8](repeating: 0, count: 16)
        let batch = try body.withUnsafeBytes { try ProofBatch($0, isSigned: true) }
        #expect(copy(batch, at: 0, in: body).collaboration.isEmpty)
    }

    @Test("An encoder given too many or too much throws limitExceeded")
    func encoderLimits() throws {
        func code(_ entries: [ProofBatch.Entry], of names: [CollaborationIdentifier]) -> ServiceError.Code? {
            thrownServiceError {
                _ = try bytes {
                    try ProofBatch.append(entries, of: names, isSigned: true, wantsRoots: false, to: &$0)
                }
            }?.code
        }
        #expect(code(Array(repeating: (0, small()), count: 4096), of: names) == nil)
        #expect(code(Array(repeating: (0, small()), count: 4097), of: names) == .limitExceeded)
        #expect(code([], of: Array(repeating: names[0], count: 4097)) == .limitExceeded)
        var proof = small()
        proof.publicKey = [UInt8](repeating: 1, count: 256)
        #expect(code([(0, proof)], of: names) == .limitExceeded)
        proof = small()
        proof.signature = [UInt8](repeating: 1, count: 256)
        #expect(code([(0, proof)], of: names) == .limitExceeded)
        proof = small()
        proof.inclusionHashes = Array(repeating: .zero, count: 256)
        #expect(code([(0, proof)], of: names) == .limitExceeded)
        proof = small()
        proof.data = [UInt8](repeating: 1, count: 65_536)
        #expect(code([(0, proof)], of: names) == .limitExceeded)
    }
}
