import Core
import TestSupport
import Testing
import Wire

/// The examples of PROTOCOL.md, written and read.
struct ProtocolExamplesTests {
    private static let decks = CollaborationIdentifier("decks")
    private static func digest(_ byte: UInt8) -> Digest { Digest([UInt8](repeating: byte, count: 32)) ?? .zero }

    private static let names = [
        "error-answer", "hello-request", "hello-answer", "challenges-request", "verify-request", "verify-answer",
        "inclusion-request", "create-request", "add-request", "receipt-answer", "list-request",
        "collaborate-request", "check-request",
    ]

    private static let verifyProof = SignedIdentityProof(
        publicKey: [2] + [UInt8](repeating: 0xa1, count: 32), publicKeyIndex: 1, inclusionHashes: [digest(0xb2)],
        signature: [UInt8](repeating: 0xc3, count: 8), signatureFormat: .raw,
        data: [UInt8](repeating: 0xd4, count: 17))
    private static let inclusionProof = SignedIdentityProof(
        publicKey: [3] + [UInt8](repeating: 0xf6, count: 32), publicKeyIndex: 0, inclusionHashes: [],
        signature: [], signatureFormat: .der, data: [])
    private static let hello = HelloAnswer(
        version: 1, features: [.challenges, .deviceNonces, .inclusionOnly, .changeLog], limits: [13: 48],
        software: "rootgate")
    private static let verdicts: [Verdict] = [.granted, .badSignatureEncoding]
    private static let roots = [digest(0xe5), .zero]
    private static let receipt = MutationReceipt(sequence: 2, changed: 1, isRepeat: false)
    private static let error = ServiceError(
        .unknownCollaboration, "there is no collaboration of that name.")

