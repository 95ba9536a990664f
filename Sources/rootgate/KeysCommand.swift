/// Verbs of `rootgate keys`.
private let keysVerbs: [String: @Sendable (Arguments) async throws -> ExitCode] = [
    "rotate-secret": rotateSecret
]

let keysCommand = Command(
    "keys", operands: "rotate-secret", operandsMax: 1, "manage the service's secret",
    options: secretFileOptions + [
        Option(
            switch: "drop-previous",
            "make everything invalid that was authenticated before, as when the secret has leaked")
    ]
) { arguments in
    guard let verb = arguments.operands.first, let run = keysVerbs[verb] else {
        throw UsageError("keys takes one of \(keysVerbs.keys.sorted().joined(separator: ", "))")
    }
    return try await run(arguments)
}
