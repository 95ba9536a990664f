import Core
import TestSupport
import Testing
import Wire

/// What an example of PROTOCOL.md means, and the bytes that the encoders make of that.
struct ProtocolExample: Sendable, CustomTestStringConvertible {
    /// As the fence in the document names it.
    let name: String
    let operation: Wire.Operation
    let requestID: UInt64
    let body: [UInt8]
    /// What the decoder is to make of it; `nil` for answers, and for batches, whose decoders keep offsets.
    var request: Request?

    var testDescription: String { name }

    var kind: FrameKind { name.hasSuffix("-request") ? .request : name == "error-answer" ? .error : .answer }

    /// The whole frame.
    var frame: [UInt8] {
        var frame: [UInt8] = []
        FrameWriter.append(kind, operation.rawValue, requestID: requestID, to: &frame) { $0 += body }
        return frame
    }

    private init(_ name: String, _ operation: Wire.Operation, _ requestID: UInt64, _ body: [UInt8]) {
        self.name = name
        self.operation = operation
        self.requestID = requestID
        self.body = body
    }

    private init(_ name: String, _ requestID: UInt64, _ request: Request) {
        self.init(name, request.operation, requestID, bytes { request.append(to: &$0) })
        self.request = request
    }
}

extension ProtocolExample {
    /// All of them. Throws when the examples' own values can't be made.
    static func all() throws -> [ProtocolExample] {
        let decks = try #require(CollaborationIdentifier("decks"))
        return try requests(decks) + batches(decks) + answers(decks)
    }

    /// The names, for tests that run once for each.
    static let names: [String] = (try? all().map(\.name)) ?? []

    static func named(_ name: String) throws -> ProtocolExample {
        try #require(all().first { $0.name == name })
    }

    static func digest(_ byte: UInt8) -> Digest { Digest([UInt8](repeating: byte, count: 32)) ?? .zero }

    /// Sixteen bytes that count up from the first.
    private static func mutation(from first: UInt8, _ change: Change) -> Request {
        let identifier = (0..<16).reduce(UInt128(0)) { $0 | UInt128(first + UInt8($1)) << ($1 * 8) }
        return .mutate(Mutation(identifier: MutationIdentifier(identifier), change))
    }

