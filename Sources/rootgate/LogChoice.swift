import Core
import Foundation
import Server

/// How a service writes its log.
struct LogChoice {
    let format: LogWriter.Format
    let level: LogLevel
    let showsAddresses: Bool

    /// Throws a `UsageError` that names the option.
    init(
        _ arguments: Arguments, environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws {
        let format = try arguments.required("log-format")
        switch LogWriter.Format(rawValue: format) {
        case let known?: self.format = known
        case nil where format == "auto": self.format = isJournal(STDERR_FILENO, environment) ? .journal : .text
        case nil: throw UsageError("--log-format takes auto, text, json or journal, not \(format)")
        }
        let name = try arguments.required("log-level")
        guard let level = LogLevel(name) else {
            let names = LogLevel.allCases.map(\.name).joined(separator: ", ")
            throw UsageError("--log-level takes one of \(names), not \(name)")
        }
        self.level = level
        showsAddresses = arguments.isOn("log-addresses")
    }

    /// A writer to standard error.
    func makeWriter() -> LogWriter {
        LogWriter(format, level: level) { line in
            // Nothing is left to tell when standard error is gone.
            try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
        }
    }
}

/// Whether the file is the stream to the journal that the environment names (systemd.exec(5)).
private func isJournal(_ descriptor: CInt, _ environment: [String: String]) -> Bool {
    var status = stat()
    guard let stream = environment["JOURNAL_STREAM"], fstat(descriptor, &status) == 0 else { return false }
    return stream == "\(status.st_dev):\(status.st_ino)"
}
