import Core
import Foundation
import Wire

/// The bodies of requests. The first two bytes are the operation's number.
enum FuzzedRequests {
    static let subject = FuzzSubject("requests", bytesMax: 1024, seeds: seeds) { input in
        var parts = InputParts(input)
        guard let number = parts.number(2) else { return }
        let operation = UInt16(number)
        let body = UnsafeRawBufferPointer(rebasing: input[2...])
        let isExpected = RequestGrammar.accepts(operation, Array(body))
        do {
            let request = try Request.decode(operation: operation, body: body)
            try demand(isExpected, "a body is accepted that PROTOCOL.md does not allow")
            try demand(request.operation.rawValue == operation, "another operation was read")
            try demand(encoded(request, body) == Array(body), "a request is written in another way than it was read")
        } catch let error as ServiceError {
            try demand(!isExpected, "a body is refused that PROTOCOL.md allows: \(error)")
            try demand(
                [.unknownOperation, .malformedRequest, .limitExceeded].contains(error.code), "the error is \(error)")
            try demand(error.reason.utf8.count <= Limits.errorTextBytesMax, "the error's text is too long")
        }
        try checkSingle(operation, body)
    }

    /// The request's body, made anew.
    private static func encoded(_ request: Request, _ body: UnsafeRawBufferPointer) throws -> [UInt8] {
        switch request {
        case .verify(let batch), .open(let batch): return encoded(batch, body)
        case .checkGrants(let batch):
            let entries = batch.withBytes { bytes in
                (0..<batch.count).map { index in
                    let entry = GrantBatch.entry(index, in: bytes)
                    let key = entry.deviceKey.map {
                        Array(UnsafeRawBufferPointer(start: $0, count: Limits.fingerprintBytes))
                    }
                    return GrantBatch.Entry(
                        collaboration: entry.collaboration, deviceKey: key, grant: Array(entry.grant))
                }
            }
            return try appended { bytes in
                try GrantBatch.append(
                    entries, of: batch.collaborations, wantsOptions: batch.wantsOptions, atLeast: batch.atLeast,
                    to: &bytes)
            }
        default: return appended { request.append(to: &$0) }
        }
    }

    private static func encoded(_ batch: ProofBatch, _ body: UnsafeRawBufferPointer) -> [UInt8] {
        appended { bytes in
            bytes.appendInteger(batch.atLeast)
            bytes += [(batch.wantsRoots ? 1 : 0) | (batch.wantsOptions ? 2 : 0), 0]
            bytes.appendInteger(UInt16(batch.collaborationCount))
            bytes.appendInteger(UInt32(batch.count))
            for index in 0..<batch.collaborationCount {
                bytes.appendShortBytes(batch.collaboration(at: index, in: body))
            }
            for index in 0..<batch.count {
                bytes.appendInteger(UInt16(batch.collaborationIndex(of: index, in: body)))
                append(batch.proof(at: index, in: body), isSigned: batch.isSigned, to: &bytes)
            }
        }
    }

    /// Appends a proof without the position of its collaboration.
    private static func append(_ proof: BorrowedProof, isSigned: Bool, to bytes: inout [UInt8]) {
        bytes.append(UInt8(proof.inclusionHashCount))
        if isSigned {
            bytes.append(proof.signatureFormat)
            bytes.appendInteger(proof.publicKeyIndex)
            bytes += [UInt8(proof.publicKey.count), UInt8(proof.signature.count)]
            bytes.appendInteger(UInt16(proof.data.count))
        } else {
            bytes.append(UInt8(proof.publicKey.count))
            bytes.appendInteger(proof.publicKeyIndex)
        }
        bytes += proof.publicKey
        bytes += UnsafeRawBufferPointer(start: proof.inclusionHashes, count: 32 * proof.inclusionHashCount)
        bytes += proof.signature
        bytes += proof.data
    }

