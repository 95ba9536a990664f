import Foundation
import TestSupport
import Testing

@Suite("The command fsck")
struct FsckTests {
    private func run(_ words: [String]) throws -> (code: Int32, output: String, errors: String) {
        let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("rootgate").path
        return try runProgram(program, words)
    }

    @Test("An intact storage has no finding, one with damage has findings and exit code 1, and repairing restores it")
    func findings() throws {
        let scratch = ScratchDirectory()
        let directory = scratch.path + "/data"
        let key = scratch.path + "/key"
        #expect(try run(["fsck", directory]).code == 2)
        let made = try run(
            ["keys", "create", "root", "--role", "administer", "--offline", "--data", directory, "--key-file", key])
        try #require(made.code == 0, "\(made.output)\(made.errors)")
        let intact = try run(["fsck", directory])
        #expect(intact.code == 0 && intact.output == "nothing is damaged\n", "\(intact.output)\(intact.errors)")
        // The name of the principal is in its record and in the log; the record comes first in the keys' order.
        let path = directory + "/data.mdb"
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        var places: [Data.Index] = []
        var start = bytes.startIndex
        while let found = bytes.range(of: Data("\"administer\"".utf8), in: start..<bytes.endIndex) {
            places.append(found.lowerBound)
            start = found.upperBound
        }
        try #require(!places.isEmpty)
        // A repair commits, so the note of the newest commit is put back with the file.
        let (whole, note) = (bytes, try Data(contentsOf: URL(fileURLWithPath: directory + "/newest-commit")))
        var outcomes: [Int32] = []
        for place in places {
            bytes = whole
            bytes[place + 1] ^= 1
            try bytes.write(to: URL(fileURLWithPath: path))
            try note.write(to: URL(fileURLWithPath: directory + "/newest-commit"))
            let damaged = try run(["fsck", directory])
            outcomes.append(damaged.code)
            guard damaged.code == 1 else { continue }
            #expect(damaged.output.contains(" findings") && damaged.output.hasPrefix("entry: "), "\(damaged.output)")
            let repaired = try run(["fsck", "--repair", directory])
            #expect(repaired.code == 0, "\(repaired.errors)")
            // What is in the log only can't be restored from it.
            let isOfLog = damaged.output.contains("of the log")
            #expect(repaired.output.contains(isOfLog ? "of the change log, which begins at" : "restored everything by"))
            #expect(try run(["fsck", directory]).code == 0)
        }
        #expect(outcomes.contains(1), "\(outcomes)")
    }
}
