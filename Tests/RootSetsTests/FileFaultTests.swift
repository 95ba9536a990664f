import Core
import Foundation
import RootSets
import TestSupport
import Testing

@Suite("Faults of files and disks", .serialized)
struct FileFaultTests {
    @Test(
        "A file that is cut while it is used is refused from then on, and the process stays",
        arguments: [4096, 90_000])
    func cut(bytes: Int) throws {
        for order in ["cut", "cut-unread"] {
            let scratch = ScratchDirectory()
            try #require(try ProbeRun(["make", scratch.path + "/data", "7"]).ending == .exit(0))
            let run = try ProbeRun([order, scratch.path + "/data", "\(bytes)"])
            #expect(run.ending == .exit(0), "\(order): \(run.output) \(run.log)")
            let critical = run.log.split(separator: "\n").filter { $0.hasPrefix("CRITICAL: the storage has failed") }
            #expect(critical.count == 1, "\(order): \(run.log)")
        }
    }

    @Test("Data that are moved away get no changes, and the storage recovers when they are back")
    func moved() throws {
        let scratch = ScratchDirectory()
        try #require(try ProbeRun(["make", scratch.path + "/data", "7"]).ending == .exit(0))
        let run = try ProbeRun(["move", scratch.path + "/data"])
        #expect(run.ending == .exit(0), "\(run.output) \(run.log)")
        #expect(run.log.contains("the storage was opened again"), "\(run.log)")
    }

    /// As many seconds as ROOTGATE_TEST_SLOW_SECONDS says.
    @Test("While the disk takes many seconds, reads go on, and changes wait and are acknowledged")
    func slowDisk() throws {
        let scratch = ScratchDirectory()
        let run = try ProbeRun(
            ["slow", scratch.path + "/data", "\(trials("ROOTGATE_TEST_SLOW_SECONDS", usually: 6))"], seconds: 180)
        #expect(run.ending == .exit(0), "\(run.ending) \(run.output) \(run.log)")
        #expect(!run.log.contains("CRITICAL"), "\(run.log)")
    }

    @Test("A note of the newest commit that can't be written is told once, and so is its being written again")
    func failingNote() throws {
        let scratch = ScratchDirectory()
        let run = try ProbeRun(["note", scratch.path + "/data"], seconds: 60)
        #expect(run.ending == .exit(0) && run.output.hasPrefix("3 failures"), "\(run.ending) \(run.output) \(run.log)")
        let told = run.log.split(separator: "\n").filter { $0.contains("newest-commit") }
        #expect(told.count == 2, "\(run.log)")
        #expect(told.first?.hasPrefix("CRITICAL: newest-commit can't be written") == true, "\(run.log)")
        #expect(told.last == "newest-commit is written again", "\(run.log)")
    }

    /// As many runs as ROOTGATE_TEST_FAILING_WRITES says.
    @Test("A storage whose writes fail opens itself again: nothing is lost, and what was refused can be repeated")
    func failingWrites() throws {
        let count = trials("ROOTGATE_TEST_FAILING_WRITES", usually: 12)
        var random = SeededGenerator(seed: runSeed)
        for number in 0..<count {
            let scratch = ScratchDirectory()
            let call = ["meta", "sync", "meta", "data"][number % 4]
            let error = number % 5 == 4 ? ENOSPC : EIO
            let words = ["\(Int.random(in: 0..<40, using: &random))", "\(1 + number % 3)", "\(error)"]
            let run = try ProbeRun(["failing", scratch.path + "/data", call] + words)
            #expect(
                run.ending == .exit(0) && run.output.hasPrefix("recovered"),
                "\(call) \(words), \(run.ending) \(run.output) \(run.log), ROOTGATE_TEST_SEED=\(runSeed)")
            if call == "meta" { #expect(run.log.contains("CRITICAL: the storage has failed"), "\(run.log)") }
        }
    }

