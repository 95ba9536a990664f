import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

/// A storage in use whose files somebody else writes over.
private final class WrittenOver {
    let scratch = ScratchDirectory()
    private(set) var sets: RootSets?
    let deck: CollaborationIdentifier
    let removed: Digest
    let member: Digest
    private let lines = Lines()

    /// What the service would log.
    private final class Lines: Sendable {
        let texts = Lock<[String]>([])
    }

    init() throws {
        var random = SeededGenerator(seed: runSeed)
        (removed, member) = (random.digest(), random.digest())
        deck = try name("deck")
        try open()
        try apply(Mutation(.createCollaboration(deck, .challenge)))
        try apply(Mutation(.addRoots(deck, [removed, member])))
    }

    deinit { sets?.close() }

    var folder: String { scratch.path + "/data" }
    var criticalLines: [String] { lines.texts.withLock { $0 }.filter { $0.hasPrefix("CRITICAL") } }

    func open() throws {
        let lines = lines
        sets = try RootSets(
            RootSets.Configuration(directory: folder, sizeLimitBytes: 1 << 30, reserveBytes: 1 << 20),
            log: Log { line in lines.texts.withLock { $0.append("\(line)") } })
    }

    func close() {
        sets?.close()
        sets = nil
    }

    func apply(_ mutation: Mutation) throws { try #require(sets).apply(mutation) }

    /// Who is a member, or that nobody can tell.
    func answer() -> [Bool]? {
        guard let sets else { return nil }
        return try? sets.read { snapshot throws(ServiceError) in try snapshot.test([removed, member], in: deck) }
    }

    func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name)))
    }

    /// Writes into a file in place, and leaves its length, as `dd conv=notrunc` does.
    func write(_ name: String, at offset: Int = 0, _ bytes: [UInt8]) throws {
        let file = Foundation.open(folder + "/" + name, O_WRONLY)
        try #require(file >= 0)
        defer { Foundation.close(file) }
        #expect(bytes.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(offset)) } == bytes.count)
    }

    /// Where the meta page of the newest commit is, or that of the one before.
    func metaPage(isNewest: Bool) throws -> Int {
        let data = try bytes("data.mdb")
        let numbers = [0, 1].map { slot in
            data.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: slot * 4096 + 144, as: UInt64.self) }
        }
        return (numbers[0] > numbers[1]) == isNewest ? 0 : 4096
    }
}

@Suite("Files that are written over while a service runs")
struct WrittenOverTests {
    /// LMDB writes the rest of the page with the next commit, and not these bytes.
    @Test(
        "A meta page that is damaged under a service is found before a change is acknowledged that only it tells of",
        arguments: [0, 7, 10, 16, 17, 20, 23, 40, 41])
    func metaPage(byte: Int) throws {
        for isNewest in [false, true] {
            let storage = try WrittenOver()
            let place = try storage.metaPage(isNewest: isNewest) + byte
            try storage.write("data.mdb", at: place, [try storage.bytes("data.mdb")[place] ^ 1])
            var isRemoved = false
            for _ in 0..<2 where !isRemoved {
                isRemoved = (try? storage.apply(Mutation(.removeRoots(storage.deck, [storage.removed])))) != nil
            }
            storage.close()
            // A start is refused, or has everything that was acknowledged.
            guard (try? storage.open()) != nil else { continue }
            let answer = storage.answer()
            #expect(answer == [!isRemoved, true], "byte \(byte), newest: \(isNewest), removed: \(isRemoved)")
        }
    }

    @Test("An older data file that is copied over the one in use lets nobody in, and is not written to")
    func olderData() throws {
        for isRead in [false, true] {
            let storage = try WrittenOver()
            let old = try storage.bytes("data.mdb")
            try storage.apply(Mutation(.removeRoots(storage.deck, [storage.removed])))
            #expect(storage.answer() == [false, true])
            try storage.write("data.mdb", old)
            if isRead { #expect(storage.answer() == nil) }
            #expect(throws: ServiceError.self) {
                try storage.apply(Mutation(.addRoots(storage.deck, [.zero])))
            }
            #expect(storage.answer() == nil)
            #expect(storage.criticalLines.first?.contains("written over") == true, "\(storage.criticalLines)")
            // It stays refused, also when it was opened again, and after the next start.
            usleep(1_500_000)
            #expect(storage.answer() == nil)
            storage.close()
            #expect(throws: ServiceError.self) { try storage.open() }
        }
    }

