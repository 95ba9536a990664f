import CLMDB
import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

/// What `rootgate fsck` prints of each kind of finding. The command itself is run: `FsckTests` tests the rest of it.
@Suite("What fsck says of damage")
struct FsckFindingsTests {
    private static let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("rootgate").path

    /// Something that is done to a storage, and the one finding that it leads to.
    struct Damage: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let kind: String
        let meaning: String
        /// Damages a storage. Returns what the finding names, with its key.
        let make: @Sendable (DamagedStorage) throws -> String

        init(
            _ testDescription: String, _ kind: String, _ meaning: String,
            _ make: @escaping @Sendable (DamagedStorage) throws -> String
        ) {
            (self.testDescription, self.kind, self.meaning, self.make) = (testDescription, kind, meaning, make)
        }
    }

    /// Runs the command with a damaged storage, and expects the finding and no other, in both forms. `what`: whether
    /// the finding names what it should.
    private func expectFinding(of damage: Damage, _ directory: String, _ what: (String) -> Bool) throws {
        let told = try runProgram(FsckFindingsTests.program, ["fsck", directory, "--json"])
        #expect(told.code == 1, "\(told.output)\(told.errors)")
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(told.output.utf8)) as? [String: Any], "\(told.output)")
        #expect(object["count"] as? Int == 1, "\(told.output)")
        let findings = try #require(object["findings"] as? [[String: String]], "\(told.output)")
        let finding = try #require(findings.first)
        #expect(findings.count == 1 && Set(finding.keys) == ["kind", "what", "meaning"], "\(told.output)")
        #expect(finding["kind"] == damage.kind)
        #expect(finding["meaning"] == damage.meaning)
        let named = try #require(finding["what"])
        let isRight = what(named)
        #expect(isRight, "\(named)")
        let text = try runProgram(FsckFindingsTests.program, ["fsck", directory])
        #expect(text.code == 1, "\(text.output)\(text.errors)")
        #expect(text.output == "\(damage.kind): \(named): \(damage.meaning)\n1 finding\n")
    }

    @Test("A finding has its kind, its key and its meaning, in text and in JSON", arguments: damages)
    func exact(damage: Damage) throws {
        let damaged = try DamagedStorage()
        let what = try damage.make(damaged)
        try expectFinding(of: damage, damaged.storage.directory) { $0 == what }
    }

    @Test("A page whose structure is damaged is named, and nothing else is checked")
    func structure() throws {
        let damage = Damage(
            "a page", "reading",
            "a service does not start, or refuses what it needs of it; nothing else was checked"
        ) { "page \(try $0.zeroRoot(of: .large))" }
        let damaged = try DamagedStorage()
        let page = try damage.make(damaged)
        try expectFinding(of: damage, damaged.storage.directory) {
            $0.hasPrefix("the storage (") && $0.contains(", first \(page): ")
        }
    }

    @Test("A note of the newest commit that is missing is a finding, which says what may be lost")
    func missingNote() throws {
        let damage = Damage(
            "the note", "reading",
            "the last changes before the end of the service may be missing; its next start says so, too"
        ) {
            try FileManager.default.removeItem(atPath: $0.storage.directory + "/newest-commit")
            return "newest-commit"
        }
        let damaged = try DamagedStorage()
        let name = try damage.make(damaged)
        try expectFinding(of: damage, damaged.storage.directory) { $0.hasPrefix(name) }
    }

    @Test("The damages of these tests lead to every kind of finding")
    func kinds() {
        let all: [StorageFinding.Kind] = [.entry, .count, .order, .chain, .totals, .reading]
        // The two tests above are about reading.
        #expect(Set(damages.map(\.kind) + ["reading"]) == Set(all.map(\.rawValue)))
    }
}

private typealias Damage = FsckFindingsTests.Damage

private let ofRecords = "participants, grants, notices or principals of that record are refused"

