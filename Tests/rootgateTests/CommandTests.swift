import Core
import Foundation
import Identity
import Kernels
import Server
import TestSupport
import Testing
import Transport

@testable import rootgate

/// Runs the built program, as a shell would.
private func rootgate(_ arguments: String..., input: String? = nil, environment: [String: String] = [:]) throws -> (
    code: Int32, output: String, errors: String
) {
    try runProgram(programPath, arguments, input: input, environment: environment)
}

/// The program beside the test bundle.
let programPath: String = {
    let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    return folder.appendingPathComponent("rootgate").path
}()

@Suite struct ArgumentTests {
    private let options = [
        Option("size", "N", standard: "3", "a size"), Option(switch: "loud", "a switch"),
        Option("name", "TEXT", "a name"),
    ]

    @Test("The command line overrides the environment, which overrides the default")
    func precedence() throws {
        let environment = ["ROOTGATE_SIZE": "5", "ROOTGATE_LOUD": "1"]
        #expect(try Arguments([], options: options, operandsMax: 0, environment: [:]).number("size", in: 0...9) == 3)
        #expect(
            try Arguments([], options: options, operandsMax: 0, environment: environment).number("size", in: 0...9) == 5
        )
        let given = try Arguments(["--size", "7"], options: options, operandsMax: 0, environment: environment)
        #expect(try given.number("size", in: 0...9) == 7)
        #expect(given.isOn("loud"))
    }

    @Test("A switch in the environment is on or off, and another word is refused")
    func switches() throws {
        func isOn(_ value: String) throws -> Bool {
            try Arguments([], options: options, operandsMax: 0, environment: ["ROOTGATE_LOUD": value]).isOn("loud")
        }
        for value in ["", "0", "no", "No", "false", "off"] { #expect(try !isOn(value), "\(value)") }
        for value in ["1", "yes", "TRUE", "on"] { #expect(try isOn(value), "\(value)") }
        for value in ["2", " ", "never", "of", "disabled"] {
            #expect(throws: UsageError.self, "\(value)") { try isOn(value) }
        }
        // A value that another command reads would be refused as a switch.
        let all = Rootgate.commands.flatMap(\.options)
        let switches = Set(all.filter(\.isSwitch).map(\.name))
        #expect(switches.isDisjoint(with: all.filter { !$0.isSwitch }.map(\.name)))
    }

    @Test("Wrong words are usage errors", arguments: [["--none"], ["--size"], ["--loud=1"], ["operand"], ["-x"]])
    func wrongWords(_ words: [String]) {
        #expect(throws: UsageError.self) { try Arguments(words, options: options, operandsMax: 0, environment: [:]) }
    }

    @Test("Numbers outside their range are usage errors", arguments: ["", "x", "-1", "10", "1.5"])
    func ranges(_ text: String) throws {
        let arguments = try Arguments(["--size=\(text)"], options: options, operandsMax: 0, environment: [:])
        #expect(throws: UsageError.self) { try arguments.number("size", in: 0...9) }
    }
}

@Suite struct CommandTests {
    private func simulated(_ words: String...) throws -> (lines: [String], roots: String, folder: ScratchDirectory) {
        let folder = ScratchDirectory()
        let roots = folder.path + "/roots"
        let result = try runProgram(
            programPath, ["simulate", "--collaboration", "c", "--roots-out", roots] + words)
        #expect(result.code == 0, "\(result.errors)")
        return (result.output.split(separator: "\n").map(String.init), roots, folder)
    }

    private func verdicts(_ output: String) throws -> [String] {
        try output.split(separator: "\n").map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(object?["verdict"] as? String)
        }
    }

    @Test("Genuine proofs from a file are granted")
    func genuine() throws {
        let simulated = try simulated("--people", "3", "--devices", "2", "--key-encoding", "compressed")
        let result = try rootgate(
            "verify", "--roots", simulated.roots, "-", input: simulated.lines.joined(separator: "\n") + "\n")
        #expect(result.code == 0)
        #expect(try verdicts(result.output) == Array(repeating: "granted", count: 6))
        #expect(result.errors.isEmpty)
    }

    @Test("Without known roots the root is computed and the verdict is unlisted")
    func unlisted() throws {
        let simulated = try simulated("--signature-format", "raw")
        let result = try rootgate("verify", input: simulated.lines[0])
        #expect(result.code == 0)
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        #expect(object?["verdict"] as? String == "unlisted")
        let root = try String(contentsOfFile: simulated.roots, encoding: .utf8).trimmingCharacters(in: .newlines)
        #expect(object?["rootHash"] as? String == root)
    }

    @Test("A file that can't be read or written is named, and a collaboration without a service is refused")
    func refusedInputs() throws {
        for words in [
            ["verify", "/nonexistent/proofs"], ["verify", "--roots", "/nonexistent/proofs"],
            ["simulate", "--collaboration", "c", "--roots-out", "/nonexistent/proofs"],
        ] {
            let result = try runProgram(programPath, words)
            #expect(result.code == 2 && result.errors.contains(" /nonexistent/proofs: "), "\(result.errors)")
            #expect(result.errors.split(separator: "\n").count == 1)
        }
        let result = try rootgate("verify", "--collaboration", "c", input: "")
        #expect(result.code == 2 && result.errors.contains("--collaboration needs --server"))
    }

    @Test(
        "A full standard output ends a command with one line and code 2",
        .enabled(if: FileManager.default.fileExists(atPath: "/dev/full"), "this system has no /dev/full"))
    func fullOutput() throws {
        for words in ["version", "--help", "serve --help", "check-config --data /tmp"] {
            let result = try runProgram("/bin/sh", ["-c", "'\(programPath)' \(words) > /dev/full"])
            #expect(result.code == 2 && result.errors.contains("can't write to standard output"), "\(words): \(result)")
        }
        let result = try runProgram("/bin/sh", ["-c", "'\(programPath)' version > /dev/full"])
        #expect(result.code == 2 && result.errors.hasPrefix("rootgate: can't write to standard output: "))
        #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
    }

    @Test("Bad lines are malformed and do not stop the rest")
    func malformed() throws {
        let simulated = try simulated()
        let good = simulated.lines[0]
        let lines = [
            good, "", "{", "[]", "{}",
            good.replacingOccurrences(of: "\"publicKeyIndex\":0", with: "\"publicKeyIndex\":-1"),
            good.replacingOccurrences(of: "\"publicKeyIndex\":0", with: "\"publicKeyIndex\":0.5"),
            good.replacingOccurrences(of: "\"signatureFormat\":\"der\"", with: "\"signatureFormat\":\"pem\""),
            good.replacingOccurrences(of: "\"inclusionHashes\":[", with: "\"inclusionHashes\":[\"AAAA\","),
            good.replacingOccurrences(of: "\"publicKey\":\"", with: "\"publicKey\":\"?"),
            String(repeating: "x", count: 2 << 20), good,
        ]
        let result = try rootgate("verify", "--roots", simulated.roots, input: lines.joined(separator: "\n"))
        #expect(result.code == 1)
        let malformed = Array(repeating: "malformed", count: 4)
        let expected = ["granted"] + malformed + ["bad-index", "bad-index"] + malformed + ["granted"]
        #expect(try verdicts(result.output) == expected)
        #expect(result.output.split(separator: "\n")[3].contains("\"line\":4"))
    }

    @Test("Forged lines are refused with their verdicts")
    func forged() throws {
        let simulated = try simulated("--devices", "2")
        let good = simulated.lines[0]
        let lines = [
            good.replacingOccurrences(of: "\"publicKeyIndex\":0", with: "\"publicKeyIndex\":8"),
            good.replacingOccurrences(of: "\"publicKeyIndex\":0", with: "\"publicKeyIndex\":1"),
            good.replacingOccurrences(of: "\"data\":\"", with: "\"data\":\"AAAA"),
        ]
        let result = try rootgate("verify", "--roots", simulated.roots, input: lines.joined(separator: "\n"))
        #expect(result.code == 1)
        #expect(try verdicts(result.output) == ["bad-index", "not-participant", "bad-signature"])
    }

    @Test("Usage and file errors are one line and exit code 2")
    func usageErrors() throws {
        for words in [
            ["verify", "/no/such/file"], ["nonsense"], ["serve"], ["verify", "--server", "nowhere"], ["roots"], [],
        ] {
            let result = try runProgram(programPath, words)
            #expect(result.code == 2, "\(words)")
            #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
            #expect(result.output.isEmpty)
        }
        #expect(try rootgate("stats", "--server", "127.0.0.1:1", "--timeout", "0.2").code == 2)
    }

    @Test("A word in ROOTGATE_CPU that names no feature is refused")
    func processorFeatures() throws {
        let wrong = try runProgram(programPath, ["version"], environment: ["ROOTGATE_CPU": "sha,avx51\u{1B}2"])
        #expect(wrong.code == 2 && wrong.errors.contains("not avx51\\u001B2"), "\(wrong.errors)")
        #expect(try runProgram(programPath, ["version"], environment: ["ROOTGATE_CPU": "none"]).code == 0)
    }

    @Test("A kernel that is chosen by name is the one in use, and its rate is told")
    func chosenKernels() throws {
        struct Version: Decodable {
            struct Rate: Decodable {
                let name, work: String
                let perSecond: Int
                let batches: [Int]
            }
            let signatures, hashing: [String]
            let rates: [Rate]
        }
        let runnable = Kernel.runnable(with: .permitted)
        let free = try rootgate("version", "--json")
        #expect(!(try JSONDecoder().decode(Version.self, from: Data(free.output.utf8))).rates.isEmpty)
        for kernel in runnable {
            let result = try rootgate("version", "--json", "--kernel", kernel.name)
            let version = try JSONDecoder().decode(Version.self, from: Data(result.output.utf8))
            #expect((kernel.kind == .hashing ? version.hashing : version.signatures) == [kernel.name])
            let works = version.rates.filter { $0.name == kernel.name }.map(\.work)
            #expect(works == (kernel.kind == .hashing ? ["hashes"] : ["new", "known"]))
            #expect(version.rates.allSatisfy { $0.perSecond > 0 && !$0.batches.isEmpty || $0.name != kernel.name })
        }
    }

    @Test(
        "A kernel that can't run here is refused with those that can, by every command that takes one",
        arguments: [["serve", "--data", "/dev/null/data"], ["version"], ["selftest"]])
    func unknownKernels(words: [String]) throws {
        let result = try runProgram(programPath, words + ["--kernel", "p256-\u{1B}abacus"])
        #expect(result.code == 2 && result.output.isEmpty)
        #expect(result.errors.contains("p256-\\u001Babacus is no kernel that can run here"), "\(result.errors)")
        for kernel in Kernel.runnable(with: .permitted) { #expect(result.errors.contains(kernel.name)) }
    }

    @Test("A kernel for signatures and OpenSSL instead of kernels exclude each other")
    func kernelOrOpenSSL() throws {
        guard let kernel = Kernel.runnable(with: .permitted).first(where: { $0.kind == .signatures }) else { return }
        let result = try rootgate(
            "serve", "--data", "/dev/null/data", "--signatures", "openssl", "--kernel", kernel.name)
        #expect(result.code == 2 && result.errors.contains("exclude each other"), "\(result.errors)")
        let limited = try runProgram(
            programPath, ["version", "--kernel", kernel.name], environment: ["ROOTGATE_CPU": "none"])
        #expect((limited.code == 2) == !kernel.needs.isEmpty, "\(limited.errors)")
    }

    @Test("Every command lists its options")
    func help() throws {
        let usage = try rootgate("--help")
        #expect(usage.code == 0)
        for command in Rootgate.commands {
            #expect(usage.output.contains(command.name))
            let help = try rootgate(command.name, "--help")
            #expect(help.code == 0)
            for option in command.options { #expect(help.output.contains("--\(option.name)")) }
            for verb in command.verbs { #expect(help.output.contains("  \(verb.name) ")) }
        }
    }
}

@Suite struct ServeTests {
    /// `rootgate serve` as a process.
    final class Running {
        let process = Process()
        let endpoint: String
        private let output = Pipe()

        /// `errors`: a file for standard error. `launcher`: a program with arguments that executes the rest of its own.
        init(_ directory: String, _ words: [String] = [], errors: String? = nil, launcher: [String] = []) throws {
            let place = words.contains("--listen") ? [] : ["--listen", "127.0.0.1:0"]
            let command = launcher + [programPath, "serve", "--data", directory] + place + words
            process.executableURL = URL(fileURLWithPath: command[0])
            process.arguments = Array(command.dropFirst())
            process.standardOutput = output
            if let errors { #expect(FileManager.default.createFile(atPath: errors, contents: nil)) }
            process.standardError = errors.flatMap { FileHandle(forWritingAtPath: $0) } ?? FileHandle.nullDevice
            try process.run()
            var line = Data()
            while !line.contains(UInt8(ascii: "\n")), case let more = output.fileHandleForReading.availableData,
                !more.isEmpty
            {
                line += more
            }
            endpoint =
                String(decoding: line, as: UTF8.self).split(separator: " ").last.map {
                    $0.trimmingCharacters(in: .newlines)
                } ?? ""
        }

        func end(_ signal: Int32) -> Int32 {
            kill(process.processIdentifier, signal)
            process.waitUntilExit()
            return process.terminationStatus
        }
    }

    @Test("What is wrong with a file is told in the system's words")
    func fileErrors() throws {
        let folder = ScratchDirectory()
        let none = folder.path + "/no/file"
        let missing = "rootgate: can't read \(none): No such file or directory\n"
        for words in [
            ["audit", "verify", none], ["verify", "--collaboration", "c", none], ["stats", "--key-file", none],
        ] {
            let result = try runProgram(programPath, words)
            #expect(result.code == 2 && result.errors == missing, "\(words): \(result.errors)")
        }
        let isFolder = try runProgram(programPath, ["audit", "verify", folder.path])
        #expect(isFolder.errors == "rootgate: can't read \(folder.path): Is a directory\n")
        let serve = ["serve", "--listen", "127.0.0.1:0", "--data"]
        let trace = try runProgram(programPath, serve + [folder.path + "/data", "--trace", none])
        #expect(trace.code == 2)
        #expect(trace.errors.hasSuffix("can't write the trace to \(none): No such file or directory\n"), "\(trace)")
        let data = try runProgram(programPath, serve + [none])
        #expect(data.code == 2 && data.errors.contains("the folder above it is missing"), "\(data)")
    }

    @Test("A service with a certificate and every command speak TLS, and SIGHUP reads the certificate again")
    func encryption() throws {
        let folder = ScratchDirectory()
        let authority = SimulatedAuthority()
        let paths = try authority.issue().write(to: folder.path, as: "server")
        let files = ["--tls-certificate", paths.certificate, "--tls-key", paths.key]
        let running = try Running(folder.path + "/data", files + ["--link-base", "https://example.com/c"])
        #expect(running.endpoint.hasPrefix("tls://127.0.0.1:"))
        let trusted = ["--tls-ca", try authority.write(to: folder.path)]
        let server = ["--server", running.endpoint]
        #expect(try runProgram(programPath, ["collab", "create", "c"] + server + trusted).code == 0)
        #expect(try runProgram(programPath, ["stats"] + server + trusted).code == 0)
        let bare = ["--server", String(running.endpoint.dropFirst("tls://".count))]
        let encrypted = try runProgram(programPath, ["stats"] + bare + trusted)
        #expect(encrypted.code == 0, "\(encrypted.errors)")
        let plain = try runProgram(programPath, ["stats", "--timeout", "1"] + bare)
        #expect(plain.code == 2 && plain.errors.contains("it may speak TLS"), "\(plain.errors)")
        for words in [["load", "--count", "200", "--people", "20"], ["demo", "--people", "20", "--proofs", "256"]] {
            let result = try runProgram(programPath, words + ["--quiet"] + server + trusted)
            #expect(result.code == 0, "\(result.errors)")
        }
        let notices = ["load", "--notices", "--followers", "4", "--collaborations", "2", "--count", "20", "--quiet"]
        let result = try runProgram(programPath, notices + server + trusted)
        #expect(result.code == 0, "\(result.errors)")

        let second = SimulatedAuthority("a second authority")
        _ = try second.issue().write(to: folder.path, as: "server")
        kill(running.process.processIdentifier, SIGHUP)
        let newer = ["--tls-ca", try second.write(to: folder.path, as: "second")]
        #expect(becomesTrue { (try? runProgram(programPath, ["stats"] + server + newer).code) == 0 })
        let refused = try runProgram(programPath, ["stats"] + server + trusted)
        #expect(refused.code == 2 && refused.errors.contains("unknown authority"), "\(refused.errors)")
        #expect(refused.errors.split(separator: "\n").count == 1)
        #expect(running.end(SIGTERM) == 0)
    }

    @Test(
        "Options that contradict each other, or have no effect, are usage errors",
        arguments: [
            (["--tls-certificate", "a"], "--tls-certificate and --tls-key belong together"),
            (["--tls-client-ca", "a"], "--tls-client-ca and --tls-allow-1.2 need"),
            (["--tls-allow-1.2"], "--tls-client-ca and --tls-allow-1.2 need"),
            (["--listen", "tls://localhost:0"], "--listen tls://localhost:0 needs --tls-certificate"),
            (["--listen", "localhost:99999"], "with a port up to 65535"),
            (["--audit-max", "8"], "--audit-max is for --audit"),
            (["--audit-optional"], "--audit-optional is for --audit"),
            (["--app-ids", "T.a"], "--app-ids is for --association"),
            (["--sample-proofs", "8"], "--sample-proofs is for --console"),
            (["--sample-proofs", "1025", "--console"], "--sample-proofs"),
            (["--tls-certificate", "/dev/null", "--tls-key", "/dev/null"], "it is no plain file"),
        ])
    func encryptionUsage(words: [String], reason: String) throws {
        let result = try runProgram(programPath, ["serve", "--data", ScratchDirectory().path] + words)
        #expect(result.code == 2 && result.errors.contains(reason), "\(result.errors)")
        #expect(result.errors.split(separator: "\n").count == 1)
        #expect(result.output.isEmpty)
    }

    @Test("The whole service works from the command line")
    func wholeGate() throws {
        let folder = ScratchDirectory()
        let running = try Running(folder.path + "/data")
        let server = ["--server", running.endpoint]
        func run(_ words: String..., input: String? = nil) throws -> (code: Int32, output: String, errors: String) {
            try runProgram(programPath, words + server, input: input)
        }
        #expect(try run("collab", "create", "c").output == "created 1 (sequence 1)\n")
        let simulated = try run("simulate", "--collaboration", "c", "--register", "--roots-out", folder.path + "/roots")
        #expect(simulated.code == 0, "\(simulated.errors)")
        let early = try run("verify", "--collaboration", "c", "--at-least", "1000", input: simulated.output)
        #expect(early.code == 2 && early.errors.contains("the service answered behind-sequence"))
        let second = try runProgram(
            programPath, ["serve", "--data", folder.path + "/other", "--listen", running.endpoint])
        #expect(second.code == 2 && second.errors.contains(" is taken: "))
        #expect(second.errors.split(separator: "\n").count == 1, "\(second.errors)")
        let verified = try run("verify", "--collaboration", "c", "--at-least", "2", input: simulated.output)
        #expect(verified.code == 0)
        #expect(verified.output.split(separator: "\n").allSatisfy { $0.contains("\"verdict\":\"granted\"") })
        let again = try run("verify", "--collaboration", "c", input: simulated.output)
        #expect(again.code == 1)
        #expect(again.output.contains("challenge-replayed"))
        #expect(try run("roots", "test", "--collaboration", "c", "--file", folder.path + "/roots").code == 0)
        #expect(try run("roots", "count", "--collaboration", "c").output == "1\n")
        let listed = try run("roots", "list", "--collaboration", "c").output
        #expect(listed == (try String(contentsOfFile: folder.path + "/roots", encoding: .utf8)))
        #expect(try run("roots", "remove", "--collaboration", "c", "--file", folder.path + "/roots").code == 0)
        #expect(try run("roots", "test", "--collaboration", "c", "--file", folder.path + "/roots").code == 1)
        #expect(try run("collab", "list", "--json").output.contains("\"collaboration\":\"c\""))
        #expect(try run("challenge", "--count", "3").output.split(separator: "\n").count == 3)
        #expect(try run("stats", "--json").output.contains("\"verdict-granted\":2"))
        #expect(
            try run("load", "--count", "500", "--people", "20", "--invalid", "20", "--batch", "50", "--json").code == 0)
        #expect(try run("demo", "--people", "20", "--proofs", "256", "--json").code == 0)
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("A misspelt variable is refused by every command, with the nearest name that is known")
    func misspeltEnvironment() throws {
        let folder = ScratchDirectory()
        // The last option ends what would go on otherwise.
        let serve = ["serve", "--data", folder.path + "/data", "--drain-seconds", "x"]
        for (wrong, right) in [
            ("ROOTGATE_TLS_CLIENT_CAS", "ROOTGATE_TLS_CLIENT_CA"), ("ROOTGATE_TLS_CERT", "ROOTGATE_TLS_CA"),
            ("ROOTGATE_TLS_CLIENTCA", "ROOTGATE_TLS_CLIENT_CA"), ("ROOTGATE_TLS-KEY", "ROOTGATE_TLS_KEY"),
            ("ROOTGATE_AUDIT_PATH", "ROOTGATE_AUDIT_MAX"), ("ROOTGATE_kEY", "ROOTGATE_KEY"), ("ROOTGATE_", "ROOTGATE_"),
            ("ROOTGATE_PORT", "ROOTGATE_"), ("ROOTGATE_" + String(repeating: "A", count: 10_000), "ROOTGATE_"),
        ] {
            for words in [serve, ["stats"], ["version"], ["verify", "--collaboration", "c"]] {
                let result = try runProgram(programPath, words, environment: [wrong: "/nowhere"])
                #expect(result.code == 2 && result.output.isEmpty, "\(wrong)")
                let told = "rootgate: there is no \(wrong) for the environment, but there is \(right)"
                #expect(result.errors.hasPrefix(told), "\(words): \(result)")
                #expect(!result.errors.contains("/nowhere"))
            }
        }
        // A port that Kubernetes tells is no number.
        #expect(try runProgram(programPath, ["version"], environment: ["ROOTGATE_PORT": "7571"]).code == 2)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/data"))
    }

    @Test("Variables of other commands, of the tests, of Kubernetes, and empty ones are no mistakes")
    func otherEnvironment() throws {
        let environment = [
            "ROOTGATE_WITH_OPTIONS": "1", "ROOTGATE_TEST_VECTORS": "/nowhere", "ROOTGATE_PROGRAM": "/nowhere",
            "ROOTGATE_ATTACK_TIMES": "1", "ROOTGATE_TLS_MUTATIONS": "5", "ROOTGATE_CPU": "none", "ROOTGATE_NONE": "",
            "ROOTGATE_SERVICE_HOST": "10.0.0.1", "ROOTGATE_SERVICE_PORT": "7570", "ROOTGATE_SERVICE_PORT_TLS": "7570",
            "ROOTGATE_PORT": "tcp://10.0.0.1:7570", "ROOTGATE_PORT_7570_TCP": "tcp://10.0.0.1:7570",
            "ROOTGATE_PORT_7570_TCP_PROTO": "tcp", "ROOTGATE_PORT_7570_TCP_ADDR": "10.0.0.1",
            "ROOTGATE_EU_WEST_SERVICE_HOST": "10.0.0.1", "ROOTGATE_EU_WEST_PORT_7570_TCP_PORT": "7570",
        ]
        let result = try runProgram(programPath, ["version"], environment: environment)
        #expect(result.code == 0, "\(result.errors)")
        // The service tells what somebody may expect to limit access.
        let folder = ScratchDirectory()
        let serve = ["serve", "--data", folder.path + "/data", "--listen", "127.0.0.1:0", "--drain-seconds", "x"]
        let told = try runProgram(programPath, serve, environment: ["ROOTGATE_TLS_CA": "/nowhere"])
        #expect(told.errors.contains("ROOTGATE_TLS_CA in the environment is for other commands"), "\(told)")
        #expect(try runProgram(programPath, serve).errors.contains("ROOTGATE_TLS_CA") == false)
    }

    @Test("An option can be given in the environment")
    func environment() throws {
        let folder = ScratchDirectory()
        let running = try Running(folder.path + "/data")
        let result = try runProgram(programPath, ["stats"], environment: ["ROOTGATE_SERVER": running.endpoint])
        #expect(result.code == 0, "\(result.errors)")
        #expect(running.end(SIGINT) == 0)
    }

    @Test("A killed service keeps every acknowledged mutation")
    func killed() throws {
        let folder = ScratchDirectory()
        var generator = SeededGenerator(seed: runSeed)
        var acknowledged: Set<String> = []
        for round in 0..<3 {
            let running = try Running(folder.path + "/data")
            if round == 0 {
                #expect(try runProgram(programPath, ["collab", "create", "c", "--server", running.endpoint]).code == 0)
            }
            for _ in 0..<5 {
                let root = generator.digest().description
                let result = try runProgram(
                    programPath, ["roots", "add", root, "--collaboration", "c", "--server", running.endpoint])
                #expect(result.code == 0)
                acknowledged.insert(root)
            }
            #expect(running.end(SIGKILL) == SIGKILL)
        }
        let running = try Running(folder.path + "/data")
        let listed = try runProgram(
            programPath, ["roots", "list", "--collaboration", "c", "--server", running.endpoint])
        #expect(Set(listed.output.split(separator: "\n").map(String.init)) == acknowledged, "seed \(runSeed)")
        #expect(running.end(SIGTERM) == 0)
    }
}
