import Core
import Foundation
import RootgateClient

/// Everything that `rootgate collab` does, in the order of a collaboration's life.
let collabVerbs: [CollabVerb] =
    rootSetVerbs + sharingVerbs + participantVerbs + noticeVerbs + shelfVerbs + invitationVerbs

private let sharingVerbs: [CollabVerb] = [
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
        ReadDetails(of: try call.collaboration(), viewer: try call.givenIdentity())
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

private let participantVerbs: [CollabVerb] = [
    CollabVerb("add", "ID HEX ...", "add participants by their root hashes") { call in
        let (role, permission) = (
            try call.choice(ParticipantRole.self, option: "role"),
            try call.choice(Permission.self, option: "permission")
        )
        let people = try call.identities(from: 1).map {
            NewParticipant($0, displayName: call.arguments.text("name"), role: role, permission: permission)
        }
        return AddParticipants(people, to: try call.collaboration())
    },
    CollabVerb("remove", "ID HEX ...", "remove participants; their grants are revoked") { call in
        RemoveParticipants(try call.identities(from: 1), from: try call.collaboration())
    },
    CollabVerb("update", "ID HEX", "change a participant's name, role, permission") { call in
        UpdateParticipant(
            NewParticipant(
                try call.identity(try call.operand(1, "the participant")), displayName: call.arguments.text("name"),
                role: try call.choice(ParticipantRole.self, option: "role"),
                permission: try call.choice(Permission.self, option: "permission")),
            in: try call.collaboration())
    },
    CollabVerb("participants", "ID [HEX]", "list participants, after a given one") { call in
        ListParticipants(
            of: try call.collaboration(), after: try call.operands.dropFirst().first.map(call.identity),
            limit: try call.arguments.number("limit", in: 1...Limits.participantsPerPageMax),
            includesRemoved: call.arguments.isOn("all"))
    },
    CollabVerb("link", "ID HEX", "link a participant to --account, or to none") { call in
        LinkAccount(
            try call.arguments.text("account").map(call.account(named:)),
            to: try call.identity(try call.operand(1, "the participant")), in: try call.collaboration())
    },
    CollabVerb("open", "ID [FILE|-]", "verify proofs from JSON Lines, print grants", run: open),
    CollabVerb("check", "ID GRANT ...", "check grants", run: check),
]

/// Sends proofs; prints verdict and grant of each.
@Sendable private func open(_ call: CollabCall) async throws -> ExitCode {
    let collaboration = try call.collaboration()
    let atLeast = UInt64(try call.arguments.number("at-least", in: 0...Int.max))
    let input = try ProofLines(path: call.operands.dropFirst().first ?? "-")
    var refused = false
    var number = 0
    while case let lines = try input.next(256), !lines.isEmpty {
        let proofs = lines.compactMap { line -> SignedIdentityProof? in
            if case .proof(let proof) = line { proof } else { nil }
        }
        var decisions = try await call.client.open(
            proofs.map { AccessRequest(collaboration: collaboration, proof: $0) }, atLeast: atLeast
        ).makeIterator()
        for line in lines {
            number += 1
            var object: [String: Any] = ["line": number]
            switch line {
            case .malformed(let reason):
                (object["verdict"], object["reason"]) = (Verdict.malformed.name, reason)
                refused = true
            case .proof:
                guard let decision = decisions.next() else { continue }
                object["verdict"] = decision.verdict.name
                object["grant"] = decision.grant?.text
                refused = refused || decision.verdict.isRefusal
            }
            printNow(try json(object))
        }
    }
    return refused ? .refused : .success
}

@Sendable private func check(_ call: CollabCall) async throws -> ExitCode {
    let collaboration = try call.collaboration()
    let checks = try call.operands.dropFirst().map { GrantCheck(try call.grant($0), in: collaboration) }
    guard !checks.isEmpty else { throw UsageError("give grants as operands") }
    let decisions = try await call.client.check(
        checks, atLeast: UInt64(try call.arguments.number("at-least", in: 0...Int.max)))
    for decision in decisions {
        var object: [String: Any] = ["status": decision.status.name]
        object["permission"] = decision.permission?.rawValue
        object["role"] = decision.role?.rawValue
        object["secondsLeft"] = decision.timeLeft.map { $0.components.seconds }
        printNow(
            call.arguments.isOn("json")
                ? try json(object)
                : [decision.status.name, decision.permission?.rawValue, decision.role?.rawValue].compactMap { $0 }
                    .joined(separator: " "))
    }
    return decisions.contains { $0.status.isRefusal } ? .refused : .success
}

private let noticeVerbs: [CollabVerb] = [
    CollabVerb(
        "post", "ID EVENT ... --grant GRANT",
        "events: edit comment created deleted renamed moved mention=HEX added[=HEX] removed[=HEX]"
    ) { call in
        PostNotices(
            try call.operands.dropFirst().map { try event($0, call) }, on: try call.collaboration(),
            by: try call.grant(try call.arguments.required("grant")))
    },
    CollabVerb("notices", "[ID] [--identity|--account]", "read a feed, or --follow it", run: notices),
    CollabVerb("clear", "ID --grant GRANT", "delete notices from the feed of the grant's participant") { call in
        ClearNotices(of: try call.collaboration(), by: try call.grant(try call.arguments.required("grant")))
    },
]

/// An event as an operand: `edit`, `mention=HEX`, `added`, `removed=HEX`.
private func event(_ text: String, _ call: CollabCall) throws -> HighlightEvent {
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    let person = try parts.dropFirst().first.map(call.identity)
    switch (parts.first ?? "", person) {
    case ("mention", let person?): return .mention(person: person)
    case ("added", let person): return .membership(trigger: .addedCollaborator, person: person)
    case ("removed", let person): return .membership(trigger: .removedCollaborator, person: person)
    case (let name, nil):
        if let change = HighlightEvent.Change(rawValue: name) { return .change(trigger: change) }
        if let persistence = HighlightEvent.Persistence(rawValue: name) { return .persistence(trigger: persistence) }
        fallthrough
    default: throw UsageError("\(text) is no event")
    }
}

@Sendable private func notices(_ call: CollabCall) async throws -> ExitCode {
    let feed: Feed
    if call.operands.isEmpty {
        feed = .account(try call.account())
    } else if let person = try call.givenIdentity() {
        feed = .participant(person, of: try call.collaboration())
    } else {
        feed = .collaboration(try call.collaboration())
    }
    let after = UInt64(try call.arguments.number("after", in: 0...Int.max))
    guard call.arguments.isOn("follow") else {
        let limit = try call.arguments.number("limit", in: 1...Limits.noticesPerPageMax)
        let page = try await call.client.send(ReadNotices(feed, after: after, limit: limit))
        if call.arguments.isOn("json") {
            try call.show(FlatPage(notices: page.notices, next: page.next, hasMore: page.hasMore))
        } else {
            for notice in page.notices { printNow("\(notice.sequence)\t\(notice.sentence)") }
        }
        return .success
    }
    for try await page in call.client.notices(feed, after: after) {
        for notice in page.notices {
            if call.arguments.isOn("json") {
                try call.show(notice)
            } else {
                printNow("\(notice.sequence)\t\(notice.sentence)")
            }
        }
    }
    return .success
}

/// A page with its notices in one list.
private struct FlatPage: Encodable {
    let notices: [Notice]
    let next: UInt64
    let hasMore: Bool
}

private let shelfVerbs: [CollabVerb] = [
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
        ReadAttribution(try call.link(), of: try call.account(), removeTitle: call.arguments.text("title"))
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

private let invitationVerbs: [CollabVerb] = [
    CollabVerb("invite", "ID", "make an invitation; prints its token", run: invite),
    CollabVerb("accept", "TOKEN ... --account ACCOUNT", "accept invitations", run: accept),
    CollabVerb("invitations", "ID", "list pending invitations, or --all") { call in
        ListInvitations(of: try call.collaboration(), includesSettled: call.arguments.isOn("all"))
    },
    CollabVerb("revoke", "ID INVITATION", "take an invitation back") { call in
        RevokeInvitation(try call.operand(1, "the invitation"), of: try call.collaboration())
    },
    CollabVerb("shares", "--account ACCOUNT", "the shares of a --scope") { call in
        ListShares(
            of: try call.account(),
            scope: try call.choice(Scope.self, try call.arguments.required("scope")))
    },
]

@Sendable private func invite(_ call: CollabCall) async throws -> ExitCode {
    var request = CreateInvitation(
        to: try call.collaboration(), role: try call.choice(ParticipantRole.self, option: "role"),
        permission: try call.choice(Permission.self, option: "permission"))
    if call.arguments.text("hours") != nil {
        request.expiresAt = Date(timeIntervalSinceNow: try call.arguments.decimal("hours", in: 0.001...1e6) * 3600)
    }
    let invitation = try await call.client.send(request)
    if call.arguments.isOn("json") {
        printNow(try json(["token": request.token.text, "identifier": invitation.identifier]))
    } else {
        printNow("token \(request.token.text) invitation \(invitation.identifier)")
    }
    return .success
}

@Sendable private func accept(_ call: CollabCall) async throws -> ExitCode {
    let (account, identity) = (try call.account(), try call.givenIdentity())
    let requests = try call.operands.map { text -> AcceptInvitation in
        guard let token = InvitationToken(text) else { throw UsageError("\(text) is not an invitation's token") }
        return AcceptInvitation(token, for: account, identity: identity, displayName: call.arguments.text("name"))
    }
    guard !requests.isEmpty else { throw UsageError("give tokens as operands") }
    let acceptances = try await call.client.accept(requests)
    for acceptance in acceptances { try call.show(acceptance) }
    return acceptances.contains { $0.refusal != nil } ? .refused : .success
}
