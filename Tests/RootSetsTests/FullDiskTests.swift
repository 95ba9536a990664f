import Core
import Foundation
import RootSets
import TestSupport
import Testing

@Suite("Full disks", .serialized)
struct FullDiskTests {
    @Test(
        "On a small disk the log has a quarter at most, and what was dropped gives room again, also after a restart",
        .enabled(if: SmallDisk.isAvailable, "needs the right to mount a small disk"))
    func dropped() throws {
        var random = SeededGenerator(seed: runSeed)
        let disk = try #require(SmallDisk(mebibytes: 16))
        // The log alone may become larger than the disk.
        let configuration = RootSets.Configuration(
            directory: disk.path + "/data", reserveBytes: 4 << 20, logRetentionBytes: 32 << 20)
        let decks = try name("decks")
        for round in 0..<3 {
            let sets = try reopened(configuration)
            #expect(sets.refusal(of: .createCollaboration(decks, .challenge)) == nil, "round \(round)")
            let filled = try fill(sets, decks, batch: 2000, random: &random)
            #expect(filled.code == .storageFull && filled.roots.count > 10_000, "round \(round), seed \(runSeed)")
            #expect(try sets.statistics().logBytes <= 5 << 20)
            #expect(sets.refusal(of: .dropCollaboration(decks)) == nil, "round \(round), seed \(runSeed)")
            sets.close()
        }
        withExtendedLifetime(disk) {}
    }

    /// A storage with the smallest reserve that is full, and its roots.
    private func full() throws -> (storage: Storage, name: CollaborationIdentifier, roots: [Digest]) {
        var random = SeededGenerator(seed: runSeed)
        let storage = try Storage { ($0.sizeLimitBytes, $0.reserveBytes) = (8 << 20, 1 << 20) }
        let decks = try storage.create("decks")
        let filled = try fill(try storage.sets, decks, batch: 1000, random: &random)
        try #require(filled.code == .storageFull)
        return (storage, decks, filled.roots)
    }

    @Test("In a full storage with the smallest reserve every removal passes, of roots that are there or absent")
    func removals() throws {
        // Another seed than that of the roots: these are absent.
        var random = SeededGenerator(seed: runSeed &+ 1)
        let (storage, decks, roots) = try full()
        let sets = try storage.sets
        // Each takes four neighbouring pages of the log, more than the reserve has in all.
        for round in 0..<300 {
            let absent = (0..<400).map { _ in random.digest() }
            try #require(sets.refusal(of: .removeRoots(decks, absent)) == nil, "absent \(round), seed \(runSeed)")
            // No more of the log goes than has to.
            let log = try sets.statistics()
            try #require(log.lastSequence + 1 - log.firstSequence >= 20, "absent \(round), seed \(runSeed)")
        }
        for round in 0..<6 {
            let absent = (0..<Limits.rootsPerRequestMax).map { _ in random.digest() }
            try #require(sets.refusal(of: .removeRoots(decks, absent)) == nil, "largest \(round), seed \(runSeed)")
        }
        var left = roots.shuffled(using: &random)
        for round in 0..<60 where left.count >= 100 {
            let some = Array(left.suffix(100))
            left.removeLast(100)
            try #require(sets.refusal(of: .removeRoots(decks, some)) == nil, "present \(round), seed \(runSeed)")
        }
        #expect(try sets.allRoots(of: decks) == left.sorted(), "seed \(runSeed)")
        #expect(try fileBytes(storage.directory) <= 9 << 20)
        // The log that is left is whole.
        let statistics = try sets.statistics()
        #expect(statistics.firstSequence <= statistics.lastSequence)
        let changes = try sets.read { snapshot throws(ServiceError) in
            try snapshot.changes(after: statistics.firstSequence - 1, limit: 8)
        }
        #expect(changes.items.first?.sequence == statistics.firstSequence)
    }

    /// A full storage with the smallest reserve, and with 4,000 short records.
    private func fullWithRecords() throws -> (storage: Storage, name: CollaborationIdentifier, roots: [Digest]) {
        var random = SeededGenerator(seed: runSeed)
        let storage = try Storage { ($0.sizeLimitBytes, $0.reserveBytes) = (8 << 20, 1 << 20) }
        let decks = try storage.create("decks")
        for first in stride(from: 0, to: 4000, by: 500) {
            var edit = Edit()
            edit.records = (first..<first + 500).map { RecordEdit(key($0), value: [1]) }
            try storage.sets.apply(Mutation(.edit(edit)))
        }
        let filled = try fill(try storage.sets, decks, batch: 1000, random: &random)
        try #require(filled.code == .storageFull)
        return (storage, decks, filled.roots)
    }