    @Test("A whole older folder that is copied over the one in use lets nobody in while the service runs")
    func olderFolder() throws {
        let storage = try WrittenOver()
        let names = ["data.mdb", "lock.mdb", CommitMark.fileName]
        let old = try names.map { try storage.bytes($0) }
        for _ in 0..<3 { try storage.apply(Mutation(.addRoots(storage.deck, [.zero]))) }
        try storage.apply(Mutation(.removeRoots(storage.deck, [storage.removed])))
        for (name, bytes) in zip(names, old) { try storage.write(name, bytes) }
        #expect(storage.answer() == nil)
        usleep(1_500_000)
        #expect(storage.answer() == nil)
        #expect(throws: ServiceError.self) { try storage.apply(Mutation(.addRoots(storage.deck, [.zero]))) }
    }

    @Test("A table of readers whose number is set back under a service takes no change back")
    func numberSetBack() throws {
        let storage = try WrittenOver()
        try storage.apply(Mutation(.removeRoots(storage.deck, [storage.removed])))
        // LMDB's number of the newest commit is behind a mutex.
        let page = try storage.metaPage(isNewest: true)
        let number = Array(try storage.bytes("data.mdb")[page + 144..<page + 152])
        let table = try storage.bytes("lock.mdb")
        let place = try #require(stride(from: 16, to: 128, by: 8).first { Array(table[$0..<$0 + 8]) == number })
        try storage.write("lock.mdb", at: place, [2, 0, 0, 0, 0, 0, 0, 0])
        _ = try? storage.apply(Mutation(.addRoots(storage.deck, [.zero])))
        for _ in 0..<100 {
            let answer = storage.answer()
            #expect(answer == nil || answer == [false, true])
            usleep(20_000)
        }
        #expect(storage.criticalLines.first?.contains("table of readers says 2") == true, "\(storage.criticalLines)")
        storage.close()
        try storage.open()
        #expect(storage.answer() == [false, true])
    }

    @Test("A table of readers that is written over makes the storage open again, and a pipe as the note is refused")
    func tableOfReaders() throws {
        let storage = try WrittenOver()
        #expect(storage.answer() == [true, true])
        let bytes = try storage.bytes("lock.mdb").count
        try storage.write("lock.mdb", [UInt8](repeating: 0xff, count: bytes))
        #expect(becomesTrue { storage.answer() == [true, true] })
        #expect(storage.criticalLines.first?.contains("the table of readers was written over") == true)
        #expect(becomesTrue { (try? storage.apply(Mutation(.removeRoots(storage.deck, [storage.removed])))) != nil })
        #expect(storage.answer() == [false, true])
        storage.close()
        let note = storage.folder + "/" + CommitMark.fileName
        try FileManager.default.removeItem(atPath: note)
        #expect(mkfifo(note, 0o600) == 0)
        #expect(throws: ServiceError.self) { try storage.open() }
        #expect(throws: ServiceError.self) { _ = try StorageInspection.findings(in: storage.folder) }
    }

    @Test("A table of readers that is removed or replaced makes the storage open again", arguments: [true, false])
    func otherTable(isReplaced: Bool) throws {
        let storage = try WrittenOver()
        let path = storage.folder + "/lock.mdb"
        if isReplaced {
            let copy = storage.folder + "/copy"
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            #expect(rename(copy, path) == 0)
        } else {
            #expect(unlink(path) == 0)
        }
        // A change may come before somebody has looked; none is lost.
        let removal = Mutation(.removeRoots(storage.deck, [storage.removed]))
        #expect(becomesTrue { (try? storage.apply(removal)) != nil })
        #expect(becomesTrue { storage.criticalLines.first?.contains("lock.mdb was removed or replaced") == true })
        #expect(becomesTrue { storage.answer() == [false, true] })
    }

