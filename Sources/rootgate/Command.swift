import Core
import Foundation
import LoadHarness

/// How the process ends. 0: done, and nothing was refused. 1: a proof was
/// refused, or what was measured is wrong. 2: the command line, a file, the
/// service or the network was at fault. 3: a shutdown was forced.
enum ExitCode: Int32 {
    case success = 0
    case refused = 1
    case failure = 2
    case forced = 3
}

/// One subcommand.
struct Command: Sendable {
    let name: String
    /// What stands behind the name in the usage line, options aside.
    let operands: String
    let summary: String
    let options: [Option]
    let operandsMax: Int
    let run: @Sendable (Arguments) async throws -> ExitCode

    init(
        _ name: String, operands: String = "", operandsMax: Int = 0, _ summary: String, options: [Option],
        run: @escaping @Sendable (Arguments) async throws -> ExitCode
    ) {
        self.name = name
        self.operands = operands
        self.operandsMax = operandsMax
        self.summary = summary
        // Whatever talks to a service can do so with TLS and a key.
        self.options =
            options.contains { $0.name == "server" } ? options + Option.encryption + [Option.keyFile] : options
        self.run = run
    }

    var help: String {
        var lines = ["usage: rootgate \(name) [options] \(operands)", "", summary, "", "options:"]
        for option in options {
            let left = "  --\(option.name) \(option.value)".padding(toLength: 30, withPad: " ", startingAt: 0)
            let standard = option.standard.isEmpty ? "" : " (default: \(option.standard))"
            lines.append("\(left)\(option.help)\(standard)")
        }
        lines += ["", "Each option can also be given in the environment: --some-name as ROOTGATE_SOME_NAME."]
        return lines.joined(separator: "\n")
    }
}

/// Options that several commands share.
extension Option {
    static let json = Option(switch: "json", "print JSON for machines")
    static let server = Option(
        "server", "HOST:PORT", standard: "localhost:7570", "the service to talk to; tls://HOST:PORT: with TLS")
    /// Each of them selects TLS.
    static let encryption = [
        Option("tls-ca", "FILE", "trust these authorities instead of the system's, in PEM"),
        Option("tls-certificate", "FILE", "this client's certificate with its chain, in PEM"),
        Option("tls-key", "FILE", "the key of --tls-certificate, in PEM, without a password"),
        Option("tls-server-name", "NAME", "the name that the service's certificate is for, if not HOST"),
    ]
    static let keyFile = Option(
        "key-file", "FILE", "the API key of this client (or ROOTGATE_KEY in the environment has the key)")
    static let collaboration = Option("collaboration", "ID", "the collaboration's identifier")
    static let timeout = Option("timeout", "SECONDS", standard: "10", "how long a request may take")
    static let quiet = Option(switch: "quiet", "don't show progress on stderr")
}

/// Writes to stdout at once, also when it is a pipe. Ends the program with exit code 2 when stdout can't be written.
func printNow(_ text: String, terminator: String = "\n") {
    do {
        try FileHandle.standardOutput.write(contentsOf: Data((text + terminator).utf8))
    } catch {
        complain("can't write to standard output: \(error.localizedDescription)")
        exit(2)
    }
}

/// A meter that shows a command's progress on stderr, unless --quiet is given. It shows nothing for work of less than
/// one second on a terminal, or less than ten seconds elsewhere.
func progressMeter(_ arguments: Arguments) -> ProgressMeter {
    .onStandardError("rootgate", isQuiet: arguments.isOn("quiet"), patience: (terminal: 1, elsewhere: 10))
}

extension ProgressMeter {
    /// Writes to stdout at once; when that is a terminal, the meter's line there is erased first.
    func printAside(_ text: String, terminator: String = "\n") {
        guard isatty(STDOUT_FILENO) == 1 else { return printNow(text, terminator: terminator) }
        aside { printNow(text, terminator: terminator) }
    }
}

/// Writes one line to stderr. Control characters in it, which a file's name or a peer's text may have, are escaped.
func complain(_ text: String) {
    // Nothing is left to complain to when standard error is gone.
    try? FileHandle.standardError.write(contentsOf: Data("rootgate: \(text.escapingControls)\n".utf8))
}

/// `value` as one line of JSON with sorted keys. Characters that steer a terminal are escaped.
func json(_ value: [String: Any]) throws -> String {
    String(
        decoding: try JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .withoutEscapingSlashes]),
        as: UTF8.self
    ).escapingControls
}
