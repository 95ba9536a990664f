import Core
import Foundation
import TestSupport
import Testing

@testable import rootgate

@Suite("The secret and the audit on the command line")
struct SecretAndAuditTests {
    private let folder = ScratchDirectory()

    private func run(_ words: String...) throws -> (code: Int32, output: String, errors: String) {
        try runProgram(programPath, words)
    }

    @Test("A secret is made and rotated, a second rotation is refused for a day, and dropping is always allowed")
    func rotations() throws {
        let file = folder.path + "/secret"
        #expect(try run("keys", "rotate-secret", "--data", folder.path).output.contains("no other generation is valid"))
        #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
        let second = try run("keys", "rotate-secret", "--secret-file", file)
        #expect(second.code == 0 && second.output.contains("stays valid for 24 hours"))
        let third = try run("keys", "rotate-secret", "--data", folder.path)
        #expect(third.code == 2 && third.errors.contains("--drop-previous"))
        #expect(try run("keys", "rotate-secret", "--data", folder.path, "--drop-previous").code == 0)
        let whole = try Data(contentsOf: URL(fileURLWithPath: file))
        for result in [second, third] {
            for start in stride(from: 40, to: 72, by: 8) {
                let part = whole[start..<start + 8].map { $0 }
                #expect(!(result.output + result.errors).contains(part.hexadecimal))
            }
        }
    }

    @Test("A generation is prepared and then used; each step is refused when it is not its turn, and leaves the file")
    func steps() throws {
        let file = folder.path + "/secret"
        func rotate(_ words: String...) throws -> (code: Int32, output: String, errors: String) {
            try runProgram(programPath, ["keys", "rotate-secret", "--secret-file", file] + words)
        }
        func expectRefusal(_ words: String..., text: String) throws {
            let before = try? Data(contentsOf: URL(fileURLWithPath: file))
            let result = try runProgram(programPath, ["keys", "rotate-secret", "--secret-file", file] + words)
            #expect(result.code == 2 && result.errors.contains(text), "\(words): \(result)")
            #expect((try? Data(contentsOf: URL(fileURLWithPath: file))) == before, "\(words)")
        }
        try expectRefusal("--prepare", text: "there is no secret at")
        let all = ["--prepare", "--use-prepared", "--drop-previous"]
        for (one, two) in [(all[0], all[1]), (all[0], all[2]), (all[1], all[2])] {
            try expectRefusal(one, two, text: "\(one) and \(two) exclude each other")
        }
        for step in all.dropLast() {
            let alone = try run("keys", "rotate-secret", "--data", folder.path, step)
            #expect(alone.code == 2 && alone.errors.contains("\(step) is for a file that several services share"))
        }
        #expect(!FileManager.default.fileExists(atPath: file))
        let made = try rotate()
        let first = try #require(made.output.split(separator: " ").dropFirst().first)
        try expectRefusal("--use-prepared", text: "has no generation that is prepared")
        let prepared = try rotate("--prepare")
        #expect(prepared.code == 0 && prepared.output.contains("generation \(first) is the present one"), "\(prepared)")
        #expect(prepared.output.contains("is prepared: it is valid, and not used yet"))
        #expect(prepared.errors.contains("rotate-secret --use-prepared"))
        try expectRefusal("--prepare", text: "has a generation that is prepared")
        try expectRefusal(text: "has a generation that is prepared")
        let used = try rotate("--use-prepared")
        #expect(used.code == 0 && used.output.contains("generation \(first) stays valid for 48 hours"), "\(used)")
        #expect(used.errors.contains("within 24 hours"))
        try expectRefusal("--use-prepared", text: "has no generation that is prepared")
        try expectRefusal("--prepare", text: "s more")
        #expect(try rotate("--drop-previous").output.contains("no other generation is valid"))
        #expect(try rotate("--prepare").code == 0)
        #expect(try rotate("--drop-previous").output.contains("no other generation is valid"))
    }

    @Test("A secret that others can read is refused with its name and its mode, by each command")
    func openSecret() throws {
        _ = try run("keys", "rotate-secret", "--data", folder.path)
        let path = folder.path + "/secret"
        chmod(path, 0o644)
        let audit = folder.path + "/audit.jsonl"
        try Data().write(to: URL(fileURLWithPath: audit))
        for words in [
            ["serve", "--data", folder.path, "--listen", "127.0.0.1:0"],
            ["serve", "--data", folder.path + "/other", "--secret-file", path, "--listen", "127.0.0.1:0"],
            ["keys", "rotate-secret", "--data", folder.path],
            ["audit", "verify", audit, "--secret-file", path],
        ] {
            let result = try runProgram(programPath, words)
            #expect(result.code == 2, "\(words)")
            #expect(result.errors.contains("\(path): its mode is 0644"), "\(result.errors)")
            #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
        }
    }

    @Test("Wrong words about secrets and audits are usage errors")
    func wrongWords() throws {
        for words in [
            ["keys"], ["keys", "nothing"], ["keys", "rotate-secret"],
            ["keys", "rotate-secret", "--data", "a", "--secret-file", "b"],
            ["audit"], ["audit", "verify"],
            ["audit", "check", "/dev/null"], ["audit", "verify", "/dev/null", "--contains", "xyz"],
            ["serve", "--data", folder.path, "--secret-file", "x", "--secret-days", "3"],
        ] {
            #expect(try runProgram(programPath, words).code == 2, "\(words)")
        }
    }

