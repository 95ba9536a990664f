import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

@Suite("Readers that were stopped", .serialized)
struct StoppedReaderTests {
    /// Another process that reads a storage.
    private final class Reader {
        let process = Process()
        let (input, output) = (Pipe(), Pipe())

        init(_ path: String, _ arguments: [String], says first: String) throws {
            process.executableURL = URL(fileURLWithPath: path)
            process.arguments = arguments
            (process.standardInput, process.standardOutput) = (input, output)
            try process.run()
            #expect(try output.fileHandleForReading.read(upToCount: first.utf8.count) == Data(first.utf8))
        }

        deinit {
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        }

        var number: Int32 { process.processIdentifier }

        /// A backup to a pipe that nobody reads any more, stopped.
        static func stoppedBackup(of directory: String) throws -> Reader {
            let reader = try Reader(ProbeRun.path, ["backup", directory], says: "rootgate backup\n")
            kill(reader.number, SIGSTOP)
            return reader
        }

        /// Another program, which reads until its input ends.
        static func foreign(of directory: String) throws -> Reader {
            let program = """
                import ctypes, ctypes.util, sys
                lmdb = ctypes.CDLL(ctypes.util.find_library("lmdb"))
                environment, transaction = ctypes.c_void_p(), ctypes.c_void_p()
                def check(code):
                    if code != 0: sys.exit("LMDB says " + str(code))
                check(lmdb.mdb_env_create(ctypes.byref(environment)))
                check(lmdb.mdb_env_open(environment, sys.argv[1].encode(), 0x220000, 0o600))
                check(lmdb.mdb_txn_begin(environment, None, 0x20000, ctypes.byref(transaction)))
                print("reads", flush=True)
                sys.stdin.read()
                lmdb.mdb_txn_abort(transaction)
                """
            return try Reader("/usr/bin/env", ["python3", "-c", program, directory], says: "reads\n")
        }

        /// What it writes until it ends.
        func rest() throws -> Data {
            let rest = try output.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            return rest
        }
    }

    #if !canImport(Darwin)
    /// A thread that holds the mutex of LMDB's table, as a process does that was stopped while it took a place. It lets
    /// go after `secondsMax` at the latest, so that a wrong wait ends and the test fails.
    private final class TableMutex: Sendable {
        private static let secondsMax = 120
        private let isHeld = Shared(false)
        private let (end, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))

