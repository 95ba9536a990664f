import Core
import Foundation
import RootSets
import TestSupport
import Testing
import Verification

/// A log that one storage alone appends to. It answers until it is silenced, and its clock is the test's.
private final class LoneLog: SharedLog {
    static let hashKey = (0..<16).map { UInt8($0) }
    private let segments = Shared([
        Segment(
            identifier: 1, after: .zero, .founding(.init(hashKey: LoneLog.hashKey, logRetentionBytes: 1 << 20))
        ).bytes
    ])
    let isSilent = Shared(false)
    let time = ManualClock()
    let stalenessMilliseconds: UInt64 = 100

    var now: UInt64 { time.clock.milliseconds }

    func append(_ segment: [UInt8], as number: UInt64, after hash: Digest?) -> SharedAppending {
        let asOf = now
        segments.with { $0.append(segment) }
        return .appended(asOf: asOf)
    }

    func read(from number: UInt64, after hash: Digest?) -> SharedReading {
        let asOf = now
        guard !isSilent.value else { return .failed(reason: "silent") }
        return .segments(Array(segments.value.dropFirst(Int(number) - 1)), hasMore: false, asOf: asOf)
    }

    var surroundings: StorageSurroundings {
        var surroundings = StorageSurroundings()
        surroundings.random = RandomSource { $0.copyBytes(from: LoneLog.hashKey) }
        return surroundings
    }
}

@Suite("Proofs on a storage that shares a log")
struct StalenessTests {
    @Test("A stale storage gives no verdict, and the proof that it did not answer is granted once it is fresh")
    func stale() throws {
        let log = LoneLog()
        let fixture = try Fixture(shared: log, log.surroundings)
        let proof = try fixture.proof()
        log.isSilent.with { $0 = true }
        // Whatever was asked before the log fell silent is older than this.
        log.time.advance(log.stalenessMilliseconds + 1)
        for _ in 0..<3 {
            #expect(throws: ServiceError(.stale, "")) { _ = try fixture.verdict(proof) }
            #expect(throws: ServiceError(.stale, "")) {
                _ = try fixture.judge([(Fixture.challenged, proof)], isSigned: false)
            }
        }
        log.isSilent.with { $0 = false }
        #expect(becomesTrue { fixture.resources.rootSets.isFresh })
        #expect(try fixture.verdict(proof) == .granted)
        #expect(try fixture.verdict(proof) == .challengeReplayed)
    }

    @Test("A reading is judged by its beginning and by the clock at its answer")
    func moments() throws {
        let log = LoneLog()
        let fixture = try Fixture(shared: log, log.surroundings)
        let sets = fixture.resources.rootSets
        #expect(becomesTrue { sets.isFresh })
        let moment = sets.moment
        try sets.checkFresh(moment)
        log.time.advance(log.stalenessMilliseconds + 1)
        // Also when the storage has heard of the log since: the snapshot may be older.
        #expect(becomesTrue { sets.isFresh })
        #expect(throws: ServiceError(.stale, "")) { try sets.checkFresh(moment) }
        try sets.checkFresh(sets.moment)
    }

    @Test("A storage that shares no log is never stale")
    func alone() throws {
        let sets = try Fixture().resources.rootSets
        try sets.checkFresh(sets.moment)
        #expect(sets.isFresh && sets.freshAsOf == nil)
    }
}
