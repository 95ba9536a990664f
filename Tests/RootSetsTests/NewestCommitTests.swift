import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

@Suite("The newest commit at a start")
struct NewestCommitTests {
    @Test("The note names the newest commit when the storage is closed, and while it is open")
    func note() throws {
        let storage = try ClosedStorage()
        let newest = try storage.metaPages().newer
        #expect(CommitMark.Note(try storage.bytes("newest-commit")) == CommitMark.Note(newest))
        let sets = try RootSets(RootSets.Configuration(directory: storage.folder))
        let name = try #require(CollaborationIdentifier("deck"))
        try sets.apply(Mutation(.addRoots(name, [.zero])))
        let next = try storage.metaPages().newer
        #expect(next.transaction == newest.transaction + 1)
        #expect(CommitMark.Note(try storage.bytes("newest-commit")) == CommitMark.Note(next))
    }

    @Test("A commit that was acknowledged and is gone is an error, which an operator may accept")
    func lostCommit() throws {
        let storage = try ClosedStorage()
        let (newer, older) = try storage.metaPages()
        // What a damaged newest page, or a disk that lies, leaves: the page of two commits before.
        var stale = older.copyForOtherSlot
        stale.replaceSubrange(0..<8, with: newer.bytes[0..<8])
        let place = storage.offset(of: newer)
        try storage.change("data.mdb") { $0.replaceSubrange(place..<place + 152, with: stale) }
        let refusal = try #require(storage.refusal())
        #expect(refusal.contains("transaction \(newer.transaction) was committed and acknowledged"), "\(refusal)")
        #expect(refusal.contains("newest-commit"))
        try storage.write("newest-commit", Array("accept\n".utf8))
        #expect(storage.rootCount == 4)
        // The note is one again.
        #expect(CommitMark.Note(try storage.bytes("newest-commit")) != nil)
        #expect(storage.rootCount == 4)
    }

    @Test("The operator's word is taken by a start only: a check and a reopening refuse it and leave it")
    func acceptedByStartOnly() throws {
        let storage = try ClosedStorage()
        try storage.write("newest-commit", Array("accept".utf8))
        let before = try storage.bytes("data.mdb")
        #expect(try StorageInspection.findings(in: storage.folder).count == 1)
        let error = thrownServiceError {
            _ = try StorageEnvironment(directory: storage.folder, bytesMax: 1 << 24, reserveBytes: 1 << 20)
        }
        #expect(error?.code == .storageDamaged && error?.reason.contains("accept") == true)
        #expect(try storage.bytes("newest-commit") == Array("accept".utf8) && storage.bytes("data.mdb") == before)
        let log = Shared<[String]>([])
        let configuration = RootSets.Configuration(directory: storage.folder)
        // A tool that opens the storage, as `keys create --offline`, is no start of the service.
        let refused = thrownServiceError { _ = try RootSets(configuration) }
        #expect(refused?.code == .storageDamaged && refused?.reason.contains("accept") == true)
        #expect(try storage.bytes("newest-commit") == Array("accept".utf8))
        try RootSets(configuration, acceptsLoss: true, log: Log { line in log.with { $0.append("\(line)") } }).close()
        #expect(log.value.contains { $0.hasPrefix("CRITICAL") && $0.contains("behind change 6") }, "\(log.value)")
        #expect(storage.rootCount == 5)
    }

    @Test("A start without a note over data that are there tells it in the log, with the note it does not")
    func missingNote() throws {
        let storage = try ClosedStorage()
        let log = Shared<[String]>([])
        func lines() throws -> [String] {
            log.with { $0 = [] }
            let configuration = RootSets.Configuration(directory: storage.folder)
            try RootSets(configuration, acceptsLoss: true, log: Log { line in log.with { $0.append("\(line)") } })
                .close()
            return log.value
        }
        #expect(try lines() == [])
        for isEmpty in [false, true] {
            try FileManager.default.removeItem(atPath: storage.folder + "/newest-commit")
            if isEmpty { try storage.write("newest-commit", []) }
            let told = try lines()
            #expect(told.count == 1 && told[0].hasPrefix("CRITICAL: newest-commit was missing or empty"), "\(told)")
            #expect(try lines() == [])
        }
    }

