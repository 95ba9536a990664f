import Foundation
import TestSupport

/// The probe of the storage in a process of its own, run to its end or to the time's.
struct ProbeRun {
    enum Ending: Equatable {
        case exit(Int32)
        case signal(Int32)
        /// It was killed, because it did not end.
        case hang
    }

    let ending: Ending
    let output: String
    let log: String

    /// The program beside the test bundle.
    static let path = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("StorageProbe").path

    /// `outputTo`: a file for the standard output, which is not read then.
    init(_ words: [String], seconds: Double = 60, outputTo file: String? = nil) throws {
        let process = Process()
        let scratch = ScratchDirectory()
        let (output, log) = (file ?? scratch.path + "/output", scratch.path + "/log")
        for path in [output, log] { _ = FileManager.default.createFile(atPath: path, contents: nil) }
        process.executableURL = URL(fileURLWithPath: ProbeRun.path)
        process.arguments = words
        process.standardOutput = FileHandle(forWritingAtPath: output)
        process.standardError = FileHandle(forWritingAtPath: log)
        try process.run()
        let isOver = becomesTrue(within: seconds) { !process.isRunning }
        if !isOver { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        if !isOver {
            ending = .hang
        } else {
            ending =
                process.terminationReason == .exit
                ? .exit(process.terminationStatus) : .signal(process.terminationStatus)
        }
        self.output = file != nil ? "" : (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
        self.log = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
    }

    var lines: [Substring] { output.split(separator: "\n") }
}

/// A number that the environment gives for a harness, or the usual one.
func trials(_ variable: String, usually: Int) -> Int {
    ProcessInfo.processInfo.environment[variable].flatMap { Int($0) } ?? usually
}
