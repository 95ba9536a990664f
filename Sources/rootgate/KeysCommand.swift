import Principals

/// What each verb of `rootgate keys` does.
private let keysRuns: [String: @Sendable (Arguments) async throws -> ExitCode] = [
    "create": createPrincipal, "list": listPrincipals, "rotate": rotateKey, "update": updatePrincipal,
    "remove": removePrincipal, "rotate-secret": rotateSecret,
]

private let limitOptions = PrincipalLimits.Kind.allCases.map { kind in
    Option(kind.option, "N", "create, update: \(kind.bounded); 'none': no limit")
}

let keysCommand = Command(
    "keys",
    verbs: [
        Verb(
            "create", "NAME", 1...1,
            options: Set(limitOptions.map(\.name)).union([
                "role", "prefix", "app", "expires", "certificate", "local-user", "offline", "data", "storage-max",
            ]), "make a principal, and print its key, which is shown this once"),
        Verb("list", "", 0...0, "list the principals"),
        Verb("rotate", "NAME", 1...1, options: ["expires"], "add a key beside the present one, and print it"),
        Verb(
            "update", "NAME", 1...1,
            options: Set(limitOptions.map(\.name)).union(["role", "prefix", "app", "certificate", "local-user"]),
            "change the roles, certificates, local user or limits of a principal"),
        Verb("remove", "[NAME]", 0...1, options: ["key"], "remove a principal with its keys, or one key"),
        Verb(
            "rotate-secret", "", 0...0, options: Set((secretFileOptions + rotationOptions).map(\.name)),
            "add a generation to the service's secret"),
    ],
    "create, list, change and remove principals and their API keys; manage the service's secret",
    options: [
        .server, .timeout, .json,
        Option(
            "role", "ROLE", isRepeatable: true,
            "create, update: verify, enrol, collaborate, observe or administer; several times; update replaces all"),
        Option(
            "prefix", "PREFIX", isRepeatable: true,
            "create, update: the roles cover collaborations whose identifiers begin so; '*': all of them; several times"
        ),
        Option("app", "ID", "create, update: the role collaborate covers only this app's items of shelves"),
        Option("expires", "DAYS", "create, rotate: the key is valid for so many days (default: until it is removed)"),
        Option(
            "certificate", "NAME", isRepeatable: true,
            "create, update: a certificate identifies it: spiffe://..., dns:... or subject:...; several times"
        ),
        Option(
            "local-user", "UID",
            "create, update: connections of this user over a local socket are its own, without a key"),
        Option("key", "ID", "remove: only the key with this identifier"),
        Option(switch: "offline", "create: change the storage in --data, which no service has open"),
        Option("storage-max", "MIB", standard: "16384", "with --offline: as of serve"),
    ] + limitOptions + secretFileOptions + rotationOptions
) { verb, arguments in
    guard let run = keysRuns[verb.name] else { throw UsageError("keys has no verb \(verb.name)") }
    return try await run(arguments)
}
