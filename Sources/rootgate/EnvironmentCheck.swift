/// Which variables `ROOTGATE_...` the environment may have.
///
/// A misspelt option on the command line is refused. In the environment it would be ignored without this check, and
/// what it should limit, such as `ROOTGATE_TLS_CLIENT_CA`, would stay open.
struct EnvironmentCheck {
    private static let start = "ROOTGATE_"
    /// Variables that are no options: of the program, and of its tests, which start it.
    private static let others: Set = [
        "ROOTGATE_CPU", "ROOTGATE_PROGRAM", "ROOTGATE_ATTACK_TIMES", "ROOTGATE_TLS_MUTATIONS",
    ]
    /// The beginning of other variables of the tests.
    private static let startOfTests = "ROOTGATE_TEST_"

    private let known: Set<String>

    /// Options of every command are known to all of them: commands share an environment.
    init(_ commands: [Command]) {
        known = EnvironmentCheck.others.union(commands.flatMap { $0.options.map(\.variable) })
    }

    /// Throws `UsageError` when a variable that is not empty has a name that nothing reads. It names the variable and
    /// the nearest known name.
    func check(_ environment: [String: String]) throws {
        let unknown = environment.filter { name, value in
            name.hasPrefix(EnvironmentCheck.start) && !value.isEmpty && !known.contains(name)
                && !name.hasPrefix(EnvironmentCheck.startOfTests) && !EnvironmentCheck.isServiceLink(name, value)
        }
        guard let name = unknown.keys.min() else { return }
        throw UsageError(
            "there is no \(name) for the environment, but there is \(NearestName.find(name, among: known) ?? "none")")
    }

    /// Variables about TLS that are not empty and that only other commands read. Who sets `ROOTGATE_TLS_CA` for `serve`
    /// may expect that it limits access.
    static func unreadAboutTLS(by command: Command, _ environment: [String: String]) -> [String] {
        let read = others.union(command.options.map(\.variable))
        let given = environment.filter { !$0.value.isEmpty }.keys
        return given.filter { $0.hasPrefix("ROOTGATE_TLS_") && !read.contains($0) }.sorted()
    }

    /// Whether Kubernetes sets such a variable for a service that is named rootgate, or rootgate-something.
    private static func isServiceLink(_ name: String, _ value: String) -> Bool {
        if name.wholeMatch(of: /ROOTGATE_(\w+_)?SERVICE_(HOST|PORT(_\w+)?)/) != nil { return true }
        // A port that somebody means for this program is a number.
        return name.wholeMatch(of: /ROOTGATE_(\w+_)?PORT(_\d+_(TCP|UDP|SCTP))?/) != nil && value.contains("://")
            || name.wholeMatch(of: /ROOTGATE_(\w+_)?PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)/) != nil
    }
}
