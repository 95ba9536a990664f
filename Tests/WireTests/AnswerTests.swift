import Core
import TestSupport
import Testing
import Wire

/// An answer as bytes, with its reader and its writer.
private struct AnswerCase {
    let name: String
    let body: [UInt8]
    /// Reads bytes as an answer of this kind, and writes what was read.
    let reread: (UnsafeRawBufferPointer) throws -> [UInt8]

    init<Value>(
        _ name: String, _ value: Value, read: @escaping (UnsafeRawBufferPointer) throws -> Value,
        write: @escaping (Value, inout [UInt8]) -> Void
    ) {
        self.name = name
        body = bytes { write(value, &$0) }
        reread = { body in
            let value = try read(body)
            return bytes { write(value, &$0) }
        }
    }
}

struct AnswerTests {
    /// One answer for every reader.
    private static func answers() throws -> [AnswerCase] {
        var generator = SeededGenerator(seed: runSeed)
        let names = try ["decks", "é"].map { try #require(CollaborationIdentifier($0)) }
        let roots = (0..<3).map { _ in generator.digest() }
        return serviceAnswers + setAnswers(names, roots) + verdictAnswers(roots)
    }

    private static var serviceAnswers: [AnswerCase] {
        let hello = HelloAnswer(
            version: 1, features: [.challenges, .changeLog], limits: [1: 2, 3: .max, 900: 4], software: "gate é")
        let challenges = [UInt8(1), 2].map { [UInt8](repeating: $0, count: 48) }
        return [
            AnswerCase("hello", hello, read: { try HelloAnswer($0) }) { $0.append(to: &$1) },
            AnswerCase("challenges", (challenges, 60_000), read: { try Answer.challenges($0) }) { answer, bytes in
                Answer.appendChallengesHeader(
                    count: answer.challenges.count, challengeBytes: 48, validMilliseconds: answer.validMilliseconds,
                    to: &bytes)
                bytes += answer.challenges.joined()
            },
            AnswerCase("statistics", [("a", 1), ("long-name", .max)], read: { try Answer.statistics($0) }) {
                Answer.append(statistics: $0, to: &$1)
            },
        ]
    }

    private static func setAnswers(_ names: [CollaborationIdentifier], _ roots: [Digest]) -> [AnswerCase] {
        [
            AnswerCase(
                "receipt", MutationReceipt(sequence: .max, changed: 3, isRepeat: true), read: { try Answer.receipt($0) }
            ) {
                Answer.append($0, to: &$1)
            },
            AnswerCase("tests", [true, false, true], read: { try Answer.tests($0) }) {
                Answer.append(tests: $0, to: &$1)
            },
            AnswerCase("roots", (roots, true), read: { try Answer.roots($0) }) {
                Answer.append(roots: $0.roots, hasMore: $0.hasMore, to: &$1)
            },
            AnswerCase(
                "collaborations",
                ([(names[0], .challenge, 5), (names[1], .deviceNonce(windowSeconds: 9), .max)], false),
                read: { try Answer.collaborations($0) }
            ) {
                Answer.append(collaborations: $0.collaborations, hasMore: $0.hasMore, to: &$1)
            },
            AnswerCase("changes", (changes(names, roots), true), read: { try Answer.changes($0) }) {
                Answer.append(changes: $0.changes, hasMore: $0.hasMore, to: &$1)
            },
        ]
    }

    /// A mutation of every kind, with values that are extreme.
    private static func changes(_ names: [CollaborationIdentifier], _ roots: [Digest]) -> [LoggedMutation] {
        var edit = Edit(names[0])
        edit.creation = .deviceNonce(windowSeconds: 9)
        edit.dropsCollaboration = true
        (edit.addedRoots, edit.removedRoots) = (roots, roots.reversed())
        edit.removedRanges = [RecordRange([1], [2, 3])]
        edit.request = RequestDigest(logged: .max)
        edit.records = [
            RecordEdit([5], isSequenced: true, value: [], expecting: .absent), RecordEdit([6, 7], value: nil),
            RecordEdit([8], value: [9], expecting: .version(.max)), RecordEdit([8], value: [9], expecting: .present),
        ]
        let changes: [(sequence: UInt64, changed: UInt64, identifier: UInt128, change: Change)] = [
            (1, 1, 7, .createCollaboration(names[0], .challenge)),
            (2, 1, .max, .createCollaboration(names[1], .deviceNonce(windowSeconds: 60))),
            (3, 2, 8, .addRoots(names[0], roots)), (4, 0, 9, .removeRoots(names[0], [])),
            (.max, .max, 10, .dropCollaboration(names[1])), (5, 2, 11, .edit(edit)), (6, 0, 12, .edit(Edit())),
        ]
        return changes.map { sequence, changed, identifier, change in
            LoggedMutation(
                sequence: sequence, changed: changed,
                mutation: Mutation(identifier: MutationIdentifier(identifier), change))
        }
    }

    private static func verdictAnswers(_ roots: [Digest]) -> [AnswerCase] {
        func write(_ verdicts: [Verdict], _ roots: [Digest]?, _ bytes: inout [UInt8]) {
            verdicts.withUnsafeBufferPointer { verdicts in
                guard let roots else { return VerdictList.append(verdicts, roots: nil, to: &bytes) }
                roots.withUnsafeBufferPointer { VerdictList.append(verdicts, roots: $0, to: &bytes) }
            }
        }
        return [
            AnswerCase("verdicts", ([.granted, .badSignature], []), read: { try VerdictList.decode($0) }) {
                write($0.verdicts, $0.roots.isEmpty ? nil : $0.roots, &$1)
            },
            AnswerCase(
                "verdicts with roots", (Array(Verdict.allCases.prefix(3)), roots), read: { try VerdictList.decode($0) }
            ) {
                write($0.verdicts, $0.roots, &$1)
            },
        ]
    }

    @Test("Every answer comes back as it was")
    func roundTrip() throws {
        for answer in try Self.answers() {
            #expect(try answer.body.withUnsafeBytes { try answer.reread($0) } == answer.body, "\(answer.name)")
        }
    }

    @Test("Every truncation of an answer is malformed, and so is a byte behind its end")
    func truncations() throws {
        for answer in try Self.answers() {
            let (name, body, reread) = (answer.name, answer.body, answer.reread)
            for length in 0..<body.count {
                let error = thrownServiceError { _ = try Array(body.prefix(length)).withUnsafeBytes { try reread($0) } }
                #expect(error?.code == .malformedAnswer, "\(name), \(length) of \(body.count) bytes")
            }
            let error = thrownServiceError { _ = try (body + [0]).withUnsafeBytes { try reread($0) } }
            #expect(error?.code == .malformedAnswer, "\(name), a byte behind the end")
        }
    }

    @Test("Random and slightly broken answers never crash, and every error is malformedAnswer")
    func fuzz() throws {
        var generator = SeededGenerator(seed: runSeed &+ 1)
        let answers = try Self.answers()
        for iteration in 0..<5000 {
            let answer = answers[iteration % answers.count]
            var body = answer.body
            if Bool.random(using: &generator) {
                for _ in 0..<3 { body[Int.random(in: 0..<body.count, using: &generator)] = generator.bytes(1)[0] }
            } else {
                body = generator.bytes(Int.random(in: 0...60, using: &generator))
            }
            do {
                _ = try body.withUnsafeBytes { try answer.reread($0) }
            } catch let error as ServiceError {
                #expect(error.code == .malformedAnswer, "\(answer.name), seed \(runSeed), iteration \(iteration)")
            }
        }
    }

    @Test("A byte that is no verdict refuses, and is taken for no other verdict")
    func unknownVerdict() throws {
        for byte in [0, 4, 15, 30, 255] as [UInt8] {
            let body = field(UInt32(2)) + [0, 0, 0, 0, byte, 28]
            let verdicts = try body.withUnsafeBytes { try VerdictList.decode($0).verdicts }
            #expect(verdicts == [.unknown, .badSignature], "\(byte)")
            #expect(Verdict.unknown.isRefusal)
        }
    }

    @Test("An answer without proofs has no flag, also when root hashes were asked for")
    func noProofs() {
        var body: [UInt8] = []
        VerdictList.append(
            UnsafeBufferPointer(start: nil, count: 0), roots: UnsafeBufferPointer(start: nil, count: 0), to: &body)
        #expect(body == [0, 0, 0, 0, 0, 0, 0, 0])
    }

    @Test("A count that the body can't hold is malformed, however big")
    func hugeCounts() {
        let body = field(UInt32.max) + [1, 0, 0, 0]
        #expect(thrownServiceError { _ = try body.withUnsafeBytes { try Answer.roots($0) } }?.code == .malformedAnswer)
        #expect(
            thrownServiceError { _ = try body.withUnsafeBytes { try Answer.changes($0) } }?.code == .malformedAnswer)
        #expect(
            thrownServiceError { _ = try body.withUnsafeBytes { try Answer.collaborations($0) } }?.code
                == .malformedAnswer)
        #expect(
            thrownServiceError { _ = try body.withUnsafeBytes { try VerdictList.decode($0) } }?.code
                == .malformedAnswer)
        let empty = field(UInt32.max) + field(UInt16(0)) + field(UInt16(0)) + field(UInt64(1))
        #expect(
            thrownServiceError { _ = try empty.withUnsafeBytes { try Answer.challenges($0) } }?.code
                == .malformedAnswer)
    }

    @Test("A receipt whose repeat byte is neither 0 nor 1 is malformed")
    func repeatByte() {
        let body = field(UInt64(1)) + field(UInt64(1)) + [2]
        #expect(
            thrownServiceError { _ = try body.withUnsafeBytes { try Answer.receipt($0) } }?.code == .malformedAnswer)
    }

    @Test("Hello skips limits that it does not know")
    func unknownLimits() throws {
        let answer = HelloAnswer(version: 1, features: [], limits: [999: 1, 13: 48], software: "")
        let read = try bytes { answer.append(to: &$0) }.withUnsafeBytes { try HelloAnswer($0) }
        #expect(read == answer)
        #expect(HelloAnswer.Limit(rawValue: 999) == nil)
    }
}