    @Test("SIGHUP takes a rotated secret and begins another file, and the audit is verified from the command line")
    func wholeAudit() throws {
        let (data, audit) = (folder.path + "/data", folder.path + "/audit.jsonl")
        let running = try ServeTests.Running(data, ["--audit", audit])
        #expect(try run("collab", "create", "deck", "--server", running.endpoint).code == 0)
        #expect(try run("keys", "rotate-secret", "--data", data).code == 0)
        kill(running.process.processIdentifier, SIGHUP)
        #expect(
            becomesTrue {
                let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
                return names.contains { $0.hasPrefix("audit.jsonl.0") }
            })
        #expect(try run("collab", "create", "notes", "--server", running.endpoint).code == 0)
        #expect(running.end(SIGTERM) == 0)
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("audit") }
            .map { folder.path + "/" + $0 }
        #expect(files.count == 2)
        let good = try runProgram(programPath, ["audit", "verify", "--data", data] + files)
        #expect(good.code == 0 && good.output.contains("the tag of the last line vouches for all lines"), "\(good)")
        #expect(!good.output.contains("found:"))
        let hash = try #require(good.output.split(separator: " ").last).trimmingCharacters(in: .newlines)
        #expect(try runProgram(programPath, ["audit", "verify", "--contains", hash] + files).code == 0)
        // The moved file loses a line.
        let moved = try #require(files.first { !$0.hasSuffix("jsonl") })
        let lines = try String(contentsOfFile: moved, encoding: .utf8).split(separator: "\n")
        let others = [lines[0]] + lines[2...]
        try Data(others.map { $0 + "\n" }.joined().utf8).write(to: URL(fileURLWithPath: moved))
        let bad = try runProgram(programPath, ["audit", "verify", "--json", "--data", data] + files)
        #expect(bad.code == 1 && bad.output.contains("line number 2 was dropped"), "\(bad)")
        #expect(try runProgram(programPath, ["audit", "verify", folder.path + "/none"]).code == 2)
    }

    @Test("SIGHUP with an unchanged secret is told in the log")
    func unchangedSecret() throws {
        let (data, audit) = (folder.path + "/data", folder.path + "/audit.jsonl")
        let errors = folder.path + "/errors"
        let running = try ServeTests.Running(data, ["--audit", audit], errors: errors)
        kill(running.process.processIdentifier, SIGHUP)
        for text in ["read the secret again: it is unchanged", "the audit \(audit) goes on in a new file"] {
            #expect(becomesTrue { (try? String(contentsOfFile: errors, encoding: .utf8))?.contains(text) == true })
        }
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("The log tells at the start and at each step which generations a service has, as the handbook has it")
    func logOfSteps() throws {
        let (file, errors) = (folder.path + "/secret", folder.path + "/errors")
        func rotate(_ words: String...) throws -> [String] {
            let result = try runProgram(programPath, ["keys", "rotate-secret", "--secret-file", file] + words)
            #expect(result.code == 0, "\(result)")
            return result.output.split(separator: "\n").compactMap { line in
                line.hasPrefix("generation ") ? line.split(separator: " ").dropFirst().first.map(String.init) : nil
            }
        }
        func expectLine(_ text: String) {
            let line = "generation \(text)"
            #expect(
                becomesTrue { (try? String(contentsOfFile: errors, encoding: .utf8))?.contains(line) == true },
                "\(line): \((try? String(contentsOfFile: errors, encoding: .utf8)) ?? "")")
        }
        let old = try #require(try rotate().first)
        let running = try ServeTests.Running(folder.path + "/data", ["--secret-file", file], errors: errors)
        expectLine("\(old) of the secret is in use, and no other one is valid\n")
        let next = try #require(try rotate("--prepare").last)
        kill(running.process.processIdentifier, SIGHUP)
        expectLine("\(old) of the secret is in use, and \(next) is prepared (it was read again)\n")
        #expect(try rotate("--use-prepared") == [next, old])
        kill(running.process.processIdentifier, SIGHUP)
        expectLine("\(next) of the secret is in use, and \(old) is still valid (it was read again)\n")
        #expect(running.end(SIGTERM) == 0)
    }

    #if os(Linux)
    @Test("No secret is in the arguments or the environment of a service")
    func nothingInListings() throws {
        let data = folder.path + "/data"
        let running = try ServeTests.Running(data)
        let secret = try Data(contentsOf: URL(fileURLWithPath: data + "/secret"))[40..<72]
        for name in ["cmdline", "environ"] {
            let text = try Data(contentsOf: URL(fileURLWithPath: "/proc/\(running.process.processIdentifier)/\(name)"))
            #expect(text.range(of: secret) == nil)
            #expect(!String(decoding: text, as: UTF8.self).contains(Array(secret).hexadecimal))
        }
        #expect(running.end(SIGTERM) == 0)
    }
    #endif
}
