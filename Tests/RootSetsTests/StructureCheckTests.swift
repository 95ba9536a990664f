import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

@Suite("The check of a data file's structure after the start")
struct StructureCheckTests {
    private let scratch = ScratchDirectory()
    private let name: CollaborationIdentifier

    init() throws {
        name = try #require(CollaborationIdentifier("crowd"))
        var random = SeededGenerator(seed: 1)
        roots = (0..<4000).map { _ in random.digest() }
    }

    private var directory: String { scratch.path + "/data" }
    private let roots: [Digest]

    /// Makes a storage with a large set and records, and damages the first page of the tree of a database.
    private func damage(_ database: DatabaseName) throws {
        let sets = try RootSets(RootSets.Configuration(directory: directory))
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        try sets.apply(Mutation(.addRoots(name, roots)))
        var edit = Edit()
        edit.records = (0..<200).map { RecordEdit(Array("key \($0)".utf8), value: Array(repeating: 7, count: 100)) }
        try sets.apply(Mutation(.edit(edit)))
        sets.close()
        let path = directory + "/data.mdb"
        var bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        let pages = [0, 1].compactMap {
            MetaPage(Array(bytes[$0 * 4096..<$0 * 4096 + MetaPage.byteCount]), slot: $0)
        }
        let meta = try #require(pages.max { $0.transaction < $1.transaction })
        let tree = try #require(bytes.withUnsafeBytes { PageCheck($0, meta).trees[database.text] })
        // The root page says that it is another one.
        bytes[Int(tree.root) * 4096] ^= 1
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    private func open() throws(ServiceError) -> RootSets {
        for _ in 0..<200 {
            do throws(ServiceError) {
                return try RootSets(RootSets.Configuration(directory: directory))
            } catch {
                // The lock of a storage that was closed may be held a moment longer.
                guard error.code == .storageInUse else { throw error }
                usleep(5000)
            }
        }
        throw ServiceError(.storageInUse, "it stays in use")
    }

    @Test("A storage whose records have damaged pages is not opened", arguments: [DatabaseName.records, .meta])
    func early(_ database: DatabaseName) throws {
        try damage(database)
        #expect(throws: ServiceError.self) { try open() }
    }

    @Test(
        "A storage whose large trees have damaged pages is opened, and nothing is read from them or written",
        arguments: StructureCheck.deferred)
    func late(_ database: DatabaseName) throws {
        try damage(database)
        let sets = try open()
        func code(_ body: () throws(ServiceError) -> Void) -> ServiceError.Code? {
            do throws(ServiceError) {
                try body()
                return nil
            } catch {
                return error.code
            }
        }
        #expect(
            code { () throws(ServiceError) in try sets.apply(Mutation(.addRoots(name, [.zero]))) } == .storageDamaged)
        #expect(
            code { () throws(ServiceError) in try sets.apply(Mutation(.removeRoots(name, [roots[0]]))) }
                == .storageDamaged)
        #expect(becomesTrue(within: 20) { sets.health.level == .damaged })
        #expect(sets.health.finding?.what.contains("structure is damaged") == true)
        // The check comes to the sets before it comes to the log.
        let isOfSets = [.packed, .large].contains(database)
        let test = code { () throws(ServiceError) in
            try sets.read { snapshot throws(ServiceError) in _ = try snapshot.test([roots[0]], in: name) }
        }
        #expect(test == (isOfSets ? .storageDamaged : nil))
        sets.close()
    }

    @Test("Damage in the large trees leaves what was checked before: records are read, and so a service starts")
    func recordsAreLeft() throws {
        try damage(.packed)
        let sets = try open()
        #expect(becomesTrue(within: 20) { sets.health.level == .damaged })
        let record = try sets.read { snapshot throws(ServiceError) in try snapshot.record(Array("key 7".utf8)) }
        #expect(record?.value == Array(repeating: 7, count: 100))
        sets.close()
    }

    @Test("A storage whose meta pages are overwritten while it is used has failed, and the log has one line of it")
    func overwritten() throws {
        let lines = Shared<[String]>([])
        let sets = try RootSets(
            RootSets.Configuration(directory: directory), log: Log { line in lines.with { $0.append("\(line)") } })
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        #expect(becomesTrue { sets.health.isChecked })
        var random = SeededGenerator(seed: runSeed)
        let file = Foundation.open(directory + "/data.mdb", O_WRONLY | O_CLOEXEC)
        defer { close(file) }
        let noise = random.bytes(2 * 4096)
        #expect(pwrite(file, noise, noise.count, 0) == noise.count)
        #expect(
            throws: ServiceError.self, "ROOTGATE_TEST_SEED=\(runSeed)",
            performing: { try sets.apply(Mutation(.addRoots(name, [.zero]))) })
        #expect(throws: ServiceError.self) {
            try sets.read { snapshot throws(ServiceError) in _ = try snapshot.summary(of: name) }
        }
        #expect(sets.health.hasFailed || sets.health.level == .damaged, "ROOTGATE_TEST_SEED=\(runSeed)")
        #expect(lines.value.count { $0.hasPrefix("CRITICAL: the storage has") } == 1, "\(lines.value)")
        sets.close()
    }

    @Test("Without the file that locks the directory nothing is changed: another service may have it")
    func lockRemoved() throws {
        let lines = Shared<[String]>([])
        let sets = try RootSets(
            RootSets.Configuration(directory: directory), log: Log { line in lines.with { $0.append("\(line)") } })
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        #expect(unlink(directory + "/owner.lock") == 0)
        #expect(throws: ServiceError.self) { try sets.apply(Mutation(.addRoots(name, [.zero]))) }
        #expect(sets.health.hasFailed)
        // It stays so: opening it again would not help.
        let isTold = becomesTrue(within: 10) {
            lines.value.contains { $0.contains("owner.lock was removed") && $0.contains("restart") }
        }
        #expect(isTold, "\(lines.value)")
        #expect(throws: ServiceError.self) { try sets.apply(Mutation(.addRoots(name, [.zero]))) }
        sets.close()
    }

    @Test("An inspection checks all of the structure first")
    func whole() throws {
        try damage(.large)
        let findings = try StorageInspection.findings(in: directory)
        #expect(findings.map(\.kind) == [.reading])
    }
}
