import Foundation

/// The path of a program on this system; `nil` when there is none of that name.
package func programPath(_ name: String) -> String? {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
    return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
}

/// Runs a program to its end and says whether it succeeded.
package func succeeds(_ program: String, _ arguments: [String]) -> Bool {
    guard let path = programPath(program) else { return false }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
}

/// Another process that holds an exclusive flock(2) on a file until it is let go or this object ends.
package final class LockHolder {
    private let process = Process()
    private let input = Pipe()

    /// Whether this system has what is needed.
    package static var isAvailable: Bool { programPath("flock") != nil && programPath("sh") != nil }

    /// Returns when the lock is held.
    package init?(file: String) {
        guard let flock = programPath("flock") else { return nil }
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: flock)
        process.arguments = ["-x", file, "sh", "-c", "echo held; exec cat"]
        process.standardInput = input
        process.standardOutput = output
        guard (try? process.run()) != nil else { return nil }
        let text = output.fileHandleForReading.availableData
        guard String(decoding: text, as: UTF8.self).hasPrefix("held") else { return nil }
    }

    package func letGo() {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    deinit {
        if process.isRunning { letGo() }
    }
}
