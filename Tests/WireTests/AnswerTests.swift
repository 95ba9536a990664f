import Core
import TestSupport
import Testing
import Wire

struct AnswerTests {
    /// Every reader with one answer that it reads, and what reading and writing it again gives.
    private static func answers() throws -> [(
        name: String, body: [UInt8], reread: (UnsafeRawBufferPointer) throws -> [UInt8]
    )] {
        var generator = SeededGenerator(seed: runSeed)
        let name = try #require(CollaborationIdentifier("decks"))
        let other = try #require(CollaborationIdentifier("é"))
        let roots = (0..<3).map { _ in generator.digest() }
        let hello = HelloAnswer(
            version: 1, features: [.challenges, .changeLog], limits: [1: 2, 3: .max, 900: 4], software: "gate é")
        func list(_ verdicts: [Verdict], _ roots: [Digest]?, _ bytes: inout [UInt8]) {
            verdicts.withUnsafeBufferPointer { verdicts in
                guard let roots else { return VerdictList.append(verdicts, roots: nil, to: &bytes) }
                roots.withUnsafeBufferPointer { VerdictList.append(verdicts, roots: $0, to: &bytes) }
            }
        }
        var edit = Edit(name)
        edit.creation = .deviceNonce(windowSeconds: 9)
        edit.dropsCollaboration = true
        (edit.addedRoots, edit.removedRoots) = (roots, roots.reversed())
        edit.removedRanges = [RecordRange([1], [2, 3])]
        edit.records = [
            RecordEdit([5], isSequenced: true, value: [], expecting: .absent), RecordEdit([6, 7], value: nil),
            RecordEdit([8], value: [9], expecting: .version(.max)), RecordEdit([8], value: [9], expecting: .present),
        ]
        let changes = [
            LoggedMutation(
                sequence: 1, changed: 1,
                mutation: Mutation(identifier: MutationIdentifier(7), .createCollaboration(name, .challenge))),
            LoggedMutation(
                sequence: 2, changed: 1,
                mutation: Mutation(
                    identifier: MutationIdentifier(.max), .createCollaboration(other, .deviceNonce(windowSeconds: 60)))),
            LoggedMutation(
                sequence: 3, changed: 2, mutation: Mutation(identifier: MutationIdentifier(8), .addRoots(name, roots))),
            LoggedMutation(
                sequence: 4, changed: 0, mutation: Mutation(identifier: MutationIdentifier(9), .removeRoots(name, []))),
            LoggedMutation(
                sequence: .max, changed: .max,
                mutation: Mutation(identifier: MutationIdentifier(10), .dropCollaboration(other))),
            LoggedMutation(
                sequence: 5, changed: 2, mutation: Mutation(identifier: MutationIdentifier(11), .edit(edit))),
            LoggedMutation(
                sequence: 6, changed: 0, mutation: Mutation(identifier: MutationIdentifier(12), .edit(Edit()))),
        ]
        return [
            (
                "hello", bytes { hello.append(to: &$0) },
                { body in
                    let read = try HelloAnswer(body); return bytes { read.append(to: &$0) }
                }
            ),
            (
                "challenges",
                bytes { bytes in
                    Answer.appendChallengesHeader(count: 2, challengeBytes: 48, validMilliseconds: 60_000, to: &bytes)
                    bytes += [UInt8](repeating: 1, count: 48) + [UInt8](repeating: 2, count: 48)
                },
                { body in
                    let read = try Answer.challenges(body)
                    return bytes { bytes in
                        Answer.appendChallengesHeader(
                            count: read.challenges.count, challengeBytes: 48, validMilliseconds: read.validMilliseconds,
                            to: &bytes)
                        bytes += read.challenges.joined()
                    }
                }
            ),
            (
                "receipt",
                bytes { Answer.append(MutationReceipt(sequence: .max, changed: 3, isRepeat: true), to: &$0) },
                { body in
                    let read = try Answer.receipt(body); return bytes { Answer.append(read, to: &$0) }
                }
            ),
            (
                "tests", bytes { Answer.append(tests: [true, false, true], to: &$0) },
                { body in
                    let read = try Answer.tests(body); return bytes { Answer.append(tests: read, to: &$0) }
                }
            ),
            (
                "roots", bytes { Answer.append(roots: roots, hasMore: true, to: &$0) },
                { body in
                    let read = try Answer.roots(body)
                    return bytes { Answer.append(roots: read.roots, hasMore: read.hasMore, to: &$0) }
                }
            ),
            (
                "collaborations",
                bytes {
                    Answer.append(
                        collaborations: [(name, .challenge, 5), (other, .deviceNonce(windowSeconds: 9), .max)],
                        hasMore: false, to: &$0)
                },
                { body in
                    let read = try Answer.collaborations(body)
                    return bytes { Answer.append(collaborations: read.collaborations, hasMore: read.hasMore, to: &$0) }
                }
            ),
            (
                "statistics", bytes { Answer.append(statistics: [("a", 1), ("long-name", .max)], to: &$0) },
                { body in
                    let read = try Answer.statistics(body)
                    return bytes { Answer.append(statistics: read, to: &$0) }
                }
            ),
            (
                "changes", bytes { Answer.append(changes: changes, hasMore: true, to: &$0) },
                { body in
                    let read = try Answer.changes(body)
                    return bytes { Answer.append(changes: read.changes, hasMore: read.hasMore, to: &$0) }
                }
            ),
            (
                "verdicts", bytes { list([.granted, .badSignature], nil, &$0) },
                { body in
                    let read = try VerdictList.decode(body)
                    return bytes { list(read.verdicts, read.roots.isEmpty ? nil : read.roots, &$0) }
                }
            ),
            (
                "verdicts with roots", bytes { list(Array(Verdict.allCases.prefix(3)), roots, &$0) },
                { body in
                    let read = try VerdictList.decode(body)
                    return bytes { list(read.verdicts, read.roots, &$0) }
                }
            ),
        ]
    }

    @Test("Every answer comes back as it was")
    func roundTrip() throws {
        for (name, body, reread) in try Self.answers() {
            #expect(try body.withUnsafeBytes { try reread($0) } == body, "\(name)")
        }
    }

    @Test("Every truncation of an answer is malformed, and so is a byte behind its end")
    func truncations() throws {
        for (name, body, reread) in try Self.answers() {
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
            let (name, genuine, reread) = answers[iteration % answers.count]
            var body = genuine
            if Bool.random(using: &generator) {
                for _ in 0..<3 { body[Int.random(in: 0..<body.count, using: &generator)] = generator.bytes(1)[0] }
            } else {
                body = generator.bytes(Int.random(in: 0...60, using: &generator))
            }
            do {
                _ = try body.withUnsafeBytes { try reread($0) }
            } catch let error as ServiceError {
                #expect(error.code == .malformedAnswer, "\(name), seed \(runSeed), iteration \(iteration)")
            }
        }
    }

    @Test("A byte that is no verdict is never taken for one")
    func unknownVerdict() {
        for byte in [0, 4, 15, 29, 255] as [UInt8] {
            let error = thrownServiceError {
                _ = try (field(UInt32(1)) + [0, 0, 0, 0, byte]).withUnsafeBytes { try VerdictList.decode($0) }
            }
            #expect(error?.code == .malformedAnswer, "\(byte)")
        }
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
