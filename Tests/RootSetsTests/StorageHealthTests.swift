import Core
import TestSupport
import Testing

@testable import RootSets

@Suite("The health of the storage")
struct StorageHealthTests {
    @Test("Each level is logged once, with its first finding; a failure ends, damage stays")
    func levels() {
        let lines = Lock<[String]>([])
        let health = StorageHealth(log: Log { line in lines.withLock { $0.append("\(line)") } })
        #expect(health.level == .intact && health.refusal == nil && health.unreadiness == nil)
        health.report(.intact, "nothing")
        #expect(health.level == .intact)
        health.report(.damaged, "a record")
        health.report(.damaged, "another")
        #expect(health.level == .damaged && health.refusal == nil)
        #expect(health.unreadiness?.code == .storageDamaged)
        #expect(health.finding?.what == "a record")
        onThreads(4) { health.report(.failed, "thread \($0)") }
        #expect(health.level == .failed && health.hasFailed)
        #expect(health.refusal?.code == .storageDamaged)
        health.report(.damaged, "a third")
        #expect(health.level == .failed)
        health.recover()
        health.recover()
        #expect(health.level == .damaged && health.finding?.what == "a record" && health.refusal == nil)
        let found = lines.withLock { $0 }
        #expect(found.count == 3)
        #expect(found.first == "CRITICAL: the storage is damaged: a record")
        #expect(found.dropFirst().first?.hasPrefix("CRITICAL: the storage has failed: thread") == true)
    }

    @Test("Damage that is found while the storage has failed is what is left after its recovery")
    func damageMeanwhile() {
        let health = StorageHealth()
        health.report(.failed, "a fault")
        health.report(.damaged, "a record")
        #expect(health.level == .failed)
        health.recover()
        #expect(health.level == .damaged)
    }
}
