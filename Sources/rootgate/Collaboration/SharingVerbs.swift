import Core
import Foundation
import RootgateClient

let sharingVerbs: [CollabVerb] = [
    CollabVerb(
        Verb(
            "prepare", "LOCAL", 1...1,
            options: [
                "owner", "title", "handle", "options", "permission", "select", "identity", "name", "policy", "window",
            ], "start sharing; prints identifier and link")
    ) { call in
        var metadata = CollaborationMetadata(
            localIdentifier: LocalCollaborationIdentifier(rawValue: try call.operand(0, "the content")))
        metadata.title = call.arguments.text("title")
        metadata.initiatorHandle = call.arguments.text("handle")
        metadata.defaultShareOptions = try call.value(ShareOptions.self, fromFile: "options")
        metadata.defaultPermission = try call.choice(Permission.self, option: "permission")
        return PrepareCollaboration(
            owner: try call.account("owner"), metadata: metadata, selectedOptions: call.names("select"),
            ownerIdentity: try call.givenIdentity(), ownerName: call.arguments.text("name"),
            nonceWindowSeconds: try call.nonceWindow())
    },
    CollabVerb(
        Verb("claim", "ID HEX", 2...2, options: ["owner", "name"], "make an identity of --owner the owner, once")
    ) { call in
        ClaimOwnership(
            of: try call.collaboration(), by: try call.account("owner"),
            as: try call.identity(try call.operand(1, "the owner's identity")), displayName: call.arguments.text("name")
        )
    },
    CollabVerb(Verb("transfer", "ID HEX", 2...2, options: ["owner", "local"], "hand the ownership of --owner over")) {
        call in
        TransferOwnership(
            of: try call.collaboration(), from: try call.account("owner"),
            to: try call.identity(try call.operand(1, "the participant who becomes the owner")),
            localIdentifier: call.arguments.text("local").map { LocalCollaborationIdentifier(rawValue: $0) })
    },
    CollabVerb(Verb("abandon", "LOCAL", 1...1, options: ["owner"], "undo prepare while nobody else takes part")) {
        call in
        AbandonCollaboration(
            owner: try call.account("owner"),
            localIdentifier: LocalCollaborationIdentifier(rawValue: try call.operand(0, "the content")))
    },
    CollabVerb(Verb("highlight", "ID|LINK", 1...1, "what the system shows about a collaboration")) { call in
        let text = try call.operand(0, "the collaboration or its link")
        return text.contains("://") ? FindHighlight(url: try call.url(text)) : FindHighlight(try call.collaboration())
    },
    CollabVerb(
        Verb(
            "options", "ID --select ID,...", 1...1, options: ["select", "options", "summary", "grant"],
            "choose other share options, or replace them")
    ) { call in
        UpdateShareOptions(
            try call.collaboration(), selectedOptions: call.names("select"),
            replacing: try call.value(ShareOptions.self, fromFile: "options"),
            givenSummary: call.arguments.text("summary"), by: try call.givenGrant())
    },
    CollabVerb(Verb("details", "ID", 1...1, options: ["identity", "language"], "what the collaboration button shows")) {
        call in
        ReadDetails(
            of: try call.collaboration(), viewer: try call.givenIdentity(), language: call.arguments.text("language"))
    },
    CollabVerb(
        Verb(
            "customize", "ID", 1...1, options: ["title", "items", "manage-title", "clear"],
            "change title, custom items, manage button")
    ) { call in
        try call.checkClear("title", "items", "manage-title")
        let request = CustomizeDetails(
            of: try call.collaboration(), title: try call.patch("title", call.arguments.text("title")),
            customItems: try call.patch("items", try call.value([CustomItem].self, fromFile: "items")),
            manageButtonTitle: try call.patch("manage-title", call.arguments.text("manage-title")))
        guard request != CustomizeDetails(of: request.collaboration) else {
            throw UsageError("say what to change: --title, --items, --manage-title or --clear")
        }
        return request
    },
    CollabVerb(Verb("stop", "ID", 1...1, options: ["grant"], "stop sharing: everything about it is deleted")) { call in
        StopSharing(try call.collaboration(), by: try call.givenGrant())
    },
]