        init(of directory: String) throws {
            // It stays open: to close it would end the locks that this process has on the table.
            let file = open(directory + "/" + ReaderTable.fileName, O_RDWR | O_CLOEXEC)
            let table = mmap(nil, ReaderTable.headerBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
            let header = UInt(bitPattern: try #require(table == MAP_FAILED ? nil : table))
            Thread { [isHeld, end, ended] in
                defer { ended.signal() }
                guard let header = UnsafeMutableRawPointer(bitPattern: header) else { return }
                // It is behind the layout.
                let mutex = (header + ReaderTable.beginning.count).assumingMemoryBound(to: pthread_mutex_t.self)
                guard pthread_mutex_lock(mutex) == 0 else { return }
                isHeld.with { $0 = true }
                _ = end.wait(timeout: .now() + .seconds(TableMutex.secondsMax))
                isHeld.with { $0 = false }
                pthread_mutex_unlock(mutex)
                munmap(header, ReaderTable.headerBytes)
            }.start()
            let isHeld = isHeld
            #expect(becomesTrue { isHeld.value })
        }

        /// Returns whether the thread had it until now.
        func letGo() -> Bool {
            let wasHeld = isHeld.value
            end.signal()
            ended.wait()
            return wasHeld
        }
    }
    #endif

    /// A small storage with a large reserve, half of which is used.
    private final class ReadStorage {
        let scratch = ScratchDirectory()
        let name: CollaborationIdentifier
        let sets: RootSets
        let logged = Shared<[String]>([])
        let kept: [[Digest]]
        /// More than the processors of most machines.
        static let workers = 32
        private var random = SeededGenerator(seed: runSeed)

        /// `shared`: the log that it shares.
        init(sharing shared: MemoryLog? = nil) throws {
            name = try #require(CollaborationIdentifier("deck"))
            let logged = logged
            var configuration = RootSets.Configuration(
                directory: scratch.path + "/data", sizeLimitBytes: 8 << 20, reserveBytes: 4 << 20,
                logRetentionBytes: 1 << 20)
            configuration.workers = ReadStorage.workers
            let sets = try RootSets(
                configuration, surroundings: shared?.found() ?? StorageSurroundings(), shared: shared,
                log: Log { line in logged.with { $0.append("\(line)") } })
            self.sets = sets
            // A storage that shares a log takes no change before it has read that.
            if shared != nil { #expect(becomesTrue { sets.sharing?.segment == 1 }) }
            try sets.apply(Mutation(.createCollaboration(name, .challenge)))
            var random = random
            kept = (0..<8).map { _ in (0..<2000).map { _ in random.digest() } }
            self.random = random
            for roots in kept { try sets.apply(Mutation(.addRoots(name, roots))) }
        }

        deinit { sets.close() }

        var directory: String { scratch.path + "/data" }

        func digest() -> Digest { random.digest() }

        /// Adds until that is refused, at most 400 times. Returns why it was.
        func fill() -> ServiceError? {
            for _ in 0..<400 {
                let roots = (0..<100).map { _ in digest() }
                if let error = thrownServiceError({ try sets.apply(Mutation(.addRoots(name, roots))) }) { return error }
            }
            return nil
        }

        /// Removes so many root hashes that are not there, until that is refused. Returns why it was.
        func removeAbsent(_ count: Int) -> ServiceError? {
            for _ in 0..<count {
                let absent = [digest()]
                if let error = thrownServiceError({ try sets.apply(Mutation(.removeRoots(name, absent))) }) {
                    return error
                }
            }
            return nil
        }

        /// Removes root hashes within so many reads, one in the other.
        func remove(_ roots: [Digest], besideReads count: Int) throws(ServiceError) {
            guard count > 0 else {
                _ = try sets.apply(Mutation(.removeRoots(name, roots)))
                return
            }
            try sets.read { snapshot throws(ServiceError) in
                _ = try snapshot.statistics()
                try remove(roots, besideReads: count - 1)
            }
        }

        /// Whether that is why a change was refused.
        func isHeld(by reader: Reader, _ error: ServiceError?) -> Bool {
            error?.code == .storageFull
                && error?.reason.contains("process \(reader.number) reads an old state") == true
        }

        /// Whether the service has taken the reader's snapshot back.
        func hasTakenBack(from reader: Reader) -> Bool {
            logged.value.contains { $0.contains("process \(reader.number), has lost what it reads") }
        }

        /// Removes root hashes that are not there, until the reader has lost its snapshot. Returns why one was refused.
        func removeAbsent(untilTakenBackFrom reader: Reader) -> ServiceError? {
            for _ in 0..<2000 where !hasTakenBack(from: reader) {
                if let error = removeAbsent(1) { return error }
            }
            return nil
        }
    }

    @Test("A backup that was stopped loses its snapshot to removals that need its pages, and says so when it goes on")
    func stoppedBackup() throws {
        let storage = try ReadStorage()
        let reader = try Reader.stoppedBackup(of: storage.directory)
        let refusal = storage.fill()
        #expect(storage.isHeld(by: reader, refusal), "\(refusal?.reason ?? "no addition was refused")")
        #expect(!storage.hasTakenBack(from: reader), "an addition has taken a snapshot back")
        for roots in storage.kept.prefix(4) {
            #expect(throws: Never.self) { try storage.sets.apply(Mutation(.removeRoots(storage.name, roots))) }
        }
        var removal = storage.removeAbsent(untilTakenBackFrom: reader)
        #expect(removal == nil && storage.hasTakenBack(from: reader), "\(removal?.reason ?? "")")
        // The log did not have to give way.
        #expect(try storage.sets.statistics().firstSequence == 1)
        removal = storage.removeAbsent(1000)
        #expect(removal == nil, "\(removal?.reason ?? "")")
        for roots in storage.kept.suffix(4) {
            #expect(throws: Never.self) { try storage.sets.apply(Mutation(.removeRoots(storage.name, roots))) }
        }
        #expect(throws: Never.self) { try storage.sets.apply(Mutation(.addRoots(storage.name, storage.kept[0]))) }
        kill(reader.number, SIGCONT)
        let rest = try reader.rest()
        #expect(rest.range(of: Data("busy: the backup was given up".utf8)) != nil, "the backup went on")
        #expect(reader.process.terminationStatus == 3)
        // The next one is whole.
        let file = storage.scratch.path + "/backup"
        let backup = try ProbeRun(["backup", storage.directory], outputTo: file)
        #expect(backup.ending == .exit(0), "\(backup.log)")
    }

    @Test("In a cluster a backup that was stopped loses its snapshot to what the shared log has")
    func stoppedBackupInCluster() throws {
        let storage = try ReadStorage(sharing: MemoryLog())
        let reader = try Reader.stoppedBackup(of: storage.directory)
        #expect(storage.fill()?.code == .storageFull)
        var removal = storage.removeAbsent(untilTakenBackFrom: reader)
        #expect(removal == nil && storage.hasTakenBack(from: reader), "\(removal?.reason ?? "")")
        removal = storage.removeAbsent(300)
        #expect(removal == nil, "\(removal?.reason ?? "")")
    }

    @Test("No reading that is stopped at a random moment keeps removals from passing, finds damage or ends by a signal")
    func stoppedReadings() throws {
        let scratch = ScratchDirectory()
        let count = trials("ROOTGATE_TEST_STOPPED_READERS", usually: 5)
        let run = try ProbeRun(
            ["stopped", scratch.path + "/data", "\(runSeed)", "\(count)"], seconds: Double(60 + 30 * count))
        #expect(run.ending == .exit(0), "\(run.output) \(run.log), ROOTGATE_TEST_SEED=\(runSeed)")
    }

    @Test("While another program reads an old state, additions leave the reserve to removals, and say why")
    func foreignReader() throws {
        try #require(programPath("python3") != nil)
        let storage = try ReadStorage()
        let reader = try Reader.foreign(of: storage.directory)
        var refusal = storage.fill()
        #expect(storage.isHeld(by: reader, refusal), "\(refusal?.reason ?? "no addition was refused")")
        // A shorter change log would make no room.
        #expect(try storage.sets.statistics().firstSequence == 1)
        for roots in storage.kept.prefix(4) {
            #expect(throws: Never.self) { try storage.sets.apply(Mutation(.removeRoots(storage.name, roots))) }
        }
        // The pages of a newer reading would not help.
        let backup = try Reader.stoppedBackup(of: storage.directory)
        // Nobody can give a removal pages that are not there: another program may rely on what it reads.
        refusal = storage.removeAbsent(2000)
        #expect(storage.isHeld(by: reader, refusal), "\(refusal?.reason ?? "no removal was refused")")
        #expect(!storage.hasTakenBack(from: backup) && !storage.hasTakenBack(from: reader))
        try reader.input.fileHandleForWriting.close()
        reader.process.waitUntilExit()
        #expect(reader.process.terminationStatus == 0)
        kill(backup.number, SIGKILL)
        for roots in storage.kept {
            #expect(becomesTrue { (try? storage.sets.apply(Mutation(.addRoots(storage.name, roots)))) != nil })
        }
    }

    #if !canImport(Darwin)
    @Test("Neither changes nor reads wait for a process that was stopped while it took a place in the table")
    func stoppedBeginning() throws {
        let storage = try ReadStorage()
        let mutex = try TableMutex(of: storage.directory)
        for roots in storage.kept {
            #expect(throws: Never.self) { try storage.remove(roots, besideReads: ReadStorage.workers + 10) }
        }
        // The mutex is LMDB's: another process waits for it, and for nothing else.
        let (directory, output) = (storage.directory, storage.scratch.path + "/backup")
        let backup = Shared<ProbeRun.Ending?>(nil)
        Thread {
            let run = try? ProbeRun(["backup", directory], outputTo: output)
            backup.with { $0 = run?.ending }
        }.start()
        Thread.sleep(forTimeInterval: 2)
        #expect(backup.value == nil)
        #expect(mutex.letGo(), "a change or a read has waited")
        #expect(becomesTrue { backup.value == .exit(0) })
        withExtendedLifetime(storage) {}
    }

    @Test("While a process is stopped in the table, nobody waits for one that was killed; it is forgotten later")
    func stoppedBeginningAndKilled() throws {
        let storage = try ReadStorage()
        let reader = try Reader.stoppedBackup(of: storage.directory)
        let mutex = try TableMutex(of: storage.directory)
        kill(reader.number, SIGKILL)
        reader.process.waitUntilExit()
        // The timer that watches the writer comes each second.
        Thread.sleep(forTimeInterval: 3)
        let addition = storage.fill()
        #expect(storage.isHeld(by: reader, addition), "\(addition?.reason ?? "no addition was refused")")
        let removal = storage.removeAbsent(2000)
        #expect(storage.isHeld(by: reader, removal), "\(removal?.reason ?? "no removal was refused")")
        #expect(mutex.letGo(), "a change has waited")
        for roots in storage.kept {
            #expect(becomesTrue { (try? storage.sets.apply(Mutation(.removeRoots(storage.name, roots)))) != nil })
        }
    }
    #endif

    @Test("Only older snapshots of other processes that let go of them are taken back")
    func places() throws {
        let scratch = ScratchDirectory()
        let file = URL(fileURLWithPath: scratch.path + "/lock.mdb")
        func contents() throws -> [UInt8] { Array(try Data(contentsOf: file)) }
        var table = ReaderTable.beginning + [UInt8](repeating: 0, count: (68 << 10) - 8)
        let mark = Array("rootgate".utf8)
        let own = UInt64(UInt32(bitPattern: getpid()))
        // The number of a snapshot and of a process, the mark or a thread, and whether it is taken back.
        let others: [(UInt64, UInt64, Bool, Bool)] = [
            (.max, 5, true, false), (7, 5, false, true), (9, 5, false, true), (10, 5, false, false),
            (7, 6, false, false), (7, own, false, false), (8, own, true, false), (7, 0, true, false),
            (3, 8, true, true), (11, 8, true, false),
        ]
        table.replaceSubrange(
            ReaderTable.countOffset..<ReaderTable.countOffset + 4, with: [UInt8(others.count), 0, 0, 0])
        for (slot, place) in others.enumerated() {
            let start = ReaderTable.headerBytes + 64 * slot
            withUnsafeBytes(of: place.0.littleEndian) { table.replaceSubrange(start..<start + 8, with: $0) }
            withUnsafeBytes(of: place.1.littleEndian) { table.replaceSubrange(start + 8..<start + 16, with: $0) }
            table.replaceSubrange(start + 16..<start + 24, with: place.2 ? mark : [1, 2, 3, 4, 5, 6, 7, 8])
        }
        try Data(table).write(to: file)
        let places = try #require(try ReaderPlaces(in: scratch.path))
        for (snapshot, isHeld) in [(7, true), (8, true), (9, false), (3, false), (-1, false)] {
            #expect(places.holds(snapshot) == isHeld, "\(snapshot)")
        }
        #expect(places.takeBack(before: 10).sorted() == [5, 8])
        #expect(places.takeBack(before: 10).isEmpty)
        let after = try contents()
        for (slot, place) in others.enumerated() {
            let start = ReaderTable.headerBytes + 64 * slot
            let expected = place.3 ? UInt64.max : place.0
            #expect(
                Array(after[start..<start + 8]) == withUnsafeBytes(of: expected.littleEndian) { Array($0) }, "\(slot)")
            #expect(Array(after[start + 8..<start + 64]) == Array(table[start + 8..<start + 64]), "\(slot)")
        }
        #expect(places.mark(reading: 7) && !places.mark(reading: 10))
        let marked = try contents()
        for slot in others.indices {
            let place = ReaderTable.headerBytes + 64 * slot + 16
            let expected = slot == 5 ? mark : Array(after[place..<place + 8])
            #expect(Array(marked[place..<place + 8]) == expected, "\(slot)")
        }
    }

    @Test("A table that LMDB 0.9 has not written is left alone", arguments: ["short", "another layout"])
    func otherTables(contents: String) throws {
        let scratch = ScratchDirectory()
        let file = URL(fileURLWithPath: scratch.path + "/lock.mdb")
        let bytes = contents == "short" ? [1, 2, 3] : [UInt8](repeating: 7, count: 8192)
        try Data(bytes).write(to: file)
        #expect(try ReaderPlaces(in: scratch.path) == nil)
        #expect(try Data(contentsOf: file) == Data(bytes))
    }

    @Test("A reading of a storage that has no table makes one, so that its service can take the snapshot back")
    func missingTable() throws {
        let storage = try ReadStorage()
        storage.sets.close()
        try FileManager.default.removeItem(atPath: storage.directory + "/lock.mdb")
        let reader = try Reader.stoppedBackup(of: storage.directory)
        let table = [UInt8](try Data(contentsOf: URL(fileURLWithPath: storage.directory + "/lock.mdb")))
        let mark = ReaderTable.headerBytes + ReaderTable.threadOffset
        #expect(table.starts(with: ReaderTable.beginning))
        #expect(Array(table[mark..<mark + 8]) == Array("rootgate".utf8))
        kill(reader.number, SIGCONT)
        _ = try reader.rest()
        #expect(reader.process.terminationStatus == 0)
    }

    @Test("What was read of a snapshot that was taken back means nothing, neither a result nor damage")
    func takenBack() {
        let isHeld = Shared(true)
        let cost = SnapshotCost(of: .check, isHeld: { isHeld.value }) { .little }
        func read(_ damage: StorageFailure?) throws(StorageFailure) -> Int {
            try cost.whileHeld { () throws(StorageFailure) in
                if let damage { throw damage }
                return 7
            }
        }
        func failure(_ damage: StorageFailure?) -> String {
            do throws(StorageFailure) {
                return "\(try read(damage))"
            } catch {
                return error.text
            }
        }
        #expect(failure(nil) == "7")
        #expect(failure(.damaged("a bucket")).contains("a bucket"))
        isHeld.with { $0 = false }
        #expect(failure(nil).contains("the check was given up"), "\(failure(nil))")
        #expect(failure(.damaged("a bucket")).contains("the check was given up"))
    }
}
