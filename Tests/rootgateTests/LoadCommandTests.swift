import Foundation
import TestSupport
import Testing

@Suite("Load at a rate")
struct LoadCommandTests {
    private let folder = ScratchDirectory()

    /// Runs `load` against a service of its own.
    private func load(_ words: String...) throws -> (code: Int32, output: String, errors: String) {
        let running = try ServeTests.Running(folder.path + "/data", LoadCommandTests.links)
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

    private static let links = ["--link-base", "https://example.com/c"]
    private static let everyKind = "verify=40,inclusion=10,open=10,check=20,mutate=10,post=10"

    @Test("A mix has every kind of request, and forgeries of proofs and grants get what they must")
    func mix() throws {
        let (plot, file) = (folder.path + "/load.svg", folder.path + "/load.hgrm")
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
        let result = try load(
            "--mix", LoadCommandTests.everyKind, "--rate", "150", "--seconds", "2", "--batch", "4", "--invalid", "20",
            "--collaborations", "3", "--zipf", "1.1", "--roots", "3", "--events", "2", "--plot", plot, "--hdr", file,
            "--json")
        #expect(result.code == 0, "\(result)")
        let report = try object(result.output)
        let kinds = try #require(report["kinds"] as? [String: [String: Any]])
        let counts = kinds.mapValues { $0["requests"] as? Int ?? 0 }
        // About two seconds at the rate: the moments are random.
        let requests = try #require(report["requests"] as? Int)
        #expect((300..<420).contains(requests) && counts.values.reduce(0, +) == requests, "\(counts)")
        for (kind, part) in [
            ("verify", 0.4), ("inclusion", 0.1), ("open", 0.1), ("check", 0.2), ("mutate", 0.1), ("post", 0.1),
        ] {
            #expect(abs(Double(counts[kind] ?? 0) - part * Double(requests)) < 3, "\(counts)")
        }
        #expect(report["grants"] as? Int == 4 * (counts["check"] ?? 0) && report["wrong"] as? Int == 0)
        let verdicts = try #require(report["verdicts"] as? [String: Int])
        // A fifth of the proofs and of the grants are forged, together.
        let signed = 4 * ((counts["verify"] ?? 0) + (counts["open"] ?? 0))
        let unsigned = 4 * (counts["inclusion"] ?? 0)
        #expect((signed * 7 / 10..<signed).contains(verdicts["granted"] ?? 0), "\(verdicts), \(counts)")
        #expect((unsigned / 2...unsigned).contains(verdicts["included"] ?? 0), "\(verdicts), \(counts)")
        #expect(try String(contentsOfFile: plot, encoding: .utf8).contains(">mutate</text>"))
        #expect(try String(contentsOfFile: file, encoding: .utf8).contains("Total count    = \(requests)]"))
    }

    @Test("Services share a load, and nothing of it stays at them")
    func severalServices() throws {
        let running = try ["/a", "/b"].map { try ServeTests.Running(folder.path + $0, LoadCommandTests.links) }
        let result = try runProgram(
            programPath,
            [
                "load", "--server", running[0].endpoint, "--server", running[1].endpoint, "--people", "10", "--count",
                "401",
            ]
                + ["--batch", "10", "--invalid", "50", "--quiet", "--json"])
        #expect(result.code == 0, "\(result)")
        let report = try object(result.output)
        #expect(report["proofs"] as? Int == 401 && report["requests"] as? Int == 41, "\(result.output)")
        for service in running {
            let stats = try runProgram(programPath, ["stats", "--server", service.endpoint, "--json"])
            let figures = try object(stats.output)
            #expect(figures["collaborations"] as? Int == 0 && (figures["operation-verify"] as? Int ?? 0) > 19)
            #expect(service.end(SIGTERM) == 0)
        }
    }

    @Test("A load that is interrupted leaves nothing at the service", arguments: [SIGINT, SIGTERM])
    func interrupted(number: CInt) throws {
        let running = try ServeTests.Running(folder.path + "/data", LoadCommandTests.links)
        let load = Process()
        load.executableURL = URL(fileURLWithPath: programPath)
        load.arguments =
            ["load", "--server", running.endpoint, "--quiet", "--people", "5", "--mix", "verify=1,check=1"]
            + ["--rate", "20", "--batch", "1", "--seconds", "60", "--collaborations", "2"]
        load.standardError = FileHandle.nullDevice
        try load.run()
        func collaborations() throws -> Int? {
            let stats = try runProgram(programPath, ["stats", "--server", running.endpoint, "--json"])
            let figures = try object(stats.output)
            guard figures["operation-verify"] as? Int ?? 0 > 0 else { return nil }
            return figures["collaborations"] as? Int
        }
        var found: Int?
        for _ in 0..<200 where found == nil { found = try collaborations() }
        #expect(found == 2)
        kill(load.processIdentifier, number)
        load.waitUntilExit()
        #expect(load.terminationReason == .exit && load.terminationStatus == 128 + number)
        #expect(try collaborations() == 0)
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("A recording ends with an error when the service goes away")
    func recordingOfNothing() throws {
        let running = try ServeTests.Running(folder.path + "/data")
        let recording = Process()
        recording.executableURL = URL(fileURLWithPath: programPath)
        let path = folder.path + "/traffic"
        recording.arguments =
            ["load", "--server", running.endpoint, "--quiet", "--record", path, "--seconds", "60", "--timeout", "1"]
        recording.standardError = FileHandle.nullDevice
        try recording.run()
        for _ in 0..<1000 where (try? String(contentsOfFile: path, encoding: .utf8))?.contains("others") != true {
            usleep(10_000)
        }
        #expect(running.end(SIGKILL) != 0)
        recording.waitUntilExit()
        #expect(recording.terminationStatus == 2)
    }

    @Test("What a service's clients do is recorded each second, names nobody, and can be sent again")
    func recording() async throws {
        let running = try ServeTests.Running(folder.path + "/data", LoadCommandTests.links)
        let path = folder.path + "/traffic"
        let server = ["load", "--server", running.endpoint, "--quiet"]
        let recording = Task.detached {
            try runProgram(programPath, server + ["--record", path, "--seconds", "5", "--json"])
        }
        let mix = "verify=50,open=20,check=20,mutate=10"
        let sent = try runProgram(
            programPath,
            server + ["--mix", mix, "--rate", "50", "--seconds", "2", "--people", "20", "--batch", "3", "--json"])
        #expect(sent.code == 0, "\(sent)")
        let recorded = try await recording.value
        #expect(recorded.code == 0, "\(recorded)")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.hasPrefix(#"{"format":"rootgate-traffic","version":1}"# + "\n"))
        let words = Set(text.split { !$0.isLetter && $0 != "-" }.map(String.init))
        let known = [
            "format", "rootgate-traffic", "version", "others", "proofs", "refused", "requests", "seconds", "e",
        ]
        let kinds = ["verify", "inclusion", "open", "check", "mutate", "post", "-"]
        #expect(words.subtracting(known + kinds).isEmpty, "\(words)")
        let again = try runProgram(
            programPath, server + ["--replay", path, "--scale", "2", "--people", "10", "--json"])
        #expect(again.code == 0, "\(again)")
        let first = try #require(try object(sent.output)["kinds"] as? [String: [String: Any]])
        let second = try #require(try object(again.output)["kinds"] as? [String: [String: Any]])
        #expect(first.count == 4)
        for (kind, figures) in first {
            let (one, other) = (figures["requests"] as? Int ?? 0, second[kind]?["requests"] as? Int ?? 0)
            // Opens also get the grants of the load, and making collaborations counts as changes.
            let extra = kind == "open" || kind == "mutate" ? 8 : 0
            #expect((2 * one...2 * (one + extra)).contains(other), "\(kind): \(one), \(other)")
        }
        let exists = try runProgram(programPath, server + ["--record", path, "--seconds", "1"])
        #expect(exists.code == 2 && exists.errors.contains("traffic"), "\(exists)")
        #expect(running.end(SIGTERM) == 0)
    }

    @Test(
        "Options that don't belong together are refused",
        arguments: [
            ["--ramp", "--count", "5"], ["--ramp-limit", "5"], ["--notices", "--ramp"], ["--notices", "--hdr", "/x"],
            ["--rate", "0"], ["--rate", "5", "--hdr", "/nowhere/load.hgrm"], ["--mix", "fetch=1"],
            ["--mix", "verify=1", "--inclusion-only"], ["--mix", "open=1", "--count", "5"], ["--roots", "5"],
            ["--events", "5"], ["--followers", "5"], ["--people", "3", "--collaborations", "4"], ["--zipf", "-1"],
            ["--notices", "--mix", "post=1"], ["--notices", "--plot", "/x"], ["--scale", "2"],
            ["--hdr", "/tmp/x", "--plot", "/tmp/x"],
            ["--record", "/x", "--rate", "5"], ["--record", "/x", "--server", "127.0.0.1:2"],
            ["--replay", "/nowhere/traffic"], ["--replay", "/dev/null"], ["--replay", "/dev/null", "--rate", "5"],
            ["--server", "127.0.0.1:1"], ["--server", "127.0.0.1:2", "--connections", "1"],
        ])
    func refused(words: [String]) throws {
        let result = try runProgram(programPath, ["load", "--server", "127.0.0.1:1"] + words)
        #expect(result.code == 2 && result.output.isEmpty, "\(result)")
        #expect(result.errors.split(separator: "\n").count == 1, "\(result)")
    }
}
