import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

@Suite("Repairs")
struct RepairTests {
    @Test("What is damaged is restored from a complete change log, and the damaged file is kept")
    func repair() throws {
        for name in [DatabaseName.packed, .large, .records, .mutations] {
            let damaged = try DamagedStorage()
            try damaged.flip(name, try damaged.entry(name).key, bit: 16 * 8 + 9)
            #expect(try !StorageInspection.findings(in: damaged.storage.directory).isEmpty, "\(name)")
            // Root may give a file away.
            let owner: uid_t = getuid() == 0 ? 12345 : getuid()
            chown(damaged.storage.file, owner, gid_t.max)
            let lines = try StorageRepair.repair(damaged.storage.directory)
            #expect(lines.count == 2, "\(lines)")
            var status = stat()
            #expect(stat(damaged.storage.file, &status) == 0 && status.st_uid == owner)
            #expect(FileManager.default.fileExists(atPath: damaged.storage.file + ".damaged"))
            #expect(try StorageInspection.findings(in: damaged.storage.directory).isEmpty, "\(name)")
            #expect(try StorageRepair.repair(damaged.storage.directory) == ["nothing is damaged"])
            let sets = try damaged.checked()
            for name in DatabaseName.allCases { #expect(damaged.outcome(of: name, sets) == nil, "\(name)") }
            sets.close()
        }
    }

    @Test(
        "Pages of a damaged structure are restored from a complete change log",
        arguments: [DatabaseName.packed, .large, .records, .mutations])
    func structure(name: DatabaseName) throws {
        let damaged = try DamagedStorage()
        try damaged.zeroRoot(of: name)
        let lines = try StorageRepair.repair(damaged.storage.directory)
        #expect(lines.first == "restored everything by applying the change log again: 5 changes", "\(lines)")
        let sets = try damaged.checked()
        #expect(sets.health.level == .intact)
        for name in DatabaseName.allCases { #expect(damaged.outcome(of: name, sets) == nil, "\(name)") }
        sets.close()
    }

    @Test("A damaged change log begins anew behind the damage, and everything else stays", arguments: [1, 3, 5])
    func log(sequence: UInt64) throws {
        let damaged = try DamagedStorage()
        try damaged.flip(.log, bigEndianBytes(sequence), bit: 16 * 8 + 9)
        let lines = try StorageRepair.repair(damaged.storage.directory)
        #expect(lines.count == 3 && lines[0].contains("changes 1 to \(sequence) of the change log"), "\(lines)")
        #expect(try StorageInspection.findings(in: damaged.storage.directory).isEmpty)
        let sets = try damaged.checked()
        #expect(sets.health.level == .intact)
        for name in [DatabaseName.packed, .large, .records, .meta] {
            #expect(damaged.outcome(of: name, sets) == nil, "\(name)")
        }
        let statistics = try sets.statistics()
        #expect(statistics.firstSequence == sequence + 1 && statistics.lastSequence == 5)
        #expect(try sets.allChanges(after: sequence).map(\.sequence) == Array(sequence + 1..<6))
        let forgotten = ServiceError.code { () throws(ServiceError) in
            _ = try sets.read { snapshot throws(ServiceError) in try snapshot.changes(after: 0, limit: 10) }
        }
        #expect(forgotten == .changesTrimmed)
        // The chain goes on.
        #expect(try sets.apply(Mutation(.addRoots(damaged.deck, [.zero]))).sequence == 6)
        #expect(try sets.allChanges(after: sequence).last?.sequence == 6)
        sets.close()
        #expect(try StorageInspection.findings(in: damaged.storage.directory).isEmpty)
    }

    @Test("A change log whose pages are damaged is given up, and everything else stays")
    func logStructure() throws {
        let damaged = try DamagedStorage()
        try damaged.zeroRoot(of: .log)
        let lines = try StorageRepair.repair(damaged.storage.directory)
        #expect(lines.count == 3 && lines[0].contains("changes 1 to 5 of the change log"), "\(lines)")
        let sets = try damaged.checked()
        for name in [DatabaseName.packed, .large, .records, .meta] {
            #expect(damaged.outcome(of: name, sets) == nil, "\(name)")
        }
        #expect(try sets.apply(Mutation(.addRoots(damaged.deck, [.zero]))).sequence == 6)
        sets.close()
        #expect(try StorageInspection.findings(in: damaged.storage.directory).isEmpty)
    }

    /// A storage whose log lacks the first change, with records that the log has written and removed.
    private func trimmed() throws -> DamagedStorage {
        let damaged = try DamagedStorage()
        try change(damaged)
        try damaged.tamper { transaction, environment in
            var applier = try Applier(transaction, environment)
            try applier.finish(trimmingLogTo: 0, count: 5)
        }
        #expect(try StorageInspection.findings(in: damaged.storage.directory).isEmpty)
        return damaged
    }

    private func change(_ damaged: DamagedStorage) throws {
        let sets = try damaged.checked()
        var edit = Edit()
        edit.removedRanges = [RecordRange([0], [5])]
        edit.records = [
            RecordEdit([7, 1], value: nil), RecordEdit([8, 1], value: [8, 8]),
            RecordEdit([200], isSequenced: true, value: [1, 2]),
        ]
        try sets.apply(Mutation(.edit(edit)))
        sets.close()
    }

    private func expectRight(_ damaged: DamagedStorage) throws {
        #expect(try StorageInspection.findings(in: damaged.storage.directory).isEmpty)
        let sets = try damaged.checked()
        try sets.read { snapshot throws(ServiceError) in
            for number in 0..<30 as Range<UInt8> {
                let expected: [UInt8]? = number < 5 || number == 7 ? nil : number == 8 ? [8, 8] : [number, 2, 3]
                #expect(try snapshot.record([number, 1])?.value == expected, "record \(number)")
            }
            #expect(try snapshot.record([200] + bigEndianBytes(6))?.value == [1, 2])
        }
        #expect(try sets.allChanges(after: 5).map(\.sequence) == [6])
        sets.close()
    }

    @Test("A damaged record that a part of the change log has written is restored from it, exactly")
    func record() throws {
        for key in [[8, 1], [200] + bigEndianBytes(6)] as [[UInt8]] {
            let damaged = try trimmed()
            try damaged.flip(.records, key, bit: 16 * 8 + 9)
            let lines = try StorageRepair.repair(damaged.storage.directory)
            #expect(lines.first == "restored everything from what is intact and from the change log", "\(lines)")
            try expectRight(damaged)
        }
    }

    @Test("Records that a part of the change log has removed do not come back with an old page")
    func removedRecords() throws {
        for key in [[3, 1], [7, 1]] as [[UInt8]] {
            let damaged = try trimmed()
            try damaged.tamper { transaction, environment in
                let seed = key.withUnsafeBytes { environment.records.seed(of: $0) }
                let old = SealedValue.bytes(of: [key[0], 2, 3], version: 5, seed: seed).bytes
                try transaction.putBytes(environment.records, key, old)
            }
            #expect(try StorageInspection.findings(in: damaged.storage.directory).contains { $0.kind == .count })
            _ = try StorageRepair.repair(damaged.storage.directory)
            try expectRight(damaged)
        }
    }

    @Test("Identifiers of changes are made again from the change log")
    func identifiers() throws {
        let damaged = try trimmed()
        try damaged.flip(.mutations, try damaged.entry(.mutations).key, bit: 16 * 8 + 9)
        _ = try StorageRepair.repair(damaged.storage.directory)
        try expectRight(damaged)
    }

    @Test(
        "Without the change that wrote it nothing damaged is restored, and nothing is changed",
        arguments: [DatabaseName.packed, .large, .records])
    func noRepair(name: DatabaseName) throws {
        for isStale in [false, true] {
            let damaged = try trimmed()
            // A record that the log's part does not have, or a bucket.
            let key = name == .records ? [20, 1] : try damaged.entry(name).key
            if isStale {
                try damaged.tamper { transaction, environment in
                    let database = environment.databases[name]
                    let present = Array(try #require(try transaction.get(database, key)).contents)
                    let seed = key.withUnsafeBytes { database.seed(of: $0) }
                    try transaction.putBytes(
                        database, key, SealedValue.bytes(of: present, version: 1, seed: seed).bytes)
                }
            } else {
                try damaged.flip(name, key, bit: 16 * 8 + 9)
            }
            try expectRefusal(damaged)
        }
    }

    @Test("A record that is damaged beside the change log is not restored from what is left of that")
    func recordAndLog() throws {
        let damaged = try trimmed()
        try damaged.flip(.records, [8, 1], bit: 16 * 8 + 9)
        try damaged.flip(.log, bigEndianBytes(6), bit: 16 * 8 + 9)
        try expectRefusal(damaged)
    }

    @Test("A repair of a folder without a note leaves it without one, and the next start says what may be missing")
    func withoutNote() throws {
        let damaged = try DamagedStorage()
        try damaged.flip(.records, [3, 1], bit: 16 * 8 + 3)
        try FileManager.default.removeItem(atPath: damaged.storage.directory + "/newest-commit")
        let done = try StorageRepair.repair(damaged.storage.directory)
        #expect(done.contains { $0.contains("newest-commit") }, "\(done)")
        let sets = try damaged.checked()
        #expect(sets.health.level == .intact)
        let told = damaged.lines.texts.withLock { $0 }
        #expect(told.contains { $0.hasPrefix("CRITICAL: newest-commit was missing or empty") }, "\(told)")
        sets.close()
    }

    @Test("Damaged totals are not repaired")
    func totals() throws {
        let damaged = try DamagedStorage()
        try damaged.flip(.meta, Totals.key, bit: 16 * 8 + 200)
        try expectRefusal(damaged)
    }

    private func expectRefusal(_ damaged: DamagedStorage) throws {
        let before = try Data(contentsOf: URL(fileURLWithPath: damaged.storage.file))
        let error = thrownServiceError { _ = try StorageRepair.repair(damaged.storage.directory) }
        #expect(error?.code == .storageDamaged)
        #expect(error?.reason.contains("the storage can't be repaired: ") == true, "\(error?.reason ?? "")")
        #expect(error?.reason.hasSuffix(": restore a backup") == true, "\(error?.reason ?? "")")
        #expect(try Data(contentsOf: URL(fileURLWithPath: damaged.storage.file)) == before)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: damaged.storage.directory).sorted()
                == ["data.mdb", "lock.mdb", "newest-commit", "owner.lock"])
        let nowhere = thrownServiceError {
            _ = try StorageInspection.findings(in: damaged.storage.directory + "/nowhere")
        }
        #expect(nowhere?.code == .storageFailed)
    }
}

extension DamagedStorage {
    /// Zeroes the first page of a database's tree. Returns its number.
    @discardableResult
    func zeroRoot(of name: DatabaseName) throws -> UInt64 {
        var bytes = Array(try Data(contentsOf: URL(fileURLWithPath: storage.file)))
        let pages = [0, 1].compactMap {
            MetaPage(Array(bytes[$0 * 4096..<$0 * 4096 + MetaPage.byteCount]), slot: $0)
        }
        let meta = try #require(pages.max { $0.transaction < $1.transaction })
        let tree = try #require(bytes.withUnsafeBytes { PageCheck($0, meta).trees[name.text] })
        let start = Int(tree.root) * 4096
        bytes.replaceSubrange(start..<start + 4096, with: repeatElement(0, count: 4096))
        try Data(bytes).write(to: URL(fileURLWithPath: storage.file))
        return tree.root
    }
}
