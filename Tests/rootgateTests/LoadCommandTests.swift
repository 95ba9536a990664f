import Foundation
import TestSupport
import Testing

@Suite("Load at a rate")
struct LoadCommandTests {
    private let folder = ScratchDirectory()

    /// Runs `load` against a service of its own.
    private func load(_ words: String...) throws -> (code: Int32, output: String, errors: String) {
        let running = try ServeTests.Running(folder.path + "/data")
        let result = try runProgram(
            programPath, ["load", "--people", "20", "--server", running.endpoint, "--quiet"] + words)
        #expect(running.end(SIGTERM) == 0)
        return result
    }

    private func object(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
    }

    @Test("Proofs are sent at the rate, each is answered, and the distribution has all of them")
    func rate() throws {
        let path = folder.path + "/load.hgrm"
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
        let result = try load("--rate", "400", "--batch", "4", "--count", "800", "--hdr", path, "--json")
        #expect(result.code == 0, "\(result)")
        let report = try object(result.output)
        #expect(report["proofs"] as? Int == 800 && report["requests"] as? Int == 200 && report["wrong"] as? Int == 0)
        // The moments are random: 200 of them take two seconds on average, give or take a seventh.
        let seconds = try #require(report["seconds"] as? Double)
        #expect(seconds > 1.3, "\(seconds)")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.contains("Total count    = 200]"), "\(text)")
    }

    @Test("Proofs without signatures are sent at a rate, too")
    func inclusion() throws {
        let result = try load("--rate", "2000", "--batch", "16", "--inclusion-only", "--seconds", "0.5", "--json")
        #expect(result.code == 0, "\(result)")
        let report = try object(result.output)
        #expect((report["proofs"] as? Int ?? 0) >= 900 && report["wrong"] as? Int == 0, "\(result.output)")
    }

    @Test("A ramp ends at the first rate at which answers are late, and names the one before")
    func ramp() throws {
        // No answer takes less than a hundredth of a millisecond.
        let none = try load("--ramp", "--ramp-limit", "0.01", "--seconds", "0.2", "--batch", "1", "--json")
        #expect(none.code == 1, "\(none)")
        let first = try object(none.output)
        #expect(first["highestInTime"] as? Double == 0 && (first["steps"] as? [Any])?.count == 1)
        let some = try load(
            "--ramp", "--rate", "50", "--ramp-limit", "60000", "--round", "200", "--batch", "1", "--json")
        let steps = try #require(try object(some.output)["steps"] as? [[String: Any]])
        #expect(some.code == 0 && steps.count > 1, "\(some)")
        #expect(steps.last?["inTime"] as? Bool == false && steps.first?["inTime"] as? Bool == true, "\(some)")
        #expect(
            try object(some.output)["highestInTime"] as? Double == steps.dropLast().last?["sentPerSecond"] as? Double)
    }

    @Test(
        "Options that don't belong together are refused",
        arguments: [
            ["--ramp", "--count", "5"], ["--ramp-limit", "5"], ["--notices", "--ramp"], ["--notices", "--hdr", "/x"],
            ["--rate", "0"], ["--rate", "5", "--hdr", "/nowhere/load.hgrm"],
        ])
    func refused(words: [String]) throws {
        let result = try runProgram(programPath, ["load", "--server", "127.0.0.1:1"] + words)
        #expect(result.code == 2 && result.output.isEmpty, "\(result)")
        #expect(result.errors.split(separator: "\n").count == 1, "\(result)")
    }
}
