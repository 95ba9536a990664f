/// Verbs of `rootgate keys`.
private let keysVerbs: [String: @Sendable (Arguments) async throws -> ExitCode] = [
    "create": createPrincipal, "list": listPrincipals, "rotate": rotateKey, "remove": removePrincipal,
    "rotate-secret": rotateSecret,
]

let keysCommand = Command(
    "keys", operands: "create NAME|list|rotate NAME|remove NAME|remove --key ID|rotate-secret", operandsMax: 2,
    """
    create, list and remove principals and their API keys; manage the service's secret

    A key is printed once, when it is made. Clients present it with --key-file or ROOTGATE_KEY.
    """,
    options: [
        .server, .timeout, .json,
        Option("role", "ROLE", "create: verify, enrol, collaborate, observe or administer; may be given several times"),
        Option(
            "prefix", "PREFIX",
            "create: the roles cover collaborations whose identifiers begin so; '*': all of them; several times"),
        Option("app", "ID", "create: the role collaborate covers only this app's items of shelves"),
        Option("expires", "DAYS", "create, rotate: the key is valid for so many days (default: until it is removed)"),
        Option(
            "certificate", "NAME",
            "create: a certificate identifies it, without a key: spiffe://..., dns:... or subject:...; several times"),
        Option("local-user", "UID", "create: connections of this user over a local socket are its own, without a key"),
        Option("key", "ID", "remove: only the key with this identifier"),
        Option(switch: "offline", "create: change the storage in --data, which no service has open"),
        Option("storage-max", "MIB", standard: "16384", "with --offline: as of serve"),
    ] + secretFileOptions + [
        Option(
            switch: "drop-previous",
            "rotate-secret: make everything invalid that was authenticated before, as when the secret has leaked")
    ]
) { arguments in
    guard let verb = arguments.operands.first, let run = keysVerbs[verb] else {
        throw UsageError("keys takes one of \(keysVerbs.keys.sorted().joined(separator: ", "))")
    }
    return try await run(arguments)
}
