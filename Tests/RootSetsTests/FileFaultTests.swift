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
        let scratch = ScratchDirectory()
        try #require(try ProbeRun(["make", scratch.path + "/data", "7"]).ending == .exit(0))
        let run = try ProbeRun(["cut", scratch.path + "/data", "\(bytes)"])
        #expect(run.ending == .exit(0), "\(run.output) \(run.log)")
        let critical = run.log.split(separator: "\n").filter { $0.hasPrefix("CRITICAL: the storage has failed") }
        #expect(critical.count == 1, "\(run.log)")
    }

    @Test("Data that are moved away get no changes, and the storage recovers when they are back")
    func moved() throws {
        let scratch = ScratchDirectory()
        try #require(try ProbeRun(["make", scratch.path + "/data", "7"]).ending == .exit(0))
        let run = try ProbeRun(["move", scratch.path + "/data"])
        #expect(run.ending == .exit(0), "\(run.output) \(run.log)")
        #expect(run.log.contains("the storage was opened again"), "\(run.log)")
    }

    @Test("While the disk takes ten seconds, reads go on, and changes wait and are acknowledged")
    func slowDisk() throws {
        let scratch = ScratchDirectory()
        let run = try ProbeRun(["slow", scratch.path + "/data", "10"], seconds: 180)
        #expect(run.ending == .exit(0), "\(run.ending) \(run.output) \(run.log)")
        #expect(!run.log.contains("CRITICAL"), "\(run.log)")
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
}
