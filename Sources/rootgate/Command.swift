import Core
import Foundation
import LoadHarness
import Platform

/// How the process ends.
enum ExitCode: Int32 {
    case success = 0
    case refused = 1
    case failure = 2
    case forced = 3
    case storageLost = 4

    /// What each code means, for the help and the manual.
    static let meanings: [(code: String, meaning: String)] = [
        ("0", "done, and nothing was refused"),
        ("1", "a proof or a grant was refused, a measurement is wrong, or a check (probe, fsck, audit verify) fails"),
        ("2", "wrong usage, or an error of a file, the service or the network"),
        ("3", "(serve) the shutdown was forced"),
        ("4", "(serve) the storage has failed, and only another process can open it again"),
    ]
}

/// One subcommand.
struct Command: Sendable {
    let name: String
    /// What stands behind the name in the usage line, options aside.
    let operands: String
    let summary: String
    let options: [Option]
    let operandsMax: Int
    /// The verbs, one of which is the first operand; none for a command without verbs.
    let verbs: [Verb]
    private let run: @Sendable (Arguments) async throws -> ExitCode

    init(
        _ name: String, operands: String = "", operandsMax: Int = 0, _ summary: String, options: [Option],
        run: @escaping @Sendable (Arguments) async throws -> ExitCode
    ) {
        self.init(name, operands, operandsMax, [], summary, options, run)
    }

    /// A command with verbs. Options that no verb names are for all of them.
    init(
        _ name: String, verbs: [Verb], _ summary: String, options: [Option],
        run: @escaping @Sendable (Verb, Arguments) async throws -> ExitCode
    ) {
        self.init(name, "VERB [OPERAND ...]", Verb.operandsMax + 1, verbs, summary, options) { arguments in
            try await run(try Self.verb(arguments, of: verbs), arguments)
        }
    }

    private init(
        _ name: String, _ operands: String, _ operandsMax: Int, _ verbs: [Verb], _ summary: String,
        _ options: [Option], _ run: @escaping @Sendable (Arguments) async throws -> ExitCode
    ) {
        self.name = name
        self.operands = operands
        self.operandsMax = operandsMax
        self.verbs = verbs
        self.summary = summary
        // Whatever talks to a service can do so with TLS and a key.
        self.options =
            options.contains { $0.name == "server" } ? options + Option.encryption + [Option.keyFile] : options
        self.run = run
    }

    /// The verb that the first operand names.
    private static func verb(_ arguments: Arguments, of verbs: [Verb]) throws -> Verb {
        let names = verbs.map(\.name).joined(separator: ", ")
        guard let name = arguments.operands.first else { throw UsageError("say what to do: \(names)") }
        guard let verb = verbs.first(where: { $0.name == name }) else {
            throw UsageError("there is no verb \(name), only \(names)")
        }
        return verb
    }

    /// The options of one verb, or all of them.
    func options(of verb: Verb?) -> [Option] {
        guard let verb else { return options }
        let used = commonOptions.union(verb.options)
        return options.filter { used.contains($0.name) }
    }

    /// The options that every verb uses.
    private var commonOptions: Set<String> {
        Set(options.map(\.name)).subtracting(verbs.flatMap(\.options))
    }

    /// The words behind the command's name as arguments.
    ///
    /// Throws `UsageError` when the command, or the verb that they name, does not take them.
    func arguments(
        _ words: [String], environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> Arguments {
        let arguments = try Arguments(words, options: options, operandsMax: operandsMax, environment: environment)
        if !verbs.isEmpty { try Self.verb(arguments, of: verbs).check(arguments, common: commonOptions) }
        return arguments
    }

    /// Does what the words behind the command's name say.
    func run(_ words: [String]) async throws -> ExitCode { try await run(try arguments(words)) }

    /// What the command takes; only what the verb takes that `words` name, if they name one.
    func help(for words: [String] = []) -> String {
        let verb = words.first.flatMap { name in verbs.first { $0.name == name } }
        let usage = verb.map { "\(name) \($0.name) [options] \($0.operands)" } ?? "\(name) [options] \(operands)"
        var lines = ["usage: rootgate \(usage)", "", verb?.summary ?? summary]
        if verb == nil, !verbs.isEmpty {
            lines += ["", "verbs:"] + verbs.map { "\("  \($0.name) \($0.operands)".padded(to: 40))\($0.summary)" }
            lines += ["", "rootgate \(name) VERB --help shows the options of one verb."]
        }
        lines += ["", "options:"]
        for option in options(of: verb) {
            let standard = option.standard.isEmpty ? "" : " (default: \(option.standard))"
            lines.append("\("  --\(option.name) \(option.value)".padded(to: 30))\(option.help)\(standard)")
        }
        lines += ["", "Each option can also be given in the environment: --some-name as ROOTGATE_SOME_NAME."]
        return lines.joined(separator: "\n")
    }
}

extension String {
    /// The text with spaces up to a column, or with one space when it is longer.
    fileprivate func padded(to column: Int) -> String {
        self + String(repeating: " ", count: max(1, column - count))
    }
}

/// Options that several commands share.
extension Option {
    static let json = Option(switch: "json", "print JSON for machines")
    static let server = Option(
        "server", "HOST:PORT", standard: "localhost:7570",
        "the service to talk to; tls://HOST:PORT: with TLS; unix:/PATH: a local socket")
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
    do throws(SystemFailure) {
        try System.writeAll(Data((text + terminator).utf8), to: STDOUT_FILENO)
    } catch {
        complain("can't write to standard output: \(error.reason)")
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