    @Test("A check of a stopped storage tells that its note is missing, and leaves that to the next start")
    func missingNote() throws {
        let storage = try WrittenOver()
        storage.close()
        try FileManager.default.removeItem(atPath: storage.folder + "/" + CommitMark.fileName)
        for _ in 0..<2 {
            let findings = try StorageInspection.findings(in: storage.folder)
            #expect(findings.count == 1 && findings[0].what.contains(CommitMark.fileName), "\(findings)")
            let lines = try StorageRepair.repair(storage.folder)
            #expect(lines.count == 2 && lines[1].contains(CommitMark.fileName), "\(lines)")
            #expect(!FileManager.default.fileExists(atPath: storage.folder + "/" + CommitMark.fileName))
        }
        #expect(storage.criticalLines == [])
        try storage.open()
        #expect(storage.criticalLines.count == 1)
        storage.close()
        #expect(try StorageInspection.findings(in: storage.folder).isEmpty)
    }

    @Test("An older copy that is written over a file in use in the middle of a change is noticed with the next one")
    func otherPage() throws {
        let storage = try WrittenOver()
        let old = Array(try storage.bytes("data.mdb")[..<8192])
        for _ in 0..<3 { try storage.apply(Mutation(.removeRoots(storage.deck, [storage.removed]))) }
        // As if the change had been under way: its own page is written behind the copy.
        let newest = try storage.metaPage(isNewest: true)
        try storage.write("data.mdb", at: 4096 - newest, Array(old[(4096 - newest)..<(8192 - newest)]))
        #expect(storage.answer() == nil)
        let error = thrownServiceError { try storage.apply(Mutation(.addRoots(storage.deck, [.zero]))) }
        // The storage may have been opened again meanwhile: the note and the newest page agree.
        if error == nil { #expect(becomesTrue { storage.answer() == [false, true] }) }
    }

    @Test(
        "A process with the number of another one that reads the storage is told so",
        .enabled(if: programPath("python3") != nil, "no python3"))
    func conflict() throws {
        let storage = try WrittenOver()
        storage.close()
        let python = Process()
        python.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        python.arguments = [
            "python3", "-c",
            "import fcntl,sys; f=open(sys.argv[1],'r+b'); fcntl.lockf(f,fcntl.LOCK_EX,1,int(sys.argv[2])); "
                + "print('locked',flush=True); sys.stdin.read()", storage.folder + "/lock.mdb", "\(getpid())",
        ]
        let (input, output) = (Pipe(), Pipe())
        (python.standardInput, python.standardOutput) = (input, output)
        try python.run()
        defer { python.terminate() }
        // It writes when it has the lock.
        try #require(!output.fileHandleForReading.availableData.isEmpty)
        let error = thrownServiceError { try storage.open() }
        #expect(error?.code == .storageFailed && error?.reason.contains("kubectl exec") == true, "\(error as Any)")
        #expect(throws: ServiceError.self) { try LiveStorage(storage.folder) }
        try input.fileHandleForWriting.close()
        python.waitUntilExit()
        try storage.open()
        #expect(storage.answer() == [true, true])
    }

    @Test("Places of the table of readers that an earlier process with this number has left are freed")
    func ownPlaces() throws {
        let storage = try WrittenOver()
        storage.close()
        let path = storage.folder + "/lock.mdb"
        var table = try storage.bytes("lock.mdb")
        try #require(table.starts(with: [0xde, 0xc0, 0xef, 0xbe]))
        func put(_ process: pid_t, _ slot: Int) {
            let place = ReaderTable.headerBytes + 64 * slot
            table.replaceSubrange(place..<place + 8, with: [7, 0, 0, 0, 0, 0, 0, 0])
            withUnsafeBytes(of: process) { table.replaceSubrange(place + 8..<place + 12, with: $0) }
        }
        for slot in 0..<1024 { put(slot % 2 == 0 ? getpid() : 4_000_000, slot) }
        try Data(table).write(to: URL(fileURLWithPath: path))
        try ReaderTable.prepare(in: storage.folder)
        let after = try storage.bytes("lock.mdb")
        for slot in 0..<1024 {
            let place = ReaderTable.headerBytes + 64 * slot + 8
            let expected = slot % 2 == 0 ? [0, 0, 0, 0] : Array(table[place..<place + 4])
            #expect(Array(after[place..<place + 4]) == expected, "place \(slot)")
        }
    }
}
