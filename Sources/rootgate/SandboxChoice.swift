import Core
import Platform
import Server

/// What `--sandbox` says.
enum SandboxChoice: String {
    /// Takes what the system has, and logs what that is.
    case auto
    case off
    /// Takes everything, or refuses to start.
    case required

    /// Throws `UsageError` for any other word.
    init(_ arguments: Arguments) throws {
        let word = try arguments.required("sandbox")
        guard let choice = SandboxChoice(rawValue: word) else {
            throw UsageError("--sandbox takes auto, off or required, not \(word)")
        }
        self = choice
    }

    /// Gives up what the process does not need. Says in one line what that is, and what is missing.
    ///
    /// Throws when a sandbox is required and something of it is missing.
    func enter(_ rules: SandboxRules, _ log: Log) throws(StartupFailure) {
        guard self != .off else { return }
        let report = System.enterSandbox(rules)
        try check(report)
        log(report.isWhole ? .info : .warning, "\(report)")
    }

    /// Throws when a sandbox is required and something of it is missing.
    func check(_ report: SandboxReport) throws(StartupFailure) {
        guard self != .required || report.isWhole else { throw StartupFailure.sandbox(report) }
    }
}
