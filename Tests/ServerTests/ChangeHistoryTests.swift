import Collaboration
import Core
import TestSupport
import Testing

@testable import Server

private func topic(_ name: String) throws -> Topic { .account(try #require(Account(name))) }

@Suite struct ChangeHistoryTests {
    @Test("A change counts for its own topics, from its number on")
    func ownTopics() throws {
        let (ana, ben) = (try topic("ana"), try topic("ben"))
        var history = ChangeHistory()
        history.append([ana])
        #expect(history.count == 1)
        #expect(history.hasChange(of: [ana], since: 0))
        #expect(history.hasChange(of: [ben, ana], since: 0))
        #expect(!history.hasChange(of: [ben], since: 0))
        #expect(!history.hasChange(of: [ana], since: 1))
        history.append([])
        #expect(history.count == 2)
        #expect(!history.hasChange(of: [ana], since: 1))
    }

    @Test("A change that is too long ago to be known counts for every topic")
    func longAgo() throws {
        let (ana, ben) = (try topic("ana"), try topic("ben"))
        var history = ChangeHistory()
        for _ in 0..<512 { history.append([ana]) }
        #expect(!history.hasChange(of: [ben], since: 0))
        history.append([ana])
        #expect(history.hasChange(of: [ben], since: 0))
        #expect(!history.hasChange(of: [ben], since: 1))
    }

    @Test("A change of more topics than are remembered counts for every topic")
    func manyTopics() throws {
        var history = ChangeHistory()
        history.append(try (0..<513).map { try topic("a\($0)") })
        #expect(history.hasChange(of: [try topic("ben")], since: 0))
        history.append(try (0..<512).map { try topic("a\($0)") })
        #expect(!history.hasChange(of: [try topic("ben")], since: 1))
        #expect(history.hasChange(of: [try topic("a511")], since: 1))
    }

    @Test("Random histories answer as a list of all changes does")
    func randomHistories() throws {
        var random = SeededGenerator(seed: runSeed)
        let topics = try (0..<12).map { try topic("t\($0)") }
        var history = ChangeHistory()
        var all: [Set<Topic>] = []
        for _ in 0..<2000 {
            let changed = topics.filter { _ in Int.random(in: 0..<8, using: &random) == 0 }
            history.append(changed)
            all.append(Set(changed))
            let since = all.count - Int.random(in: 0...min(all.count, 500), using: &random)
            let watched = Set(topics.filter { _ in Int.random(in: 0..<6, using: &random) == 0 })
            let hasChange = all[since...].contains { !$0.isDisjoint(with: watched) }
            #expect(history.hasChange(of: watched, since: UInt64(since)) == hasChange)
        }
    }
}
