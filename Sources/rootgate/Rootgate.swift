import Core
import Foundation
import Hashing
import Kernels
import Platform
import Server

/// The command line: finds the subcommand and ends the process with its exit code.
@main
enum Rootgate {
    static let commands: [Command] = [
        serveCommand, checkConfigCommand, demoCommand, verifyCommand, explainCommand, loadCommand, rootsCommand,
        collabCommand, challengeCommand, simulateCommand, keysCommand, auditCommand, fsckCommand, backupCommand,
        restoreCommand, clusterCommand, selfTestCommand, statsCommand, topCommand, probeCommand, completionCommand,
        manualCommand,
        versionCommand,
    ]

    static let usage = """
        usage: rootgate COMMAND [options]

        Decides whether a device may open a shared document: verifies signed identity proofs.

        commands:
        \(commands.map { command in
            "  " + command.name.padding(toLength: 14, withPad: " ", startingAt: 0) + command.summary
        }.joined(separator: "\n"))

        rootgate COMMAND --help shows a command's options, their defaults and units.
        exit codes:
        \(ExitCode.meanings.map { "  \($0.code)  \($0.meaning)" }.joined(separator: "\n"))
        """

    /// Throws `UsageError` when a variable `ROOTGATE_...` has a name that nothing reads, or when `ROOTGATE_CPU` has
    /// words that name no feature: they would switch kernels off unseen.
    private static func checkEnvironment() throws {
        try EnvironmentCheck(commands).check(ProcessInfo.processInfo.environment)
        let names = ProcessorFeatures.names.map(\.name).joined(separator: ", ")
        guard let word = ProcessorFeatures.unknownWords.first else { return }
        throw UsageError("ROOTGATE_CPU in the environment takes \(names), not \(word.escapingControls)")
    }

    /// Whether the environment has an API key or names its file.
    private static var hasKey: Bool {
        let environment = ProcessInfo.processInfo.environment
        return ["ROOTGATE_KEY", "ROOTGATE_KEY_FILE"].contains { !(environment[$0] ?? "").isEmpty }
    }

    static func run() async -> ExitCode {
        var words = Array(CommandLine.arguments.dropFirst())
        guard let name = words.first else {
            complain("a command is needed; rootgate --help lists them")
            return .failure
        }
        words.removeFirst()
        if ["help", "--help", "-h"].contains(name) {
            printNow(usage)
            return .success
        }
        guard let command = commands.first(where: { $0.name == name || (name == "--version" && $0.name == "version") })
        else {
            complain("unknown command \(name); rootgate --help lists them")
            return .failure
        }
        if words.contains("--help") || words.contains("-h") {
            printNow(command.help(for: words))
            return .success
        }
        do {
            try checkEnvironment()
            let environment = ProcessInfo.processInfo.environment
            for name in EnvironmentCheck.unreadAboutTLS(by: command, environment) where command.name == "serve" {
                complain("\(name) in the environment is for other commands: serve does not read it")
            }
            return try await command.run(words)
        } catch let error as UsageError {
            let help = error.isAboutOptions ? "; rootgate \(command.name) --help shows the options" : ""
            complain(error.text + help)
        } catch let error as FileFailure {
            complain(error.text)
        } catch let error as ServiceError {
            let lacksKey = error.code == .roleMissing && !hasKey && !words.contains { $0.hasPrefix("--key-file") }
            complain(error.description + (lacksKey ? "; no key was given (--key-file FILE, or ROOTGATE_KEY)" : ""))
        } catch let error as StartupFailure {
            complain(error.description)
        } catch let error as SystemFailure {
            complain(error.description)
        } catch {
            complain("\(error.localizedDescription)".replacingOccurrences(of: "\n", with: " "))
        }
        return .failure
    }

    /// Opens those of the three standard descriptors that are closed, so that no file or socket gets one of their
    /// numbers. Writing to the standard output fails then; what goes to standard error is lost.
    private static func openStandardDescriptors() {
        for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    static func main() async {
        Libcrypto.stayUntilExit()
        // A file that reaches the limit of its size (ulimit -f) is an error like a full disk, and not the end.
        signal(SIGXFSZ, SIG_IGN)
        openStandardDescriptors()
        exit(await run().rawValue)
    }
}
