import Core
import Foundation
@testable import RootSets
import TestSupport
import Testing

/// A storage of format 1, as an earlier version wrote it; see `Tests/StoredFormats`.
private struct Format1 {
    typealias Entry = (database: DatabaseName, key: [UInt8], value: [UInt8])

    let entries: [Entry]

    init() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(
            contentsOf: root.appendingPathComponent("StoredFormats/format-1.txt"), encoding: .utf8)
        entries = try text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
            let parts = line.split(separator: " ")
            try #require(parts.count == 3)
            let name = try #require(DatabaseName.allCases.first { $0.text == parts[0] })
            return (
                name, try #require([UInt8](hexadecimal: parts[1])), try #require([UInt8](hexadecimal: parts[2]))
            )
        }
    }

    func entries(of name: DatabaseName) -> [Entry] { entries.filter { $0.database == name } }

    /// Writes the entries to a new directory. Then begins the upgrade, and does `steps` of it, of two entries each;
    /// `nil`: does not begin it.
    func write(to directory: String, steps: Int?, _ change: (inout [Entry]) -> Void = { _ in }) throws {
        var entries = entries
        change(&entries)
        let environment = try StorageEnvironment(directory: directory, bytesMax: 1 << 26, reserveBytes: 1 << 20)
        let transaction = try WriteTransaction(in: environment)
        for key in [StorageFormat.key, StorageFormat.hashKey, Totals.key] {
            try transaction.deleteBytes(environment.meta, key)
        }
        for entry in entries {
            try transaction.putBytes(environment.databases[entry.database], entry.key, entry.value)
        }
        try transaction.commit()
        guard let steps else { return }
        let beginning = try WriteTransaction(in: environment)
        try StorageUpgrade.begin(environment.databases, beginning)
        try beginning.commit()
        try StorageUpgrade.finish(
            environment.databases, environment.handle, entriesPerStep: 2, stepsMax: steps)
    }
}

/// A backup of what Format1 becomes, as an earlier version wrote it; see `Tests/StoredFormats`.
private struct Format2 {
    let backup: ForgedBackup

    init() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent("StoredFormats/backup-1.txt"), encoding: .utf8)
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        backup = ForgedBackup(bytes: Array(try #require(Data(base64Encoded: lines.joined()))))
    }

    /// Writes the entries of the backup to a new directory, without what restores a backup.
    func write(to directory: String) throws {
        let environment = try StorageEnvironment(directory: directory, bytesMax: 1 << 26, reserveBytes: 1 << 20)
        let transaction = try WriteTransaction(in: environment)
        for key in [StorageFormat.key, StorageFormat.hashKey, Totals.key] {
            try transaction.deleteBytes(environment.meta, key)
        }
        var totals: Totals?
        for (place, next) in zip(backup.places, backup.places.dropFirst()) {
            let database = try #require(DatabaseName(rawValue: Int(backup.bytes[place])))
            let start = place + 8 + Int(backup.bytes[place + 2])
            let (key, value) = (Array(backup.bytes[place + 8..<start]), Array(backup.bytes[start..<next]))
            guard key != Totals.key else {
                totals = try value.withRawBytes { value throws(StorageFailure) in
                    try Totals(reading: UnsafeRawBufferPointer(rebasing: value[SealedValue.sealBytes...]))
                }
                continue
            }
            try transaction.putBytes(environment.databases[database], key, value)
        }
        // They have the number of the transaction, which is another one here.
        try transaction.put(try #require(totals), in: environment.meta)
        try transaction.commit()
    }
}

/// The data file of a storage that an earlier version wrote; see `Tests/StoredFormats`.
private func unpackDataFile(ofFormat format: Int, to directory: String) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    try unpackStoredFile("data-\(format).txt", to: directory + "/data.mdb")
}

@Suite("Upgrades of the stored format")
struct UpgradeTests {
    private func configuration(_ directory: String) -> RootSets.Configuration {
        RootSets.Configuration(directory: directory, sizeLimitBytes: 1 << 26, reserveBytes: 1 << 20)
    }

    /// The root hashes that the fixture's collaborations have: SHA-256 of the text "root " and a name.
    private func root(_ name: String) -> Digest { Digest(ReferenceSHA256.hash(Array("root \(name)".utf8))) ?? .zero }

