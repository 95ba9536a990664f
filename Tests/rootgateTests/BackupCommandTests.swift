import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

@Suite("The commands backup and restore", .timeLimit(.minutes(5)))
struct BackupCommandTests {
    private let scratch = ScratchDirectory()

    private func run(_ words: [String]) throws -> (code: Int32, output: String, errors: String) {
        try runProgram(ServiceProcess.path, words)
    }

    private func roots(_ count: Int, _ random: inout SeededGenerator) -> [Digest] {
        (0..<count).map { _ in random.digest() }
    }

    @Test("A running service is checked and backed up, and what is restored answers as it did")
    func live() async throws {
        var random = SeededGenerator(seed: runSeed)
        let service = try ServiceProcess()
        let client = try service.client()
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(deck, policy: .challenge)
        let (kept, late) = (roots(500, &random), roots(3, &random))
        try await client.addRoots(kept, to: deck)
        let checked = try run(["fsck", service.dataDirectory])
        #expect(checked.code == 0 && checked.output == "nothing is damaged\n", "\(checked.output)\(checked.errors)")
        let (backup, restored) = (scratch.path + "/backup", scratch.path + "/restored")
        let made = try run(["backup", "--data", service.dataDirectory, "--output", backup])
        #expect(made.code == 0 && made.output.contains("1 collaborations with 500 root hashes"), "\(made.errors)")
        let again = try run(["backup", "--data", service.dataDirectory, "--output", backup])
        #expect(again.code == 2 && again.errors.contains("not overwritten"), "\(again.errors)")
        let whole = try run(["restore", backup, "--check", "--json"])
        #expect(whole.code == 0 && whole.output.contains("\"sequence\":2"), "\(whole.output)")
        try await client.addRoots(late, to: deck)
        try await client.removeRoots(Array(kept.prefix(100)), from: deck)

        let first = try run(["restore", backup, "--data", restored])
        #expect(first.code == 0 && first.errors.contains("after change 2 is back"), "\(first.errors)")
        let forward = try run(["restore", backup, "--data", restored + "-2", "--log", service.dataDirectory])
        #expect(forward.code == 0, "\(forward.errors)")
        let part = try run(
            ["restore", backup, "--data", restored + "-3", "--log", service.dataDirectory, "--until", "3", "--json"])
        #expect(part.code == 0 && part.output.contains("\"restored\":3"), "\(part.output)\(part.errors)")
        for (directory, count) in [("", 500), ("-2", 403), ("-3", 503)] {
            #expect(try run(["fsck", restored + directory]).code == 0)
            let summary = try run(["backup", "--data", restored + directory, "--output", scratch.path + "/x", "--json"])
            #expect(summary.output.contains("\"roots\":\(count),"), "\(summary.output)")
            try FileManager.default.removeItem(atPath: scratch.path + "/x")
        }
        if FileManager.default.fileExists(atPath: "/dev/full") {
            let words = "backup --data '\(service.dataDirectory)' --output - --json 2> /dev/full > /dev/null"
            #expect(try runProgram("/bin/sh", ["-c", "'\(ServiceProcess.path)' \(words)"]).code == 0)
        }
        let note = try String(contentsOfFile: restored + "/restored", encoding: .utf8)
        #expect(note.hasPrefix("restored from a backup of ") && note.contains("changes up to 2"))
    }

