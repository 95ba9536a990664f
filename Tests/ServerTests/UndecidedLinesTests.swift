import Audit
import Core
import Foundation
import Hashing
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

@testable import Server

/// A commit or an append that fails does not tell whether its changes were made.
@Suite("The audit of changes whose failure does not tell whether they were made")
struct UndecidedLinesTests {
    /// A service with an audit whose commits fail.
    private final class Scene: Sendable {
        let scratch = ScratchDirectory()
        let service: TestService
        let client: RootgateClient
        let deck: CollaborationIdentifier
        let undecided: UndecidedLines
        /// The system's error of later commits: before they are made, and behind that.
        let before = Shared<CInt>(0)
        let behind = Shared<CInt>(0)
        /// Called before each commit, on the writer's thread.
        let onCommit = Shared<@Sendable () -> Void>({})

        /// `looks`: whether the service looks each second. Otherwise the test says when.
        init(_ log: SteeredLog? = nil, looks: Bool = false, logRetentionBytes: Int? = nil) async throws {
            var surroundings = Surroundings()
            if let log { surroundings.storage = log.surroundings }
            surroundings.storage.willCommit = { [before, onCommit] in
                onCommit.value()
                return before.value
            }
            surroundings.storage.commitOutcome = { [behind] in behind.value }
            if !looks {
                surroundings.timers = Timers {
                    Timers.system.after(milliseconds: $0, $1)
                } repeated: { milliseconds, leeway, body in
                    guard milliseconds != Limits.auditUndecidedLookMilliseconds else { return RepeatingTimer { _ in } }
                    return Timers.system.every(milliseconds: milliseconds, leeway: leeway, body)
                }
            }
            let path = scratch.path + "/audit.jsonl"
            service = try TestService(surroundings: surroundings) {
                $0.auditPath = path
                if let logRetentionBytes { $0.logRetentionBytes = logRetentionBytes }
            }
            client = try service.client()
            deck = try #require(CollaborationIdentifier("deck"))
            undecided = try #require(service.service.undecided)
            let sets = service.service.resources.rootSets
            #expect(becomesTrue { sets.isFresh })
            try await client.createCollaboration(deck)
        }

        deinit { client.close() }

        func add(_ byte: UInt8) -> Mutation { Mutation(.addRoots(deck, [SHA256.hash([byte])])) }

        /// What the service says to a mutation.
        func answer(_ mutation: Mutation) async -> Result<MutationReceipt, ServiceError> {
            do throws(ServiceError) { return .success(try await client.apply(mutation)) } catch {
                return .failure(error)
            }
        }

        /// The lines behind that of the creation: outcome and sequence, or how many lines were lost.
        func lines() throws -> [String] {
            try String(contentsOfFile: scratch.path + "/audit.jsonl", encoding: .utf8).split(separator: "\n").map {
                let line = try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
                let (what, outcome) = (line["what"] as? String ?? "", line["outcome"] as? String ?? "")
                let sequence = (line["sequence"] as? Int).map { "\($0)" }
                let number = what == "lost-lines" ? line["detail"] as? String : sequence
                return [what, outcome, number ?? "-"].joined(separator: " ")
            }.dropFirst(2).map { $0 }
        }
    }

    private let failed = "addRoots storage-failed -"

    @Test("A change that was made and taken for failed gets its line, although nobody repeats it")
    func made() async throws {
        let scene = try await Scene(looks: true)
        scene.behind.with { $0 = EIO }
        #expect(await scene.answer(scene.add(1)) == .failure(.storageFailed))
        scene.behind.with { $0 = 0 }
        #expect(becomesTrue { (try? scene.lines()) == [failed, "addRoots done 2"] })
        // It is not told again.
        scene.service.stop()
        #expect(try scene.lines() == [failed, "addRoots done 2", "stop done 2"])
    }

