import Foundation
import Identity
import Platform
import Server
import TestSupport
import Testing

@testable import rootgate

@Suite("The sandbox on the command line")
struct SandboxCommandTests {
    private let folder = ScratchDirectory()

    private func text(_ name: String) -> String {
        (try? String(contentsOfFile: folder.path + "/" + name, encoding: .utf8)) ?? ""
    }

    @Test("Words other than auto, off and required are usage errors")
    func wrongWord() throws {
        let result = try runProgram(
            programPath, ["serve", "--data", folder.path + "/data", "--sandbox", "strict"])
        #expect(result.code == 2 && result.errors.contains("--sandbox takes auto, off or required, not strict"))
    }

    @Test("Only a required sandbox refuses to start when something is missing, and says what")
    func required() throws {
        var report = SandboxReport()
        report.inForce = ["no new privileges"]
        #expect(throws: Never.self) { try SandboxChoice.required.check(report) }
        report.missing = ["restricted files (no Landlock)", "filtered system calls (no seccomp)"]
        for choice in [SandboxChoice.auto, .off] { #expect(throws: Never.self) { try choice.check(report) } }
        let failure = thrown(StartupFailure.self) { try SandboxChoice.required.check(report) }
        #expect(
            failure?.description
                == "sandbox: no new privileges; missing: restricted files (no Landlock); filtered system calls "
                + "(no seccomp); --sandbox auto starts without what is missing")
    }

