import Core
import Wire

@testable import RootgateClient

/// The bodies of answers and errors, as a client reads them. The first byte says which kind of answer it is, the second
/// one how many items were asked for.
enum FuzzedAnswers {
    static let subject = FuzzSubject("answers", bytesMax: 1024, seeds: seeds) { input in
        guard input.count >= 2 else { return }
        let body = UnsafeRawBufferPointer(rebasing: input[2...])
        guard let kind = Kind(rawValue: input[0]) else { return }
        let asked = Int(input[1])
        do {
            guard let again = try kind.encoded(body, asked) else { return }
            // Reserved bytes may be anything, and a client reads any byte but 1 as no. What was understood stays.
            try demand(again.count == body.count, "an answer is written with another length than it was read")
            let twice = try again.withRawBytes { try kind.encoded($0, asked) }
            try demand(twice == again, "an answer is understood in another way when it is written again")
        } catch let error as ServiceError {
            try demand(error.code == .malformedAnswer, "the error is \(error)")
        }
    }

    private enum Kind: UInt8, CaseIterable {
        case hello, challenges, receipt, tests, roots, count, collaborations, statistics, changes, verdicts, open
        case grants, error, decisions, snapshot, confirmation

        /// The answer, read and written again; `nil` for those that nobody writes whole. Throws `malformedAnswer`.
        func encoded(_ body: UnsafeRawBufferPointer, _ asked: Int) throws -> [UInt8]? {
            switch self {
            case .hello:
                let answer = try HelloAnswer(body)
                // A limit that is given twice is kept once; a name that is no UTF-8 becomes longer. Both together may
                // keep the length.
                guard body.count == FuzzedAnswers.helloBytes(answer),
                    !answer.software.unicodeScalars.contains("\u{fffd}")
                else { return nil }
                return appended { answer.append(to: &$0) }
            case .challenges: return try FuzzedAnswers.challenges(body)
            case .receipt:
                let receipt = try Answer.receipt(body)
                return appended { Answer.append(receipt, to: &$0) }
            case .tests:
                let tests = try Answer.tests(body)
                return appended { Answer.append(tests: tests, to: &$0) }
            case .roots:
                let page = try Answer.roots(body)
                return appended { Answer.append(roots: page.roots, hasMore: page.hasMore, to: &$0) }
            case .count:
                let state = try Answer.count(body)
                return appended { Answer.append(policy: state.policy, rootCount: state.rootCount, to: &$0) }
            case .collaborations:
                let page = try Answer.collaborations(body)
                return appended {
                    Answer.append(collaborations: page.collaborations, hasMore: page.hasMore, to: &$0)
                }
            case .statistics:
                // Names that are no UTF-8 become longer.
                let statistics = try Answer.statistics(body)
                guard statistics.allSatisfy({ !$0.name.unicodeScalars.contains("\u{fffd}") }) else { return nil }
                return appended { Answer.append(statistics: statistics, to: &$0) }
            case .changes: return try FuzzedAnswers.changes(body)
            case .verdicts: return try FuzzedAnswers.verdicts(body)
            case .open: return try FuzzedAnswers.open(body, asked)
            case .grants: return try FuzzedAnswers.grants(body, asked)
            case .error: return try FuzzedAnswers.error(body)
            case .decisions: return try FuzzedAnswers.decisions(body, asked)
            case .snapshot: return try FuzzedAnswers.snapshot(body)
            case .confirmation: return try FuzzedAnswers.confirmation(body)
            }
        }
    }

    private static func helloBytes(_ answer: HelloAnswer) -> Int {
        10 + 10 * answer.limits.count + 1 + answer.software.utf8.count
    }

    private static func challenges(_ body: UnsafeRawBufferPointer) throws -> [UInt8] {
        let (challenges, milliseconds) = try Answer.challenges(body)
        let size = challenges.first?.count ?? Int(body[4]) | Int(body[5]) << 8
        return appended { bytes in
            Answer.appendChallengesHeader(
                count: challenges.count, challengeBytes: size, validMilliseconds: milliseconds, to: &bytes)
            for challenge in challenges { bytes += challenge }
        }
    }