    /// A request with one proof and without options is read in the same way by the reader for series of them.
    private static func checkSingle(_ operation: UInt16, _ body: UnsafeRawBufferPointer) throws {
        guard let isSigned = SingleProofs.isSigned(operation) else { return }
        let frame = appended { bytes in
            FrameWriter.append(.request, operation, requestID: 77, to: &bytes) { $0 += body }
        }
        try frame.withRawBytes { frame in
            let ownBody = UnsafeRawBufferPointer(rebasing: frame[Limits.frameHeaderBytes...])
            var series = SingleProofs(isSigned: isSigned)
            let header = FrameHeader(bodyLength: ownBody.count, kind: .request, operation: operation, requestID: 77)
            let isTaken = series.append(header, ownBody, at: 0)
            let batch = try? ProofBatch(ownBody, isSigned: isSigned)
            let isSingle = batch.map { $0.count == 1 && $0.collaborationCount == 1 && !$0.wantsRoots } ?? false
            try demand(isTaken == isSingle, "a request is \(isTaken ? "" : "not ")taken into a series")
            guard isTaken, let batch else { return }
            try demand(series.atLeast == batch.atLeast, "the sequences differ")
            try demand(
                series.collaboration(at: 0, in: frame).elementsEqual(batch.collaboration(at: 0, in: ownBody)),
                "the collaborations differ")
            try withUnsafeTemporaryAllocation(of: BorrowedProof.self, capacity: 1) { proofs in
                series.read(0..<1, in: frame, into: proofs)
                let single = appended { append(proofs[0], isSigned: isSigned, to: &$0) }
                let packed = appended { append(batch.proof(at: 0, in: ownBody), isSigned: isSigned, to: &$0) }
                try demand(single == packed, "the proofs differ")
            }
        }
    }

    // MARK: Seeds

    private static func seeds() throws -> [[UInt8]] {
        guard let deck = CollaborationIdentifier("deck-42"), let note = CollaborationIdentifier("é") else { return [] }
        let root = Digest([UInt8](repeating: 0xa7, count: 32)) ?? .zero
        let identifier = MutationIdentifier(0x0102_0304)
        let requests: [Request] = [
            .hello(minimum: 1, maximum: 1), .hello(minimum: 0, maximum: 9, key: Array("rgk_".utf8)),
            .ping([1, 2, 3]), .issueChallenges(count: 16), .issueChallenges(count: 4096),
            .mutate(Mutation(identifier: identifier, .createCollaboration(deck, .challenge))),
            .mutate(Mutation(identifier: identifier, .createCollaboration(note, .deviceNonce(windowSeconds: 60)))),
            .mutate(Mutation(identifier: identifier, .dropCollaboration(deck))),
            .mutate(Mutation(identifier: identifier, .addRoots(deck, [root, .zero]))),
            .mutate(Mutation(identifier: identifier, .removeRoots(note, [root]))),
            .testRoots(deck, [root]), .listRoots(deck, after: nil, limit: 4096),
            .listRoots(note, after: root, limit: 1), .countRoots(deck),
            .listCollaborations(after: nil, limit: 1024), .listCollaborations(after: deck, limit: 1), .statistics,
            .readChanges(after: 7, limit: 1024), .confirmEverywhere(sequence: 7),
            .readSnapshot(
                SnapshotRequest(token: Array(repeating: 9, count: SnapshotRequest.tokenBytes), identifier: 1, offset: 7)
            ),
            .collaborate(CollaborationCall(identifier: identifier, name: "stopSharing", json: Array("{}".utf8))),
        ]
        let plain = requests.map { request in
            appended { bytes in
                bytes.appendInteger(request.operation.rawValue)
                request.append(to: &bytes)
            }
        }
        let edit: [UInt8] = [0x33, 0]
        return try plain + [edit] + batches([deck, note], root)
    }

    private static func batches(_ collaborations: [CollaborationIdentifier], _ root: Digest) throws -> [[UInt8]] {
        let proof = SignedIdentityProof(
            publicKey: [2] + [UInt8](repeating: 0xa1, count: 32), publicKeyIndex: 1, inclusionHashes: [root, .zero],
            signature: [0x30, 6, 2, 1, 1, 2, 1, 1], signatureFormat: .der, data: [UInt8](repeating: 9, count: 48))
        var batches: [[UInt8]] = []
        for (operation, isSigned) in [(Operation.verify, true), (.verifyInclusion, false), (.open, true)] {
            for count in 0...2 {
                batches.append(
                    try appended { bytes in
                        bytes.appendInteger(operation.rawValue)
                        try ProofBatch.append(
                            (0..<count).map { ($0, proof) }, of: Array(collaborations.prefix(max(1, count))),
                            isSigned: isSigned, wantsRoots: count == 2, wantsOptions: operation == .open && count == 1,
                            atLeast: UInt64(count / 2), to: &bytes)
                    })
            }
        }
        let grant = GrantBatch.Entry(
            collaboration: 1, deviceKey: [UInt8](repeating: 5, count: 16), grant: [UInt8](repeating: 6, count: 112))
        let other = GrantBatch.Entry(collaboration: 0, deviceKey: nil, grant: [UInt8](repeating: 0, count: 112))
        batches.append(
            try appended { bytes in
                bytes.appendInteger(Operation.checkGrants.rawValue)
                try GrantBatch.append(
                    [grant, other], of: collaborations, wantsOptions: true, atLeast: 3, to: &bytes)
            })
        return batches
    }
}