    /// The requests other than verify that the examples stand for.
    private static func request(_ name: String) -> (Request, id: UInt64)? {
        guard let decks else { return nil }
        switch name {
        case "hello-request": return (.hello(minimum: 1, maximum: 1), 1)
        case "challenges-request": return (.issueChallenges(count: 16), 2)
        case "create-request":
            let identifier = MutationIdentifier(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100)
            return (.mutate(Mutation(identifier: identifier, .createCollaboration(decks, .challenge))), 5)
        case "add-request":
            let identifier = MutationIdentifier(0x1f1e_1d1c_1b1a_1918_1716_1514_1312_1110)
            return (.mutate(Mutation(identifier: identifier, .addRoots(decks, [digest(0xa7)]))), 6)
        case "collaborate-request":
            let identifier = MutationIdentifier(0x2f2e_2d2c_2b2a_2928_2726_2524_2322_2120)
            let json = Array(#"{"collaboration":"deck"}"#.utf8)
            return (.collaborate(CollaborationCall(identifier: identifier, name: "stopSharing", json: json)), 8)
        case "list-request": return (.listRoots(decks, after: digest(0xa7), limit: 4096), 7)
        default: return nil
        }
    }

    private func example(_ name: String) throws -> [UInt8] {
        let blocks = try ProtocolDocument().hexBlocks.filter { $0.name == name }
        #expect(blocks.count == 1)
        return try #require(blocks.first?.bytes)
    }

    /// What the encoders make of the example's meaning.
    private func encoded(_ name: String) throws -> [UInt8] {
        if let (request, id) = Self.request(name) {
            return bytes { bytes in
                FrameWriter.append(.request, request.operation.rawValue, requestID: id, to: &bytes) {
                    request.append(to: &$0)
                }
            }
        }
        let decks = try #require(Self.decks)
        func answer(_ operation: Wire.Operation, _ id: UInt64, _ body: (inout [UInt8]) -> Void) -> [UInt8] {
            bytes { FrameWriter.append(.answer, operation.rawValue, requestID: id, to: &$0, body: body) }
        }
        func verify(_ operation: Wire.Operation, _ id: UInt64, _ proof: SignedIdentityProof, roots: Bool) throws
            -> [UInt8]
        {
            let entries: [ProofBatch.Entry] = [(0, proof)]
            let body = try bytes { bytes in
                try ProofBatch.append(
                    entries, of: [decks], isSigned: operation == .verify, wantsRoots: roots, to: &bytes)
            }
            return bytes {
                FrameWriter.append(.request, operation.rawValue, requestID: id, to: &$0) { $0 += body }
            }
        }
        switch name {
        case "error-answer":
            return bytes {
                FrameWriter.appendError(Self.error, operation: Operation.listRoots.rawValue, requestID: 7, to: &$0)
            }
        case "hello-answer": return answer(.hello, 1) { Self.hello.append(to: &$0) }
        case "verify-request": return try verify(.verify, 3, Self.verifyProof, roots: true)
        case "inclusion-request": return try verify(.verifyInclusion, 4, Self.inclusionProof, roots: false)
        case "check-request":
            let shown = GrantBatch.Entry(
                collaboration: 0, deviceKey: [UInt8](repeating: 0xb8, count: 16),
                grant: [UInt8](repeating: 0xc9, count: 112))
            let body = try bytes { try GrantBatch.append([shown], of: [decks], atLeast: 3, to: &$0) }
            return bytes {
                FrameWriter.append(.request, Operation.checkGrants.rawValue, requestID: 9, to: &$0) { $0 += body }
            }
        case "verify-answer":
            return answer(.verify, 3) { bytes in
                Self.verdicts.withUnsafeBufferPointer { verdicts in
                    Self.roots.withUnsafeBufferPointer { VerdictList.append(verdicts, roots: $0, to: &bytes) }
                }
            }
        case "receipt-answer": return answer(.addRoots, 6) { Answer.append(Self.receipt, to: &$0) }
        default:
            Issue.record("nothing encodes \(name)")
            return []
        }
    }

    @Test("Every example in PROTOCOL.md is known here")
    func allKnown() throws {
        #expect(try ProtocolDocument().hexBlocks.map(\.name).sorted() == Self.names.sorted())
    }

    @Test("The encoders write the example byte for byte", arguments: names)
    func writes(name: String) throws {
        #expect(try encoded(name).hexadecimal == example(name).hexadecimal)
    }

    @Test("The scanner finds the example as one frame", arguments: names)
    func scans(name: String) throws {
        let example = try example(name)
        let kind: FrameKind =
            name.hasSuffix("-request") ? .request : name == "error-answer" ? .error : .answer
        let scan = example.withUnsafeBytes { FrameScanner.scan($0, expecting: [kind]) }
        guard case .frame(let header) = scan else {
            Issue.record("\(scan)")
            return
        }
        #expect(header.bodyLength == example.count - 16)
        #expect(header.kind == kind)
        #expect(header.requestID == UInt64(example[8]))
        #expect(Operation(rawValue: header.operation) != nil)
    }

    @Test(
        "The decoder reads the example's request",
        arguments: ["hello-request", "challenges-request", "create-request", "add-request", "list-request"])
    func readsRequest(name: String) throws {
        let expected = try #require(Self.request(name)).0
        let body = Array(try example(name)[16...])
        let request = try decode(expected.operation, body)
        #expect(String(describing: request) == String(describing: expected))
    }

    @Test("The decoder reads the example's verify")
    func readsVerify() throws {
        let body = Array(try example("verify-request")[16...])
        guard case .verify(let batch) = try decode(.verify, body) else {
            Issue.record("it is no verify")
            return
        }
        #expect(batch.isSigned)
        #expect(batch.wantsRoots)
        #expect(batch.count == 1)
        let proof = copy(batch, at: 0, in: body)
        #expect(proof.collaboration == Array("decks".utf8))
        #expect(proof.format == SignatureFormat.raw.rawValue)
        #expect(proof.index == 1)
        #expect(proof.key == Self.verifyProof.publicKey)
        #expect(proof.siblings == [UInt8](repeating: 0xb2, count: 32))
        #expect(proof.signature == Self.verifyProof.signature)
        #expect(proof.data == Self.verifyProof.data)
    }

    @Test("The decoder reads the example's inclusion-only verify")
    func readsInclusion() throws {
        let body = Array(try example("inclusion-request")[16...])
        guard case .verify(let batch) = try decode(.verifyInclusion, body) else {
            Issue.record("it is no verify")
            return
        }
        #expect(!batch.isSigned)
        #expect(!batch.wantsRoots)
        #expect(batch.count == 1)
        let proof = copy(batch, at: 0, in: body)
        #expect(proof.collaboration == Array("decks".utf8))
        #expect(proof.index == 0)
        #expect(proof.key == Self.inclusionProof.publicKey)
        #expect(proof.siblings.isEmpty)
        #expect(proof.signature.isEmpty)
        #expect(proof.data.isEmpty)
    }

    @Test("The readers read the examples' answers")
    func readsAnswers() throws {
        let error = try Array(example("error-answer")[16...]).withUnsafeBytes { try FrameWriter.decodeError($0) }
        #expect(error == Self.error)
        #expect(error.reason == Self.error.reason)
        #expect(error.detail == 0)
        #expect(try Array(example("hello-answer")[16...]).withUnsafeBytes { try HelloAnswer($0) } == Self.hello)
        let list = try Array(example("verify-answer")[16...]).withUnsafeBytes { try VerdictList.decode($0) }
        #expect(list.verdicts == Self.verdicts)
        #expect(list.roots == Self.roots)
        #expect(try Array(example("receipt-answer")[16...]).withUnsafeBytes { try Answer.receipt($0) } == Self.receipt)
    }

    @Test("Operations have exactly the numbers of PROTOCOL.md")
    func operations() throws {
        let rows = try ProtocolDocument().table(under: "Operations")
        let documented = rows.compactMap { UInt16($0[1].dropFirst(2), radix: 16) }
        #expect(documented.count == rows.count)
        #expect(documented == Operation.allCases.map(\.rawValue))
    }

    @Test("Hello's limits have the numbers of PROTOCOL.md")
    func limitNumbers() throws {
        let rows = try ProtocolDocument().table(under: "Hello")
        let documented = rows.flatMap { $0[0].split(separator: ",").map { $0.filter { $0 != " " } } }
        #expect(documented == HelloAnswer.Limit.allCases.map { String($0.rawValue) })
    }
}
