let completionCommand: Command = Command(
    "completion", operands: "bash|zsh|fish", operandsMax: 1,
    "print a script that completes rootgate's words in a shell", options: []
) { arguments in
    let names = Shell.allCases.map(\.rawValue).joined(separator: ", ")
    guard let name = arguments.operands.first else { throw UsageError("name a shell: \(names)") }
    guard let shell = Shell(rawValue: name) else { throw UsageError("there are completions for \(names), not \(name)") }
    printNow(shell.completions(of: Rootgate.commands), terminator: "")
    return .success
}
