import Core
import TestSupport
import Testing
import Wire

/// The examples of PROTOCOL.md, written and read.
struct ProtocolExamplesTests {
    /// The bytes that the document has for an example.
    private func documented(_ name: String) throws -> [UInt8] {
        let blocks = try ProtocolDocument().hexBlocks.filter { $0.name == name }
        #expect(blocks.count == 1)
        return try #require(blocks.first?.bytes)
    }

    @Test("Every example in PROTOCOL.md is known here")
    func allKnown() throws {
        #expect(try ProtocolDocument().hexBlocks.map(\.name).sorted() == ProtocolExample.all().map(\.name).sorted())
    }

    @Test("Every operation that can be sent has an example of its request and of its answer")
    func operationsHaveExamples() throws {
        let examples = try ProtocolExample.all()
        let sent = Set(Operation.allCases).subtracting([.edit])
        #expect(Set(examples.filter { $0.kind == .request }.map(\.operation)) == sent)
        // Mutations share the receipt, and both kinds of verify their answer.
        let sharing: Set<Wire.Operation> = [
            .createCollaboration, .dropCollaboration, .removeRoots, .verifyInclusion,
        ]
        #expect(Set(examples.filter { $0.kind == .answer }.map(\.operation)) == sent.subtracting(sharing))
    }

    @Test("The encoders write the example byte for byte", arguments: ProtocolExample.names)
    func writes(name: String) throws {
        #expect(try ProtocolExample.named(name).frame.hexadecimal == documented(name).hexadecimal)
    }

    @Test("The scanner finds the example as one frame", arguments: ProtocolExample.names)
    func scans(name: String) throws {
        let (example, meaning) = (try documented(name), try ProtocolExample.named(name))
        let scan = example.withUnsafeBytes { FrameScanner.scan($0, expecting: [meaning.kind]) }
        guard case .frame(let header) = scan else {
            Issue.record("\(scan)")
            return
        }
        #expect(header.bodyLength == example.count - 16)
        #expect(header.kind == meaning.kind)
        #expect(header.requestID == meaning.requestID)
        #expect(header.operation == meaning.operation.rawValue)
    }

    @Test("The decoder reads the example's request", arguments: ProtocolExample.names)
    func readsRequest(name: String) throws {
        guard let expected = try ProtocolExample.named(name).request else { return }
        let request = try decode(expected.operation, Array(documented(name)[16...]))
        #expect(String(describing: request) == String(describing: expected))
    }

    @Test("The decoder reads the examples' proofs", arguments: ["verify-request", "open-request"])
    func readsProofs(name: String) throws {
        let body = Array(try documented(name)[16...])
        let batch: ProofBatch
        switch try decode(ProtocolExample.named(name).operation, body) {
        case .verify(let read):
            batch = read
            #expect(batch.wantsRoots && batch.atLeast == 0)
        case .open(let read):
            batch = read
            #expect(!batch.wantsRoots && batch.atLeast == 3)
        case let other:
            Issue.record("\(other)")
            return
        }
        #expect(batch.isSigned)
        #expect(batch.count == 1)
        let proof = copy(batch, at: 0, in: body)
        let expected = ProtocolExample.verifyProof
        #expect(proof.collaboration == Array("decks".utf8))
        #expect(proof.format == SignatureFormat.raw.rawValue)
        #expect(proof.index == 1)
        #expect(proof.key == expected.publicKey)
        #expect(proof.siblings == [UInt8](repeating: 0xb2, count: 32))
        #expect(proof.signature == expected.signature)
        #expect(proof.data == expected.data)
    }

    @Test("The decoder reads the example's inclusion-only verify")
    func readsInclusion() throws {
        let body = Array(try documented("inclusion-request")[16...])
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
        #expect(proof.key == ProtocolExample.inclusionProof.publicKey)
        #expect(proof.siblings.isEmpty)
        #expect(proof.signature.isEmpty)
        #expect(proof.data.isEmpty)
    }

    @Test("The decoder reads the example's check of a grant")
    func readsCheck() throws {
        guard case .checkGrants(let batch) = try decode(.checkGrants, Array(documented("check-request")[16...])) else {
            Issue.record("it is no check")
            return
        }
        #expect(batch.atLeast == 3)
        #expect(batch.collaborations.map(\.description) == ["decks"])
        #expect(batch.count == 1)
        batch.withBytes { bytes in
            let entry = GrantBatch.entry(0, in: bytes)
            #expect(entry.collaboration == 0)
            let deviceKey = entry.deviceKey.map { Array(UnsafeRawBufferPointer(start: $0, count: 16)) }
            #expect(deviceKey == [UInt8](repeating: 0xb8, count: 16))
            #expect(Array(entry.grant) == ProtocolExample.grant)
        }
    }

    /// Reads the body of an example with the reader of its answer.
    private func read<T>(_ name: String, _ reader: (UnsafeRawBufferPointer) throws -> T) throws -> T {
        try Array(documented(name)[16...]).withUnsafeBytes(reader)
    }

    @Test("The readers read the examples' answers about the service and its proofs")
    func readsAnswers() throws {
        let error = try read("error-answer") { try FrameWriter.decodeError($0) }
        #expect(error == ProtocolExample.error)
        #expect(error.reason == ProtocolExample.error.reason)
        #expect(error.detail == 0)
        #expect(error.origin == .service)
        #expect(try read("hello-answer") { try HelloAnswer($0) } == ProtocolExample.hello)
        let challenges = try read("challenges-answer") { try Answer.challenges($0) }
        #expect(challenges.challenges == [ProtocolExample.challenge])
        #expect(challenges.validMilliseconds == 120_000)
        let list = try read("verify-answer") { try VerdictList.decode($0) }
        #expect(list.verdicts == ProtocolExample.verdicts)
        #expect(list.roots == ProtocolExample.roots)
        let statistics = try read("statistics-answer") { try Answer.statistics($0) }
        #expect(statistics.map { "\($0.name) \($0.value)" } == ["roots 5"])
        let opened = try read("open-answer") { try OpenAnswer.decode($0, count: 1) }
        #expect(opened.verdicts == [.granted])
        #expect(opened.grants == [ProtocolExample.grant])
        #expect(try read("check-answer") { try GrantAnswer.decode($0).answers } == [ProtocolExample.checked])
    }

    @Test("The readers read the examples' answers about collaborations and their sets")
    func readsAnswersAboutSets() throws {
        let decks = try #require(CollaborationIdentifier("decks"))
        #expect(try read("receipt-answer") { try Answer.receipt($0) } == ProtocolExample.receipt)
        #expect(try read("test-answer") { try Answer.tests($0) } == [true, false])
        let page = try read("list-answer") { try Answer.roots($0) }
        #expect(page.roots == [ProtocolExample.digest(0xb7)])
        #expect(page.hasMore)
        let state = try read("count-answer") { try Answer.count($0) }
        #expect(state.policy == .deviceNonce(windowSeconds: 3600))
        #expect(state.rootCount == 5)
        let listed = try read("collaborations-answer") { try Answer.collaborations($0) }
        #expect(listed.collaborations.map(\.identifier) == [decks])
        #expect(!listed.hasMore)
        let changes = try read("changes-answer") { try Answer.changes($0) }
        #expect(changes.changes == [ProtocolExample.change(decks)])
        #expect(!changes.hasMore)
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