    private static func requests(_ decks: CollaborationIdentifier) throws -> [ProtocolExample] {
        let stop = CollaborationCall(
            identifier: MutationIdentifier(0x2f2e_2d2c_2b2a_2928_2726_2524_2322_2120), name: "stopSharing",
            json: Array(#"{"collaboration":"deck"}"#.utf8))
        return [
            ProtocolExample("hello-request", 1, .hello(minimum: 1, maximum: 1)),
            ProtocolExample("hello-key-request", 1, .hello(minimum: 1, maximum: 1, key: Array(key.utf8))),
            ProtocolExample("ping-request", 10, .ping(Array("still there".utf8))),
            ProtocolExample("challenges-request", 2, .issueChallenges(count: 16)),
            ProtocolExample("create-request", 5, mutation(from: 0x00, .createCollaboration(decks, .challenge))),
            ProtocolExample("drop-request", 11, mutation(from: 0x30, .dropCollaboration(decks))),
            ProtocolExample("add-request", 6, mutation(from: 0x10, .addRoots(decks, [digest(0xa7)]))),
            ProtocolExample("remove-request", 12, mutation(from: 0x40, .removeRoots(decks, [digest(0xa7)]))),
            ProtocolExample("test-request", 13, .testRoots(decks, [digest(0xa7), digest(0xa8)])),
            ProtocolExample("list-request", 7, .listRoots(decks, after: digest(0xa7), limit: 4096)),
            ProtocolExample("count-request", 14, .countRoots(decks)),
            ProtocolExample("collaborations-request", 15, .listCollaborations(after: nil, limit: 2)),
            ProtocolExample("statistics-request", 16, .statistics),
            ProtocolExample("changes-request", 17, .readChanges(after: 1, limit: 1024)),
            ProtocolExample("confirm-request", 19, .confirmEverywhere(sequence: 2)),
            ProtocolExample(
                "snapshot-request", 20,
                .readSnapshot(
                    SnapshotRequest(token: Array(repeating: 0xc4, count: 32), identifier: 0, offset: 0))),
            ProtocolExample("collaborate-request", 8, .collaborate(stop)),
        ]
    }

    static let key = "rgk_a1b2c3d4e5f60718_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

    static let verifyProof = SignedIdentityProof(
        publicKey: [2] + [UInt8](repeating: 0xa1, count: 32), publicKeyIndex: 1, inclusionHashes: [digest(0xb2)],
        signature: [UInt8](repeating: 0xc3, count: 8), signatureFormat: .raw,
        data: [UInt8](repeating: 0xd4, count: 17))
    static let inclusionProof = SignedIdentityProof(
        publicKey: [3] + [UInt8](repeating: 0xf6, count: 32), publicKeyIndex: 0, inclusionHashes: [],
        signature: [], signatureFormat: .der, data: [])
    static let grant = [UInt8](repeating: 0xc9, count: 112)

    private static func batches(_ decks: CollaborationIdentifier) throws -> [ProtocolExample] {
        func proofs(_ proof: SignedIdentityProof, signed: Bool, roots: Bool, atLeast: UInt64 = 0) throws -> [UInt8] {
            let entries: [ProofBatch.Entry] = [(0, proof)]
            return try bytes { bytes in
                try ProofBatch.append(
                    entries, of: [decks], isSigned: signed, wantsRoots: roots, atLeast: atLeast, to: &bytes)
            }
        }
        let shown = GrantBatch.Entry(collaboration: 0, deviceKey: [UInt8](repeating: 0xb8, count: 16), grant: grant)
        return [
            ProtocolExample("verify-request", .verify, 3, try proofs(verifyProof, signed: true, roots: true)),
            ProtocolExample(
                "inclusion-request", .verifyInclusion, 4, try proofs(inclusionProof, signed: false, roots: false)),
            ProtocolExample(
                "open-request", .open, 18, try proofs(verifyProof, signed: true, roots: false, atLeast: 3)),
            ProtocolExample(
                "check-request", .checkGrants, 9,
                try bytes { try GrantBatch.append([shown], of: [decks], atLeast: 3, to: &$0) }),
        ]
    }

    static let hello = HelloAnswer(
        version: 1, features: [.challenges, .deviceNonces, .inclusionOnly, .changeLog], limits: [13: 48],
        software: "rootgate")
    static let challenge = [UInt8](repeating: 0x9d, count: 48)
    static let verdicts: [Verdict] = [.granted, .badSignatureEncoding]
    static let roots = [digest(0xe5), .zero]
    static let receipt = MutationReceipt(sequence: 2, changed: 1, isRepeat: false)
    static let checked = GrantAnswer(status: 1, permission: 2, role: 3, millisecondsLeft: 299_000)
    static let error = ServiceError(.unknownCollaboration, "there is no collaboration deck-42")
    static func change(_ decks: CollaborationIdentifier) -> LoggedMutation {
        let identifier = MutationIdentifier(0xb75e_b8b2_4266_f706_1efb_875c_2ca6_23b6)
        return LoggedMutation(
            sequence: 2, changed: 1, mutation: Mutation(identifier: identifier, .addRoots(decks, [digest(0xa7)])))
    }

    /// The body of an answer to a verify or open.
    private static func list(_ verdicts: [Verdict], _ roots: [Digest]?) -> [UInt8] {
        bytes { bytes in
            verdicts.withUnsafeBufferPointer { verdicts in
                guard let roots else { return VerdictList.append(verdicts, roots: nil, to: &bytes) }
                roots.withUnsafeBufferPointer { VerdictList.append(verdicts, roots: $0, to: &bytes) }
            }
        }
    }

    private static func answers(_ decks: CollaborationIdentifier) throws -> [ProtocolExample] {
        let errorFrame = bytes {
            FrameWriter.appendError(error, operation: Operation.listRoots.rawValue, requestID: 7, to: &$0)
        }
        return [
            ProtocolExample("error-answer", .listRoots, 7, Array(errorFrame.dropFirst(16))),
            ProtocolExample("hello-answer", .hello, 1, bytes { hello.append(to: &$0) }),
            ProtocolExample("ping-answer", .ping, 10, Array("still there".utf8)),
            ProtocolExample(
                "challenges-answer", .issueChallenges, 2,
                bytes { bytes in
                    Answer.appendChallengesHeader(
                        count: 1, challengeBytes: challenge.count, validMilliseconds: 120_000, to: &bytes)
                    bytes += challenge
                }),
            ProtocolExample("verify-answer", .verify, 3, list(verdicts, roots)),
            ProtocolExample("receipt-answer", .addRoots, 6, bytes { Answer.append(receipt, to: &$0) }),
            ProtocolExample("test-answer", .testRoots, 13, bytes { Answer.append(tests: [true, false], to: &$0) }),
            ProtocolExample(
                "list-answer", .listRoots, 7, bytes { Answer.append(roots: [digest(0xb7)], hasMore: true, to: &$0) }),
            ProtocolExample(
                "count-answer", .countRoots, 14,
                bytes { Answer.append(policy: .deviceNonce(windowSeconds: 3600), rootCount: 5, to: &$0) }),
            ProtocolExample(
                "collaborations-answer", .listCollaborations, 15,
                bytes { Answer.append(collaborations: [(decks, .challenge, 5)], hasMore: false, to: &$0) }),
            ProtocolExample(
                "statistics-answer", .statistics, 16, bytes { Answer.append(statistics: [("roots", 5)], to: &$0) }),
            ProtocolExample(
                "changes-answer", .readChanges, 17,
                bytes { Answer.append(changes: [change(decks)], hasMore: false, to: &$0) }),
            ProtocolExample("confirm-answer", .confirmEverywhere, 19, field(UInt64(2))),
            ProtocolExample(
                "snapshot-answer", .readSnapshot, 20,
                bytes { SnapshotPiece(identifier: 5, size: 4, bytes: [1, 2, 3, 4]).append(to: &$0) }),
            ProtocolExample("collaborate-answer", .collaborate, 8, Array(#"{"changed":1,"sequence":3}"#.utf8)),
            ProtocolExample("open-answer", .open, 18, list([.granted], nil) + grant),
            ProtocolExample(
                "check-answer", .checkGrants, 9, field(UInt32(1)) + field(UInt32(0)) + bytes { checked.append(to: &$0) }
            ),
        ]
    }
}
