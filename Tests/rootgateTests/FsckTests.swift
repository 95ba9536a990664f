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
            #expect(damaged.output.contains(" finding") && damaged.output.hasPrefix("entry: "), "\(damaged.output)")
            let repaired = try run(["fsck", "--repair", directory])
            #expect(repaired.code == 0, "\(repaired.errors)")
            // What is in the log only can't be restored from it.
            let isOfLog = damaged.output.contains("of the log")
            #expect(repaired.output.contains(isOfLog ? "of the change log, which begins at" : "restored everything by"))
            #expect(try run(["fsck", directory]).code == 0)
        }
        #expect(outcomes.contains(1), "\(outcomes)")
    }

    @Test("Damage under a service that runs is found meanwhile, and no finding is left when it is undone")
    func live() throws {
        let scratch = ScratchDirectory()
        let directory = scratch.path + "/data"
        let running = try ServeTests.Running(directory, [])
        for name in ["deck", "notes"] {
            #expect(try run(["collab", "create", name, "--server", running.endpoint]).code == 0)
        }
        let intact = try run(["fsck", directory])
        #expect(intact.code == 0 && intact.output == "nothing is damaged\n", "\(intact.output)\(intact.errors)")
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: directory + "/data.mdb"))
        defer { try? file.close() }
        let bytes = try #require(try file.readToEnd())
        func write(_ byte: UInt8, at place: Int) throws {
            try file.seek(toOffset: UInt64(place))
            try file.write(contentsOf: [byte])
        }
        var outcomes: [Int32] = []
        var start = bytes.startIndex
        while let found = bytes.range(of: Data("deck".utf8), in: start..<bytes.endIndex) {
            start = found.upperBound
            try write(bytes[found.lowerBound] ^ 1, at: found.lowerBound)
            let damaged = try run(["fsck", directory])
            outcomes.append(damaged.code)
            #expect(damaged.code == 0 || damaged.code == 1, "\(damaged.errors)")
            #expect((damaged.code == 1) == damaged.output.contains("finding"), "\(damaged.output)")
            try write(bytes[found.lowerBound], at: found.lowerBound)
        }
        #expect(outcomes.contains(1), "\(outcomes)")
        #expect(try run(["fsck", directory]).code == 0)
        #expect(try run(["collab", "create", "drafts", "--server", running.endpoint]).code == 0)
        #expect(running.end(SIGTERM) == 0)
    }
}
