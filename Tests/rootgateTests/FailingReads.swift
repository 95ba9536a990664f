import Foundation
import TestSupport

/// A folder for a test, and the program with reads of chosen files that fail: with `Tests/FailingDisk` as a library
/// that stands before the program's own.
final class FailingReads {
    /// How a run of the program has ended.
    struct Run {
        /// The exit code; `nil` when a signal has ended it, or when it did not end.
        let code: Int32?
        /// Whether it came to listen. Then it was asked to end.
        let hasServed: Bool
        let errors: String
        /// The files whose reads have failed, or were cut short.
        let failed: Set<String>
    }

    /// Whether this system has what is needed.
    static let isAvailable: Bool = {
        #if os(Linux)
        compiler != nil
        #else
        false
        #endif
    }()
    private static let compiler =
        TestSupport.programPath("clang") ?? TestSupport.programPath("cc")
    private static let patienceSeconds = 60.0

    /// Without links and repeated slashes, as the system tells paths.
    let folder: String
    private let scratch = ScratchDirectory()
    private let library: String

    /// Throws when the library can't be made.
    init() throws {
        folder = FailingReads.realPath(scratch.path)
        library = folder + "/failing_disk.so"
        let include = packageFile("Tests/FailingDisk/include")
        try FailingReads.makeLibrary(library, of: "Tests/FailingDisk/failing_disk.c", ["-I", include])
    }

    /// Makes a shared library, which can be loaded before a program's own, of a file of the package.
    ///
    /// Throws with the compiler's lines when it can't be made.
    static func makeLibrary(_ library: String, of source: String, _ options: [String] = []) throws {
        let made = try runProgram(
            compiler ?? "", ["-shared", "-fPIC", "-O1"] + options + [packageFile(source), "-o", library])
        guard made.code == 0 else { throw CocoaError(.fileWriteUnknown, userInfo: ["errors": made.errors]) }
    }

    static func realPath(_ path: String) -> String {
        URL(fileURLWithPath: path).standardizedFileURL.resolvingSymlinksInPath().path
    }

    /// The environment in which the reads of `path` fail: so many after so many others, with an error of the system;
    /// 0: they return half of what they are asked for. `gate`: only while there is such a file.
    func environment(
        _ path: String, after: Int = 0, count: Int = 1 << 30, error: Int32 = EIO, gate: String? = nil
    ) -> [String: String] {
        var variables = ["LD_PRELOAD": library, "FAILING_READS": "\(after):\(count):\(error):\(path)"]
        variables["FAILING_READS_WHILE"] = gate
        return variables
    }

    /// Runs the program to its end. A service ends when it has come to listen.
    func run(_ words: [String], _ environment: [String: String]) throws -> Run {
        let run = ScratchDirectory()
        let (output, errors) = (run.path + "/output", run.path + "/errors")
        for path in [output, errors] { _ = FileManager.default.createFile(atPath: path, contents: nil) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: programPath)
        process.arguments = words
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle(forWritingAtPath: output)
        process.standardError = FileHandle(forWritingAtPath: errors)
        try process.run()
        func listens() -> Bool { (try? String(contentsOfFile: output, encoding: .utf8))?.contains("listening") == true }
        let hasServed =
            words.first == "serve"
            && becomesTrue(within: FailingReads.patienceSeconds) { !process.isRunning || listens() } && listens()
        if hasServed { kill(process.processIdentifier, SIGTERM) }
        let hasEnded = becomesTrue(within: FailingReads.patienceSeconds) { !process.isRunning }
        if !hasEnded { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
        let lines = try String(contentsOfFile: errors, encoding: .utf8).split(separator: "\n")
        let failed = lines.filter { $0.hasPrefix("failing disk: ") }.compactMap { $0.split(separator: " ").last }
        return Run(
            code: hasEnded && process.terminationReason == .exit ? process.terminationStatus : nil,
            hasServed: hasServed,
            errors: lines.filter { !$0.hasPrefix("failing disk: ") }.joined(separator: "\n"),
            failed: Set(failed.map(String.init)))
    }

    /// Runs the program again and again, each time with another read that fails, up to a run in which none has failed.
    /// `path`: where reads fail; `nil`: in the whole folder.
    /// Returns the files that were read, and that last run.
    func sweep(
        _ words: [String], in path: String? = nil, _ check: (Run) throws -> Void
    ) throws -> (files: Set<String>, last: Run) {
        var files: Set<String> = []
        var after = 0
        while true {
            let run = try run(words, environment(path ?? folder, after: after, count: 1))
            guard !run.failed.isEmpty else { return (files, run) }
            try check(run)
            files.formUnion(run.failed)
            after += 1
        }
    }
}
