import Core
import TestSupport
import Testing
import Wire

struct SingleProofsTests {
    private let names: [CollaborationIdentifier]

    init() throws {
        names = [try #require(CollaborationIdentifier("decks")), try #require(CollaborationIdentifier("s"))]
    }

    private func body(
        _ entries: [ProofBatch.Entry], of names: [CollaborationIdentifier], isSigned: Bool = true,
        wantsRoots: Bool = false, atLeast: UInt64 = 0
    ) throws -> [UInt8] {
        try bytes {
            try ProofBatch.append(
                entries, of: names, isSigned: isSigned, wantsRoots: wantsRoots, atLeast: atLeast, to: &$0)
        }
    }

    private func header(_ operation: Wire.Operation, _ body: [UInt8]) -> FrameHeader {
        FrameHeader(bodyLength: body.count, kind: .request, operation: operation.rawValue, requestID: 7)
    }

    private func takes(_ operation: Wire.Operation, _ body: [UInt8], isSigned: Bool = true) -> Bool {
        var proofs = SingleProofs(isSigned: isSigned)
        let isTaken = body.withUnsafeBytes { proofs.append(header(operation, body), $0, at: 0) }
        #expect(proofs.count == (isTaken ? 1 : 0))
        return isTaken
    }

    @Test("Proofs of a series come back as they were sent", arguments: [true, false])
    func roundTrip(isSigned: Bool) throws {
        var generator = SeededGenerator(seed: runSeed)
        let operation: Wire.Operation = isSigned ? .verify : .verifyInclusion
        let sent = (0..<40).map { _ in (Int.random(in: 0...1, using: &generator), generator.proof()) }
        var frames: [UInt8] = []
        var proofs = SingleProofs(isSigned: isSigned)
        for (number, (name, proof)) in sent.enumerated() {
            let body = try body([(0, proof)], of: [names[name]], isSigned: isSigned, atLeast: UInt64(number))
            let isTaken = body.withUnsafeBytes { proofs.append(header(operation, body), $0, at: frames.count) }
            #expect(isTaken, "seed \(runSeed), proof \(number)")
            FrameWriter.append(.request, operation.rawValue, requestID: 7, to: &frames) { $0 += body }
        }
        #expect(proofs.count == sent.count && proofs.atLeast == 39)
        let received = ScratchBuffer<BorrowedProof>(uninitializedCount: 30)
        frames.withUnsafeBytes { bytes in
            proofs.read(5..<35, in: bytes, into: received.elements)
            for (place, (name, proof)) in sent[5..<35].enumerated() {
                let found = received[place]
                let comment: Comment = "seed \(runSeed), proof \(place + 5)"
                #expect(Array(found.collaboration) == names[name].utf8, comment)
                #expect(Array(proofs.collaboration(at: place + 5, in: bytes)) == names[name].utf8, comment)
                #expect(Array(found.publicKey) == proof.publicKey, comment)
                #expect(found.publicKeyIndex == proof.publicKeyIndex, comment)
                #expect(found.inclusionHashCount == proof.inclusionHashes.count, comment)
                guard isSigned else { continue }
                #expect(Array(found.signature) == proof.signature && Array(found.data) == proof.data, comment)
            }
        }
    }

    @Test("A request that is more than one proof, or not correct, is in no series")
    func others() throws {
        var generator = SeededGenerator(seed: runSeed)
        let proof = generator.proof()
        let one = try body([(0, proof)], of: [names[0]])
        #expect(takes(.verify, one))
        #expect(!takes(.verify, one, isSigned: false))
        for operation in [Wire.Operation.open, .ping, .checkGrants] { #expect(!takes(operation, one)) }
        #expect(!takes(.verify, try body([(0, proof), (0, proof)], of: [names[0]])))
        #expect(!takes(.verify, try body([], of: [names[0]])))
        #expect(!takes(.verify, try body([(0, proof)], of: names)))
        #expect(!takes(.verify, try body([(1, proof)], of: [names[0]])))
        #expect(!takes(.verify, try body([(0, proof)], of: [names[0]], wantsRoots: true)))
        #expect(!takes(.verify, one + [0]))
        for count in 0..<one.count { #expect(!takes(.verify, Array(one[..<count])), "\(count) bytes") }
        var reserved = one
        reserved[9] = 1
        #expect(!takes(.verify, reserved))
    }

    @Test("Each request of a series gets an answer or error of its own", arguments: [true, false])
    func answers(isSigned: Bool) throws {
        var proofs = SingleProofs(isSigned: isSigned)
        let operation: Wire.Operation = isSigned ? .verify : .verifyInclusion
        var generator = SeededGenerator(seed: runSeed)
        let identifiers: [UInt64] = [1, .max, 0x0102_0304_0506_0708]
        for requestID in identifiers {
            let body = try body([(0, generator.proof())], of: [names[0]], isSigned: isSigned)
            let header = FrameHeader(
                bodyLength: body.count, kind: .request, operation: operation.rawValue, requestID: requestID)
            #expect(body.withUnsafeBytes { proofs.append(header, $0, at: 0) })
        }
        let verdicts: [Verdict] = [.granted, .badSignature, .unknownCollaboration]
        var answers: [UInt8] = []
        verdicts.withUnsafeBufferPointer { proofs.append(answers: $0, to: &answers) }
        // As PROTOCOL.md has it: the header, one proof, no flags, three zeros, the verdict.
        var expected: [UInt8] = []
        for (requestID, verdict) in zip(identifiers, verdicts) {
            expected += field(UInt32(9)) + [1, 2] + field(operation.rawValue) + field(requestID)
            expected += field(UInt32(1)) + [0, 0, 0, 0, verdict.rawValue]
        }
        #expect(answers == expected)

        var errors: [UInt8] = []
        proofs.append(error: ServiceError(.busy, "later"), to: &errors)
        let (found, texts) = errors.withUnsafeBytes { bytes in
            var frames = FrameReader(bytes, expecting: [.error])
            var found: [UInt64] = []
            var texts: [String] = []
            while let frame = frames.next() {
                found.append(frame.header.requestID)
                texts.append((try? FrameWriter.decodeError(frame.body))?.reason ?? "")
            }
            return (found, texts)
        }
        #expect(found == identifiers && texts == ["later", "later", "later"])
    }

    @Test("Proofs that are encoded one by one make the same request as together", arguments: [true, false])
    func encodedApart(isSigned: Bool) throws {
        var generator = SeededGenerator(seed: runSeed)
        let entries = (0..<9).map { ($0 % 2, generator.proof()) }
        let together = try body(entries, of: names, isSigned: isSigned, atLeast: 3)
        let apart = try bytes { bytes in
            try ProofBatch.appendHead(ofEncoded: entries.count, of: names, atLeast: 3, to: &bytes)
            for (collaboration, proof) in entries {
                let encoded = try ProofBatch.encoded(proof, isSigned: isSigned)
                ProofBatch.append(encoded: encoded, at: collaboration, to: &bytes)
            }
        }
        #expect(apart == together, "seed \(runSeed)")
    }
}
