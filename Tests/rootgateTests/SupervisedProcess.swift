import Foundation
import TestSupport

@testable import rootgate

/// `rootgate serve` with storage of its own, as a supervisor starts it: with variables, and with sockets that listen
/// already.
final class SupervisedProcess {
    let process = Process()
    /// The first line on standard output; empty when the service did not start.
    let announcement: String
    private let folder = ScratchDirectory()
    private let output = Pipe()

    /// `sockets`: two descriptors at most, with their names. They stay the caller's.
    init(
        _ words: [String] = [], environment: [String: String] = [:], sockets: [(descriptor: CInt, name: String)] = []
    ) throws {
        // The shell's number is that of the program that it becomes.
        let script = """
            log=$1 count=$2 names=$3; shift 3
            case $count in 0) exec "$@" 2>"$log" ;; esac
            exec 3<&0 4<&2 </dev/null 2>"$log"
            [ "$count" -eq 2 ] || exec 4<&-
            LISTEN_PID=$$ LISTEN_FDS=$count LISTEN_FDNAMES=$names exec "$@"
            """
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments =
            [
                "-c", script, "sh", folder.path + "/log", "\(sockets.count)",
                sockets.map(\.name).joined(separator: ":"), programPath, "serve", "--data", folder.path + "/data",
            ] + words
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
        func handle(_ index: Int) -> FileHandle {
            index < sockets.count
                ? FileHandle(fileDescriptor: sockets[index].descriptor, closeOnDealloc: false) : FileHandle.nullDevice
        }
        process.standardInput = handle(0)
        process.standardError = handle(1)
        process.standardOutput = output
        try process.run()
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")), case let more = output.fileHandleForReading.availableData,
            !more.isEmpty
        {
            line += more
        }
        announcement = String(decoding: line.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    deinit {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// The addresses at which the service says that it listens.
    var addresses: [String] {
        announcement.components(separatedBy: " is listening on ").dropFirst().joined().components(separatedBy: ", ")
    }

    var log: String { (try? String(contentsOfFile: folder.path + "/log", encoding: .utf8)) ?? "" }

    func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

    /// The exit code of a process that ends by itself; `nil` when it does not, or by a signal.
    func end() -> Int32? {
        guard becomesTrue({ !process.isRunning }), process.terminationReason == .exit else { return nil }
        return process.terminationStatus
    }
}