    /// The pages that a backup reads are kept for it. LMDB does not notice by itself that its process has ended.
    @Test("A backup that was killed keeps no pages: the data file stays as large as it is", .timeLimit(.minutes(2)))
    func killedBackup() throws {
        let scratch = ScratchDirectory()
        let sets = try RootSets(
            RootSets.Configuration(
                directory: scratch.path + "/data", sizeLimitBytes: 1 << 30, reserveBytes: 1 << 20,
                logRetentionBytes: 1 << 20))
        defer { sets.close() }
        var random = SeededGenerator(seed: runSeed)
        let name = try #require(CollaborationIdentifier("deck"))
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        for _ in 0..<20 { try sets.apply(Mutation(.addRoots(name, (0..<1000).map { _ in random.digest() }))) }
        func change() throws -> Int {
            for _ in 0..<150 {
                let root = random.digest()
                try sets.apply(Mutation(.addRoots(name, [root])))
                try sets.apply(Mutation(.removeRoots(name, [root])))
            }
            return try sets.statistics().fileBytes
        }
        let before = try change()
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: ProbeRun.path)
        process.arguments = ["backup", scratch.path + "/data"]
        process.standardOutput = output
        try process.run()
        // It has begun, and waits for somebody to read on.
        #expect(try output.fileHandleForReading.read(upToCount: 16) == Data("rootgate backup\n".utf8))
        let during = try change()
        #expect(during > before + (2 << 20), "nothing was kept for the backup: \(before), \(during)")
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        usleep(2_500_000)
        let after = try change()
        #expect(after - during < (during - before) / 2, "its pages are still kept: \(before), \(during), \(after)")
    }

    @Test(
        "A backup that nobody reads is given up before it takes the room of removals, whatever the map's size once was")
    func roomOfRemovals() throws {
        let scratch = ScratchDirectory()
        let directory = scratch.path + "/data"
        let name = try #require(CollaborationIdentifier("deck"))
        // LMDB keeps the largest size that the map has had.
        try RootSets(RootSets.Configuration(directory: directory, sizeLimitBytes: 4 << 30)).close()
        let sets = try RootSets(
            RootSets.Configuration(
                directory: directory, sizeLimitBytes: 16 << 20, reserveBytes: 1 << 20, logRetentionBytes: 1 << 20))
        defer { sets.close() }
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        var random = SeededGenerator(seed: runSeed)
        for _ in 0..<8 { try sets.apply(Mutation(.addRoots(name, (0..<4000).map { _ in random.digest() }))) }
        let (process, output) = try beginBackup(of: directory)
        for round in 0..<300 {
            let roots = (0..<200).map { _ in random.digest() }
            // An addition may find no room. A removal must.
            let hasAdded = (try? sets.apply(Mutation(.addRoots(name, roots)))) != nil
            #expect(throws: Never.self, "round \(round), added: \(hasAdded), ROOTGATE_TEST_SEED=\(runSeed)") {
                try sets.apply(Mutation(.removeRoots(name, roots)))
            }
            usleep(2000)
        }
        let rest = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        #expect(rest.range(of: Data("given up".utf8)) != nil, "the backup went on")
    }

    @Test("A backup in another process is given up for a removal that needs the pages that are kept for it")
    func listReserve() throws {
        let scattered = try ScatteredStorage()
        let (process, output) = try beginBackup(of: scattered.storage.directory)
        // On a busy machine the backup may need longer than the writer waits.
        let removal = Mutation(ScatteredStorage.removal(1))
        #expect(becomesTrue { (try? scattered.storage.sets.apply(removal)) != nil })
        let rest = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        #expect(rest.range(of: Data("must pass needs the pages".utf8)) != nil, "the backup went on")
        // The next one is not asked to end, when the reserve was taken again.
        try scattered.storage.sets.apply(Mutation(.removeRoots(try name("decks"), [.zero])))
        let backup = try ProbeRun(
            ["backup", scattered.storage.directory], outputTo: scattered.storage.scratch.path + "/backup")
        #expect(backup.ending == .exit(0), "\(backup.ending) \(backup.log)")
    }

    /// Begins a backup in another process to a pipe that nobody reads any more.
    private func beginBackup(of directory: String) throws -> (Process, Pipe) {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: ProbeRun.path)
        process.arguments = ["backup", directory]
        process.standardOutput = output
        try process.run()
        #expect(try output.fileHandleForReading.read(upToCount: 16) == Data("rootgate backup\n".utf8))
        return (process, output)
    }

    @Test("A full disk or a failing one ends a restore without a directory, and a second try restores all of it")
    func failingRestore() throws {
        let scratch = ScratchDirectory()
        let (data, backup) = (scratch.path + "/data", scratch.path + "/backup")
        try #require(try ProbeRun(["make", data, "7"]).ending == .exit(0))
        let written = try ProbeRun(["backup", data], outputTo: backup)
        try #require(written.ending == .exit(0))
        var refused = 0
        for (after, error) in [(0, ENOSPC), (1, EIO), (3, ENOSPC), (5, ENOSPC), (8, EIO), (12, ENOSPC)] {
            let run = try ProbeRun(["restore", backup, scratch.path + "/new", "\(after)", "\(error)"])
            let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path).sorted()
            if run.ending == .exit(0) {
                #expect(run.output.hasSuffix(", 0 failures\n"), "\(run.output)")
                try FileManager.default.removeItem(atPath: scratch.path + "/new")
            } else {
                refused += 1
                #expect(run.ending == .exit(3) && names == ["backup", "data"], "\(run.ending) \(run.output) \(names)")
                #expect(error != ENOSPC || run.output.contains("storage-full"), "\(run.output)")
            }
        }
        #expect(refused >= 3)
        let run = try ProbeRun(["restore", backup, scratch.path + "/new", "1000000", "5"])
        #expect(run.ending == .exit(0), "\(run.output)")
    }
}
