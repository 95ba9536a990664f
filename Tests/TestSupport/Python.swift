import Foundation

/// Runs a program and returns its exit code and what it printed.
package func runProgram(
    _ path: String, _ arguments: [String], input: String? = nil, environment: [String: String] = [:]
) throws -> (code: Int32, output: String, errors: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
    let directory = ScratchDirectory()
    // Files, not pipes: nothing blocks when much is printed.
    for name in ["in", "out", "err"] {
        let text = name == "in" ? input ?? "" : ""
        try Data(text.utf8).write(to: URL(fileURLWithPath: directory.path + "/" + name))
    }
    process.standardInput = FileHandle(forReadingAtPath: directory.path + "/in")
    process.standardOutput = FileHandle(forWritingAtPath: directory.path + "/out")
    process.standardError = FileHandle(forWritingAtPath: directory.path + "/err")
    try process.run()
    process.waitUntilExit()
    func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(fileURLWithPath: directory.path + "/" + name)), as: UTF8.self)
    }
    return (process.terminationStatus, try text("out"), try text("err"))
}

/// The Python that has the `cryptography` package; `nil` when there is none.
package let python: String? = {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
    for folder in folders {
        let path = folder + "/python3"
        guard FileManager.default.isExecutableFile(atPath: path) else { continue }
        if let result = try? runProgram(path, ["-c", "import cryptography"]), result.code == 0 { return path }
    }
    return nil
}()

/// What a program in Python needs to import the package `rootgate` of this repository, and to leave no files there.
package let pythonEnvironment = [
    "PYTHONPATH": packageFile("Sources/rootgate-python"), "PYTHONDONTWRITEBYTECODE": "1",
]

/// A file of the package, by its path below the package's folder.
package func packageFile(_ path: String, from file: String = #filePath) -> String {
    URL(fileURLWithPath: file).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent(path).path
}
