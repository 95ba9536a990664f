import Core
import Foundation
package import RootgateClient
import TestSupport

/// The program as a service in a process of its own, with its default options, on a free loopback port and storage of
/// its own. Killed with this object.
///
/// Sendable without the compiler's proof: the process is used by `init` and `deinit` only.
package final class ServiceProcess: @unchecked Sendable {
    package let endpoint: Endpoint
    /// The lines that it has printed when it began to serve.
    package let announcements: [String]
    private let directory = ScratchDirectory()
    private let process = Process()
    private let output = Pipe()

    /// The program that `ROOTGATE_PROGRAM` names, or else the one beside the test bundle.
    package static let path =
        ProcessInfo.processInfo.environment["ROOTGATE_PROGRAM"]
        ?? URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("rootgate")
        .path

    /// Whether the program is built with a sanitizer, which takes memory of its own.
    package static var isSanitized: Bool {
        TestSupport.isSanitized && ProcessInfo.processInfo.environment["ROOTGATE_PROGRAM"] == nil
    }

    /// `words`: options besides those for the storage and the place. `limits`: what the system allows the process, as
    /// options of the shell's `ulimit`. `environment`: variables besides this process's. `lines`: those that it prints
    /// when it begins to serve.
    ///
    /// Throws `internalFault` with the service's lines when it does not start.
    package init(
        _ words: [String] = [], limits: [String] = [], environment: [String: String] = [:], lines count: Int = 1
    ) throws {
        let options =
            ["serve", "--data", directory.path + "/data", "--listen", "127.0.0.1:0", "--link-base"]
            + [TestService.linkBase] + words
        if limits.isEmpty {
            process.executableURL = URL(fileURLWithPath: ServiceProcess.path)
            process.arguments = options
        } else {
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            let limiting = limits.map { "ulimit \($0) && " }.joined()
            process.arguments = ["-c", limiting + "exec \"$0\" \"$@\"", ServiceProcess.path] + options
        }
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
        process.standardOutput = output
        let logPath = directory.path + "/log"
        _ = FileManager.default.createFile(atPath: logPath, contents: nil)
        process.standardError = FileHandle(forWritingAtPath: logPath)
        try process.run()
        var line = Data()
        while line.count(where: { $0 == UInt8(ascii: "\n") }) < count,
            case let more = output.fileHandleForReading.availableData,
            !more.isEmpty
        {
            line += more
        }
        announcements = String(decoding: line, as: UTF8.self).split(separator: "\n").map(String.init)
        let port = announcements.first?.split(separator: ":").last.flatMap {
            UInt16($0.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        guard let port else {
            throw ServiceError(.internalFault, "\(ServiceProcess.path) does not listen: \(lines(of: logPath))")
        }
        endpoint = Endpoint(host: "127.0.0.1", port: port)
    }

    deinit {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    package func client(timeout: Duration = patience) throws -> RootgateClient {
        try RootgateClient(endpoint, configuration: .init(requestTimeout: timeout))
    }

    /// Asks the process to end, as an operator does. Returns whether it did within the time, and in order.
    package func terminate(within seconds: Double) -> Bool {
        kill(process.processIdentifier, SIGTERM)
        return becomesTrue(within: seconds) { !process.isRunning } && process.terminationStatus == 0
    }

    /// The lines that the service has written about itself.
    package var log: String { lines(of: directory.path + "/log") }

    package var isRunning: Bool { process.isRunning }

    package var identifier: Int32 { process.processIdentifier }

    /// The folder of the storage.
    package var dataDirectory: String { directory.path + "/data" }

    /// The exit code of the process, which ends by itself within the time; `nil` when it does not, or by a signal.
    package func exitCode(within seconds: Double) -> Int32? {
        guard becomesTrue(within: seconds, { !process.isRunning }) else { return nil }
        return process.terminationReason == .exit ? process.terminationStatus : nil
    }

    // MARK: What the system says of the process

    /// Whether the system says it.
    package static var isObservable: Bool { FileManager.default.fileExists(atPath: "/proc/self/status") }

    private func fields(of file: String) -> [Substring] {
        let text = try? String(contentsOfFile: "/proc/\(process.processIdentifier)/\(file)", encoding: .utf8)
        return text?.split(whereSeparator: \.isWhitespace) ?? []
    }

    /// Bytes of the process in physical memory, without the pages of files: the system takes those back when it needs
    /// the room.
    package var residentBytes: Int {
        let fields = fields(of: "status")
        guard let place = fields.firstIndex(of: "RssAnon:"), place + 1 < fields.count else { return 0 }
        return (Int(fields[place + 1]) ?? 0) << 10
    }

    /// Bytes of addresses that the process has had at most.
    package var addressBytesMax: Int {
        let fields = fields(of: "status")
        guard let place = fields.firstIndex(of: "VmPeak:"), place + 1 < fields.count else { return 0 }
        return (Int(fields[place + 1]) ?? 0) << 10
    }

    /// How many descriptors the process has.
    package var descriptorCount: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(identifier)/fd").count) ?? 0
    }

    /// Seconds for which the process has had a processor.
    package var processorSeconds: Double {
        // The second field is the name, which has no spaces here.
        let fields = fields(of: "stat")
        guard fields.count > 14, let user = Double(fields[13]), let system = Double(fields[14]) else { return 0 }
        return (user + system) / Double(max(1, sysconf(CInt(_SC_CLK_TCK))))
    }
}

private func lines(of path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
