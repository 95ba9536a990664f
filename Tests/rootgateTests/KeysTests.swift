import Core
import Foundation
import Principals
import TestSupport
import Testing

@testable import rootgate

@Suite("Principals and keys on the command line")
struct KeysTests {
    private let folder = ScratchDirectory()
    private var data: String { folder.path + "/data" }

    private func run(_ words: [String], environment: [String: String] = [:]) throws -> (
        code: Int32, output: String, errors: String
    ) {
        try runProgram(programPath, words, environment: environment)
    }

    /// The first administrator's key, in a file.
    private func administrator() throws -> String {
        let made = try run(["keys", "create", "root", "--role", "administer", "--offline", "--data", data])
        #expect(made.code == 0 && made.errors.contains("shown once"))
        #expect(APIKey(made.output.trimmingCharacters(in: .newlines)) != nil, "\(made.output)")
        let path = folder.path + "/root.key"
        try Data(made.output.utf8).write(to: URL(fileURLWithPath: path))
        chmod(path, 0o600)
        return path
    }

    @Test("A key's file that others can use works, with a warning that names its mode")
    func openKeyFile() throws {
        let file = try administrator()
        let running = try ServeTests.Running(data)
        let words = ["keys", "list", "--server", running.endpoint, "--key-file", file]
        #expect(try run(words).errors.isEmpty)
        chmod(file, 0o640)
        let warned = try run(words)
        #expect(warned.code == 0)
        #expect(warned.errors.contains("whose mode is 0640: say chmod 600 \(file)"), "\(warned.errors)")
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("Keys are created, listed, rotated and removed, and open the service to nobody else")
    func wholeLife() throws {
        let file = try administrator()
        let running = try ServeTests.Running(data)
        let server = ["--server", running.endpoint]
        let administer = server + ["--key-file", file]
        let created = try run(
            ["keys", "create", "gate", "--role", "observe", "--role", "enrol", "--prefix", "a/", "--prefix", "b/"]
                + administer)
        #expect(created.code == 0, "\(created.errors)")
        let key = created.output.trimmingCharacters(in: .newlines)
        let environment = ["ROOTGATE_KEY": key]
        #expect(try run(["collab", "create", "a/deck"] + server, environment: environment).code == 0)
        for words in [["collab", "create", "c/deck"], ["stats"], ["keys", "list"]] {
            let refused = try run(words + server, environment: environment)
            #expect(refused.code == 2 && refused.errors.contains("role-missing"), "\(words): \(refused)")
            #expect(!refused.errors.contains("no key was given"))
        }
        let keyless = try run(["collab", "create", "a/other"] + server)
        #expect(keyless.errors.contains("role-missing") && keyless.errors.contains("no key was given"))
        let rotated = try run(["keys", "rotate", "gate", "--expires", "30"] + administer)
        #expect(rotated.code == 0 && rotated.errors.contains("stays valid"))
        #expect(try run(["keys", "rotate", "gate"] + administer).errors.contains("limit-exceeded"))
        let list = try run(["keys", "list"] + administer)
        #expect(list.output.contains("gate: observe a/ b/, enrol a/ b/"), "\(list.output)")
        #expect(list.output.contains("root: administer\n"))
        #expect(!list.output.contains(key.suffix(43)))
        #expect(try run(["keys", "list", "--json"] + administer).output.contains("\"lastUsedAt\""))
        let identifier = try #require(APIKey(key)).identifier
        #expect(try run(["keys", "remove", "--key", "\(identifier)"] + administer).output == "removed\n")
        let old = try run(["collab", "create", "a/more"] + server, environment: environment)
        #expect(old.code == 2 && old.errors.contains("key-refused"))
        let next = ["ROOTGATE_KEY": rotated.output]
        #expect(try run(["collab", "create", "a/more"] + server, environment: next).code == 0)
        let present = ["ROOTGATE_KEY": try String(contentsOfFile: file, encoding: .utf8)]
        #expect(try run(["keys", "remove", "gate"] + server, environment: present).output == "removed\n")
        #expect(try run(["keys", "remove", "gate"] + administer).output == "there was nothing to remove\n")
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("Limits are set, changed one by one, shown and counted")
    func limits() throws {
        let file = try administrator()
        let running = try ServeTests.Running(data)
        let administer = ["--server", running.endpoint, "--key-file", file]
        let created = try run(
            ["keys", "create", "gate", "--role", "observe", "--role", "enrol", "--prefix", "*", "--followers", "5"]
                + ["--mutations-per-second", "0"] + administer)
        #expect(created.code == 0, "\(created.errors)")
        #expect(
            try run(["keys", "list"] + administer).output.contains("\n  at most 5 followers, 0 mutations/s\n  key "))
        let environment = ["ROOTGATE_KEY": created.output.trimmingCharacters(in: .newlines)]
        let server = ["--server", running.endpoint]
        let refused = try run(["collab", "create", "deck"] + server, environment: environment)
        #expect(refused.code == 2 && refused.errors.contains("limit-exceeded"), "\(refused)")
        let changed = try run(
            ["keys", "update", "gate", "--mutations-per-second", "none", "--proofs-per-second", "7"] + administer)
        #expect(changed.output.contains("\n  at most 7 proofs/s, 5 followers\n"), "\(changed)")
        #expect(try run(["collab", "create", "deck"] + server, environment: environment).code == 0)
        let stats = try run(["stats"] + server, environment: environment).output
        #expect(stats.contains("limited-mutations") && stats.contains("keys-slowed"), "\(stats)")
        for words in [["gate"], ["nobody", "--followers", "5"], ["gate", "--followers", "x"]] {
            #expect(try run(["keys", "update"] + words + administer).code == 2, "\(words)")
        }
        let same = try run(["keys", "update", "gate", "--followers", "5"] + administer)
        #expect(same.code == 0 && same.errors.contains("was so already"), "\(same)")
        // An option in the environment is one, too.
        let given = try run(["keys", "update", "gate"] + administer, environment: ["ROOTGATE_FOLLOWERS": "6"])
        #expect(given.output.contains("at most 7 proofs/s, 6 followers\n"), "\(given)")
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("Two who change different limits at the same moment don't undo each other's changes")
    func limitsAtOnce() async throws {
        let file = try administrator()
        let running = try ServeTests.Running(data)
        let administer = ["--server", running.endpoint, "--key-file", file]
        #expect(try run(["keys", "create", "gate", "--role", "observe", "--prefix", "*"] + administer).code == 0)
        for round in 1...8 {
            let changes = ["--followers", "--proofs-per-second"].map { option in
                Task { try run(["keys", "update", "gate", option, "\(round)"] + administer).code }
            }
            for change in changes { #expect(try await change.value == 0) }
            let listed = try run(["keys", "list"] + administer).output
            #expect(listed.contains("at most \(round) proofs/s, \(round) followers\n"), "\(listed)")
        }
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("The Python client changes single limits", .enabled(if: python != nil))
    func limitsInPython() throws {
        let file = try administrator()
        let running = try ServeTests.Running(data)
        let administer = ["--server", running.endpoint, "--key-file", file]
        let words = ["--role", "observe", "--prefix", "*", "--followers", "5", "--request-bytes", "9"]
        #expect(try run(["keys", "create", "gate"] + words + administer).code == 0)
        let script = """
            import sys
            from rootgate import Client
            with Client(sys.argv[1], key=open(sys.argv[2]).read().strip()) as client:
                update = {"name": "gate", "changedLimits": {"followers": None, "mutationsPerSecond": 3}}
                print(client.collaborate("updatePrincipal", update)["changed"])
            """
        let changed = try runProgram(
            try #require(python), ["-c", script, running.endpoint, file],
            environment: pythonEnvironment)
        #expect(changed.output == "1\n", "\(changed)")
        let listed = try run(["keys", "list"] + administer).output
        #expect(listed.contains("at most 9 bytes, 3 mutations/s\n"), "\(listed)")
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("Roles, certificates and local user of a principal are changed, and what is not named stays")
    func update() throws {
        let file = try administrator()
        let running = try ServeTests.Running(data)
        let administer = ["--server", running.endpoint, "--key-file", file]
        let created = try run(["keys", "create", "gate", "--role", "observe", "--prefix", "a/"] + administer)
        let environment = ["ROOTGATE_KEY": created.output.trimmingCharacters(in: .newlines)]
        func update(_ words: String...) throws -> String {
            let result = try run(["keys", "update", "gate"] + words + administer)
            #expect(result.code == 0, "\(result)")
            return result.output
        }
        #expect(try update("--local-user", "7").hasPrefix("gate: observe a/\n"))
        #expect(try update("--certificate", "dns:a.b", "--certificate", "dns:c.d").contains("  local user 7"))
        #expect(
            try update("--role", "enrol", "--role", "observe", "--prefix", "*").hasPrefix("gate: enrol *, observe *\n"))
        let server = ["--server", running.endpoint]
        #expect(try run(["collab", "create", "deck"] + server, environment: environment).code == 0)
        let bare = try update("--certificate", "none", "--local-user", "none")
        #expect(!bare.contains("certificate") && !bare.contains("local user") && bare.contains("  key "), "\(bare)")
        for words in [["--role", "enrol"], ["--prefix", "a/"], ["--role", "chief", "--prefix", "a/"], []] {
            #expect(try run(["keys", "update", "gate"] + words + administer).code == 2, "\(words)")
        }
        let other = try run(["keys", "remove", "gate"] + administer)
        #expect(other.output == "removed\n" && other.errors.isEmpty, "\(other)")
        let last = try run(["keys", "remove", "root"] + administer)
        #expect(last.output == "removed\n" && last.errors.contains("create --offline"), "\(last)")
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("An administrator is not made offline while a service has the data directory")
    func offlineInUse() throws {
        _ = try administrator()
        let running = try ServeTests.Running(data)
        let refused = try run(["keys", "create", "two", "--role", "administer", "--offline", "--data", data])
        #expect(refused.code == 2 && refused.errors.contains("storage-in-use"), "\(refused)")
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("An administrator that is made offline takes no more of the disk than a service's first change")
    func offlineSize() throws {
        _ = try administrator()
        let attributes = try FileManager.default.attributesOfItem(atPath: data + "/data.mdb")
        let bytes = try #require(attributes[.size] as? Int)
        #expect(bytes < 128 << 20, "\(bytes)")
    }

    @Test("The first start after an administrator was made offline misses no secret, and later ones do")
    func offlineSecret() throws {
        _ = try administrator()
        let errors = folder.path + "/errors"
        func start() throws -> String {
            let running = try ServeTests.Running(data, errors: errors)
            #expect(running.end(SIGTERM) == 0)
            return try String(contentsOfFile: errors, encoding: .utf8)
        }
        #expect(try !start().contains("which was missing"))
        try FileManager.default.removeItem(atPath: data + "/secret")
        #expect(try start().contains("which was missing"))
    }

    @Test("Load and demo present the key on every connection")
    func everyConnection() throws {
        let file = try administrator()
        let running = try ServeTests.Running(data, ["--link-base", "https://example.com/c"])
        let server = ["--server", running.endpoint]
        let words = ["keys", "create", "all", "--prefix", "*"]
        let roles = ["verify", "enrol", "collaborate", "observe", "administer"].flatMap { ["--role", $0] }
        let created = try run(words + roles + server + ["--key-file", file])
        let environment = ["ROOTGATE_KEY": created.output]
        for words in [
            ["load", "--count", "200", "--people", "20"], ["demo", "--people", "20", "--proofs", "256"],
            ["load", "--notices", "--followers", "4", "--collaborations", "2", "--count", "20"],
        ] {
            let result = try run(words + ["--quiet"] + server, environment: environment)
            #expect(result.code == 0, "\(words): \(result.errors)")
            #expect(try run(words + ["--quiet"] + server).code == 2)
        }
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("What is left out never widens a role, and wrong words are usage errors")
    func wrongWords() throws {
        for words in [
            ["keys", "create"], ["keys", "create", "x"], ["keys", "create", "x", "--role", "verify"],
            ["keys", "create", "x", "--role", "all", "--prefix", "*"],
            ["keys", "create", "x", "--role", "verify", "--prefix", "a*"],
            ["keys", "create", "x", "--role", "verify", "--prefix", "*", "--app", "y"],
            ["keys", "create", "x", "--role", "administer", "--prefix", "a/"],
            ["keys", "create", "anonymous", "--role", "verify", "--prefix", "*"],
            ["keys", "create", "x", "--role", "observe", "--prefix", "*", "--certificate", "dns:*.example.com"],
            ["keys", "create", "x", "--role", "observe", "--prefix", "*", "--local-user", "root"],
            ["keys", "create", "x", "--role", "observe", "--prefix", "*", "--local-user", "0", "--expires", "3"],
            ["keys", "create", "x", "--role", "administer", "--offline"], ["keys", "remove"],
            ["keys", "remove", "--key", "x"], ["keys", "rotate"], ["keys", "list", "x"],
            ["stats", "--key-file", "/dev/null"], ["stats", "--key-file", folder.path + "/none"],
        ] {
            let result = try run(words)
            #expect(result.code == 2, "\(words)")
            #expect(!result.errors.contains("connection-refused"), "\(words): \(result.errors)")
        }
        let text = "rgk_0011223344556677_" + String(repeating: "B", count: 44)
        let wrong = try run(["stats"], environment: ["ROOTGATE_KEY": text])
        #expect(wrong.code == 2 && wrong.errors.contains("ROOTGATE_KEY") && !wrong.errors.contains("BBBB"))
    }

    @Test("A service without principals says so in one line, and one with principals does not")
    func openness() throws {
        func errors() throws -> String {
            let path = folder.path + "/errors"
            let script = "\"$0\" serve --data \"$1\" --listen 127.0.0.1:0 2>\"$2\" & sleep 2; kill $!; wait $!"
            _ = try runProgram("/bin/sh", ["-c", script, programPath, data, path])
            return try String(contentsOfFile: path, encoding: .utf8)
        }
        let open = try errors().split(separator: "\n").filter { $0.contains("no principal is configured") }
        #expect(open.count == 1 && open[0].contains("every connection from this machine may do everything"))
        _ = try administrator()
        #expect(try !errors().contains("no principal"))
    }
}
