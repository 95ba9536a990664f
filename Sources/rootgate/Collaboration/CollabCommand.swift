import RootgateClient

let collabCommand = Command(
    "collab", operands: "VERB [OPERAND ...]", operandsMax: 4096,
    """
    start and keep collaborations: share options, participants, grants, notices, shelves, invitations

    verbs:
    \(collabVerbs.map { verb in
        "  " + "\(verb.name) \(verb.operands)".padding(toLength: 38, withPad: " ", startingAt: 0) + verb.summary
    }.joined(separator: "\n"))
    """,
    options: [
        .server, .timeout, .json,
        Option("policy", "POLICY", standard: "challenge", "create: challenge or device-nonce"),
        Option("window", "SECONDS", standard: "86400", "create, device-nonce: how long a nonce is remembered"),
        Option("owner", "ACCOUNT", "prepare, abandon: the account that starts it"),
        Option(
            "title", "TEXT",
            "prepare, customize, share: the content's title; attribution: the title of the remove entry"),
        Option("handle", "TEXT", "prepare, invite: the address of the account that starts it or invites"),
        Option("options", "FILE", "prepare: share options as JSON"),
        Option("select", "ID,...", "prepare, options: identifiers of the selected options"),
        Option("identity", "HEX", "a root hash: the owner's, the viewer's, the accepter's"),
        Option("name", "TEXT", "the participant's name, as notices tell it; invite: the inviting person's"),
        Option("role", "ROLE", "administrator or member"),
        Option("permission", "NAME", "readOnly or readWrite (default: as the share options say)"),
        Option("account", "ACCOUNT", "the person, as the app's backend names it"),
        Option("grant", "GRANT", "post, clear: the grant of the participant that does it"),
        Option("link", "LINK", "post: the place in the content, below the collaboration's link"),
        Option("language", "TAG", standard: "en", "notices, details, attribution: the language of the texts, as de"),
        Option("after", "SEQUENCE", standard: "0", "notices: only those after this sequence"),
        Option("limit", "N", standard: "64", "items in an answer"),
        Option("at-least", "SEQUENCE", standard: "0", "open, check: a sequence that must have been applied"),
        Option(switch: "follow", "notices: wait for new ones until interrupted"),
        Option(switch: "all", "participants, invitations: removed, accepted and expired ones too"),
        Option("app", "ID", standard: "app", "share: the bundle identifier of the app that opens the link"),
        Option("sharer", "NAME", "share: the name of the person who shared it"),
        Option("conversation", "ID", "share, pin, unpin: the conversation"),
        Option(switch: "group", "share: the conversation is a group"),
        Option(switch: "strangers", "share: the recipients know nobody in the conversation"),
        Option("to", "ACCOUNT,...", "share: the accounts on whose shelves it appears"),
        Option("context", "NAME", "signal shown: summary or detail"),
        Option("items", "FILE", "customize: custom items as JSON"),
        Option("manage-title", "TEXT", "customize: the title of the manage button"),
        Option("hours", "N", "invite: after so many hours the invitation expires"),
        Option("scope", "SCOPE", standard: "shared", "shares: shared or private"),
    ]
) { arguments in
    guard let name = arguments.operands.first else { throw UsageError("say what to do") }
    guard let verb = collabVerbs.first(where: { $0.name == name }) else { throw UsageError("there is no verb \(name)") }
    let client = try connect(arguments)
    defer { client.close() }
    return try await verb.run(
        CollabCall(client: client, arguments: arguments, operands: Array(arguments.operands.dropFirst())))
}
