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
    private final class Scene {
        let scratch = ScratchDirectory()
        let service: TestService
        let client: RootgateClient
        let deck: CollaborationIdentifier
        /// The system's error of later commits: before they are made, and behind that.
        let before = Shared<CInt>(0)
        let behind = Shared<CInt>(0)

        init(_ log: SteeredLog? = nil, clock: MonotonicClock = .system) async throws {
            var surroundings = Surroundings()
            if let log { surroundings.storage = log.surroundings }
            surroundings.storage.willCommit = { [before] in before.value }
            surroundings.storage.commitOutcome = { [behind] in behind.value }
            let path = scratch.path + "/audit.jsonl"
            service = try TestService(clock: clock, surroundings: surroundings) { $0.auditPath = path }
            client = try service.client()
            deck = try #require(CollaborationIdentifier("deck"))
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

    @Test("A change that was made and taken for failed gets its line, although nobody repeats it")
    func made() async throws {
        let scene = try await Scene()
        scene.behind.with { $0 = EIO }
        #expect(await scene.answer(scene.add(1)) == .failure(.storageFailed))
        scene.behind.with { $0 = 0 }
        #expect(becomesTrue { (try? scene.lines()) == ["addRoots storage-failed -", "addRoots done 2"] })
        // It is not told again.
        scene.service.stop()
        #expect(try scene.lines() == ["addRoots storage-failed -", "addRoots done 2", "stop done 2"])
    }

    @Test("The answer to its repetition comes with the line, and the next change comes behind it")
    func repeated() async throws {
        let scene = try await Scene()
        scene.behind.with { $0 = EIO }
        let (one, another) = (scene.add(1), scene.add(2))
        #expect(await scene.answer(one) == .failure(.storageFailed))
        #expect(await scene.answer(another) == .failure(.storageFailed))
        // A failure of the repetition keeps what was noted.
        scene.before.with { $0 = EIO }
        #expect(await scene.answer(scene.add(3)) == .failure(.storageFailed))
        scene.before.with { $0 = 0 }
        scene.behind.with { $0 = 0 }
        let failures = ["addRoots storage-failed -", "addRoots storage-failed -", "addRoots storage-failed -"]
        let receipt = try await scene.client.apply(one)
        #expect(receipt.isRepeat && receipt.sequence == 2)
        #expect(try scene.lines().filter { $0 == "addRoots done 2" }.count == 1)
        #expect(try await scene.client.apply(scene.add(4)).sequence == 4)
        scene.service.stop()
        let lines = try scene.lines()
        #expect(Array(lines.prefix(3)) == failures)
        // The timer may have told the second change before the first one was repeated.
        #expect(
            lines.dropFirst(3).sorted() == ["addRoots done 2", "addRoots done 3", "addRoots done 4", "stop done 4"])
        let places = ["addRoots done 3", "addRoots done 4"].compactMap { lines.firstIndex(of: $0) }
        #expect(places == places.sorted())
    }

    @Test("A change that was not made gets no other line, and one when its repetition makes it")
    func notMade() async throws {
        let scene = try await Scene()
        scene.before.with { $0 = EIO }
        let addition = scene.add(1)
        #expect(await scene.answer(addition) == .failure(.storageFailed))
        scene.before.with { $0 = 0 }
        let undecided = try #require(scene.service.service.undecided)
        #expect(becomesTrue { undecided.count == 0 })
        #expect(try await scene.client.apply(addition).sequence == 2)
        scene.service.stop()
        #expect(try scene.lines() == ["addRoots storage-failed -", "addRoots done 2", "stop done 2"])
    }

    @Test("A repetition that fails of a change that has a line gets no second one")
    func repetitionFails() async throws {
        let scene = try await Scene()
        let addition = scene.add(1)
        #expect(try await scene.client.apply(addition).sequence == 2)
        let undecided = try #require(scene.service.service.undecided)
        let record = AuditRecord(.mutation, principal: "anonymous", operation: "addRoots")
        let identifier = Principal.anonymous(.everything).own(addition).identifier
        undecided.note(identifier, record, earlier: nil)
        undecided.settle()
        #expect(undecided.count == 0)
        undecided.note(identifier, record, earlier: nil)
        #expect(try await scene.client.apply(addition).isRepeat)
        #expect(undecided.count == 0)
        scene.service.stop()
        #expect(try scene.lines() == ["addRoots done 2", "stop done 2"])
    }

    @Test("When the storage does not tell any more, the last line has no sequence")
    func lost() async throws {
        let scene = try await Scene()
        try #require(truncate(scene.service.directory.path + "/data/data.mdb", 4096) == 0)
        #expect(await scene.answer(scene.add(1)) == .failure(.storageDamaged))
        scene.service.stop()
        #expect(try scene.lines() == ["addRoots storage-damaged -", "lost-lines done 1", "stop done -"])
    }

    @Test("Above the limit changes count as lost lines")
    func limit() async throws {
        let scene = try await Scene()
        let undecided = try #require(scene.service.service.undecided)
        let record = AuditRecord(.mutation, principal: "anonymous", operation: "addRoots")
        scene.service.service.resources.rootSets.health.report(.failed, "as a test says")
        for _ in 0..<Limits.auditUndecidedMax + 3 { undecided.note(.random(), record, earlier: nil) }
        #expect(undecided.count == Limits.auditUndecidedMax)
        scene.service.stop()
        let numbers = try scene.lines().filter { $0.hasPrefix("lost-lines") }.compactMap {
            $0.split(separator: " ").last.flatMap { Int($0) }
        }
        // The storage may have been opened again meanwhile, and have told of the others that they were not made.
        #expect([3, Limits.auditUndecidedMax + 3].contains(numbers.reduce(0, +)), "\(numbers)")
    }

    @Test("In a cluster a change that is in the log without its service's knowledge gets its line when it arrives")
    func arrives() async throws {
        let (log, time) = (SteeredLog(), Shared<UInt64>(1_000_000))
        let scene = try await Scene(log, clock: MonotonicClock { time.value })
        let undecided = try #require(scene.service.service.undecided)
        let addition = scene.add(1)
        log.hidesAppending = true
        #expect(await scene.answer(addition) == .failure(.storageFailed))
        // The log is silent, so the change may be in it, however long that takes.
        time.with { $0 += 10 * Limits.auditUndecidedMilliseconds }
        log.advance(log.stalenessMilliseconds + 1)
        undecided.settle()
        #expect(undecided.count == 1)
        log.isSilent = false
        #expect(becomesTrue { (try? scene.lines()) == ["addRoots storage-failed -", "addRoots done 2"] })
        #expect(undecided.count == 0)

        // One that the log lacks is forgotten after a while.
        undecided.note(
            .random(), AuditRecord(.mutation, principal: "anonymous", operation: "addRoots"), earlier: nil)
        undecided.settle()
        #expect(undecided.count == 1)
        time.with { $0 += Limits.auditUndecidedMilliseconds }
        #expect(becomesTrue { undecided.count == 0 })
        scene.service.stop()
        #expect(try scene.lines().count == 3)
    }
}

extension Result<MutationReceipt, ServiceError> {
    fileprivate static func failure(_ code: ServiceError.Code) -> Self { .failure(ServiceError(code, "")) }
}
