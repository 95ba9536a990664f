#if os(Linux)
import Foundation
import Platform
import TestSupport
import Testing

/// Threads from before the sandbox, one of Dispatch, one that was made in it, and the one that entered it.
private let everyThread = ["early", "queue", "late", "main"]

@Suite("The sandbox")
struct SandboxTests {
    @Test("Everything that the kernel has is in force, and the report says so in one line")
    func report() throws {
        let result = try SandboxProbeRun().attempt("nothing", isSandboxed: true)
        #expect(result.report.contains("no new privileges"), "\(result.output)")
        #expect(result.report.contains("no capabilities"))
        #expect(result.report.contains("restricted files (Landlock \(SandboxProbeRun.kernel.landlock))") == hasLandlock)
        #expect(result.report.contains(", filtered system calls") == hasFilters)
        #expect(result.report.contains("no new TCP sockets") == (SandboxProbeRun.kernel.landlock > 0))
        let isWhole = SandboxProbeRun.kernel.landlock >= 4 && hasFilters
        #expect(result.report.contains("missing") != isWhole, "\(result.report)")
        #expect(result.threads == Dictionary(uniqueKeysWithValues: everyThread.map { ($0, 0) }))
    }

    @Test(
        "The probe refuses words that are missing, wrong or too many",
        arguments: ["", "kernel on", "on nothing", "on something FOLDER", "onn nothing FOLDER", "on nothing FOLDER 1"])
    func usage(line: String) throws {
        let run = try runProgram(SandboxProbeRun.path, line.split(separator: " ").map(String.init))
        #expect(run.code == 2 && run.output == "", "\(run)")
        #expect(run.errors.hasPrefix("usage: SandboxProbe "), "\(run)")
    }

    @Test(
        "Files of the data folder, the key, new threads and crowded queues go on working",
        arguments: ["writeInside", "readKey", "thread", "crowd"])
    func allowed(name: String) throws {
        let result = try SandboxProbeRun().attempt(name, isSandboxed: true)
        #expect(result.code == 0)
        #expect(result.threads == Dictionary(uniqueKeysWithValues: everyThread.map { ($0, 0) }), "\(result.output)")
    }

    @Test(
        "Other files are refused on every thread, and are not without the sandbox",
        .enabled(if: hasLandlock, "needs a kernel with Landlock"),
        arguments: ["readOutside", "writeOutside", "writeKey", "listKeys"])
    func files(name: String) throws {
        let probe = try SandboxProbeRun()
        let refused = try probe.attempt(name, isSandboxed: true)
        for thread in everyThread { #expect(refused.threads[thread] == Int(EACCES), "\(thread): \(refused.output)") }
        let free = try probe.attempt(name, isSandboxed: false)
        for thread in everyThread { #expect(free.threads[thread] == 0, "\(thread): \(free.output)") }
    }

    @Test(
        "New sockets, connections, processes, code, folders and signals to others are refused, and not without it",
        .enabled(if: hasFilters, "needs a kernel with seccomp"),
        arguments: ["socket", "connect", "fork", "executableMemory", "protectMemory", "signalParent", "makeFolder"])
    func calls(name: String) throws {
        let probe = try SandboxProbeRun()
        let refused = try probe.attempt(name, isSandboxed: true)
        for thread in everyThread { #expect(refused.threads[thread] == Int(EPERM), "\(thread): \(refused.output)") }
        let free = try probe.attempt(name, isSandboxed: false)
        for thread in everyThread { #expect(free.threads[thread] == 0, "\(thread): \(free.output)") }
    }

    @Test(
        "A process that connects reaches its port and looks up names, and no other port, socket or process",
        .enabled(if: hasFilters, "needs a kernel with seccomp"))
    func connecting() throws {
        let probe = try SandboxProbeRun()
        func outcome(_ name: String) throws -> Set<Int> {
            let attempt = try probe.attempt(name, isSandboxed: true, isConnecting: true)
            return Set(attempt.threads.values)
        }
        for name in ["allowedPort", "lookUp", "socket", "writeInside", "readKey"] {
            #expect(try outcome(name) == [0], "\(name)")
        }
        #expect(try outcome("otherPort") == [SandboxProbeRun.kernel.landlock >= 4 ? Int(EACCES) : 0])
        for name in ["localSocket", "fork", "executableMemory"] {
            #expect(try outcome(name) == [Int(EPERM)], "\(name)")
        }
        if hasLandlock { #expect(try outcome("readOutside") == [Int(EACCES)]) }
        let report = try probe.attempt("nothing", isSandboxed: true, isConnecting: true).report
        #expect(report.contains("no new TCP sockets but to 2379 and 53") == hasLandlock, "\(report)")
        // Without a port, and on a system that does not look names up here.
        #expect(try probe.attempt("allowedPort", isSandboxed: true).threads["main"] == Int(EPERM))
        #expect(try probe.attempt("otherPort", isSandboxed: false).threads["main"] == 0)
    }

    @Test(
        "What other processes keep in memory can't be read", .enabled(if: hasLandlock, "needs a kernel with Landlock"))
    func otherProcesses() throws {
        let probe = try SandboxProbeRun()
        let refused = try probe.attempt("readParent", isSandboxed: true)
        for thread in everyThread {
            #expect([Int(EACCES), Int(EPERM)].contains(refused.threads[thread]), "\(thread): \(refused.output)")
        }
        let free = try probe.attempt("readParent", isSandboxed: false)
        for thread in everyThread { #expect(free.threads[thread] == 0, "\(thread): \(free.output)") }
    }

    @Test("A call that the filter does not know is one that the kernel does not have", .enabled(if: hasFilters))
    func unknownCall() throws {
        let result = try SandboxProbeRun().attempt("unknownCall", isSandboxed: true)
        for thread in everyThread { #expect(result.threads[thread] == Int(ENOSYS), "\(result.output)") }
    }

    @Test(
        "Executing, tracing, mounting and their like end the process with SIGSYS, and don't without the sandbox",
        .enabled(if: hasFilters, "needs a kernel with seccomp"),
        arguments: [
            "execute", "trace", "readMemory", "mount", "unshare", "bpf", "ring", "key", "changeUser", "otherNumbers",
        ])
    func ended(name: String) throws {
        #if !arch(x86_64)
        if name == "otherNumbers" {
            print("SKIPPED: only x86-64 has x32")
            return
        }
        #endif
        let probe = try SandboxProbeRun()
        let ended = try probe.attempt(name, isSandboxed: true)
        #expect(ended.code == SIGSYS && ended.threads.isEmpty, "\(ended.output)")
        #expect(!ended.output.contains("executed"))
        let free = try probe.attempt(name, isSandboxed: false)
        #expect(free.code == 0, "\(free.output)")
        if name == "execute" {
            #expect(free.output.contains("executed"))
        } else {
            #expect(free.threads.count == everyThread.count, "\(free.output)")
        }
    }
}
#endif
