import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

@Suite("Restoring to a point in time")
struct LogReplayTests {
    private var context: String { "ROOTGATE_TEST_SEED=\(runSeed)" }

    /// What a storage holds.
    private struct State: Equatable {
        /// What does not depend on the storage's key for hashing names. The log is a chain over all changes.
        var entries: [BackupScene.Entry]
        var sets: [CollaborationIdentifier: [Digest]?]
    }

    /// All entries but the version of the sets. It is that of the last change in the last commit that wrote any set,
    /// and a replay commits many changes at once.
    private func storedEntries(of directory: String) throws -> [BackupScene.Entry] {
        try BackupScene.entries(of: directory).filter { $0.database != .meta || $0.key != SetsVersion.key }
    }

    /// What the first changes of the model lead to.
    private func state(of scene: BackupScene, upTo sequence: UInt64) throws -> State {
        let other = try BackupScene(mutations: 0)
        for change in scene.model.log where change.sequence <= sequence { try other.apply(change.mutation) }
        other.close()
        return try state(of: other.folder)
    }

    private func state(of directory: String) throws -> State {
        let entries = try BackupScene.entries(of: directory).filter {
            [.log, .records, .mutations].contains($0.database)
        }
        let rootSets = try RootSets(RootSets.Configuration(directory: directory, reserveBytes: 1 << 20))
        defer { rootSets.close() }
        let names = try rootSets.read { snapshot throws(ServiceError) in
            try snapshot.collaborations(after: nil, limit: 1024).items.map(\.identifier)
        }
        let sets = try names.map { ($0, try rootSets.allRoots(of: $0)) }
        return State(entries: entries, sets: Dictionary(uniqueKeysWithValues: sets))
    }

    @Test("A backup and the log of a later one or of the data lead to the state after any change in between")
    func anyChange() throws {
        let scene = try BackupScene(mutations: 120)
        let first = try scene.backUp("first")
        let start = UInt64(scene.model.log.count)
        for _ in 0..<150 { try scene.change() }
        let second = try scene.backUp("second")
        let end = UInt64(scene.model.log.count)
        scene.close()
        var random = SeededGenerator(seed: runSeed)
        for log in [second, scene.folder] {
            let (whole, summary) = try scene.restore(first, to: "whole", logs: [log])
            #expect(summary.sequence == end, "\(context)")
            #expect(summary.header.sequence == start)
            #expect(try storedEntries(of: whole) == storedEntries(of: scene.folder), "\(context)")
            try FileManager.default.removeItem(atPath: whole)
            for until in [start, start + 1, UInt64.random(in: start...end, using: &random), end] {
                let (directory, summary) = try scene.restore(first, to: "part", logs: [log], until: until)
                #expect(summary.sequence == until)
                #expect(try state(of: directory) == state(of: scene, upTo: until), "\(until), \(context)")
                try FileManager.default.removeItem(atPath: directory)
            }
            #expect(scene.refusal(of: first, logs: [log], until: end + 1)?.reason.contains("not there") == true)
            #expect(scene.refusal(of: first, logs: [log], until: start - 1)?.reason.contains("taken back") == true)
        }
        #expect(scene.refusal(of: first, until: end)?.reason.contains("--log") == true)
    }

    @Test("A log that has forgotten what follows the backup is refused")
    func shortLog() throws {
        let scene = try BackupScene(mutations: 20)
        let first = try scene.backUp("first")
        for _ in 0..<40 { try scene.change(logBytes: 2000) }
        scene.close()
        #expect(scene.refusal(of: first, logs: [scene.folder])?.reason.contains("are missing") == true)
    }

