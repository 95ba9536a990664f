import Core
import Foundation
import Identity
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

/// Reads of files that fail with EIO, or return fewer bytes than they were asked for. Pages of the data file are read
/// through a map: there a failing disk is a signal, which the tests of files that are cut cover.
@Suite(
    "Reads that fail", .serialized, .timeLimit(.minutes(10)),
    .enabled(if: FailingReads.isAvailable, "needs Linux, and clang or cc"))
struct FailingReadsTests {
    private static let reason = "Input/output error"

    /// A folder with data, an audit whose file another program has moved, certificates with a chain, and the note of a
    /// restore. Returns the words of a start.
    private func prepare(_ reads: FailingReads) throws -> [String] {
        let (data, audit) = (reads.folder + "/data", reads.folder + "/audit/lines")
        try FileManager.default.createDirectory(atPath: reads.folder + "/audit", withIntermediateDirectories: true)
        let running = try ServeTests.Running(data, ["--audit", audit])
        #expect(try runProgram(programPath, ["collab", "create", "deck", "--server", running.endpoint]).code == 0)
        #expect(running.end(SIGTERM) == 0)
        #expect(rename(audit, audit + ".000000000003") == 0)
        try Data("restored from a backup of a test\n".utf8).write(to: URL(fileURLWithPath: data + "/restored"))
        let authority = SimulatedAuthority()
        let middle = SimulatedAuthority("between", signedBy: authority)
        let paths = try middle.issue().write(to: reads.folder, as: "server")
        return [
            "serve", "--data", data, "--listen", "127.0.0.1:0", "--audit", audit, "--tls-certificate",
            paths.certificate, "--tls-key", paths.key, "--tls-client-ca", try authority.write(to: reads.folder),
        ]
    }

