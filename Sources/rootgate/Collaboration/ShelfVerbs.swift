import Core
import Foundation
import RootgateClient

let shelfVerbs: [CollabVerb] = [
    CollabVerb(
        Verb(
            "share", "LINK --app ID --to ACCOUNT,...", 1...1,
            options: ["title", "subtitle", "thumbnail", "app", "sharer", "conversation", "group", "strangers", "to"],
            "record that a link was shared")
    ) { call in
        RecordShare(
            url: try call.link(), title: call.arguments.text("title"), subtitle: call.arguments.text("subtitle"),
            thumbnail: try call.thumbnail(), app: try call.arguments.required("app"),
            sharer: Sharer(name: try call.arguments.required("sharer")),
            conversation: Conversation(
                identifier: try call.arguments.required("conversation"), isGroup: call.arguments.isOn("group")),
            recipients: try call.requiredNames("to").map { name in
                ShareRecipient(try call.account(named: name), knowsSomebody: !call.arguments.isOn("strangers"))
            })
    },
    .list(
        Verb(
            "shelf", "--account ACCOUNT --app ID", 0...0,
            options: ["account", "app", "every-app", "after", "limit", "all"], "what was shared with a person")
    ) { call in
        ReadShelf(
            of: try call.account(), for: try call.scope(), limit: try call.limit(upTo: Limits.highlightsPerPageMax),
            offset: try call.afterNumber())
    } next: { request, answer in
        let end = (request.offset ?? 0) + answer.highlights.count
        guard !answer.highlights.isEmpty, end < answer.count else { return nil }
        var following = request
        following.offset = end
        return (following, "\(end)")
    },
    CollabVerb(
        Verb(
            "thumbnail", "LINK HASH --account ACCOUNT", 2...2, options: ["account", "app", "every-app"],
            "a stored thumbnail of an item, as the item names it")
    ) {
        call in
        guard let hash = Digest(hexadecimal: try call.operand(1, "the thumbnail's hash")) else {
            throw UsageError("a thumbnail's hash is 64 hexadecimal characters")
        }
        return ReadThumbnail(hash, of: try call.link(), on: try call.account(), for: try call.scope())
    },
    CollabVerb(
        Verb(
            "pin", "LINK --account ACCOUNT", 1...1, options: ["account", "app", "every-app", "conversation", "handle"],
            "pin an item")
    ) { call in try call.pin(true) },
    CollabVerb(
        Verb(
            "unpin", "LINK --account ACCOUNT", 1...1,
            options: ["account", "app", "every-app", "conversation", "handle"], "unpin an item")
    ) { call in try call.pin(false) },
    CollabVerb(
        Verb(
            "hide", "LINK --account ACCOUNT", 1...1, options: ["account", "app", "every-app"],
            "remove an item from now on")
    ) { call in
        RemoveHighlight(try call.link(), of: try call.account(), for: try call.scope())
    },
    CollabVerb(
        Verb(
            "signal", "LINK viewed|interacted|shown", 2...2, options: ["account", "app", "every-app", "context"],
            "record what a person did with an item")
    ) { call in
        SignalHighlight(
            try call.choice(HighlightSignal.self, try call.operand(1, "the signal")), try call.link(),
            of: try call.account(), for: try call.scope(),
            context: try call.choice(DisplayContext.self, option: "context"))
    },
    CollabVerb(
        Verb("consent", "[LEVEL yes|no|unset]", 0...2, options: ["account"], "everything, app=ID or conversation=ID"),
        run: consent),
    CollabVerb(
        Verb(
            "attribution", "LINK --account ACCOUNT", 1...1,
            options: ["account", "app", "every-app", "title", "language"], "who shared it, and the menu")
    ) { call in
        ReadAttribution(
            try call.link(), of: try call.account(), for: try call.scope(), removeTitle: call.arguments.text("title"),
            language: call.arguments.text("language"))
    },
]

extension CollabCall {
    /// Whose part of a shelf the call is about: `--app` or `--every-app`.
    fileprivate func scope() throws -> ShelfScope {
        switch (arguments.text("app"), arguments.isOn("every-app")) {
        case (let app?, false): return .app(app)
        case (nil, true): return .everyApp
        case (_?, true): throw UsageError("--app and --every-app exclude each other")
        case (nil, false): throw UsageError("--app or --every-app is needed")
        }
    }

    fileprivate func pin(_ isPinned: Bool) throws -> PinHighlight {
        var request = PinHighlight(
            try link(), of: try account(), for: try scope(), in: arguments.text("conversation"), isPinned: isPinned)
        request.handle = try arguments.text("handle").map { text in
            guard let handle = ConversationHandle(text) else { throw UsageError("\(text) is not a handle") }
            return handle
        }
        return request
    }

    /// The thumbnail that `--thumbnail` names: a link when it has a scheme and a host, or else a file.
    fileprivate func thumbnail() throws -> Thumbnail? {
        guard let text = arguments.text("thumbnail") else { return nil }
        if text.contains("://") { return .link(try url(text)) }
        let bytes = Array(try contents(of: text))
        guard bytes.count <= Limits.thumbnailBytesMax else {
            throw UsageError("\(text) has more than \(Limits.thumbnailBytesMax) bytes")
        }
        guard let type = ImageType(of: bytes) else {
            throw UsageError("\(text) is not an image: \(ImageType.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return .image(bytes, type)
    }
}

@Sendable private func consent(_ call: CollabCall) async throws -> ExitCode {
    let account = try call.account()
    guard let text = call.operands.first else {
        try call.show(try await call.client().send(ReadConsent(of: account)))
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
    try call.show(try await call.client().send(SetConsent(of: account, level, isAllowed: isAllowed)))
    return .success
}