    @Test("Nobody can accept the storage of before the first commit")
    func emptyIsNotAccepted() throws {
        let storage = try ClosedStorage()
        let (newer, older) = try storage.metaPages()
        var empty = older.bytes
        // No trees, transaction 0.
        for root in [80, 128] { empty.replaceSubrange(root..<root + 8, with: repeatElement(0xff, count: 8)) }
        empty.replaceSubrange(144..<152, with: repeatElement(0, count: 8))
        for page in [newer, older] {
            let place = storage.offset(of: page)
            try storage.change("data.mdb") { bytes in
                let slot = bytes[place..<place + 8]
                bytes.replaceSubrange(place..<place + 152, with: empty)
                bytes.replaceSubrange(place..<place + 8, with: slot)
            }
        }
        try storage.write("newest-commit", Array("accept".utf8))
        #expect(storage.refusal()?.contains("no commit in the data file is whole") == true)
    }

    @Test("An older copy is refused although LMDB counts its transactions anew after a restore or a compaction")
    func olderCopyWithHigherNumber() throws {
        let storage = try ClosedStorage()
        let newer = try storage.metaPages().newer
        let note = try #require(CommitMark.Note(try storage.bytes("newest-commit")))
        #expect(note.sequence == 6)
        var first = newer.bytes
        first.replaceSubrange(144..<152, with: [2 - UInt8(newer.transaction & 1), 0, 0, 0, 0, 0, 0, 0])
        let restored = try #require(MetaPage(first, slot: Int(newer.transaction & 1)))
        try storage.write("newest-commit", CommitMark.Note(restored, sequence: 7).bytes)
        #expect(storage.refusal()?.contains("change 7 was acknowledged, and the data end with change 6") == true)
        try storage.write("newest-commit", CommitMark.Note(restored, sequence: 6).bytes)
        #expect(storage.rootCount == 5)
    }

    @Test("A data directory with a note and without data has lost them, also without its lock")
    func noteWithoutData() throws {
        let storage = try ClosedStorage()
        for name in ["data.mdb", "lock.mdb", "owner.lock"] {
            try FileManager.default.removeItem(atPath: storage.folder + "/" + name)
        }
        #expect(storage.refusal()?.contains("missing or empty") == true)
    }

    @Test("A page whose commit was not acknowledged may be missing, torn anywhere or garbage")
    func unacknowledged() throws {
        let storage = try ClosedStorage()
        let (newer, older) = try storage.metaPages()
        var random = SeededGenerator(seed: runSeed)
        // As a crash leaves it while the next commit's page is written over the older one.
        for cut in [0, 1, 40, 100, 150, 152] {
            let place = storage.offset(of: older)
            let garbage = random.bytes(4096 - cut)
            try storage.change("data.mdb") { $0.replaceSubrange(place + cut..<place + 4096, with: garbage) }
            #expect(storage.rootCount == 5, "garbage from \(cut) on, seed \(runSeed)")
        }
        let place = storage.offset(of: older)
        try storage.change("data.mdb") { $0.replaceSubrange(place..<place + 4096, with: repeatElement(0, count: 4096)) }
        #expect(storage.rootCount == 5)
        // It was written anew.
        #expect(try storage.metaPages().older.transaction == newer.transaction - 1)
    }

    @Test("A note that is behind, as after a crash or a power cut, is no obstacle; neither is one that is missing")
    func lateNote() throws {
        let storage = try ClosedStorage()
        let (_, older) = try storage.metaPages()
        try storage.write("newest-commit", CommitMark.Note(older).bytes)
        #expect(storage.rootCount == 5)
        let note = CommitMark.Note(older).bytes
        let flipped = note.indices.map { place in
            var bytes = note
            bytes[place] ^= 1
            return bytes
        }
        let zeros = [UInt8](repeating: 0, count: note.count)
        for bytes in [[], zeros] {
            try storage.write("newest-commit", bytes)
            #expect(storage.rootCount == 5, "\(bytes)")
        }
        // What is neither a note nor the word tells nothing about a lost commit.
        let words = ["garbage", "ACCEPT", "accept accept"].map { Array($0.utf8) }
        for bytes in words + [Array(note.dropLast()), note + [0], note + [1]] + flipped {
            try storage.write("newest-commit", bytes)
            #expect(storage.refusal()?.contains("newest-commit is not what was written") == true, "\(bytes)")
            #expect(try storage.bytes("newest-commit") == bytes)
        }
        try FileManager.default.removeItem(atPath: storage.folder + "/newest-commit")
        #expect(storage.rootCount == 5)
    }

