import Foundation
import TestSupport
import Testing

@testable import rootgate

@Suite("Options in a file")
struct ConfigurationFileTests {
    private let folder = ScratchDirectory()
    private var path: String { folder.path + "/rootgate.conf" }

    private func write(_ text: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }

    private func arguments(_ words: [String] = [], environment: [String: String] = [:]) throws -> Arguments {
        try serveCommand.arguments(["--config", path] + words, environment: environment)
    }

    @Test("The command line overrides the environment, which overrides the file, which overrides the default")
    func precedence() throws {
        try write("# a service\n\n  idle-seconds = 7\r\nlisten=127.0.0.1:1, unix:/a = b\nallow-plain-text = on\n")
        let file = try arguments()
        #expect(try file.number("idle-seconds", in: 1...9) == 7)
        #expect(file.text("listen") == "127.0.0.1:1, unix:/a = b")
        #expect(file.isOn("allow-plain-text") && file.isGiven("allow-plain-text"))
        #expect(try file.number("stall-seconds", in: 1...99) == 30)
        let variables = ["ROOTGATE_IDLE_SECONDS": "8", "ROOTGATE_ALLOW_PLAIN_TEXT": "0"]
        let environment = try arguments(environment: variables)
        #expect(try environment.number("idle-seconds", in: 1...9) == 8)
        #expect(!environment.isOn("allow-plain-text"))
        let given = try arguments(["--idle-seconds", "9", "--allow-plain-text"], environment: variables)
        #expect(try given.number("idle-seconds", in: 1...9) == 9)
        #expect(given.isOn("allow-plain-text"))
        let sources = ["idle-seconds", "listen", "stall-seconds"].map { given.value($0)?.source }
        #expect(sources == [.commandLine, .file, .standard])
        // The environment may name the file.
        #expect(
            try serveCommand.arguments([], environment: ["ROOTGATE_CONFIG": path]).text("listen") == file.text("listen")
        )
    }

    @Test(
        "A line that is no option is refused by its number",
        arguments: [
            ("idle-second = 7", "there is no option idle-second, but there is idle-seconds"),
            ("--idle-seconds = 7", "there is no option --idle-seconds, but there is idle-seconds"),
            ("config = other", "there is no option config"), ("idle-seconds 7", "this is not name = value"),
            ("idle-seconds =", "idle-seconds has no value"), ("= 7", "there is no option "),
            ("allow-plain-text = maybe", "allow-plain-text is on or off, not maybe"),
            ("idle-seconds = 7\nidle-seconds = 7", "idle-seconds is given twice"),
        ])
    func wrongLines(_ text: String, _ reason: String) throws {
        try write("# first\n" + text + "\n")
        let error = #expect(throws: UsageError.self) { try arguments() }
        let line = text.contains("\n") ? 3 : 2
        #expect(error?.text.hasPrefix("line \(line) of \(path): \(reason)") == true, "\(error?.text ?? "")")
    }

    @Test("A file that is missing, is standard input, or is not text is refused")
    func wrongFiles() throws {
        for (name, reason) in [(folder.path + "/none", "No such file"), ("-", "--config takes a file")] {
            let result = try runProgram(programPath, ["check-config", "--config", name])
            #expect(result.code == 2 && result.errors.contains(reason), "\(result.errors)")
        }
        try Data([0x61, 0xff]).write(to: URL(fileURLWithPath: path))
        #expect(throws: UsageError.self) { try arguments() }
    }

    @Test("The handbook's example of a file is taken")
    func handbook() throws {
        let handbook = try String(contentsOfFile: packageFile("deploy/handbook/options.md"), encoding: .utf8)
        let lines = handbook.split(separator: "\n", omittingEmptySubsequences: false)
        let example = lines.drop { !$0.hasPrefix("    ") }.prefix { $0.hasPrefix("    ") }.map { $0.dropFirst(4) }
        #expect(example.count > 3)
        try write(example.joined(separator: "\n") + "\n")
        let result = try runProgram(programPath, ["check-config", "--config", path])
        #expect(result.code == 0, "\(result.errors)")
        try write("data = \(folder.path)/data\naudit-optional = on\n")
        let refused = try runProgram(programPath, ["check-config", "--config", path])
        #expect(refused.code == 2 && refused.errors.contains("--audit-optional is for --audit"))
        let local = "unix:/" + String(repeating: "n", count: 107)
        for option in ["listen", "operator"] {
            try write("data = \(folder.path)/data\n\(option) = \(local)\n")
            let long = try runProgram(programPath, ["check-config", "--config", path])
            #expect(long.code == 2 && long.errors.contains("the path has 108 bytes"), "\(long)")
        }
    }

    @Test("What check-config prints is a file with the same effect")
    func roundTrip() throws {
        try write("idle-seconds = 7\ndata = \(folder.path)/data\nallow-plain-text = off\n")
        let first = try runProgram(
            programPath, ["check-config", "--config", path, "--drain-seconds=3"],
            environment: ["ROOTGATE_STALL_SECONDS": "4"])
        #expect(first.code == 0, "\(first.errors)")
        let parts = first.output.components(separatedBy: "\n\n")
        #expect(parts.first == "# from the command line\ndrain-seconds = 3")
        #expect(parts.dropFirst().first == "# from the environment\nstall-seconds = 4")
        #expect(
            parts.dropFirst(2).first
                == "# from \(path)\ndata = \(folder.path)/data\nallow-plain-text = off\nidle-seconds = 7")
        #expect(parts.last?.hasPrefix("# defaults\nlisten = localhost:7570\n") == true)
        try write(first.output)
        let second = try runProgram(programPath, ["check-config", "--config", path])
        func settings(_ text: String) -> [String] {
            text.split(separator: "\n").filter { !$0.hasPrefix("#") }.sorted().map(String.init)
        }
        #expect(second.code == 0 && settings(second.output) == settings(first.output), "\(second.errors)")
        let machine = try runProgram(programPath, ["check-config", "--config", path, "--json"])
        let object = try JSONSerialization.jsonObject(with: Data(machine.output.utf8)) as? [String: Any]
        let options = try #require(object?["options"] as? [[String: String]])
        #expect(options.contains(["name": "idle-seconds", "value": "7", "source": "file"]))
        #expect(object?["file"] as? String == path)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/data"), "checking made a directory")
    }

    @Test(
        "What a start refuses is refused by check-config",
        arguments: [
            ["--listen", "0.0.0.0:7570"], ["--idle-seconds", "0"], ["--link-base", "http://example.com"],
            ["--tls-certificate", "/nonexistent", "--tls-key", "/nonexistent"], ["--secret-file", "/nonexistent"],
            ["--listen", "no.such.host.invalid:1", "--allow-plain-text"], ["--kernel", "none"],
            ["--sandbox", "maybe"],
        ])
    func refusals(_ words: [String]) throws {
        let result = try runProgram(programPath, ["check-config", "--data", folder.path + "/data"] + words)
        #expect(result.code == 2 && result.output.isEmpty, "\(words): \(result.output)")
        #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
    }

    @Test("SIGHUP changes what a running service can change, and says what else differs")
    func reload() throws {
        let (data, log) = (folder.path + "/data", folder.path + "/log")
        try write("idle-seconds = 7\ncross-check = 64\n")
        let running = try ServeTests.Running(data, ["--config", path, "--drain-seconds", "2"], errors: log)
        func says(_ line: String) -> Bool {
            becomesTrue { (try? String(contentsOfFile: log, encoding: .utf8))?.contains(line) == true }
        }
        kill(running.process.processIdentifier, SIGHUP)
        #expect(says("nothing has changed in \(path)"))
        // A file that takes the place of the old one, as editors do.
        try Data("idle-seconds = 8\ncross-check = 65\ndrain-seconds = 9\n".utf8)
            .write(to: URL(fileURLWithPath: path), options: .atomic)
        kill(running.process.processIdentifier, SIGHUP)
        #expect(says("idle-seconds is 8 from now on, and was 7"))
        #expect(says("cross-check is 65 in \(path), and stays 64 until the next start"))
        try write("idle-seconds = none\n")
        kill(running.process.processIdentifier, SIGHUP)
        #expect(
            says("the options in \(path) can't be used, and stay as they were: --idle-seconds takes a whole number"))
        #expect(running.end(SIGTERM) == 0)
        let text = try String(contentsOfFile: log, encoding: .utf8)
        #expect(!text.contains("drain-seconds"), "the command line overrides the file: \(text)")
        #expect(text.contains("waiting up to 2 s"))
    }
}
