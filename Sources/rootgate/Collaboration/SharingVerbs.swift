import Core
import Foundation
import RootgateClient

let sharingVerbs: [CollabVerb] = [
    CollabVerb("prepare", "LOCAL", "start sharing; prints identifier and link") { call in
        var metadata = CollaborationMetadata(
            localIdentifier: LocalCollaborationIdentifier(rawValue: try call.operand(0, "the content")))
        metadata.title = call.arguments.text("title")
        metadata.initiatorHandle = call.arguments.text("handle")
        metadata.defaultShareOptions = try call.value(ShareOptions.self, fromFile: "options")
        return PrepareCollaboration(
            owner: try call.account("owner"), metadata: metadata, selectedOptions: call.names("select"),
            ownerIdentity: try call.givenIdentity(), ownerName: call.arguments.text("name"))
    },
    CollabVerb("abandon", "LOCAL", "undo prepare while nobody else takes part") { call in
        AbandonCollaboration(
            owner: try call.account("owner"),
            localIdentifier: LocalCollaborationIdentifier(rawValue: try call.operand(0, "the content")))
    },
    CollabVerb("highlight", "ID|LINK", "what the system shows about a collaboration") { call in
        let text = try call.operand(0, "the collaboration or its link")
        return text.contains("://") ? FindHighlight(url: try call.url(text)) : FindHighlight(try call.collaboration())
    },
    CollabVerb("options", "ID --select ID,...", "choose other share options") { call in
        UpdateShareOptions(try call.collaboration(), selectedOptions: call.names("select") ?? [])
    },
    CollabVerb("details", "ID", "what the collaboration button shows") { call in
        ReadDetails(
            of: try call.collaboration(), viewer: try call.givenIdentity(), language: call.arguments.text("language"))
    },
    CollabVerb("customize", "ID", "change title, custom items, manage button") { call in
        CustomizeDetails(
            of: try call.collaboration(), title: call.arguments.text("title"),
            customItems: try call.value([CustomItem].self, fromFile: "items"),
            manageButtonTitle: call.arguments.text("manage-title"))
    },
    CollabVerb("stop", "ID", "stop sharing: everything about it is deleted") { call in
        StopSharing(try call.collaboration())
    },
]
