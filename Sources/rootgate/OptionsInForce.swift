import Core
import Server

/// The options with which a service runs, and their change when its file was read again.
final class OptionsInForce: Sendable {
    /// Options that a running service changes. The others count from the next start.
    static let changeable = ["idle-seconds", "stall-seconds", "drain-seconds", "log-level"]

    private let words: [String]
    private let path: String
    private let values: Lock<[String: String]>

    /// `nil` when the service has no file with options.
    init?(_ arguments: Arguments) {
        guard let file = arguments.file else { return nil }
        words = arguments.words
        path = file.path
        values = Lock(OptionsInForce.values(arguments))
    }

    private static func values(_ arguments: Arguments) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: serviceOptions.compactMap { option in
                arguments.text(option.name).map { (option.name, $0) }
            })
    }

    /// Reads the file again and changes what a running service can change. The log gets a line for each option that
    /// differs, or one that says why the file can't be used; then nothing changes.
    ///
    /// What an option was in the file does not count, only what it is together with the command line and the
    /// environment.
    func reload(_ log: Log, _ change: (ServiceTimes, LogLevel) -> Void) {
        let arguments: Arguments
        let times: ServiceTimes
        let level: LogLevel
        do {
            arguments = try serveCommand.arguments(words)
            times = try Configuration(arguments).times
            level = try LogChoice(arguments).level
        } catch {
            let reason = (error as? UsageError)?.text ?? "\(error)"
            return log(.error, "the options in \(path) can't be used, and stay as they were: \(reason)")
        }
        let read = OptionsInForce.values(arguments)
        var lines: [String] = []
        values.withLock { values in
            for name in serviceOptions.map(\.name) where read[name] != values[name] {
                let (now, before) = (read[name] ?? "not given", values[name] ?? "not given")
                guard OptionsInForce.changeable.contains(name) else {
                    lines.append("\(name) is \(now) in \(path), and stays \(before) until the next start")
                    continue
                }
                lines.append("\(name) is \(now) from now on, and was \(before)")
                values[name] = read[name]
            }
            change(times, level)
        }
        if lines.isEmpty { lines = ["nothing has changed in \(path)"] }
        // At once: they are about one act, and none may be left out because there are many.
        log(.info, lines.joined(separator: "; "))
    }
}
