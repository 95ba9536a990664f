import Core
import TestSupport
import Testing
import Wire

@Suite struct FrameTests {
    private func scan(_ bytes: [UInt8], _ kinds: [FrameKind] = [.request]) -> FrameScan {
        bytes.withUnsafeBytes { FrameScanner.scan($0, expecting: kinds) }
    }

    private func frame(_ body: [UInt8], operation: UInt16 = 2, id: UInt64 = 9) -> [UInt8] {
        var bytes: [UInt8] = []
        FrameWriter.append(.request, operation, requestID: id, to: &bytes) { $0 += body }
        return bytes
    }

    @Test func everyTruncationIsIncompleteAndSaysWhatIsMissing() {
        let whole = frame([1, 2, 3, 4, 5])
        for length in 0..<whole.count {
            let expected = length < 16 ? 16 : whole.count
            #expect(scan(Array(whole[..<length])) == .incomplete(frameBytes: expected))
        }
        #expect(scan(whole) == .frame(FrameHeader(bodyLength: 5, kind: .request, operation: 2, requestID: 9)))
    }

    @Test func aBadHeaderIsAViolationBeforeItsBodyIsThere() {
        func violation(_ change: (inout [UInt8]) -> Void) -> ServiceError.Code? {
            var header = Array(frame([])[..<16])
            change(&header)
            guard case .violation(let error, requestID: 9) = scan(header) else { return nil }
            return error.code
        }
        #expect(violation { $0[4] = 0 } == .unsupportedVersion)
        #expect(violation { $0[4] = 2 } == .unsupportedVersion)
        #expect(violation { $0[5] = 0 } == .malformedFrame)
        #expect(violation { $0[5] = FrameKind.answer.rawValue } == .malformedFrame)
        #expect(violation { $0[5] = 9 } == .malformedFrame)
        #expect(violation { $0.replaceSubrange(0..<4, with: [1, 0, 0x20, 0]) } == .frameTooLarge)
        #expect(violation { $0.replaceSubrange(0..<4, with: [0xff, 0xff, 0xff, 0xff]) } == .frameTooLarge)
        #expect(violation { $0.replaceSubrange(0..<4, with: [0, 0, 0x20, 0]) } == nil, "the limit itself is allowed")
    }

    @Test func aStreamCutAnywhereHasTheSameFrames() {
        var generator = SeededGenerator(seed: runSeed)
        for round in 0..<50 {
            let bodies = (0..<20).map { _ in generator.bytes(Int.random(in: 0...300, using: &generator)) }
            let stream = bodies.enumerated().flatMap { frame($1, id: UInt64($0)) }
            var received: [UInt8] = []
            var found: [[UInt8]] = []
            var sent = 0
            while sent < stream.count {
                let count = min(stream.count - sent, Int.random(in: 1...500, using: &generator))
                received += stream[sent..<sent + count]
                sent += count
                while case .frame(let header) = scan(received) {
                    found.append(Array(received[16..<16 + header.bodyLength]))
                    received.removeFirst(16 + header.bodyLength)
                }
            }
            #expect(found == bodies, "seed \(runSeed), round \(round)")
        }
    }
}

@Suite struct RequestTests {
    private func error(_ operation: Operation, _ body: [UInt8]) -> ServiceError.Code? {
        body.withUnsafeBytes { body in
            thrownServiceError { _ = try Request.decode(operation: operation.rawValue, body: body) }?.code
        }
    }

    private func body(_ request: Request) -> [UInt8] {
        var bytes: [UInt8] = []
        request.append(to: &bytes)
        return bytes
    }

    private func requests() throws -> [Request] {
        let a = try #require(CollaborationIdentifier("a"))
        return [
            .hello(minimum: 1, maximum: 3), .ping([1, 2]), .issueChallenges(count: 7),
            .mutate(Mutation(.createCollaboration(a, .deviceNonce(windowSeconds: 60)))),
            .mutate(Mutation(.dropCollaboration(a))), .mutate(Mutation(.addRoots(a, [.zero]))),
            .mutate(Mutation(.removeRoots(a, [.zero, .zero]))), .testRoots(a, [.zero]),
            .listRoots(a, after: nil, limit: 5), .listRoots(a, after: .zero, limit: 4096), .countRoots(a),
            .listCollaborations(after: nil, limit: 1), .listCollaborations(after: a, limit: 1024), .statistics,
            .readChanges(after: 8, limit: 1024),
        ]
    }