    @Test("Without a note that vouches for the other page, a damaged meta page is an error")
    func doubtful() throws {
        let storage = try ClosedStorage()
        let (_, older) = try storage.metaPages()
        try storage.change("data.mdb") { $0[storage.offset(of: older) + 16] ^= 1 }
        try storage.write("newest-commit", [])
        #expect(try #require(storage.refusal()).contains("may have been the newest"))
    }

    /// The note in the form of earlier versions, without a copy of the meta page.
    private func bare(_ note: [UInt8]) -> [UInt8] {
        var bytes = Array(note[..<24])
        bytes.appendInteger(bytes.withUnsafeBytes { Checksum.of($0, seed: 0) })
        return bytes
    }

    @Test("Each bit of the newest meta page counts: the page is written anew from its copy, or it is refused")
    func eachBit() throws {
        let storage = try ClosedStorage()
        let newer = try storage.metaPages().newer
        let data = try storage.bytes("data.mdb")
        let note = try storage.bytes("newest-commit")
        for bit in stride(from: 0, to: 152 * 8, by: 7) {
            for hasCopy in [false, true] {
                try storage.write("data.mdb", data)
                try storage.write("newest-commit", hasCopy ? note : bare(note))
                try storage.change("data.mdb") { $0[storage.offset(of: newer) + bit / 8] ^= 1 << UInt8(bit % 8) }
                if hasCopy {
                    #expect(storage.rootCount == 5, "bit \(bit)")
                    #expect(try storage.metaPages().newer == newer, "bit \(bit)")
                    continue
                }
                // The unused half of the page's header means nothing.
                if (8..<10).contains(bit / 8) || (12..<16).contains(bit / 8) { continue }
                #expect(storage.refusal() != nil, "bit \(bit)")
            }
        }
    }

    @Test("A newest meta page of zeros or garbage is written anew from its copy, which the log and a check tell")
    func restored() throws {
        let storage = try ClosedStorage()
        let newer = try storage.metaPages().newer
        let data = try storage.bytes("data.mdb")
        let note = try storage.bytes("newest-commit")
        var random = SeededGenerator(seed: runSeed)
        let place = storage.offset(of: newer)
        for bytes in [[UInt8](repeating: 0, count: 4096), random.bytes(4096), random.bytes(77)] {
            for checks in [false, true] {
                try storage.write("data.mdb", data)
                try storage.write("newest-commit", note)
                try storage.change("data.mdb") { $0.replaceSubrange(place..<place + bytes.count, with: bytes) }
                let said = "was damaged, and was written anew from its copy in newest-commit: no change is missing"
                if checks {
                    let findings = try StorageInspection.findings(in: storage.folder)
                    #expect(findings.count == 1 && findings[0].what.contains(said), "\(findings)")
                    #expect(try StorageInspection.findings(in: storage.folder).isEmpty)
                } else {
                    let log = Shared<[String]>([])
                    let configuration = RootSets.Configuration(directory: storage.folder)
                    try RootSets(configuration, log: Log { line in log.with { $0.append("\(line)") } }).close()
                    #expect(log.value.count == 1 && log.value[0].contains(said), "\(log.value)")
                }
                #expect(storage.rootCount == 5, "seed \(runSeed)")
            }
        }
    }

    @Test("An older meta page that is damaged is written anew, which is told; a reader says what to do")
    func olderPage() throws {
        let storage = try ClosedStorage()
        let older = try storage.metaPages().older
        let data = try storage.bytes("data.mdb")
        let said = "the older meta page of data.mdb was damaged"
        for byte in [16, 20, 40] {
            try storage.write("data.mdb", data)
            try storage.change("data.mdb") { $0[storage.offset(of: older) + byte] ^= 1 }
            if byte != 40 {
                let error = thrownServiceError { _ = try LiveStorage(storage.folder) }
                #expect(error?.reason.contains("a meta page of the data file is damaged: a start") == true, "\(byte)")
            }
            let findings = try StorageInspection.findings(in: storage.folder)
            #expect(findings.count == 1 && findings[0].what.contains(said), "\(findings)")
            try storage.write("data.mdb", data)
            try storage.change("data.mdb") { $0[storage.offset(of: older) + byte] ^= 1 }
            let log = Shared<[String]>([])
            let configuration = RootSets.Configuration(directory: storage.folder)
            try RootSets(configuration, log: Log { line in log.with { $0.append("\(line)") } }).close()
            #expect(log.value.count == 1 && log.value[0].contains(said), "\(log.value)")
            #expect(storage.rootCount == 5)
        }
    }

