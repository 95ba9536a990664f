import RootgateClient

let collabCommand = Command(
    "collab", verbs: collabVerbs.map(\.verb),
    "start and keep collaborations: share options, participants, grants, notices, shelves, invitations",
    options: [
        .server, .timeout, .json,
        Option("policy", "POLICY", standard: "challenge", "create, prepare: challenge or device-nonce"),
        Option("window", "SECONDS", standard: "86400", "device-nonce: how long a nonce is remembered"),
        Option("owner", "ACCOUNT", "prepare, abandon, claim, transfer, export: the account that owns it"),
        Option("local", "LOCAL", "transfer: what the new owner's account calls the content"),
        Option("title", "TEXT", "prepare, customize, share: the content's title; attribution: the remove entry's"),
        Option(
            "handle", "TEXT",
            "prepare, invite: the address of who starts it or invites; pin, unpin: a conversation's handle"),
        Option("options", "FILE", "prepare, options: share options as JSON"),
        Option("select", "ID,...", "prepare, options: identifiers of the selected options"),
        Option("summary", "TEXT", "options: a phrase that sums up the selection"),
        Option("identity", "HEX", "a root hash: the owner's, the viewer's, the accepter's"),
        Option("name", "TEXT", "the participant's name, as notices tell it; invite: the inviting person's"),
        Option("role", "ROLE", "administrator or member"),
        Option(
            "permission", "NAME",
            "readOnly or readWrite; prepare: what holds when the options don't say (default: readOnly)"),
        Option("add", "HEX,...", "change: the people to add"),
        Option("remove", "HEX,...", "change: the people to remove"),
        Option("clear", "OPTION,...", "update: name, permission; customize: title, items, manage-title"),
        Option("account", "ACCOUNT", "the person, as the app's backend names it"),
        Option("grant", "GRANT", "the grant of the participant that does it; without one the backend manages"),
        Option(
            "after", "ITEM",
            "lists: only what follows this item; notices: this sequence; shelf: so many items"),
        Option("limit", "N", "lists: items on a page (default: 64; list: all)"),
        Option(switch: "all", "lists: every page"),
        Option("link", "LINK", "post: the place in the content, below the collaboration's link"),
        Option("language", "TAG", standard: "en", "notices, details, attribution: the language of the texts, as de"),
        Option("at-least", "SEQUENCE", standard: "0", "open, check: a sequence that must have been applied"),
        Option(switch: "with-options", "open, check: show the selected share options"),
        Option(switch: "follow", "notices: wait for new ones until interrupted"),
        Option(switch: "past", "participants, invitations: removed, accepted, revoked and expired ones too"),
        Option("subtitle", "TEXT", "share: the second line of the preview"),
        Option("thumbnail", "FILE|URL", "share: the picture of the preview, or a link to it"),
        Option("app", "ID", "share: the app that opens the link; shelf, pin, ...: the app whose items it concerns"),
        Option(switch: "every-app", "shelf, pin, attribution, ...: all items, with the names of people"),
        Option("sharer", "NAME", "share: the name of the person who shared it"),
        Option("conversation", "ID", "share; pin, unpin with --every-app: the conversation"),
        Option(switch: "group", "share: the conversation is a group"),
        Option(switch: "strangers", "share: the recipients know nobody in the conversation"),
        Option("to", "ACCOUNT,...", "share: the accounts on whose shelves it appears"),
        Option("context", "NAME", "signal shown: summary or detail"),
        Option("items", "FILE", "customize: custom items as JSON"),
        Option("manage-title", "TEXT", "customize: the title of the manage button"),
        Option("hours", "N", "invite: after so many hours the invitation expires"),
        Option(switch: "with-notices", "export: notices too, to be read; an import leaves them out"),
        Option(switch: "with-shelves", "export: shares of its link on the shelves of participants' accounts"),
        Option("scope", "SCOPE", standard: "shared", "shares: shared or private"),
    ]
) { verb, arguments in
    // A grant limits what the verb may do. So a verb that can't use it refuses it from the environment as well.
    if !verb.options.contains("grant"), arguments.text("grant") != nil {
        throw UsageError("\(verb.name) takes no --grant; the environment gives one with ROOTGATE_GRANT")
    }
    let client = try connect(arguments)
    defer { client.close() }
    // All verbs print JSON when they are told to, at the end.
    _ = arguments.isOn("json")
    guard let action = collabVerbs.first(where: { $0.verb.name == verb.name }) else {
        preconditionFailure("collab lists the verb \(verb.name) and does not have it")
    }
    return try await action.run(CollabCall(client, arguments))
}
