import Core
import Foundation
import RootgateClient

let noticeVerbs: [CollabVerb] = [
    CollabVerb(
        Verb(
            "post", "ID EVENT ... --grant GRANT", 2...Verb.operandsMax, options: ["link", "grant"],
            "events: edit comment created deleted renamed moved mention=HEX added[=HEX] removed[=HEX]")
    ) { call in
        let link = try call.arguments.text("link").map(call.url)
        return PostNotices(
            try call.operands.dropFirst().map { HighlightEvent(try event($0, call), link: link) },
            on: try call.collaboration(), by: try call.grant(try call.arguments.required("grant")))
    },
    CollabVerb(
        Verb(
            "notices", "[ID] [--identity|--account]", 0...1,
            options: ["identity", "account", "language", "after", "limit", "all", "follow"],
            "read a feed, or --follow it"), run: notices),
    CollabVerb(
        Verb(
            "clear", "ID --grant GRANT", 1...1, options: ["grant"],
            "empty the feed of the grant's participant, and no other view")
    ) { call in
        ClearNotices(of: try call.collaboration(), by: try call.grant(try call.arguments.required("grant")))
    },
]

/// An event as an operand: `edit`, `mention=HEX`, `added`, `removed=HEX`.
private func event(_ text: String, _ call: CollabCall) throws -> HighlightEvent.Kind {
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
    default:
        throw UsageError(
            "\(text) is no event: edit comment created deleted renamed moved mention=HEX added[=HEX] removed[=HEX]")
    }
}

@Sendable private func notices(_ call: CollabCall) async throws -> ExitCode {
    let feed: Feed
    if call.operands.isEmpty {
        guard call.arguments.isGiven("account") else { throw UsageError("name a collaboration, or an --account") }
        feed = .account(try call.account())
    } else if call.arguments.isGiven("account") {
        throw UsageError("a feed is that of a collaboration or of an --account, not both")
    } else if let person = try call.givenIdentity() {
        feed = .participant(person, of: try call.collaboration())
    } else {
        feed = .collaboration(try call.collaboration())
    }
    let language = call.arguments.text("language")
    let after = UInt64(try call.afterNumber())
    guard call.arguments.isOn("follow") else {
        let limit = try call.limit(upTo: Limits.noticesPerPageMax)
        try await call.arguments.eachPage(from: after) { after in
            let page = try await call.client().send(
                ReadNotices(feed, after: after, limit: limit, language: language))
            if call.arguments.isOn("json") {
                try call.show(FlatPage(notices: page.notices, next: page.next, hasMore: page.hasMore))
            } else {
                for notice in page.notices { printNow("\(notice.sequence)\t\(notice.sentence.escapingControls)") }
            }
            return page.hasMore ? (page.next, "\(page.next)") : nil
        }
        return .success
    }
    for try await page in try call.client().notices(feed, after: after, language: language) {
        for notice in page.notices {
            if call.arguments.isOn("json") {
                try call.show(notice)
            } else {
                printNow("\(notice.sequence)\t\(notice.sentence.escapingControls)")
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