    private func key(_ record: Int) -> [UInt8] { [UInt8(record >> 8), UInt8(record & 255)] }

    private func replacement(_ records: Range<Int>, bytes: Int) -> Edit {
        var edit = Edit()
        edit.records = records.map {
            RecordEdit(key($0), value: [UInt8](repeating: 7, count: bytes), expecting: .present)
        }
        return edit
    }

    @Test(
        "Records that become longer, at once or in steps, leave the room of removals", arguments: [400, 1900, 20_000])
    func longerRecords(step: Int) throws {
        var random = SeededGenerator(seed: runSeed)
        let (storage, decks, roots) = try fullWithRecords()
        let sets = try storage.sets
        var refusals = 0
        for bytes in stride(from: step, through: 4 * step, by: step) {
            for record in 0..<4000 where refusals < 20 {
                if sets.refusal(of: .edit(replacement(record..<record + 1, bytes: bytes))) != nil { refusals += 1 }
            }
        }
        #expect(refusals == 20)
        // Who removes something may make records a little longer all the same.
        var removal = replacement(3000..<3400, bytes: 400)
        if step == 400 { #expect(sets.refusal(of: .edit(removal)) == .storageFull) }
        removal.records.append(RecordEdit(key(3999), value: nil, expecting: .present))
        #expect(sets.refusal(of: .edit(removal)) == nil)
        var left = roots.shuffled(using: &random)
        for round in 0..<20 where left.count >= 100 {
            let some = Array(left.suffix(100))
            left.removeLast(100)
            try #require(sets.refusal(of: .removeRoots(decks, some)) == nil, "round \(round), seed \(runSeed)")
        }
        // What was removed gives room again.
        #expect(sets.refusal(of: .dropCollaboration(decks)) == nil)
        #expect(sets.refusal(of: .edit(replacement(0..<1, bytes: 60_000))) == nil)
    }

    @Test("In a damaged storage a record may become longer by 512 bytes, and not by one more")
    func longerRecordsOfDamaged() throws {
        let storage = try Storage()
        let sets = try storage.sets
        var edit = Edit()
        edit.records = [RecordEdit(key(0), value: [1]), RecordEdit(key(1), value: [1])]
        try sets.apply(Mutation(.edit(edit)))
        sets.health.report(.damaged, "a record is not what was written")
        let bytes = 1 + Limits.recordGrowthFreeBytesMax
        // The record beside does not become shorter for it.
        for (length, code) in [(bytes + 1, ServiceError.Code.storageDamaged), (bytes, nil)] {
            var longer = replacement(0..<1, bytes: length)
            longer.records.append(RecordEdit(key(1), value: [], expecting: .present))
            #expect(sets.refusal(of: .edit(longer)) == code, "\(length)")
        }
    }

    @Test("A write that a full disk cuts short is a lack of space, also where the disk had promised room")
    func shortWrites() throws {
        let scratch = ScratchDirectory()
        let run = try ProbeRun(["full", scratch.path + "/data"], seconds: 200)
        #expect(run.ending == .exit(0), "\(run.ending) \(run.output) \(run.log)")
    }

    /// As many trials as ROOTGATE_TEST_FULL_DISKS says.
    @Test("On disks and with reserves of any size every removal passes, nothing is lost, and freed space counts")
    func trials() throws {
        let count = RootSetsTests.trials("ROOTGATE_TEST_FULL_DISKS", usually: 2)
        let run = try ProbeRun(
            ["full-disks", "\(runSeed)", "\(count)"] + (count > 3 ? [] : ["brief"]), seconds: 120 + 60 * Double(count))
        #expect(run.ending == .exit(0), "\(run.ending) \(run.lines.last ?? "") \(run.log)")
        #expect(run.lines.last?.hasPrefix("\(count) trials, nothing wrong: ") == true, "\(run.lines.last ?? "")")
        print(run.lines.last ?? "")
    }
}
