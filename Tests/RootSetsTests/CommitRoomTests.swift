import Core
import TestSupport
import Testing

@testable import RootSets

@Suite("Room for one commit")
struct CommitRoomTests {
    private let scratch = ScratchDirectory()
    private let environment: StorageEnvironment

    init() throws {
        // 512 pages, of which the largest removal needs 321 even of an empty storage.
        environment = try StorageEnvironment(directory: scratch.path + "/data", bytesMax: 2 << 20, reserveBytes: 0)
    }

    private func newRoom() throws -> CommitRoom {
        try CommitRoom(environment, reserveBytes: 0, logBytes: 0)
    }

    private func judge(_ room: inout CommitRoom, _ change: Change, isAlone: Bool) throws -> String {
        switch try room.judge(change, needsSpace: change.needsSpace, isAlone: isAlone) {
        case .passes: "passes"
        case .lacks: "lacks"
        case .waits: "waits"
        }
    }

    private func roots(_ count: Int) -> [Digest] {
        var random = SeededGenerator(seed: 1)
        return (0..<count).map { _ in random.digest() }
    }

    @Test("An addition waits for the next commit when only those before it leave no room, and is refused alone")
    func additions() throws {
        let name = try #require(CollaborationIdentifier("decks"))
        let addition = Change.addRoots(name, roots(1000))
        var room = try newRoom()
        var count = 0
        while try judge(&room, addition, isAlone: count == 0) == "passes" { count += 1 }
        #expect((2...6).contains(count), "\(count)")
        #expect(try judge(&room, addition, isAlone: false) == "waits")
        #expect(try judge(&room, addition, isAlone: true) == "lacks")
        // One for which there is no room in any commit does not wait.
        #expect(try judge(&room, .addRoots(name, roots(10_000)), isAlone: false) == "lacks")
        // Removals pass all the same.
        #expect(try judge(&room, .removeRoots(name, roots(1)), isAlone: false) == "passes")
    }

    @Test("What was taken for a mutation that has changed nothing is given back")
    func givingBack() throws {
        let name = try #require(CollaborationIdentifier("decks"))
        let addition = Change.addRoots(name, roots(1000))
        var room = try newRoom()
        for _ in 0..<100 {
            #expect(try judge(&room, addition, isAlone: false) == "passes")
            room.giveBack()
        }
        // Nothing is given back twice, nor for a refusal.
        #expect(try judge(&room, addition, isAlone: true) == "passes")
        #expect(try judge(&room, .addRoots(name, roots(10_000)), isAlone: true) == "lacks")
        for _ in 0..<100 { room.giveBack() }
        var count = 1
        while try judge(&room, addition, isAlone: false) == "passes" { count += 1 }
        #expect((2...6).contains(count), "\(count)")
    }

    @Test("A mutation waits when it would write too many pages besides those before it, a removal, too")
    func pages() throws {
        let name = try #require(CollaborationIdentifier("decks"))
        for change in [Change.addRoots(name, roots(100)), .removeRoots(name, roots(100))] {
            var room = try CommitRoom(environment, reserveBytes: 0, logBytes: 0, bytesMax: 40 * environment.pageBytes)
            #expect(try judge(&room, change, isAlone: true) == "passes")
            var count = 1
            while try judge(&room, change, isAlone: false) == "passes" { count += 1 }
            #expect((2...20).contains(count), "\(count)")
            #expect(try judge(&room, change, isAlone: false) == "waits")
            // Alone even one that is too large passes.
            room = try CommitRoom(environment, reserveBytes: 0, logBytes: 0, bytesMax: environment.pageBytes)
            #expect(try judge(&room, change, isAlone: true) == "passes")
        }
    }

    @Test("A removal waits when the others leave no pages for it, and is never refused")
    func removals() throws {
        let name = try #require(CollaborationIdentifier("decks"))
        let removal = Change.removeRoots(name, roots(Limits.rootsPerRequestMax))
        var room = try newRoom()
        #expect(try judge(&room, removal, isAlone: true) == "passes")
        #expect(try judge(&room, removal, isAlone: false) == "waits")
        #expect(try judge(&room, removal, isAlone: true) == "passes")
    }
}