    @Test("A restore takes the newest time of the backup and of its logs: what had expired by then stays so")
    func times() throws {
        let data = scratch.path + "/data"
        #expect(try run(["keys", "create", "x", "--role", "administer", "--offline", "--data", data]).code == 0)
        func clock(_ directory: String, _ time: UInt64? = nil) throws -> UInt64 {
            let file = URL(fileURLWithPath: directory + "/clock")
            if let time {
                try withUnsafeBytes(of: (time.littleEndian, ~time.littleEndian)) { try Data($0).write(to: file) }
            }
            return try Data(contentsOf: file).prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        let (first, second) = (scratch.path + "/first", scratch.path + "/second")
        #expect(try run(["backup", "--data", data, "--output", first]).code == 0)
        let later = UInt64(Date().timeIntervalSince1970 * 1000) + 7_200_000
        _ = try clock(data, later)
        #expect(try run(["backup", "--data", data, "--output", second]).code == 0)
        for (number, log) in [data, second].enumerated() {
            let restored = scratch.path + "/restored-\(number)"
            let done = try run(["restore", first, "--data", restored, "--log", log])
            #expect(done.code == 0, "\(done.errors)")
            #expect(try clock(restored) == later)
        }
    }

    @Test("A backup with --rate takes as long as its bytes need at that rate")
    func rate() async throws {
        var random = SeededGenerator(seed: runSeed)
        let service = try ServiceProcess()
        let client = try service.client()
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(deck, policy: .challenge)
        try await client.addRoots(roots(32_000, &random), to: deck)
        try #require(service.terminate(within: 60))
        func backUp(_ words: [String], to name: String) throws -> (bytes: Int, seconds: Double) {
            let path = scratch.path + "/" + name
            let made = try run(["backup", "--data", service.dataDirectory, "--output", path, "--json"] + words)
            try #require(made.code == 0, "\(made.errors)")
            let object = try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [String: Any]
            let (bytes, seconds) = (object?["bytes"] as? Int, object?["seconds"] as? Double)
            return (try #require(bytes), try #require(seconds))
        }
        let whole = try backUp([], to: "whole")
        // The root hashes are there twice, in their set and in the log.
        try #require(whole.bytes > 2 * 32_000 * Digest.byteCount)
        // For one second. What is behind the last whole piece of 256 KiB, an eighth at most, does not wait.
        let slow = try backUp(["--rate", "\(whole.bytes)"], to: "slow")
        #expect(slow.bytes == whole.bytes)
        #expect(slow.seconds >= 0.8, "\(slow) with --rate, and \(whole) without")
        #expect(try run(["restore", scratch.path + "/slow", "--check"]).code == 0)
    }

    @Test("A rate that is none, or too low, is a usage error", arguments: ["0", "-1", "1023", "fast", "1M", "1e6"])
    func wrongRate(rate: String) throws {
        let data = scratch.path + "/data"
        #expect(try run(["keys", "create", "x", "--role", "administer", "--offline", "--data", data]).code == 0)
        let path = scratch.path + "/backup"
        let refused = try run(["backup", "--data", data, "--output", path, "--rate", rate])
        #expect(refused.code == 2 && refused.errors.contains("--rate"), "\(refused.errors)")
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("A backup to a standard output that is closed ends with an error")
    func closedOutput() throws {
        let data = scratch.path + "/data"
        #expect(try run(["keys", "create", "x", "--role", "administer", "--offline", "--data", data]).code == 0)
        let words = "exec '\(ServiceProcess.path)' backup --data '\(data)' --output - >&-"
        let closed = try runProgram("/bin/sh", ["-c", words])
        #expect(closed.code == 2 && closed.errors.contains("Bad file descriptor"), "\(closed.code) \(closed.errors)")
    }

    @Test("A backup goes to standard output and comes from standard input, and a terminal gets none")
    func pipes() throws {
        let data = scratch.path + "/data"
        let key = scratch.path + "/key"
        let made = try run(
            ["keys", "create", "root", "--role", "administer", "--offline", "--data", data, "--key-file", key])
        try #require(made.code == 0, "\(made.errors)")
        let piped = try runProgram(
            "/bin/sh",
            [
                "-c", "\"$0\" backup --data \"$1\" --output - | \"$0\" restore - --data \"$1-new\"",
                ServiceProcess.path,
                data,
            ])
        #expect(piped.code == 0, "\(piped.errors)")
        #expect(piped.errors.contains("SHA-256"), "\(piped.errors)")
        #expect(try run(["fsck", data + "-new"]).code == 0)
        // The secret stays where it is: without it no earlier grant is valid.
        #expect(!FileManager.default.fileExists(atPath: data + "-new/secret"))
        #expect(FileManager.default.fileExists(atPath: data + "-new/clock"))
        let file = scratch.path + "/file"
        try Data("no backup".utf8).write(to: URL(fileURLWithPath: file))
        let wrong = try run(["restore", file, "--data", scratch.path + "/other"])
        #expect(wrong.code == 2 && wrong.errors.contains("no backup"), "\(wrong.errors)")
        #expect(!FileManager.default.fileExists(atPath: scratch.path + "/other"))
        let none = try run(["backup", "--data", scratch.path + "/nothing", "--output", scratch.path + "/y"])
        #expect(none.code == 2 && none.errors.contains("there is no storage"), "\(none.errors)")
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: scratch.path).sorted() == ["data", "data-new", "file"])
    }

    @Test("A restore that is killed leaves no directory, and what it leaves is no storage that a service starts with")
    func killed() async throws {
        var random = SeededGenerator(seed: runSeed)
        let service = try ServiceProcess()
        let client = try service.client()
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(deck, policy: .challenge)
        for _ in 0..<6 { try await client.addRoots(roots(32_000, &random), to: deck) }
        let backup = scratch.path + "/backup"
        try #require(try run(["backup", "--data", service.dataDirectory, "--output", backup]).code == 0)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: backup))
        let process = Process()
        let input = Pipe()
        process.executableURL = URL(fileURLWithPath: ServiceProcess.path)
        process.arguments = ["restore", "-", "--data", scratch.path + "/new"]
        process.standardInput = input
        process.standardError = FileHandle.nullDevice
        try process.run()
        // More than one commit, and not all.
        try input.fileHandleForWriting.write(contentsOf: bytes.prefix(bytes.count * 9 / 10))
        usleep(500_000)
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
        #expect(!names.contains("new"))
        let left = try #require(names.first { $0.hasPrefix("new.restoring-") })
        let start = try run(["serve", "--data", scratch.path + "/" + left, "--listen", "127.0.0.1:0"])
        #expect(start.code == 2 && start.errors.contains("was ended before it was done"), "\(start.errors)")
    }
}