    @Test("The answer to its repetition comes with the line, and that of the next change comes behind it")
    func repeated() async throws {
        let scene = try await Scene()
        scene.behind.with { $0 = EIO }
        let (one, another) = (scene.add(1), scene.add(2))
        #expect(await scene.answer(one) == .failure(.storageFailed))
        #expect(await scene.answer(another) == .failure(.storageFailed))
        scene.before.with { $0 = EIO }
        scene.behind.with { $0 = 0 }
        #expect(await scene.answer(scene.add(3)) == .failure(.storageFailed))
        scene.before.with { $0 = 0 }
        let receipt = try await scene.client.apply(one)
        #expect(receipt.isRepeat && receipt.sequence == 2)
        #expect(try scene.lines() == [failed, failed, failed, "addRoots done 2"])
        #expect(try await scene.client.apply(scene.add(4)).sequence == 4)
        scene.undecided.settle()
        #expect(scene.undecided.count == 0)
        scene.service.stop()
        #expect(
            try scene.lines()
                == [failed, failed, failed, "addRoots done 2", "addRoots done 3", "addRoots done 4", "stop done 4"])
    }

    @Test("Another content under the same identifier is refused, and hides nothing")
    func conflict() async throws {
        let scene = try await Scene()
        let addition = scene.add(1)
        scene.behind.with { $0 = EIO }
        #expect(await scene.answer(addition) == .failure(.storageFailed))
        scene.behind.with { $0 = 0 }
        let other = Mutation(identifier: addition.identifier, scene.add(2).change)
        #expect(await scene.answer(other) == .failure(.mutationConflict))
        scene.undecided.settle()
        scene.service.stop()
        #expect(
            try scene.lines() == [failed, "addRoots mutation-conflict -", "addRoots done 2", "stop done 2"])
    }

    @Test("A change that was not made gets no other line, and one when its repetition makes it")
    func notMade() async throws {
        let scene = try await Scene()
        scene.before.with { $0 = EIO }
        let addition = scene.add(1)
        #expect(await scene.answer(addition) == .failure(.storageFailed))
        #expect(scene.undecided.count == 1)
        scene.before.with { $0 = 0 }
        scene.undecided.settle()
        #expect(scene.undecided.count == 0)
        #expect(try await scene.client.apply(addition).sequence == 2)
        scene.service.stop()
        #expect(try scene.lines() == [failed, "addRoots done 2", "stop done 2"])
    }

    @Test("Attempts of one mutation that overlap make one line")
    func overlapping() async throws {
        for isMade in [false, true] {
            let scene = try await Scene()
            let (gate, commits) = (DispatchSemaphore(value: 0), Shared(0))
            scene.onCommit.with { [before = scene.before, behind = scene.behind] in
                $0 = {
                    // The second attempt is queued while the first one is being committed, which fails.
                    commits.increment()
                    let isFirst = commits.value == 1
                    if isFirst { gate.wait() }
                    before.with { $0 = isFirst && !isMade ? EIO : 0 }
                    behind.with { $0 = isFirst && isMade ? EIO : 0 }
                }
            }
            let addition = scene.add(1)
            let identifier = Principal.anonymous(.everything).own(addition).identifier
            async let first = scene.answer(addition)
            #expect(becomesTrue { commits.value == 1 })
            async let second = scene.answer(addition)
            #expect(becomesTrue { scene.undecided.attempts(of: identifier) == 2 })
            gate.signal()
            #expect(await first == .failure(.storageFailed))
            #expect(try await second.get() == MutationReceipt(sequence: 2, changed: 1, isRepeat: isMade))
            scene.undecided.settle()
            scene.service.stop()
            #expect(try scene.lines() == [failed, "addRoots done 2", "stop done 2"], "\(isMade)")
        }
    }

    @Test("A repetition that fails of a change that has a line gets no second one")
    func repetitionFails() async throws {
        let scene = try await Scene()
        let addition = scene.add(1)
        #expect(try await scene.client.apply(addition).sequence == 2)
        let record = AuditRecord(.mutation, principal: "anonymous", operation: "addRoots")
        var identifier = Principal.anonymous(.everything).own(addition).identifier
        func fail() {
            scene.undecided.attemptBegins(identifier)
            #expect(
                scene.undecided.attemptEnded(identifier, .failure(.storageFailed), record, wasTried: true) == nil)
            #expect(scene.undecided.count == 1)
        }
        for isSettled in [true, false] {
            fail()
            if isSettled { scene.undecided.settle() } else { #expect(try await scene.client.apply(addition).isRepeat) }
            #expect(scene.undecided.count == 0)
        }
        // The same for a change that got its line late.
        let late = scene.add(2)
        scene.behind.with { $0 = EIO }
        #expect(await scene.answer(late) == .failure(.storageFailed))
        scene.behind.with { $0 = 0 }
        scene.undecided.settle()
        identifier = Principal.anonymous(.everything).own(late).identifier
        fail()
        scene.undecided.settle()
        #expect(scene.undecided.count == 0)
        scene.service.stop()
        #expect(try scene.lines() == ["addRoots done 2", failed, "addRoots done 3", "stop done 3"])
    }

    @Test("When the storage does not tell any more, the last line has no sequence")
    func lost() async throws {
        let scene = try await Scene()
        try #require(truncate(scene.service.directory.path + "/data/data.mdb", 4096) == 0)
        #expect(await scene.answer(scene.add(1)) == .failure(.storageDamaged))
        // What a storage that has failed does not take is not undecided.
        for byte in 2...UInt8(4) { #expect(await scene.answer(scene.add(byte)) == .failure(.storageDamaged)) }
        #expect(scene.undecided.count == 1)
        scene.service.stop()
        let lines = try scene.lines()
        #expect(lines.count == 6 && lines.prefix(4).allSatisfy { $0 == "addRoots storage-damaged -" }, "\(lines)")
        #expect(lines.suffix(2) == ["lost-lines done 1", "stop done -"])
    }

    @Test("Changes of which the log no longer tells count as lost lines, and so do those above the limit")
    func untold() async throws {
        let scene = try await Scene(logRetentionBytes: 1000)
        let record = AuditRecord(.mutation, principal: "anonymous", operation: "addRoots")
        func fail(_ count: Int) {
            for _ in 0..<count {
                let identifier = MutationIdentifier.random()
                scene.undecided.attemptBegins(identifier)
                _ = scene.undecided.attemptEnded(identifier, .failure(.storageFailed), record, wasTried: true)
            }
        }
        fail(Limits.auditUndecidedMax + 3)
        #expect(scene.undecided.count == Limits.auditUndecidedMax)
        scene.undecided.settle()
        #expect(scene.undecided.count == 0)
        fail(2)
        // Not by requests, with whose answers the service would look.
        for first in 0..<UInt8(20) {
            let roots = (0..<100).map { SHA256.hash([first, UInt8($0)]) }
            try scene.service.service.resources.rootSets.apply(Mutation(.addRoots(scene.deck, roots)))
        }
        let statistics = try await scene.client.statistics()
        #expect(statistics.first { $0.name == "log-first-sequence" }?.value ?? 0 > 3, "\(statistics)")
        scene.undecided.settle()
        #expect(scene.undecided.count == 0)
        scene.service.stop()
        let numbers = try scene.lines().filter { $0.hasPrefix("lost-lines") }.compactMap {
            $0.split(separator: " ").last.flatMap { Int($0) }
        }
        #expect(numbers.reduce(0, +) == 5, "\(numbers)")
    }

    @Test("While the audit can't be written, the lines of changes that were made are kept")
    func failingAudit() async throws {
        let scene = try await Scene()
        let (folder, moved) = (scene.scratch.path, scene.scratch.path + ".moved")
        try FileManager.default.removeItem(atPath: folder + "/audit.jsonl")
        try FileManager.default.moveItem(atPath: folder, toPath: moved)
        defer { try? FileManager.default.removeItem(atPath: moved) }
        // The audit is found to fail by the line of a change.
        #expect(await scene.answer(scene.add(1)) == .failure(.storageFailed))
        let addition = Principal.anonymous(.everything).own(scene.add(2))
        let record = AuditRecord(.mutation, principal: "anonymous", operation: "addRoots")
        scene.undecided.attemptBegins(addition.identifier)
        _ = scene.undecided.attemptEnded(addition.identifier, .failure(.storageFailed), record, wasTried: true)
        try scene.service.service.resources.rootSets.apply(addition)
        scene.undecided.settle()
        #expect(scene.undecided.count == 1)
        try FileManager.default.moveItem(atPath: moved, toPath: folder)
        #expect(
            becomesTrue {
                scene.undecided.settle()
                return scene.undecided.count == 0
            })
        scene.service.stop()
        let lines = try String(contentsOfFile: folder + "/audit.jsonl", encoding: .utf8)
        // The end tells the last sequence, too.
        for (sequence, count) in [(2, 1), (3, 2)] {
            #expect(lines.components(separatedBy: "\"sequence\":\(sequence),").count - 1 == count, "\(lines)")
        }
    }

    @Test("In a cluster a change that is in the log without its service's knowledge gets its line when it arrives")
    func arrives() async throws {
        let log = SteeredLog()
        let scene = try await Scene(log)
        let sets = scene.service.service.resources.rootSets
        log.hidesAppending = true
        #expect(await scene.answer(scene.add(1)) == .failure(.storageFailed))
        // The log is silent, so the change may be in it, however long that takes.
        log.advance(10 * Limits.auditUndecidedMilliseconds)
        scene.undecided.settle()
        #expect(scene.undecided.count == 1)
        log.isSilent = false
        #expect(becomesTrue { sets.isFresh })
        scene.undecided.settle()
        #expect(scene.undecided.count == 0)
        #expect(becomesTrue { (try? scene.lines()) == [failed, "addRoots done 2"] })

        // One that the log lacks is forgotten when the storage has what was in the log long afterwards.
        let record = AuditRecord(.mutation, principal: "anonymous", operation: "addRoots")
        let identifier = MutationIdentifier.random()
        scene.undecided.attemptBegins(identifier)
        _ = scene.undecided.attemptEnded(identifier, .failure(.storageFailed), record, wasTried: true)
        log.advance(Limits.auditUndecidedMilliseconds - 1)
        #expect(becomesTrue { sets.isFresh })
        scene.undecided.settle()
        #expect(scene.undecided.count == 1)
        log.advance(1)
        #expect(
            becomesTrue {
                scene.undecided.settle()
                return scene.undecided.count == 0
            })
        scene.service.stop()
        #expect(try scene.lines().count == 3)
    }
}

extension Result<MutationReceipt, ServiceError> {
    fileprivate static func failure(_ code: ServiceError.Code) -> Self { .failure(ServiceError(code, "")) }
}
