import Core
import EtcdTestSupport
import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@testable import rootgate

@Suite("Clusters on the command line")
struct ClusterCommandTests {
    /// A service that begins with what a cluster has in etcd.
    private struct WaitingStart: ~Copyable {
        let process = Process()
        private let folder = ScratchDirectory()

        /// Returns when it has asked etcd.
        init(_ etcd: String) throws {
            let secret = folder.path + "/secret"
            let made = try runProgram(programPath, ["keys", "rotate-secret", "--secret-file", secret])
            try #require(made.code == 0, "\(made.errors)")
            process.executableURL = URL(fileURLWithPath: programPath)
            process.arguments = [
                "serve", "--data", folder.path + "/data", "--listen", "127.0.0.1:0", "--secret-file", secret,
                "--cluster", "etcd://\(etcd)", "--cluster-name", "nobody",
            ]
            _ = FileManager.default.createFile(atPath: folder.path + "/log", contents: nil)
            process.standardError = FileHandle(forWritingAtPath: folder.path + "/log")
            process.standardOutput = FileHandle.nullDevice
            try process.run()
            #expect(becomesTrue { lines.contains("begins with what the cluster nobody has in etcd") })
        }

        deinit { kill(process.processIdentifier, SIGKILL) }

        var lines: String { (try? String(contentsOfFile: folder.path + "/log", encoding: .utf8)) ?? "" }
    }

    @Test("A signal ends a start that waits for etcd, with a line and without an error", arguments: [SIGTERM, SIGINT])
    func waitingStart(signal: Int32) throws {
        // Nobody listens there, and nobody can: the port is taken.
        let silent = try TestSocket(host: "127.0.0.1")
        let start = try WaitingStart("127.0.0.1:\(silent.port)")
        let process = start.process
        let began = ContinuousClock.now
        kill(process.processIdentifier, signal)
        process.waitUntilExit()
        // A start gives up after a minute.
        #expect(ContinuousClock.now - began < .seconds(20))
        #expect(process.terminationReason == .exit && process.terminationStatus == 0, "\(start.lines)")
        #expect(start.lines.contains("ended by a signal before it listened"), "\(start.lines)")
    }

    @Test(
        "SIGHUP during a start counts when the service listens", .enabled(if: etcd != nil, "there is no program etcd"))
    func hangUpDuringStart() throws {
        let processes = try EtcdProcesses()
        defer { processes.end() }
        processes.signal(SIGSTOP, 0)
        let start = try WaitingStart("\(processes.endpoints[0])")
        kill(start.process.processIdentifier, SIGHUP)
        usleep(300_000)
        #expect(!start.lines.contains("read the secret again"))
        processes.signal(SIGCONT, 0)
        #expect(becomesTrue { start.lines.contains("read the secret again") }, "\(start.lines)")
    }

    @Test(
        "Services are listed with their secrets, a change is confirmed, and a difference and a dead one are told",
        .enabled(if: etcd != nil, "there is no program etcd"))
    func check() throws {
        let folder = ScratchDirectory()
        let processes = try EtcdProcesses()
        defer { processes.end() }
        let place = ["--cluster", "etcd://\(processes.endpoints[0])", "--cluster-name", "shell"]
        func service(_ secret: String) throws -> ServiceProcess {
            let path = folder.path + "/" + secret
            #expect(try runProgram(programPath, ["keys", "rotate-secret", "--secret-file", path]).code == 0)
            return try ServiceProcess(place + ["--secret-file", path])
        }
        func output() -> String { (try? runProgram(programPath, ["cluster", "check"] + place).output) ?? "" }
        let one = try service("secret")
        let nothing = try runProgram(programPath, ["cluster", "check"] + place.dropLast() + ["other"])
        #expect(nothing.code == 1 && nothing.output.contains("is --cluster-name right?"), "\(nothing)")
        #expect(becomesTrue { output().contains(", secret ") })
        let created = try runProgram(
            programPath, ["collab", "create", "deck", "--server", one.endpoint.description, "--json"])
        #expect(created.code == 0, "\(created)")
        let confirm = ["cluster", "confirm", "--server", one.endpoint.description]
        let confirmed = try runProgram(programPath, confirm + ["1"])
        #expect(
            confirmed.code == 0 && confirmed.output.hasPrefix("change 1 is effective at every service"), "\(confirmed)")
        for words in [["0"], ["deck"], []] { #expect(try runProgram(programPath, confirm + words).code == 2) }

        let two = try service("another")
        #expect(
            becomesTrue {
                guard let told = try? runProgram(programPath, ["cluster", "check"] + place) else { return false }
                return told.code == 1 && told.output.contains("services have different secrets")
                    && told.output.contains(" does not accept generation ")
            })
        kill(two.identifier, SIGKILL)
        #expect(becomesTrue { output().contains(" has ended or hangs: its key in etcd ends in ") })
        #expect(becomesTrue { (try? runProgram(programPath, ["cluster", "check"] + place).code) == 0 })
    }
}