    @Test("Backups that follow one another fill the gaps that a short log leaves, also when identifiers come again")
    func severalLogs() throws {
        let scene = try BackupScene(mutations: 0)
        let deck = try name("deck")
        try scene.apply(Mutation(.createCollaboration(deck, .challenge)))
        func add(_ number: Int, as identifier: Int) throws {
            let root = Digest([UInt8](repeating: UInt8(number), count: 32)) ?? .zero
            try scene.apply(
                Mutation(identifier: MutationIdentifier(UInt128(identifier)), .addRoots(deck, [root])), logBytes: 3000)
        }
        for number in 1...15 { try add(number, as: number) }
        let first = try scene.backUp("0")
        var logs: [String] = []
        for number in 16...60 {
            // Every other identifier was used 40 changes before.
            try add(number, as: number > 45 && number % 2 == 0 ? number - 40 : number)
            if number % 10 == 0 { logs.append(try scene.backUp("\(number)")) }
        }
        scene.close()
        let (directory, summary) = try scene.restore(first, logs: logs)
        #expect(summary.sequence == 61)
        let sets = try RootSets(RootSets.Configuration(directory: directory, reserveBytes: 1 << 20))
        #expect(
            try sets.allRoots(of: deck) == (1...60).map { Digest([UInt8](repeating: UInt8($0), count: 32)) ?? .zero })
        let statistics = try sets.statistics()
        #expect(statistics.lastSequence == 61 && statistics.firstSequence == 22)
        sets.close()
        let gap = scene.refusal(of: first, logs: Array(logs.dropFirst(2)))
        #expect(gap?.reason.contains("are missing") == true, "\(gap?.reason ?? "")")
    }

    @Test("A removal without a line in the log empties the log, keeps all sums right, and stops a replay across it")
    func unloggedRemoval() throws {
        let scene = try BackupScene(mutations: 0)
        let deck = try name("deck")
        func root(_ number: Int) -> Digest { Digest([UInt8](repeating: UInt8(number), count: 32)) ?? .zero }
        try scene.apply(Mutation(.createCollaboration(deck, .challenge)))
        try scene.apply(Mutation(.addRoots(deck, [root(1), root(2)])))
        let first = try scene.backUp("first")
        try scene.apply(Mutation(.addRoots(deck, [root(3)])))
        let removal = Mutation(.removeRoots(deck, [root(1)]))
        func findings() throws -> [String] {
            try StorageInspection.findings(in: try #require(scene.environment)).map(\.line)
        }
        do {
            let environment = try #require(scene.environment)
            let transaction = try WriteTransaction(in: environment)
            var applier = try Applier(transaction, environment)
            let receipt = try applier.apply(removal, lack: nil, isLogged: false).get()
            #expect(receipt.sequence == 4 && receipt.changed == 1 && !receipt.isRepeat)
            try applier.finish(trimmingLogTo: .max, count: 64)
            try transaction.commit()
        }
        #expect(try findings() == [])
        // The next line has the next sequence, and the chain goes on from the last one.
        try scene.apply(Mutation(.addRoots(deck, [root(5)])))
        #expect(try findings() == [])
        let second = try scene.backUp("second")
        scene.close()
        let sets = try RootSets(RootSets.Configuration(directory: scene.folder, reserveBytes: 1 << 20))
        let statistics = try sets.statistics()
        #expect(statistics.lastSequence == 5 && statistics.firstSequence == 5)
        let changes = try sets.read { snapshot throws(ServiceError) in try snapshot.changes(after: 4, limit: 10).items }
        #expect(changes.map(\.sequence) == [5])
        let trimmed = thrownServiceError {
            _ = try sets.read { snapshot throws(ServiceError) in try snapshot.changes(after: 3, limit: 10) }
        }
        #expect(trimmed?.code == .changesTrimmed)
        // It is not recognized, and changes nothing now.
        #expect(try sets.apply(removal) == MutationReceipt(sequence: 6, changed: 0, isRepeat: false))
        #expect(try sets.allRoots(of: deck) == [root(2), root(3), root(5)])
        sets.close()
        for log in [second, scene.folder] {
            #expect(scene.refusal(of: first, logs: [log])?.reason.contains("are missing") == true)
        }
        let (directory, summary) = try scene.restore(second)
        #expect(summary.sequence == 5)
        #expect(try StorageInspection.findings(in: directory).isEmpty)
    }

    @Test("The log of another storage, or of another past of the same storage, is refused")
    func anotherStorage() throws {
        let scene = try BackupScene(mutations: 60)
        let first = try scene.backUp("first")
        let directory = try scene.restore(first).directory
        for _ in 0..<20 { try scene.change() }
        let second = try scene.backUp("second")
        do {
            // It goes on from the same backup in another way.
            let environment = try StorageEnvironment(directory: directory, bytesMax: 1 << 28, reserveBytes: 1 << 20)
            for number in 0..<90 {
                let mutation = Mutation(.createCollaboration(try name("other\(number)"), .challenge))
                try BackupScene.apply(mutation, to: environment)
            }
        }
        let other = try BackupScene(mutations: 150, seed: runSeed &+ 1)
        let stranger = try other.backUp()
        for (backup, log) in [(first, stranger), (second, directory)] {
            let refused = scene.refusal(of: backup, logs: [log])
            #expect(refused?.reason.contains("another storage") == true, "\(refused?.reason ?? "")")
        }
    }

    @Test("A damaged log leads as far as it is whole, and only when somebody says so")
    func damagedLog() throws {
        let scene = try BackupScene(mutations: 60)
        let first = try scene.backUp("first")
        let start = UInt64(scene.model.log.count)
        while scene.model.log.count < Int(start) + 20 { try scene.change() }
        let environment = try #require(scene.environment)
        do {
            let transaction = try WriteTransaction(environment.handle)
            let key = bigEndianBytes(start + 11)
            var value = Array(try #require(try transaction.bytes(environment.log, key)))
            value[value.count - 1] ^= 1
            try transaction.putBytes(environment.log, key, value)
            try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
            try transaction.commit()
        }
        scene.close()
        let refused = scene.refusal(of: first, logs: [scene.folder])
        #expect(refused?.reason.contains("--until \(start + 10)") == true, "\(refused?.reason ?? "")")
        let (directory, summary) = try scene.restore(first, logs: [scene.folder], until: start + 10)
        #expect(summary.sequence == start + 10)
        #expect(try state(of: directory) == state(of: scene, upTo: start + 10), "\(context)")
    }
}
