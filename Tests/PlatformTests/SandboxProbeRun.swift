#if os(Linux)
import Foundation
import TestSupport

/// What the program `SandboxProbe`, which is built beside the tests, prints.
struct SandboxProbeRun {
    let folder = ScratchDirectory()

    /// The version of Landlock, and whether there are filters of system calls, as the kernel itself says.
    static let kernel: (landlock: Int, hasFilters: Bool) = {
        let words = (try? runProgram(path, ["kernel"]).output.split(separator: " ")) ?? []
        guard words.count == 4 else { return (0, false) }
        return (Int(words[1]) ?? 0, words[3].hasPrefix("1"))
    }()

    /// Where the program is.
    static let path = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appendingPathComponent("SandboxProbe").path

    init() throws {
        for name in ["data", "keys"] {
            try FileManager.default.createDirectory(
                atPath: folder.path + "/" + name, withIntermediateDirectories: false)
        }
        try Data("key".utf8).write(to: URL(fileURLWithPath: folder.path + "/keys/key"))
    }

    /// The exit code or the signal, the report, and the outcome on each thread.
    func attempt(
        _ name: String, isSandboxed: Bool, isConnecting: Bool = false
    ) throws -> (code: Int32, report: String, threads: [String: Int], output: String) {
        let mode = isSandboxed ? isConnecting ? "connecting" : "on" : "off"
        let result = try runProgram(SandboxProbeRun.path, [mode, name, folder.path])
        var threads: [String: Int] = [:]
        for line in result.output.split(separator: "\n") where !line.hasPrefix("sandbox") {
            let parts = line.split(separator: ":")
            if parts.count == 2 { threads[String(parts[0])] = Int(parts[1].trimmingCharacters(in: .whitespaces)) }
        }
        let report = result.output.split(separator: "\n").first { $0.hasPrefix("sandbox: ") }
        return (result.code, report.map(String.init) ?? "", threads, result.output + result.errors)
    }
}

let hasLandlock = SandboxProbeRun.kernel.landlock > 0
let hasFilters = SandboxProbeRun.kernel.hasFilters
#endif