    @Test("A note of an earlier version is taken, also when room was made for a longer one, and is lengthened first")
    func earlierNote() throws {
        let storage = try ClosedStorage()
        let note = try storage.bytes("newest-commit")
        let zeros = [UInt8](repeating: 0, count: MetaPage.byteCount)
        for bytes in [bare(note), bare(note) + zeros] {
            try storage.write("newest-commit", bytes)
            #expect(storage.rootCount == 5, "\(bytes.count) bytes")
            #expect(try storage.bytes("newest-commit") == note)
        }
        try storage.write("newest-commit", bare(note))
        _ = try CommitMark(directory: storage.folder)
        #expect(try storage.bytes("newest-commit") == bare(note) + zeros)
        for bytes in [bare(note) + zeros.dropLast(), bare(note) + zeros + [0], bare(note) + zeros.dropLast() + [1]] {
            try storage.write("newest-commit", bytes)
            #expect(storage.refusal() != nil, "\(bytes.count) bytes")
        }
    }

    @Test("A copy that leads elsewhere in another file is refused as what it is")
    func copyOfAnotherFile() throws {
        let (storage, other) = (try ClosedStorage(commits: 5), try ClosedStorage(commits: 5))
        let newer = try storage.metaPages().newer
        let page = try other.metaPages().newer
        try #require(page.transaction == newer.transaction)
        var changed = page.bytes
        // The main tree begins where the list of free pages does.
        changed.replaceSubrange(128..<136, with: page.bytes[80..<88])
        let copy = try #require(MetaPage(changed, slot: Int(page.transaction & 1)))
        try storage.write("newest-commit", CommitMark.Note(copy, sequence: 6).bytes)
        let data = try storage.bytes("data.mdb")
        #expect(storage.refusal()?.contains("the newest meta page is not what was written") == true)
        #expect(try storage.bytes("data.mdb") == data)
    }

    @Test("A copy is not taken for a commit that is not the newest, or where the other page is damaged, too")
    func copyOfAnotherCommit() throws {
        let storage = try ClosedStorage()
        let (newer, older) = try storage.metaPages()
        // The disk has lost the other page's write, and has the page of the commit behind it.
        var later = newer.bytes
        later[100] ^= 1
        withUnsafeBytes(of: (newer.transaction + 2).littleEndian) { later.replaceSubrange(144..<152, with: $0) }
        let data = try storage.bytes("data.mdb")
        let note = try storage.bytes("newest-commit")
        let place = storage.offset(of: newer)
        try storage.change("data.mdb") { $0.replaceSubrange(place..<place + 152, with: later) }
        #expect(storage.refusal() != nil)
        #expect(Array(try storage.bytes("data.mdb")[place..<place + 152]) == later)
        try storage.write("data.mdb", data)
        try storage.write("newest-commit", note)
        try storage.change("data.mdb") { bytes in
            for page in [newer, older] { bytes[storage.offset(of: page) + 16] ^= 1 }
        }
        #expect(storage.refusal()?.contains("both meta pages") == true)
    }

    @Test("An older page that claims to be newer is no commit")
    func raisedNumber() throws {
        let storage = try ClosedStorage()
        let (newer, older) = try storage.metaPages()
        let data = try storage.bytes("data.mdb")
        for raised in [newer.transaction + 1, newer.transaction + 2, newer.transaction + 4096] {
            for note in [CommitMark.Note(newer).bytes, CommitMark.Note(older).bytes, []] {
                try storage.write("newest-commit", note)
                try storage.write("data.mdb", data)
                try storage.change("data.mdb") { bytes in
                    let place = storage.offset(of: older) + 144
                    withUnsafeBytes(of: raised.littleEndian) { bytes.replaceSubrange(place..<place + 8, with: $0) }
                }
                if raised != newer.transaction + 1, note == CommitMark.Note(newer).bytes {
                    // The note vouches for the newest page, and no commit has such a number.
                    #expect(storage.rootCount == 5, "transaction \(raised)")
                } else {
                    #expect(storage.refusal() != nil, "transaction \(raised), note of \(note.count) bytes")
                }
            }
        }
    }
}