    #if os(Linux)
    /// The values of a field of /proc/PID/task/*/status, of all threads.
    private func field(_ name: String, of process: Int32) throws -> Set<String> {
        let tasks = "/proc/\(process)/task"
        var values: Set<String> = []
        for task in try FileManager.default.contentsOfDirectory(atPath: tasks) {
            // A thread may end while the list is read.
            guard let status = try? String(contentsOfFile: "\(tasks)/\(task)/status", encoding: .utf8) else { continue }
            for line in status.split(separator: "\n") where line.hasPrefix(name + ":") {
                values.insert(line.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces))
            }
        }
        return values
    }

    /// The ticks of processor time, a hundredth of a second each, that a process has used.
    private func ticks(of process: Int32) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        // The second field, in parentheses, may contain spaces. User's and system's time are the 14th and the 15th.
        let fields = try #require(text.split(separator: ")").last).split(separator: " ")
        return try #require(Int(fields[11])) + #require(Int(fields[12]))
    }

    /// The service in a sandbox, which is required where the kernel has everything.
    private func sandboxed(_ words: [String]) throws -> ServeTests.Running {
        let data = folder.path + "/data"
        let errors = folder.path + "/errors"
        let running = try ServeTests.Running(data, words + ["--sandbox", "required"], errors: errors)
        if !running.endpoint.isEmpty { return running }
        print("SKIPPED: the part of the sandbox that this kernel has not: \(text("errors"))")
        return try ServeTests.Running(data, words + ["--sandbox", "auto"], errors: errors)
    }

    @Test("A service in a sandbox verifies, grows, reads its files again, begins another audit and shuts down")
    func wholeLife() throws {
        let authority = SimulatedAuthority()
        let keys = folder.path + "/keys"
        try FileManager.default.createDirectory(atPath: keys, withIntermediateDirectories: false)
        try FileManager.default.createDirectory(atPath: folder.path + "/audit", withIntermediateDirectories: false)
        try FileManager.default.createDirectory(atPath: folder.path + "/run", withIntermediateDirectories: false)
        let paths = try authority.issue().write(to: keys, as: "server")
        let local = ["--server", "unix:\(folder.path)/run/socket"]
        let running = try sandboxed([
            "--listen", "unix:\(folder.path)/run/socket,localhost:0", "--tls-certificate", paths.certificate,
            "--tls-key", paths.key, "--audit", folder.path + "/audit/audit.jsonl", "--trace", folder.path + "/trace",
            "--trace-interval", "1", "--slow-milliseconds", "0", "--link-base", "https://example.com/c",
        ])
        let process = running.process.processIdentifier
        #expect(text("errors").contains("sandbox: no new privileges, no capabilities"), "\(text("errors"))")
        #expect(try field("NoNewPrivs", of: process) == ["1"])
        #expect(try field("CapPrm", of: process) == ["0000000000000000"])
        #expect(try field("CapEff", of: process) == ["0000000000000000"])
        if text("errors").contains("filtered system calls"), !text("errors").contains("missing: filtered") {
            #expect(try field("Seccomp", of: process) == ["2"])
        }
        let remote = ["--server", running.endpoint, "--tls-ca", try authority.write(to: folder.path)]
        for (name, server) in [("deck", local), ("notes", remote)] {
            for words in [
                ["collab", "create", name], ["stats"], ["load", "--count", "2000", "--people", "50", "--quiet"],
                ["demo", "--people", "20", "--proofs", "256", "--quiet"],
                ["load", "--notices", "--followers", "4", "--collaborations", "2", "--count", "20", "--quiet"],
            ] {
                let result = try runProgram(programPath, words + server)
                #expect(result.code == 0, "\(words): \(result.errors)")
            }
        }
        // The storage grows by several MiB.
        var generator = SeededGenerator(seed: runSeed)
        let roots = (0..<100_000).map { _ in generator.digest().description }.joined(separator: "\n")
        try Data(roots.utf8).write(to: URL(fileURLWithPath: folder.path + "/roots"))
        let added = try runProgram(
            programPath, ["roots", "add", "--collaboration", "deck", "--file", folder.path + "/roots"] + local)
        #expect(added.code == 0, "\(added.errors)")
        #expect(
            try runProgram(programPath, ["roots", "count", "--collaboration", "deck"] + local).output == "100000\n")
        #expect(try runProgram(programPath, ["stats", "--json"] + local).output.contains("\"resident-bytes\":"))

        let second = SimulatedAuthority("a second authority")
        _ = try second.issue().write(to: keys, as: "server")
        let data = folder.path + "/data"
        #expect(try runProgram(programPath, ["keys", "rotate-secret", "--data", data]).code == 0)
        kill(process, SIGHUP)
        let newer = ["--server", running.endpoint, "--tls-ca", try second.write(to: folder.path, as: "second")]
        #expect(becomesTrue { (try? runProgram(programPath, ["stats"] + newer).code) == 0 }, "\(text("errors"))")
        #expect(
            becomesTrue {
                ((try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/audit"))?.count ?? 0) == 2
            })
        #expect(try runProgram(programPath, ["collab", "create", "later"] + local).code == 0)
        // No thread tries a refused system call again and again. The test of the kernels at the start comes to its end.
        let isQuiet = becomesTrue {
            guard let before = try? ticks(of: process) else { return false }
            usleep(1_000_000)
            return ((try? ticks(of: process)) ?? .max) - before < 50
        }
        #expect(isQuiet)
        #expect(running.end(SIGTERM) == 0, "\(text("errors"))")
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/run/socket"))
        #expect(text("trace").contains("\"name\""))
        let audits = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/audit")
            .map { folder.path + "/audit/" + $0 }
        let good = try runProgram(programPath, ["audit", "verify", "--data", data] + audits)
        #expect(good.code == 0, "\(good)")
    }

    @Test("Without a sandbox nothing is given up")
    func off() throws {
        let running = try ServeTests.Running(
            folder.path + "/data", ["--sandbox", "off"], errors: folder.path + "/errors")
        let process = running.process.processIdentifier
        let own = ProcessInfo.processInfo.processIdentifier
        for name in ["NoNewPrivs", "Seccomp", "CapEff"] {
            #expect(try field(name, of: process) == field(name, of: own), "\(name)")
        }
        #expect(!text("errors").contains("sandbox"))
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("The service runs as any user in a read-only root, with only its data folder writable")
    func readOnlyRoot() throws {
        guard getuid() == 0, let unshare = TestSupport.programPath("unshare"),
            TestSupport.programPath("setpriv") != nil,
            succeeds("unshare", ["--mount", "--propagation", "private", "mount", "-o", "remount,bind,ro", "/"]),
            succeeds("setpriv", ["--reuid", "12345", "--regid", "12345", "--clear-groups", programPath, "version"])
        else {
            print("SKIPPED: it needs root, unshare and setpriv, and a build folder that everybody can read")
            return
        }
        let data = folder.path + "/data"
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: false)
        #expect(chown(data, 12345, 12345) == 0)
        let script = """
            mount --bind "$0" "$0" && mount -o remount,bind,ro / && ! touch "$0/../file" 2>/dev/null \\
                && exec setpriv --reuid 12345 --regid 12345 --clear-groups "$@"
            """
        let running = try ServeTests.Running(
            data, ["--listen", "unix:\(data)/socket,127.0.0.1:0", "--audit", data + "/audit.jsonl"],
            errors: folder.path + "/errors",
            launcher: [unshare, "--mount", "--propagation", "private", "/bin/sh", "-c", script, data])
        #expect(running.endpoint.hasPrefix("127.0.0.1:"), "\(text("errors"))")
        #expect(try field("Uid", of: running.process.processIdentifier) == ["12345\t12345\t12345\t12345"])
        let server = ["--server", running.endpoint]
        for words in [["collab", "create", "c"], ["demo", "--people", "20", "--proofs", "256", "--quiet"]] {
            let result = try runProgram(programPath, words + server)
            #expect(result.code == 0, "\(result.errors) \(text("errors"))")
        }
        kill(running.process.processIdentifier, SIGHUP)
        #expect(
            becomesTrue {
                let names = (try? FileManager.default.contentsOfDirectory(atPath: data)) ?? []
                return names.contains { $0.hasPrefix("audit.jsonl.0") }
            })
        #expect(running.end(SIGTERM) == 0, "\(text("errors"))")
    }

    @Test("Root that serves the files of another user keeps what it needs for that, and says so")
    func otherOwner() throws {
        guard getuid() == 0 else {
            print("SKIPPED: it needs root")
            return
        }
        let data = folder.path + "/data"
        try FileManager.default.createDirectory(
            atPath: data, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        #expect(chown(data, 12345, 12345) == 0)
        let errors = folder.path + "/errors"
        let running = try ServeTests.Running(data, errors: errors)
        #expect(text("errors").contains("missing: no capabilities (without them the user 0 could not use its files"))
        #expect(try runProgram(programPath, ["collab", "create", "c", "--server", running.endpoint]).code == 0)
        #expect(running.end(SIGTERM) == 0)
        let refused = try ServeTests.Running(data, ["--sandbox", "required"], errors: errors)
        refused.process.waitUntilExit()
        #expect(refused.process.terminationStatus == 2 && refused.endpoint.isEmpty)
        #expect(text("errors").contains("--sandbox auto starts without"))
    }
    #endif
}
