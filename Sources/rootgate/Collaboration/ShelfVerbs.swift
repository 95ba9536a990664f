import Core
import Foundation
import RootgateClient

let shelfVerbs: [CollabVerb] = [
    CollabVerb("share", "LINK --to ACCOUNT,...", "record that a link was shared") { call in
        RecordShare(
            url: try call.link(), title: call.arguments.text("title"), app: try call.arguments.required("app"),
            sharer: Sharer(name: try call.arguments.required("sharer")),
            conversation: Conversation(
                identifier: try call.arguments.required("conversation"), isGroup: call.arguments.isOn("group")),
            recipients: try (call.names("to") ?? []).map { name in
                ShareRecipient(try call.account(named: name), knowsSomebody: !call.arguments.isOn("strangers"))
            })
    },
    CollabVerb("shelf", "--account ACCOUNT", "what was shared with a person") { call in
        ReadShelf(
            of: try call.account(), limit: try call.arguments.number("limit", in: 1...Limits.highlightsPerPageMax))
    },
    CollabVerb("pin", "LINK --account ACCOUNT", "pin an item") { call in
        PinHighlight(try call.link(), of: try call.account(), in: call.arguments.text("conversation"))
    },
    CollabVerb("unpin", "LINK --account ACCOUNT", "unpin an item") { call in
        PinHighlight(try call.link(), of: try call.account(), in: call.arguments.text("conversation"), isPinned: false)
    },
    CollabVerb("hide", "LINK --account ACCOUNT", "remove an item from now on") { call in
        RemoveHighlight(try call.link(), of: try call.account())
    },
    CollabVerb("signal", "LINK viewed|interacted|shown", "record what a person did with an item") { call in
        SignalHighlight(
            try call.choice(HighlightSignal.self, try call.operand(1, "the signal")), try call.link(),
            of: try call.account(), context: try call.choice(DisplayContext.self, option: "context"))
    },
    CollabVerb("consent", "[LEVEL yes|no|unset]", "everything, app=ID or conversation=ID", run: consent),
    CollabVerb("attribution", "LINK --account ACCOUNT", "who shared it, and the menu") { call in
        ReadAttribution(
            try call.link(), of: try call.account(), removeTitle: call.arguments.text("title"),
            language: call.arguments.text("language"))
    },
]

@Sendable private func consent(_ call: CollabCall) async throws -> ExitCode {
    let account = try call.account()
    guard let text = call.operands.first else {
        try call.show(try await call.client.send(ReadConsent(of: account)))
        return .success
    }
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    let level: ConsentLevel
    switch (parts.first, parts.count) {
    case ("everything", 1): level = .everything
    case ("app", 2): level = .app(parts[1])
    case ("conversation", 2): level = .conversation(parts[1])
    default: throw UsageError("a level is everything, app=ID or conversation=ID")
    }
    let isAllowed: Bool?
    switch try call.operand(1, "yes, no or unset") {
    case "yes": isAllowed = true
    case "no": isAllowed = false
    case "unset": isAllowed = nil
    default: throw UsageError("say yes, no or unset")
    }
    try call.show(try await call.client.send(SetConsent(of: account, level, isAllowed: isAllowed)))
    return .success
}
