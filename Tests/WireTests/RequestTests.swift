import Core
import TestSupport
import Testing
import Wire

struct RequestTests {
    private let decks: CollaborationIdentifier

    init() throws {
        decks = try #require(CollaborationIdentifier("decks"))
    }

    private func body(_ request: Request) -> [UInt8] { bytes { request.append(to: &$0) } }

    private func code(_ operation: Wire.Operation, _ body: [UInt8]) -> ServiceError.Code? {
        thrownServiceError { _ = try decode(operation, body) }?.code
    }

    /// One request of every kind but verify, with random content.
    private func requests(_ generator: inout SeededGenerator) throws -> [Request] {
        let drawn = [generator.collaboration(), generator.collaboration()]
        let name = try #require(drawn[0])
        let start = try #require(drawn[1])
        func identifier(_ generator: inout SeededGenerator) -> MutationIdentifier {
            MutationIdentifier(UInt128.random(in: .min ... .max, using: &generator))
        }
        func limit(_ most: Int, _ generator: inout SeededGenerator) -> Int {
            Int.random(in: 1...most, using: &generator)
        }
        let changes: [Change] = [
            .createCollaboration(name, .challenge),
            .createCollaboration(
                name, .deviceNonce(windowSeconds: UInt32.random(in: 1...604_800, using: &generator))),
            .dropCollaboration(name),
            .addRoots(name, generator.digests(20)), .addRoots(name, []),
            .removeRoots(name, generator.digests(20)),
        ]
        return changes.map { .mutate(Mutation(identifier: identifier(&generator), $0)) } + [
            .hello(minimum: generator.bytes(1)[0] & 0x7f, maximum: generator.bytes(1)[0] | 0x80),
            .hello(minimum: 1, maximum: 1, key: generator.bytes(Int.random(in: 1...64, using: &generator))),
            .ping(generator.bytes(Int.random(in: 0...64, using: &generator))),
            .issueChallenges(count: Int.random(in: 0...4096, using: &generator)),
            .testRoots(name, generator.digests(20)),
            .listRoots(name, after: nil, limit: limit(4096, &generator)),
            .listRoots(name, after: generator.digest(), limit: limit(4096, &generator)),
            .countRoots(name),
            .listCollaborations(after: nil, limit: limit(1024, &generator)),
            .listCollaborations(after: start, limit: limit(1024, &generator)),
            .statistics,
            .readChanges(after: generator.next(), limit: limit(1024, &generator)),
            .confirmEverywhere(sequence: generator.next()),
            .readSnapshot(
                SnapshotRequest(
                    token: (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) },
                    identifier: generator.next(), offset: generator.next())),
        ]
    }

    @Test("Every request comes back as it was")
    func roundTrip() throws {
        var operations: Set<UInt16> = []
        for iteration in 0..<30 {
            var generator = SeededGenerator(seed: runSeed &+ UInt64(iteration))
            for request in try requests(&generator) {
                let read = try decode(request.operation, body(request))
                #expect(
                    String(reflecting: read) == String(reflecting: request), "seed \(runSeed), iteration \(iteration)")
                operations.insert(request.operation.rawValue)
            }
        }
        #expect(operations.count == Operation.allCases.count - 6)
    }

    @Test("Every truncation of a request is malformed, and so is a byte behind its end")
    func truncations() throws {
        var generator = SeededGenerator(seed: runSeed &+ 100)
        for request in try requests(&generator) {
            let whole = body(request)
            if case .ping = request { continue }
            // A hello without a key ends before the key.
            for length in 0..<whole.count where request.operation != .hello || length != 4 {
                #expect(
                    code(request.operation, Array(whole.prefix(length))) == .malformedRequest,
                    "\(request.operation), \(length) of \(whole.count) bytes, seed \(runSeed)")
            }
            #expect(code(request.operation, whole + [0]) == .malformedRequest, "\(request.operation)")
        }
    }

    @Test("An operation that is not listed is unknown, whatever its body")
    func unknownOperation() {
        // Edits are listed, but nobody may send one.
        let known = Set(Operation.allCases.map(\.rawValue)).subtracting([Operation.edit.rawValue])
        for operation in (UInt16(0)...0x120).filter({ !known.contains($0) }) + [0xffff] {
            let error = thrownServiceError {
                _ = try [UInt8](repeating: 0, count: 40).withUnsafeBytes {
                    try Request.decode(operation: operation, body: $0)
                }
            }
            #expect(error?.code == .unknownOperation, "\(operation)")
            #expect(error?.detail == UInt32(operation))
        }
    }

    @Test("A hello with a reserved bit set is malformed")
    func helloReserved() {
        for bit in 0..<16 { #expect(code(.hello, [1, 1] + field(UInt16(1) << UInt16(bit))) == .malformedRequest) }
    }

    @Test("A hello's key may have any length that its byte can say, so that one of a wrong length is a wrong key")
    func helloKey() throws {
        for count in [1, 63, 64, 65, 255] {
            let key = [UInt8](repeating: 0x6b, count: count)
            guard case .hello(1, 1, let read) = try decode(.hello, [1, 1, 0, 0, UInt8(count)] + key) else {
                Issue.record("it is no hello")
                return
            }
            #expect(read == key)
            #expect(code(.hello, [1, 1, 0, 0, UInt8(count)] + key + [0x6b]) == .malformedRequest)
            #expect(code(.hello, [1, 1, 0, 0, UInt8(count)] + key.dropLast()) == .malformedRequest)
        }
    }

    /// The error of a request over a limit, whose number must be in its detail.
    private func expectLimit(_ limit: Int, _ operation: Wire.Operation, _ body: [UInt8], _ what: Comment) {
        let error = thrownServiceError { _ = try decode(operation, body) }
        #expect(error?.code == .limitExceeded, what)
        #expect(error?.detail == UInt32(limit), what)
    }

    @Test("64 bytes of ping are the most, 65 are over the limit")
    func ping() throws {
        guard case .ping(let content) = try decode(.ping, [UInt8](repeating: 7, count: 64)) else {
            Issue.record("it is no ping")
            return
        }
        #expect(content == [UInt8](repeating: 7, count: 64))
        expectLimit(64, .ping, [UInt8](repeating: 7, count: 65), "65 bytes")
    }

    @Test("4,096 challenges are the most, 4,097 are over the limit")
    func challenges() throws {
        #expect(throws: Never.self) { try decode(.issueChallenges, field(UInt32(4096))) }
        expectLimit(4096, .issueChallenges, field(UInt32(4097)), "4,097")
        expectLimit(4096, .issueChallenges, field(UInt32.max), "most")
    }

    @Test("32,768 root hashes are the most, 32,769 are over the limit")
    func rootHashes() throws {
        let name: [UInt8] = [5] + decks.utf8
        for (operation, head) in [
            (Wire.Operation.addRoots, [UInt8](repeating: 1, count: 16) + name),
            (.removeRoots, [UInt8](repeating: 1, count: 16) + name), (.testRoots, name),
        ] {
            let most = head + field(UInt32(32_768)) + [UInt8](repeating: 9, count: 32_768 * 32)
            #expect(throws: Never.self) { try decode(operation, most) }
            expectLimit(
                32_768, operation, head + field(UInt32(32_769)) + [UInt8](repeating: 9, count: 32_769 * 32),
                "\(operation)")
            expectLimit(32_768, operation, head + field(UInt32.max), "\(operation), all ones")
        }
    }

    @Test("A page of no items is malformed")
    func emptyPages() {
        #expect(code(.listRoots, body(.listRoots(decks, after: nil, limit: 0))) == .malformedRequest)
        #expect(code(.listCollaborations, body(.listCollaborations(after: nil, limit: 0))) == .malformedRequest)
        #expect(code(.readChanges, body(.readChanges(after: 0, limit: 0))) == .malformedRequest)
    }

    @Test("A page of one item more than the most is over the limit")
    func longPages() {
        expectLimit(4096, .listRoots, body(.listRoots(decks, after: nil, limit: 4097)), "roots")
        expectLimit(1024, .listCollaborations, body(.listCollaborations(after: nil, limit: 1025)), "collaborations")
        expectLimit(1024, .readChanges, body(.readChanges(after: 0, limit: 1025)), "changes")
    }

    @Test("The longest pages are granted")
    func fullPages() {
        #expect(code(.listRoots, body(.listRoots(decks, after: nil, limit: 4096))) == nil)
        #expect(code(.listCollaborations, body(.listCollaborations(after: nil, limit: 1024))) == nil)
        #expect(code(.readChanges, body(.readChanges(after: 0, limit: 1024))) == nil)
    }

    @Test("A has-start byte other than 0 and 1 is malformed")
    func hasStart() {
        let body: [UInt8] = [5] + decks.utf8 + field(UInt32(1)) + [2] + [UInt8](repeating: 1, count: 32)
        #expect(code(.listRoots, body) == .malformedRequest)
    }

    @Test("A collaboration identifier that breaks the rules is malformed in every request that names one")
    func brokenIdentifier() {
        let broken: [(String, [UInt8])] = [
            ("empty", []), ("too long", [UInt8](repeating: 0x61, count: 129)), ("control character", [0x61, 0x1f]),
            ("not UTF-8", [0xff]),
        ]
        let identifier = [UInt8](repeating: 3, count: 16)
        for (what, name) in broken {
            let named = [UInt8(name.count)] + name
            #expect(code(.countRoots, named) == .malformedRequest, "\(what)")
            #expect(code(.dropCollaboration, identifier + named) == .malformedRequest, "\(what)")
            #expect(code(.createCollaboration, identifier + named + [1, 0, 0, 0, 0]) == .malformedRequest, "\(what)")
            #expect(code(.addRoots, identifier + named + field(UInt32(0))) == .malformedRequest, "\(what)")
            #expect(code(.removeRoots, identifier + named + field(UInt32(0))) == .malformedRequest, "\(what)")
            #expect(code(.testRoots, named + field(UInt32(0))) == .malformedRequest, "\(what)")
            #expect(code(.listRoots, named + field(UInt32(1)) + [0]) == .malformedRequest, "\(what)")
            if !name.isEmpty {
                #expect(code(.listCollaborations, field(UInt32(1)) + named) == .malformedRequest, "\(what)")
            }
        }
    }

    @Test("A policy that does not exist is malformed")
    func policy() {
        let head = [UInt8](repeating: 3, count: 16) + [5] + decks.utf8
        for (kind, window) in [(0, 0), (3, 0), (1, 1), (2, 0), (2, 604_801)] as [(UInt8, UInt32)] {
            #expect(
                code(.createCollaboration, head + [kind] + field(window)) == .malformedRequest, "\(kind), \(window)")
        }
    }

    @Test("Random and slightly broken bodies never crash, and every error is one that a request can have")
    func fuzz() throws {
        var generator = SeededGenerator(seed: runSeed &+ 200)
        var bodies = try requests(&generator).map { ($0.operation, body($0)) }
        for isSigned in [true, false] {
            let entries = (0..<3).map { _ -> ProofBatch.Entry in (0, generator.proof()) }
            let batch = try bytes {
                try ProofBatch.append(entries, of: [decks], isSigned: isSigned, wantsRoots: true, to: &$0)
            }
            bodies.append((isSigned ? .verify : .verifyInclusion, batch))
        }
        var read = 0
        for iteration in 0..<20_000 {
            var (operation, body) = bodies[Int.random(in: 0..<bodies.count, using: &generator)]
            if iteration % 2 == 0 {
                body = generator.bytes(Int.random(in: 0...80, using: &generator))
            } else {
                for _ in 0..<Int.random(in: 0...3, using: &generator) where !body.isEmpty {
                    let place = Int.random(in: 0..<min(body.count, 40), using: &generator)
                    body[place] = UInt8.random(in: .min ... .max, using: &generator)
                }
                if iteration % 5 == 0 { body.removeLast(Int.random(in: 0...body.count, using: &generator)) }
            }
            do {
                let request = try decode(operation, body)
                read += 1
                #expect(request.operation == operation, "seed \(runSeed), iteration \(iteration)")
                guard case .verify(let batch) = request else { continue }
                for index in 0..<batch.count { _ = copy(batch, at: index, in: body) }
            } catch let error as ServiceError {
                #expect(
                    error.code == .malformedRequest || error.code == .limitExceeded,
                    "\(error), seed \(runSeed), iteration \(iteration)")
            }
        }
        #expect(read > 100, "seed \(runSeed)")
    }
}