    @Test func everyRequestIsReadAsItWasWritten() throws {
        for request in try requests() {
            let bytes = body(request)
            let read = try bytes.withRawBytes { bytes throws(ServiceError) in
                try Request.decode(operation: request.operation.rawValue, body: bytes)
            }
            #expect(String(describing: read) == String(describing: request))
        }
    }

    @Test func everyTruncationAndEveryTrailingByteIsMalformed() throws {
        for request in try requests() {
            let whole = body(request)
            if case .ping = request { continue }
            for length in 0..<whole.count {
                #expect(error(request.operation, Array(whole[..<length])) == .malformedRequest, "\(request), \(length)")
            }
            #expect(error(request.operation, whole + [0]) == .malformedRequest, "\(request)")
        }
    }

    @Test func oneMoreThanALimitIsRefused() throws {
        let a = try #require(CollaborationIdentifier("a"))
        let tooMany = [Digest](repeating: .zero, count: Limits.rootsPerRequestMax + 1)
        let most = Array(tooMany.dropLast())
        let cases: [(Request, ServiceError.Code?)] = [
            (.ping([UInt8](repeating: 0, count: 64)), nil), (.ping([UInt8](repeating: 0, count: 65)), .limitExceeded),
            (.issueChallenges(count: 4096), nil), (.issueChallenges(count: 4097), .limitExceeded),
            (.testRoots(a, most), nil), (.testRoots(a, tooMany), .limitExceeded),
            (.mutate(Mutation(.addRoots(a, tooMany))), .limitExceeded),
            (.mutate(Mutation(.removeRoots(a, tooMany))), .limitExceeded),
            (.listRoots(a, after: nil, limit: 4097), .limitExceeded), (.listRoots(a, after: nil, limit: 0), .malformedRequest),
            (.listCollaborations(after: nil, limit: 1025), .limitExceeded),
            (.listCollaborations(after: nil, limit: 0), .malformedRequest),
            (.readChanges(after: 0, limit: 1025), .limitExceeded), (.readChanges(after: 0, limit: 0), .malformedRequest),
        ]
        for (request, code) in cases {
            #expect(error(request.operation, body(request)) == code)
        }
    }

    @Test func identifiersThatBreakTheRulesAreMalformed() {
        for name in [[], [0], [0x1f], [0x7f], [0xff], [UInt8](repeating: 65, count: 129)] as [[UInt8]] {
            #expect(error(.countRoots, [UInt8(name.count)] + name) == .malformedRequest, "\(name)")
        }
    }

