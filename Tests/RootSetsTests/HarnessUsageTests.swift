import Foundation
import TestSupport
import Testing

/// A harness that takes a wrong word for another one would say that nothing is wrong, and test little or nothing.
@Suite("Arguments of the harnesses")
struct HarnessUsageTests {
    private static let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()

    /// Expects that the program does nothing but say how it is used.
    private func expectRefusal(_ program: String, _ words: [String], in folder: ScratchDirectory) throws {
        let run = try runProgram(
            HarnessUsageTests.folder.appendingPathComponent(program).path, words, environment: ["TMPDIR": folder.path])
        #expect(run.code == 2, "\(program) \(words): \(run.code) \(run.output)\(run.errors)")
        #expect(run.output == "", "\(program) \(words)")
        let lines = run.errors.split(separator: "\n")
        #expect(lines.count == 1 && run.errors.hasPrefix("usage: \(program) "), "\(program) \(words): \(run.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [], "\(program) \(words)")
    }

    @Test(
        "StorageProbe refuses words that are missing, wrong or too many, and a count of none",
        arguments: [
            "", "nothing", "make FOLDER", "make FOLDER x", "make FOLDER 7 8", "failing FOLDER disk 0 1 5",
            "failing FOLDER data 0 0 5", "failing FOLDER data 0 1 EIO", "failing FOLDER data -1 1 5",
            "failing FOLDER data 0 1", "cut FOLDER many", "cut FOLDER -1", "cut-unread FOLDER", "full FOLDER 1",
            "full-disks 1", "full-disks 1 4OO", "full-disks 1 0", "full-disks 1 -4", "full-disks x 1",
            "full-disks 1 1 short", "full-disks 1 1 brief brief", "full-disks 18446744073709551615 1",
            "slow FOLDER 0", "slow FOLDER soon", "note", "move FOLDER away", "stopped FOLDER 2 0",
            "stopped FOLDER x 1", "check", "backup FOLDER FOLDER", "restore BACKUP FOLDER 0 x",
            "restore BACKUP FOLDER -1 5", "restore BACKUP FOLDER 0 0",
        ])
    func storageProbe(line: String) throws {
        let scratch = ScratchDirectory()
        let words = line.split(separator: " ").map { $0 == "FOLDER" ? scratch.path + "/data" : String($0) }
        try expectRefusal("StorageProbe", words, in: scratch)
    }

    @Test(
        "PowerCuts refuses words that are missing, wrong or too many, and a count of none",
        arguments: [
            "", "1", "0 7", "-1 7", "12OOO 7", "1 seed", "1 7 8", "1 7 --ignore", "1 --ignore-syncs",
            "1 7 --ignore-syncs 8",
        ])
    func powerCuts(line: String) throws {
        let scratch = ScratchDirectory()
        try expectRefusal("PowerCuts", line.split(separator: " ").map(String.init), in: scratch)
    }

    @Test(
        "DamageTrials refuses words that are missing, wrong or too many, and a count of none",
        arguments: [
            "", "make FOLDER", "make FOLDER x", "make FOLDER 7 8", "run FOLDER 7 0", "run FOLDER 7 0 0",
            "run FOLDER 7 -1 1", "run FOLDER 7 0 1O", "run FOLDER 7 0 1 1", "walk FOLDER 7 0 1",
        ])
    func damageTrials(line: String) throws {
        let scratch = ScratchDirectory()
        let words = line.split(separator: " ").map { $0 == "FOLDER" ? scratch.path + "/data" : String($0) }
        try expectRefusal("DamageTrials", words, in: scratch)
    }
}