private let damages: [Damage] = [
    entry(.packed, "nobody is let into the collaborations of that bucket, and their sets can't be changed") {
        "the bucket of collaborations up to hash \($0.hexadecimal)"
    },
    entry(.large, "nobody whose root hash is in that bucket is let in, and the set can't be changed") {
        "a bucket of roots of crowd (key \($0.hexadecimal))"
    },
    entry(.log, "followers of the log and repeated changes get an error") { _ in "change 1 of the log" },
    entry(.mutations, "a repeated change gets an error, or would be applied again") {
        "the identifier \($0.hexadecimal) of a change"
    },
    entry(.records, ofRecords) { _ in "the record with key 0001" },
    Damage(
        "an entry is missing", "count",
        "it has 29 entries, and 30 were written, so all of it is refused: \(ofRecords)"
    ) { damaged in
        try damaged.tamper { transaction, environment in
            try transaction.deleteBytes(environment.records, [3, 1])
        }
        return "the database records"
    },
    Damage(
        "an entry is out of date", "count",
        "some of its 30 entries are not those that were written last, so all of it is refused: \(ofRecords)"
    ) { damaged in
        try damaged.tamper { transaction, environment in
            let key: [UInt8] = [3, 1]
            let seed = key.withUnsafeBytes { environment.records.seed(of: $0) }
            let old = SealedValue.bytes(of: [9], version: 1, seed: seed).bytes
            try transaction.putBytes(environment.records, key, old)
        }
        return "the database records"
    },
    Damage(
        "keys are in the wrong order", "order", "it is not in its place, so searches may miss it and others",
        disorder),
    Damage(
        "the log has a gap", "chain", "the change before it is damaged, missing or out of date"
    ) { damaged in
        try replaceInLog(3, damaged)
        return "change 4 of the log"
    },
    Damage("the end of the log", "chain", "the last changes are missing or out of date") { damaged in
        try replaceInLog(5, damaged)
        return "the end of the log"
    },
    Damage(
        "the totals are damaged", "totals",
        "nobody can tell whether anything is missing or out of date, so nothing is answered"
    ) { damaged in
        try damaged.flip(.meta, Totals.key, bit: 16 * 8 + 200)
        return "the totals (an entry of the database meta is not what was written)"
    },
    Damage(
        "the totals count another number", "totals",
        "there are 304 root hashes, and the totals count 305, so sets are incomplete or out of date"
    ) { damaged in
        try damaged.tamper { transaction, environment in
            var totals = try transaction.totals(in: environment.meta)
            totals.roots += 1
            try transaction.put(totals, in: environment.meta)
        }
        return "the totals"
    },
]

/// A bit of the first entry of a database is flipped. `what`: what the finding names, by the key.
private func entry(
    _ name: DatabaseName, _ meaning: String, _ what: @escaping @Sendable ([UInt8]) -> String
) -> Damage {
    Damage("an entry of \(name)", "entry", meaning) { damaged in
        let key = try damaged.entry(name).key
        try damaged.flip(name, key, bit: 16 * 8 + 9)
        return what(key)
    }
}

/// Replaces a record of the log by another one, with a right seal and right sums.
private func replaceInLog(_ sequence: UInt64, _ damaged: DamagedStorage) throws {
    try damaged.tamper { transaction, environment in
        let key = bigEndianBytes(sequence)
        var contents = Array(try #require(try transaction.get(environment.log, key)).contents)
        contents[LogRecord.headerBytes - 8] ^= 1
        try transaction.put(environment.log, key, contents, version: sequence)
        try transaction.put(try transaction.totals(in: environment.meta), in: environment.meta)
    }
}

/// Makes the database of packed buckets anew as if it had lost the flag that its keys are numbers: LMDB and the check
/// of the pages take their bytes as text, and find them in order.
@Sendable
private func disorder(_ damaged: DamagedStorage) throws -> String {
    func bytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }
    let contents = Array(try damaged.entry(.packed).value.dropFirst(SealedValue.sealBytes))
    try damaged.tamper { transaction, environment in
        var handle: MDB_dbi = 0
        let dropped = mdb_drop(transaction.handle, environment.packed.handle, 1)
        try #require(dropped == MDB_SUCCESS)
        let made = mdb_dbi_open(transaction.handle, "packed", UInt32(MDB_CREATE), &handle)
        try #require(made == MDB_SUCCESS)
        let database = Database(.packed, handle: handle, environment.trust)
        // As text 256 comes first.
        for number in [256, 1] as [UInt64] {
            let key = bytes(number)
            let seed = key.withUnsafeBytes { database.seed(of: $0) }
            try transaction.putBytes(database, key, SealedValue.bytes(of: contents, version: 2, seed: seed).bytes)
        }
    }
    return "the bucket of collaborations up to hash \(bytes(1).hexadecimal)"
}