    @Test func policiesThatDoNotExistAreMalformed() {
        for policy in [[0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [2, 0, 0, 0, 0], [2, 0x81, 0x3a, 9, 0], [3, 0, 0, 0, 0]] as [[UInt8]] {
            let body = [UInt8](repeating: 0, count: 16) + [1, 65] + policy
            #expect(error(.createCollaboration, body) == .malformedRequest, "\(policy)")
        }
    }

    // MARK: Proofs

    private func entry(_ generator: inout SeededGenerator) -> SignedIdentityProof {
        SignedIdentityProof(
            publicKey: generator.bytes(Int.random(in: 0...91, using: &generator)),
            publicKeyIndex: UInt64.random(in: .min ... .max, using: &generator),
            inclusionHashes: (0..<Int.random(in: 0...33, using: &generator)).map { _ in generator.digest() },
            signature: generator.bytes(Int.random(in: 0...72, using: &generator)),
            signatureFormat: Bool.random(using: &generator) ? .der : .raw,
            data: generator.bytes(Int.random(in: 0...100, using: &generator)))
    }

    @Test(arguments: [true, false])
    func proofsAreReadAsTheyWereWrittenAndEveryTruncationIsMalformed(_ isSigned: Bool) throws {
        var generator = SeededGenerator(seed: runSeed)
        let names = try (0..<3).map { try #require(CollaborationIdentifier("name \($0)")) }
        let entries = (0..<5).map { (collaboration: $0 % 3, proof: entry(&generator)) }
        var bytes: [UInt8] = []
        try ProofBatch.append(entries, of: names, isSigned: isSigned, wantsRoots: false, to: &bytes)
        try bytes.withUnsafeBytes { bytes in
            let batch = try ProofBatch(bytes, isSigned: isSigned)
            for (index, entry) in entries.enumerated() {
                let read = batch.proof(at: index, in: bytes)
                #expect(Array(read.collaboration) == names[entry.collaboration].utf8)
                #expect(Array(read.publicKey) == entry.proof.publicKey)
                #expect(read.publicKeyIndex == entry.proof.publicKeyIndex)
                #expect(read.inclusionHashCount == entry.proof.inclusionHashes.count)
                #expect(Array(read.signature) == (isSigned ? entry.proof.signature : []))
                #expect(Array(read.data) == (isSigned ? entry.proof.data : []))
            }
        }
        let operation: Operation = isSigned ? .verify : .verifyInclusion
        for length in 0..<bytes.count {
            #expect(error(operation, Array(bytes[..<length])) == .malformedRequest, "seed \(runSeed), \(length)")
        }
        #expect(error(operation, bytes + [0]) == .malformedRequest)
    }

    @Test func reservedBitsUnknownPlacesAndCountsOverTheirLimitsAreRefused() {
        // Flags, zero, one collaboration "a", one inclusion-only proof with an empty key for place 0.
        let good: [UInt8] = [0, 0, 1, 0, 1, 0, 0, 0, 1, 65] + [0, 0, 0, 0] + [UInt8](repeating: 0, count: 8)
        #expect(error(.verifyInclusion, good) == nil)
        func changed(_ position: Int, _ byte: UInt8) -> [UInt8] {
            var bytes = good
            bytes[position] = byte
            return bytes
        }
        #expect(error(.verifyInclusion, changed(0, 2)) == .malformedRequest, "flag 2")
        #expect(error(.verifyInclusion, changed(0, 0x81)) == .malformedRequest, "flag 0x80")
        #expect(error(.verifyInclusion, changed(1, 1)) == .malformedRequest, "zero")
        #expect(error(.verifyInclusion, changed(10, 1)) == .malformedRequest, "place 1 of 1")
        #expect(error(.verifyInclusion, changed(3, 0x10)) == .limitExceeded, "4,097 collaborations")
        #expect(error(.verifyInclusion, changed(5, 0x10)) == .limitExceeded, "4,097 proofs")
        #expect(error(.verify, [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]) == .limitExceeded)
        #expect(error(.verify, [0, 0, 0, 0, 0, 0, 0, 0]) == nil, "nothing at all is fine")
    }

    @Test func randomBytesNeverCrashAnyReader() {
        var generator = SeededGenerator(seed: runSeed)
        for _ in 0..<20_000 {
            let bytes = generator.bytes(Int.random(in: 0...120, using: &generator))
            bytes.withUnsafeBytes { bytes in
                for operation in Operation.allCases {
                    guard let request = try? Request.decode(operation: operation.rawValue, body: bytes) else { continue }
                    if case .verify(let batch) = request {
                        for index in 0..<batch.count { _ = batch.proof(at: index, in: bytes) }
                    }
                }
                _ = FrameScanner.scan(bytes, expecting: [.request, .answer, .error])
                _ = try? FrameWriter.decodeError(bytes)
                _ = try? VerdictList.decode(bytes)
                _ = try? HelloAnswer(bytes)
                _ = try? Answer.challenges(bytes)
                _ = try? Answer.tests(bytes)
                _ = try? Answer.roots(bytes)
                _ = try? Answer.collaborations(bytes)
                _ = try? Answer.statistics(bytes)
                _ = try? Answer.changes(bytes)
            }
        }
    }

    @Test func changesAreReadAsTheyWereWritten() throws {
        let a = try #require(CollaborationIdentifier("a"))
        let changes = [
            Change.createCollaboration(a, .deviceNonce(windowSeconds: 5)), .addRoots(a, [.zero]), .removeRoots(a, []),
            .dropCollaboration(a),
        ].enumerated().map { LoggedMutation(sequence: UInt64($0), changed: 3, mutation: Mutation($1)) }
        var bytes: [UInt8] = []
        Answer.append(changes: changes, hasMore: true, to: &bytes)
        let read = try bytes.withRawBytes { bytes throws(ServiceError) in try Answer.changes(bytes) }
        #expect(read.changes == changes)
        #expect(read.hasMore)
    }
}