    @Test("A start is refused in the system's words whichever read fails, and the next one serves")
    func starts() throws {
        let reads = try FailingReads()
        let words = try prepare(reads)
        var files: Set<String> = []
        // The audit has no file at first. Then it has one.
        for path in [reads.folder + "/audit", reads.folder] {
            let sweep = try reads.sweep(words, in: path) { run in
                if run.failed == [reads.folder + "/data/restored"] {
                    #expect(run.hasServed && run.code == 0 && run.errors.contains("restored from a backup"))
                } else {
                    #expect(!run.hasServed && run.code == 2, "\(run)")
                    #expect(run.errors.contains(FailingReadsTests.reason), "\(run)")
                    #expect(!run.errors.contains("CRITICAL"), "\(run)")
                }
            }
            #expect(sweep.last.hasServed && sweep.last.code == 0, "\(sweep.last)")
            files.formUnion(sweep.files)
        }
        let names = Set(files.map { $0.replacing(reads.folder + "/", with: "") })
        #expect(
            names == [
                "data/data.mdb", "data/lock.mdb", "data/newest-commit", "data/clock", "data/secret", "data/restored",
                "data/owner.lock",
                "audit",
                "audit/lines", "audit/lines.000000000003", "server.pem", "server.key", "authority.pem",
            ])
        let checked = try runProgram(
            programPath,
            ["audit", "verify", "--data", reads.folder + "/data"]
                + ["", ".000000000003"].map { reads.folder + "/audit/lines" + $0 })
        #expect(checked.code == 0, "the chain of the audit has begun anew: \(checked.output)")
        #expect(try runProgram(programPath, ["fsck", reads.folder + "/data"]).code == 0)
    }

    @Test("A file that can't be read at all refuses the start, and when it can the start serves")
    func persistentFaults() throws {
        let reads = try FailingReads()
        let words = try prepare(reads)
        for name in [
            "data/data.mdb", "data/lock.mdb", "data/newest-commit", "data/clock", "data/secret", "audit", "server.pem",
        ] {
            let run = try reads.run(words, reads.environment(reads.folder + "/" + name))
            #expect(!run.failed.isEmpty && !run.hasServed && run.code == 2, "\(name): \(run)")
            #expect(run.errors.contains(FailingReadsTests.reason), "\(name): \(run)")
        }
        let run = try reads.run(words, [:])
        #expect(run.hasServed && run.code == 0 && !run.errors.contains("CRITICAL"), "\(run)")
    }

    /// LMDB takes a short read of a meta page for a file that is none of its own, so the data file is left out.
    @Test("A start serves when reads return fewer bytes than they were asked for")
    func shortReads() throws {
        let reads = try FailingReads()
        let words = try prepare(reads)
        for name in [
            "data/newest-commit", "data/clock", "data/secret", "data/restored", "audit", "audit", "server.pem",
            "server.key", "authority.pem",
        ] {
            let run = try reads.run(words, reads.environment(reads.folder + "/" + name, error: 0))
            #expect(!run.failed.isEmpty && run.hasServed && run.code == 0, "\(name): \(run)")
            #expect(!run.errors.contains("CRITICAL") && run.errors.contains("a backup of a test"), "\(name): \(run)")
        }
        let data = try reads.run(words, reads.environment(reads.folder + "/data/data.mdb", error: 0))
        #expect(data.hasServed && data.code == 0 || data.code == 2, "\(data)")
    }

    @Test("What can't be read again at SIGHUP stays as it was, and certificates are read when they can be")
    func reloading() throws {
        let reads = try FailingReads()
        var words = try prepare(reads)
        let (gate, errors) = (reads.folder + "/gate", reads.folder + "/errors")
        let variables = reads.environment(reads.folder, gate: gate).map { "\($0)=\($1)" }
        words.removeFirst(3)
        let running = try ServeTests.Running(
            reads.folder + "/data", words, errors: errors, launcher: ["/usr/bin/env"] + variables)
        func logs(_ text: String) -> Bool {
            becomesTrue { (try? String(contentsOfFile: errors, encoding: .utf8))?.contains(text) == true }
        }
        try Data().write(to: URL(fileURLWithPath: gate))
        kill(running.process.processIdentifier, SIGHUP)
        #expect(logs("can't be read: \(FailingReadsTests.reason); the certificates that were in use stay in use"))
        #expect(logs("the secret stays as it is: can't read the secret"))
        try FileManager.default.removeItem(atPath: gate)
        #expect(logs("the certificates were read again: "))
        kill(running.process.processIdentifier, SIGHUP)
        #expect(logs("read the secret again: it is unchanged"))
        #expect(running.end(SIGTERM) == 0)
        let log = try String(contentsOfFile: errors, encoding: .utf8)
        #expect(log.components(separatedBy: "the certificates that were in use stay in use").count == 2, "\(log)")
    }

    @Test("A service whose data file can't be read leaves rotation, and recovers by itself")
    func serving() async throws {
        let reads = try FailingReads()
        let gate = reads.folder + "/gate"
        let all = FailingReads.realPath(NSTemporaryDirectory())
        let process = try ServiceProcess(environment: reads.environment(all, gate: gate))
        let client = try process.client()
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(deck, policy: .challenge)
        try await client.addRoots([.zero], to: deck)
        try Data().write(to: URL(fileURLWithPath: gate))
        func code(_ request: () async throws -> Void) async -> ServiceError.Code? {
            do {
                try await request()
                return nil
            } catch {
                return (error as? ServiceError)?.code
            }
        }
        let one = try #require(Digest([UInt8](repeating: 7, count: 32)))
        #expect(await code { try await client.addRoots([one], to: deck) } == .storageDamaged)
        #expect(await code { try await client.ping() } == .storageDamaged)
        // Two attempts to open it again.
        try await Task.sleep(for: .seconds(2.5))
        #expect(await code { try await client.ping() } == .storageDamaged)
        #expect(await code { _ = try await client.testRoots([.zero], in: deck) } == .storageDamaged)
        try FileManager.default.removeItem(atPath: gate)
        let deadline = ContinuousClock.now + .seconds(30)
        while await code({ try await client.ping() }) != nil, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(50))
        }
        #expect(await code { try await client.addRoots([one], to: deck) } == nil)
        #expect(try await client.testRoots([.zero, one], in: deck) == [true, true])
        let critical = process.log.split(separator: "\n").filter { $0.contains(" CRITICAL: ") }
        #expect(critical.contains { $0.contains("the data file can't be read after a commit") }, "\(process.log)")
        #expect(critical.contains { $0.contains("can't be opened again: reading") }, "\(process.log)")
        #expect(process.log.contains("the storage was opened again"), "\(process.log)")
        #expect(process.terminate(within: 20))
    }

    @Test("Backup, restore, fsck and the check of an audit end with an error whichever read fails, and leave nothing")
    func commands() async throws {
        let reads = try FailingReads()
        let (data, audit, backup) = (reads.folder + "/data", reads.folder + "/lines", reads.folder + "/backup")
        let (new, output) = (reads.folder + "/new", reads.folder + "/output")
        var random = SeededGenerator(seed: runSeed)
        var running = try ServeTests.Running(data, ["--audit", audit])
        let port = try #require(running.endpoint.split(separator: ":").last.flatMap { UInt16($0) })
        let client = try RootgateClient(Endpoint(host: "127.0.0.1", port: port))
        let deck = try #require(CollaborationIdentifier("deck"))
        try await client.createCollaboration(deck, policy: .challenge)
        for _ in 0..<2 { try await client.addRoots((0..<20_000).map { _ in random.digest() }, to: deck) }
        #expect(try runProgram(programPath, ["backup", "--data", data, "--output", backup]).code == 0)
        try await client.addRoots([random.digest()], to: deck)

        func check(_ words: [String], made path: String? = nil) throws {
            let names = try FileManager.default.contentsOfDirectory(atPath: reads.folder).sorted()
            let sweep = try reads.sweep(words) { run in
                #expect(run.code == 2 && run.errors.contains(FailingReadsTests.reason), "\(words): \(run)")
                #expect(run.errors.split(separator: "\n").count == 1, "\(words): \(run)")
                let left = try FileManager.default.contentsOfDirectory(atPath: reads.folder).sorted()
                #expect(left == names, "\(words): \(run)")
            }
            #expect(sweep.last.code == 0 && !sweep.files.isEmpty, "\(words): \(sweep.last)")
            if path == new { #expect(try runProgram(programPath, ["fsck", new]).code == 0) }
            if let path { try FileManager.default.removeItem(atPath: path) }
        }
        // Beside the service, then without it.
        for _ in 0..<2 {
            try check(["fsck", data])
            try check(["backup", "--data", data, "--output", output, "--quiet"], made: output)
            if running.process.isRunning { #expect(running.end(SIGTERM) == 0) }
        }
        try check(["restore", backup, "--check", "--quiet"])
        try check(["restore", backup, "--data", new, "--quiet"], made: new)
        try check(["restore", backup, "--data", new, "--quiet", "--log", data], made: new)
        try check(["audit", "verify", "--data", data, audit, "--quiet"])
        try check(["keys", "rotate-secret", "--data", data])
        running = try ServeTests.Running(data, ["--audit", audit])
        #expect(running.end(SIGTERM) == 0)
    }

    @Test("Standard input that can't be read is an error of a command")
    func standardInput() throws {
        let folder = ScratchDirectory()
        let run = try runProgram("/bin/sh", ["-c", "\"$0\" audit verify - < \"$1\"", programPath, folder.path])
        #expect(run.code == 2 && run.errors == "rootgate: can't read -: Is a directory\n", "\(run)")
    }
}