    private func expectUpgraded(_ directory: String, _ format: Format1, _ context: String) throws {
        let sets = try RootSets(configuration(directory))
        #expect(becomesTrue { sets.health.isChecked }, "\(context)")
        #expect(sets.health.level == .intact, "\(context): \(sets.health.finding?.what ?? "")")
        let statistics = try sets.statistics()
        #expect(statistics.lastSequence == 12 && statistics.firstSequence == 1, "\(context)")
        #expect(statistics.collaborations == 4 && statistics.roots == 124, "\(context)")
        let deck = try name("deck-42")
        #expect(try sets.allRoots(of: deck) == [root("1"), root("3")].sorted(), "\(context)")
        #expect(
            try sets.allRoots(of: try name("crowd")) == (1...120).map { root("c\($0)") }.sorted(), "\(context)")
        #expect(try sets.summary(of: try name("nonces"))?.policy == .deviceNonce(windowSeconds: 3600), "\(context)")
        let changes = try sets.allChanges()
        #expect(changes.map(\.sequence) == Array(1...12), "\(context)")
        #expect(changes[3].mutation.change == .addRoots(deck, ["1", "2", "3"].map { root($0) }), "\(context)")
        try sets.read { snapshot throws(ServiceError) in
            for entry in format.entries(of: .records) {
                let record = try snapshot.record(entry.key)
                #expect(record?.value == Array(entry.value.dropFirst(8)), "\(context)")
                #expect(record?.version == entry.value.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) })
            }
            for change in changes {
                #expect(try snapshot.applied(change.mutation.identifier)?.sequence == change.sequence, "\(context)")
            }
        }
        // It goes on as if it had always been so.
        try sets.apply(Mutation(.addRoots(deck, [.zero])))
        #expect(try sets.test([.zero, root("2")], in: deck) == [true, false], "\(context)")
        sets.close()
    }

    @Test(
        "A storage that an earlier version wrote is read, checked and changed", arguments: [nil, 0, 1, 2, 5, 9, 1000])
    func upgraded(steps: Int?) throws {
        let scratch = ScratchDirectory()
        let format = try Format1()
        let directory = scratch.path + "/data"
        try format.write(to: directory, steps: steps)
        try expectUpgraded(directory, format, "\(steps.map(String.init) ?? "no") steps before")
        // The second start finds nothing to upgrade.
        let sets = try RootSets(configuration(directory))
        #expect(becomesTrue { sets.health.isChecked })
        #expect(sets.health.level == .intact)
        #expect(try sets.statistics().lastSequence == 13)
        sets.close()
    }

    @Test("A data file that an earlier version wrote is opened, read, checked and changed", arguments: [1, 2])
    func dataFile(format: Int) throws {
        let scratch = ScratchDirectory()
        let directory = scratch.path + "/data"
        try unpackDataFile(ofFormat: format, to: directory)
        try expectUpgraded(directory, try Format1(), "a data file of format \(format)")
    }

    @Test("A storage of format 2 that an earlier version wrote is read, checked and changed")
    func format2() throws {
        let scratch = ScratchDirectory()
        let directory = scratch.path + "/data"
        try Format2().write(to: directory)
        try expectUpgraded(directory, try Format1(), "format 2")
    }

    @Test("A backup that an earlier version wrote is restored, and a later log leads on from it")
    func backup1() throws {
        let scene = try BackupScene(mutations: 0)
        let path = scene.scratch.path + "/backup-1"
        try Format2().backup.write(path)
        let (directory, summary) = try scene.restore(path)
        #expect(summary.sequence == 12 && summary.collaborations == 4 && summary.roots == 124)
        try expectUpgraded(directory, try Format1(), "a backup")
        // That was one change more.
        // The writer's thread may hold the directory a moment longer than its owner.
        _ = try DirectoryLock(directory: directory)
        #expect(try scene.restore(path, to: "forward", logs: [directory]).summary.sequence == 13)
    }

    @Test("A storage of an earlier version with an entry that can't be is refused, and stays as it is")
    func damagedBefore() throws {
        let format = try Format1()
        let cuts: [DatabaseName] = [.packed, .large, .log, .mutations, .records, .meta]
        for name in cuts {
            let scratch = ScratchDirectory()
            let directory = scratch.path + "/data"
            try format.write(to: directory, steps: nil) { entries in
                guard let place = entries.firstIndex(where: { $0.database == name && $0.key != StorageFormat.key })
                else { return }
                entries[place].value.removeLast(3)
            }
            for _ in 0..<2 {
                let code = ServiceError.code { () throws(ServiceError) in _ = try RootSets(configuration(directory)) }
                #expect(code == .storageDamaged, "\(name)")
            }
        }
    }

    @Test("A storage of a newer format is refused, and the reason names the format", arguments: [false, true])
    func newer(isSealed: Bool) throws {
        let scratch = ScratchDirectory()
        let directory = scratch.path + "/data"
        do {
            let environment = try StorageEnvironment(directory: directory, bytesMax: 1 << 26, reserveBytes: 1 << 20)
            let transaction = try WriteTransaction(in: environment)
            if isSealed {
                try transaction.put(environment.meta, StorageFormat.key, [3, 0, 0, 0], version: 0)
                try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
            } else {
                try transaction.putBytes(environment.meta, StorageFormat.key, [3, 0, 0, 0])
                try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
            }
            try transaction.commit()
        }
        let error = #expect(throws: ServiceError.self) { try RootSets(configuration(directory)) }
        #expect(error?.code == .storageDamaged && error?.reason.contains("format 3") == true)
    }
}
