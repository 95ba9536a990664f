import Core
import TestSupport
import Testing
import Wire

/// The annotated examples of PROTOCOL.md, against the code, in both directions.
@Suite struct ExampleTests {
    private let examples: [String: [UInt8]]

    init() throws {
        examples = Dictionary(
            uniqueKeysWithValues: try ProtocolDocument().hexBlocks.map { ($0.name, try #require($0.bytes)) })
    }

    private func frame(
        _ kind: FrameKind, _ operation: Operation, _ id: UInt64, _ body: (inout [UInt8]) throws -> Void
    ) rethrows -> [UInt8] {
        var content: [UInt8] = []
        try body(&content)
        var bytes: [UInt8] = []
        FrameWriter.append(kind, operation.rawValue, requestID: id, to: &bytes) { $0 += content }
        return bytes
    }

    private func body(_ name: String) throws -> [UInt8] {
        Array(try #require(examples[name]).dropFirst(Limits.frameHeaderBytes))
    }

    private func request(_ name: String) throws -> Request {
        let bytes = try #require(examples[name])
        guard case .frame(let header) = bytes.withUnsafeBytes({ FrameScanner.scan($0, expecting: [.request]) }) else {
            throw ServiceError(.malformedFrame, name)
        }
        return try body(name).withRawBytes { body throws(ServiceError) in
            try Request.decode(operation: header.operation, body: body)
        }
    }

    private var decks: CollaborationIdentifier {
        get throws { try #require(CollaborationIdentifier("decks")) }
    }

    private func digest(_ byte: UInt8) throws -> Digest {
        try #require(Digest([UInt8](repeating: byte, count: 32)))
    }

    @Test func everyExampleIsHereOrBelow() {
        #expect(
            Set(examples.keys) == [
                "error-answer", "hello-request", "hello-answer", "challenges-request", "verify-request",
                "verify-answer", "inclusion-request", "create-request", "add-request", "receipt-answer", "list-request",
            ])
    }

    @Test func requestsWithoutProofs() throws {
        let mutation = { (first: UInt8) in
            MutationIdentifier((0..<16).reduce(UInt128(0)) { $0 | UInt128(first + UInt8($1)) << UInt128(8 * $1) })
        }
        let cases: [(name: String, id: UInt64, request: Request)] = [
            ("hello-request", 1, .hello(minimum: 1, maximum: 1)),
            ("challenges-request", 2, .issueChallenges(count: 16)),
            ("create-request", 5, .mutate(Mutation(identifier: mutation(0), .createCollaboration(try decks, .challenge)))),
            ("add-request", 6, .mutate(Mutation(identifier: mutation(16), .addRoots(try decks, [try digest(0xa7)])))),
            ("list-request", 7, .listRoots(try decks, after: try digest(0xa7), limit: 4096)),
        ]
        for (name, id, expected) in cases {
            #expect(frame(.request, expected.operation, id) { expected.append(to: &$0) } == examples[name], "\(name)")
            #expect(String(describing: try request(name)) == String(describing: expected), "\(name)")
        }
    }

    @Test func theErrorAnswer() throws {
        let error = ServiceError(.unknownCollaboration, "there is no collaboration of that name.")
        var bytes: [UInt8] = []
        FrameWriter.appendError(error, operation: Operation.listRoots.rawValue, requestID: 7, to: &bytes)
        #expect(bytes == examples["error-answer"])
        let decoded = try body("error-answer").withRawBytes { body throws(ServiceError) in
            try FrameWriter.decodeError(body)
        }
        #expect(decoded == error)
        #expect(decoded.reason == error.reason)
    }

    @Test func theHelloAnswer() throws {
        let answer = HelloAnswer(
            version: 1, features: [.challenges, .deviceNonces, .inclusionOnly, .changeLog], limits: [13: 48],
            software: "rootgate")
        #expect(frame(.answer, .hello, 1) { answer.append(to: &$0) } == examples["hello-answer"])
        #expect(try body("hello-answer").withRawBytes { body throws(ServiceError) in try HelloAnswer(body) } == answer)
    }

    @Test func theReceipt() throws {
        let receipt = MutationReceipt(sequence: 2, changed: 1, isRepeat: false)
        #expect(frame(.answer, .addRoots, 6) { Answer.append(receipt, to: &$0) } == examples["receipt-answer"])
        #expect(try body("receipt-answer").withRawBytes { body throws(ServiceError) in try Answer.receipt(body) } == receipt)
    }

    @Test func theVerifyRequest() throws {
        let proof = SignedIdentityProof(
            publicKey: [2] + [UInt8](repeating: 0xa1, count: 32), publicKeyIndex: 1, inclusionHashes: [try digest(0xb2)],
            signature: [UInt8](repeating: 0xc3, count: 8), signatureFormat: .raw, data: [UInt8](repeating: 0xd4, count: 17))
        let bytes = try frame(.request, .verify, 3) {
            try ProofBatch.append([(0, proof)], of: [try decks], isSigned: true, wantsRoots: true, to: &$0)
        }
        #expect(bytes == examples["verify-request"])
        try body("verify-request").withUnsafeBytes { body in
            let batch = try ProofBatch(body, isSigned: true)
            #expect(batch.count == 1 && batch.wantsRoots)
            let read = batch.proof(at: 0, in: body)
            #expect(Array(read.collaboration) == Array("decks".utf8))
            #expect(Array(read.publicKey) == proof.publicKey)
            #expect(read.publicKeyIndex == 1)
            #expect(read.inclusionHashCount == 1)
            #expect(Digest(at: read.inclusionHashes) == proof.inclusionHashes[0])
            #expect(read.signatureFormat == 2)
            #expect(Array(read.signature) == proof.signature)
            #expect(Array(read.data) == proof.data)
        }
    }

    @Test func theVerifyAnswer() throws {
        let verdicts: [Verdict] = [.granted, .badSignatureEncoding]
        let roots = [try digest(0xe5), .zero]
        let bytes = frame(.answer, .verify, 3) { bytes in
            verdicts.withUnsafeBufferPointer { verdicts in
                roots.withUnsafeBufferPointer { VerdictList.append(verdicts, roots: $0, to: &bytes) }
            }
        }
        #expect(bytes == examples["verify-answer"])
        let decoded = try body("verify-answer").withRawBytes { body throws(ServiceError) in try VerdictList.decode(body) }
        #expect(decoded.verdicts == verdicts)
        #expect(decoded.roots == roots)
    }

    @Test func theInclusionRequest() throws {
        let proof = SignedIdentityProof(
            publicKey: [3] + [UInt8](repeating: 0xf6, count: 32), publicKeyIndex: 0, inclusionHashes: [],
            signature: [], signatureFormat: .der, data: [])
        let bytes = try frame(.request, .verifyInclusion, 4) {
            try ProofBatch.append([(0, proof)], of: [try decks], isSigned: false, wantsRoots: false, to: &$0)
        }
        #expect(bytes == examples["inclusion-request"])
        try body("inclusion-request").withUnsafeBytes { body in
            let batch = try ProofBatch(body, isSigned: false)
            #expect(batch.count == 1 && !batch.wantsRoots)
            #expect(Array(batch.proof(at: 0, in: body).publicKey) == proof.publicKey)
        }
    }
}