    private static func changes(_ body: UnsafeRawBufferPointer) throws -> [UInt8] {
        let page = try Answer.changes(body)
        let again = appended { Answer.append(changes: page.changes, hasMore: page.hasMore, to: &$0) }
        let read = try again.withRawBytes { try Answer.changes($0) }
        try demand(read.changes == page.changes, "a page of changes is written in another way than it was read")
        return again
    }

    private static func verdicts(_ body: UnsafeRawBufferPointer) throws -> [UInt8]? {
        let (verdicts, roots) = try VerdictList.decode(body)
        try demand(roots.isEmpty || roots.count == verdicts.count, "\(roots.count) roots of \(verdicts.count) proofs")
        let hasRoots = body[4] & 1 == 1
        // A service writes no flag without proofs.
        guard !hasRoots || !verdicts.isEmpty else { return nil }
        return verdicts.withUnsafeBufferPointer { verdicts in
            roots.withUnsafeBufferPointer { roots in
                appended { VerdictList.append(verdicts, roots: hasRoots ? roots : nil, to: &$0) }
            }
        }
    }

    private static func open(_ body: UnsafeRawBufferPointer, _ asked: Int) throws -> [UInt8]? {
        let (count, lists) = (asked & 15, asked >> 4)
        let (verdicts, grants, options) = try OpenAnswer.decode(body, count: count, optionLists: lists)
        try demand(
            verdicts.count == count && grants.count == count && options.count == lists,
            "another number of answers than was asked for")
        try demand(grants.allSatisfy { $0?.count ?? 112 == 112 }, "a grant of another length")
        return nil
    }

    private static func grants(_ body: UnsafeRawBufferPointer, _ asked: Int) throws -> [UInt8] {
        let (answers, options) = try GrantAnswer.decode(body, optionLists: asked)
        try demand(options.count == asked, "another number of lists than was asked for")
        return appended { bytes in
            bytes.appendInteger(UInt32(answers.count))
            bytes.appendInteger(UInt32(0))
            for answer in answers { answer.append(to: &bytes) }
            for list in options {
                bytes.appendInteger(UInt16(list.count))
                for identifier in list {
                    bytes.appendInteger(UInt16(identifier.utf8.count))
                    bytes += Array(identifier.utf8)
                }
            }
        }
    }

    private static func error(_ body: UnsafeRawBufferPointer) throws -> [UInt8]? {
        let error = try FrameWriter.decodeError(body)
        try demand(error.origin == .service && error.code.rawValue < 256, "a service sent the error \(error)")
        _ = (error.retryAfter, error.description)
        let code = UInt16(body[0]) | UInt16(body[1]) << 8
        try demand(
            error.code.rawValue == code || error.code == .internalFault, "the code \(code) was read as \(error.code)")
        return nil
    }

    /// The decisions on as many proofs, with their root hashes when the first bit says so.
    private static func decisions(_ body: UnsafeRawBufferPointer, _ asked: Int) throws -> [UInt8]? {
        let wantsRoots = asked & 1 == 1
        let decisions = try RootgateClient.decisions(in: body, count: asked >> 1, haveRoots: wantsRoots)
        try demand(decisions.count == asked >> 1, "another number of decisions than was asked for")
        try demand(wantsRoots || decisions.allSatisfy { $0.rootHash == nil }, "a root hash that nobody asked for")
        return nil
    }

    /// A piece has a number and the snapshot's size, and everything behind those.
    private static func snapshot(_ body: UnsafeRawBufferPointer) throws -> [UInt8] {
        var parts = InputParts(body)
        let (identifier, size) = (parts.number(8), parts.number(8))
        let isPiece = size != nil && identifier != 0
        let piece: SnapshotPiece
        do throws(ServiceError) {
            piece = try SnapshotPiece(body)
        } catch {
            try demand(!isPiece, "a piece of a snapshot is refused")
            throw error
        }
        try demand(isPiece && piece.identifier == identifier && piece.size == size, "no piece is read as \(piece)")
        let again = appended { piece.append(to: &$0) }
        try demand(again.elementsEqual(body), "a piece of a snapshot is written in another way than it was read")
        return again
    }

    private static func confirmation(_ body: UnsafeRawBufferPointer) throws -> [UInt8] {
        let sequence: UInt64
        do throws(ServiceError) {
            sequence = try Answer.confirmation(body)
        } catch {
            try demand(body.count != 8, "a confirmation is refused")
            throw error
        }
        // A service writes the sequence alone.
        let again = appended { $0.appendInteger(sequence) }
        try demand(again.elementsEqual(body), "a confirmation is written in another way than it was read")
        return again
    }

    // MARK: Seeds

    private static func seeds() throws -> [[UInt8]] {
        guard let deck = CollaborationIdentifier("deck-42") else { return [] }
        let root = Digest([UInt8](repeating: 0xb7, count: 32)) ?? .zero
        func seed(_ kind: Kind, _ asked: UInt8 = 0, _ append: (inout [UInt8]) -> Void) -> [UInt8] {
            [kind.rawValue, asked] + appended(append)
        }
        let verdicts: [Verdict] = [.granted, .badSignature]
        func list(_ roots: [Digest]?, to bytes: inout [UInt8]) {
            verdicts.withUnsafeBufferPointer { verdicts in
                guard let roots else { return VerdictList.append(verdicts, roots: nil, to: &bytes) }
                roots.withUnsafeBufferPointer { VerdictList.append(verdicts, roots: $0, to: &bytes) }
            }
        }
        let hello = HelloAnswer(version: 1, features: [.challenges], limits: [1: 2, 13: 48], software: "rootgate")
        var edit = Edit(deck)
        edit.addedRoots = [root]
        edit.records = [RecordEdit([1, 2], value: [3], expecting: .version(4))]
        let changes = [Change.addRoots(deck, [root]), .createCollaboration(deck, .challenge), .edit(edit)].enumerated()
            .map { index, change in
                LoggedMutation(
                    sequence: UInt64(index) + 1, changed: 1,
                    mutation: Mutation(identifier: MutationIdentifier(7), change))
            }
        return [
            seed(.hello) { hello.append(to: &$0) },
            seed(.challenges) {
                Answer.appendChallengesHeader(count: 2, challengeBytes: 4, validMilliseconds: 9, to: &$0)
                $0 += [1, 2, 3, 4, 5, 6, 7, 8]
            },
            seed(.receipt) { Answer.append(MutationReceipt(sequence: 2, changed: 1, isRepeat: true), to: &$0) },
            seed(.tests) { Answer.append(tests: [true, false], to: &$0) },
            seed(.roots) { Answer.append(roots: [root], hasMore: true, to: &$0) },
            seed(.count) { Answer.append(policy: .deviceNonce(windowSeconds: 60), rootCount: 5, to: &$0) },
            seed(.collaborations) { Answer.append(collaborations: [(deck, .challenge, 5)], hasMore: false, to: &$0) },
            seed(.statistics) { Answer.append(statistics: [("roots", 7), ("proofs", 8)], to: &$0) },
            seed(.changes) { Answer.append(changes: changes, hasMore: true, to: &$0) },
            seed(.verdicts) { list([root, .zero], to: &$0) }, seed(.verdicts) { list(nil, to: &$0) },
            seed(.open, 0x12) {
                list(nil, to: &$0)
                $0 += [UInt8](repeating: 7, count: 112) + [UInt8](repeating: 0, count: 112) + [1, 0, 1, 0, 0x61]
            },
            seed(.grants, 1) {
                $0 += [1, 0, 0, 0, 0, 0, 0, 0]
                GrantAnswer(status: 1, permission: 1, role: 2, millisecondsLeft: 5).append(to: &$0)
                $0 += [1, 0, 1, 0, 0x61]
            },
            seed(.error) { $0 += [32, 0, 2, 0, 9, 0, 0, 0, 0x6e, 0x6f] },
            seed(.snapshot) { SnapshotPiece(identifier: 7, size: 5, bytes: [1, 2, 3]).append(to: &$0) },
            seed(.snapshot) { SnapshotPiece(identifier: .max, size: .max, bytes: []).append(to: &$0) },
            seed(.confirmation) { $0.appendInteger(UInt64(7)) },
            seed(.decisions, 4) { list(nil, to: &$0) }, seed(.decisions, 5) { list([root, .zero], to: &$0) },
        ]
    }
}
