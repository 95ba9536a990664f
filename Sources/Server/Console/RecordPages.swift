import Collaboration
import Core
import Foundation
import Principals
import RootSets

/// The console's pages about what is stored: collaborations, their people, shelves and principals. They are for looking
/// only: each is the answer to queries of the collaboration layer, and no query changes anything.
struct RecordPages: Sendable {
    static let paths = ["/collaborations", "/collaboration", "/shelf", "/thumbnail", "/principals"]
    /// Those that every page links to.
    static let titles = [
        ("/collaborations", "Collaborations"), ("/shelf", "Shelf"), ("/principals", "Principals"),
    ]

    let frame: ConsoleFrame
    let layer: CollaborationLayer

    func page(for request: HTTPRequest) -> HTTPPage? {
        guard Self.paths.contains(request.path) else { return nil }
        return HTTPPage {
            guard let query = FormFields(request.query.utf8) else { return .refusal(.badRequest) }
            do throws(ServiceError) {
                switch request.path {
                case "/collaborations": return try collaborations(query)
                case "/collaboration": return try collaboration(query)
                case "/shelf": return try shelf(query)
                case "/thumbnail": return try thumbnail(query)
                default: return try principals(query)
                }
            } catch {
                return problem(error, at: request.path)
            }
        }
    }

    /// A page that tells an error as a client gets it.
    private func problem(_ error: ServiceError, at path: String) -> HTTPResponse {
        let status: HTTPResponse.Status =
            switch error.code {
            case .unknownCollaboration, .unknownHighlight: .notFound
            case .malformedRequest, .limitExceeded: .badRequest
            default: .unavailable
            }
        return frame.page(
            "This can't be shown", at: path, status: status,
            """
            <h1>This can't be shown</h1>
            <p class="answer bad" role="alert">\(error.reason)</p>
            """)
    }

    private static let looking: Markup = "<p class=\"note\">This page is for looking: it changes nothing.</p>"

    // MARK: Collaborations

    private func collaborations(_ query: FormFields) throws(ServiceError) -> HTTPResponse {
        let prefix = query["prefix"] ?? ""
        let after = query["after"].flatMap { CollaborationIdentifier($0) }
        let page = try found(prefix: prefix, after: after)
        let rows = page.items.map { summary -> [Markup] in
            let name = summary.identifier.description
            return [
                .link(.name(name), to: "/collaboration", [("id", name)]),
                "\(ServiceView.grouped(summary.rootCount))", "\(summary.policy.text)",
            ]
        }
        let more = page.next.map { next -> Markup in
            let link = Markup.link(
                "Show more", to: "/collaborations", [("prefix", prefix), ("after", next.description)])
            return "<p>\(link)</p>"
        }
        return frame.page(
            "Collaborations", at: "/collaborations",
            """
            <h1>Collaborations</h1>
            <form method="get" action="/collaborations" class="row">
            <label for="prefix">Identifiers that begin with</label>
            <input id="prefix" name="prefix" value="\(Markup(verbatim: prefix))" autocomplete="off" \
            autocapitalize="off" spellcheck="false"><button type="submit">List</button>
            </form>
            \(Markup.table(
                "Collaborations, in the storage's order", ["identifier", "root hashes", "what proofs sign"], rows,
                empty: page.next == nil ? "There is none." : "There is none among those that were read."))
            \(more ?? "")
            \(Self.looking)
            """)
    }

    /// Up to a page of collaborations with the prefix. `next`: from where to go on; `nil` at the end. The storage has
    /// no order that helps, so a look reads some pages and then stops.
    private func found(
        prefix: String, after start: CollaborationIdentifier?
    ) throws(ServiceError) -> (items: [CollaborationSummary], next: CollaborationIdentifier?) {
        let rootSets = layer.resources.rootSets
        try rootSets.admit(reading: .sets)
        return try rootSets.read { snapshot throws(ServiceError) in
            var (items, last) = ([CollaborationSummary](), start)
            for _ in 0..<Limits.consolePagesRead {
                let page = try snapshot.collaborations(after: last, limit: Limits.collaborationsPerPageMax)
                for summary in page.items where summary.identifier.utf8.starts(with: prefix.utf8) {
                    guard items.count < Limits.consoleRowsMax else { return (items, items.last?.identifier) }
                    items.append(summary)
                }
                last = page.items.last?.identifier
                if !page.hasMore { return (items, nil) }
            }
            return (items, last)
        }
    }

    // MARK: One collaboration

    private func collaboration(_ query: FormFields) throws(ServiceError) -> HTTPResponse {
        guard let identifier = CollaborationIdentifier(query["id"] ?? "") else {
            throw ServiceError(.malformedRequest, "no collaboration can have this identifier")
        }
        let rootSets = layer.resources.rootSets
        try rootSets.admit(reading: .sets)
        let summary = try rootSets.read { snapshot throws(ServiceError) in try snapshot.summary(of: identifier) }
        guard let summary else {
            throw ServiceError(.unknownCollaboration, "there is no collaboration \(identifier)")
        }
        let facts: Markup = .list([
            ("identifier", .name(identifier.description)),
            ("root hashes", "\(ServiceView.grouped(summary.rootCount))"),
            ("what proofs sign", "\(summary.policy.text)"),
        ])
        do throws(ServiceError) {
            let details = try layer.look(ReadDetails(of: identifier))
            let after = query["after"].flatMap { Digest(hexadecimal: $0) }.map { PersonIdentity(rootHash: $0) }
            let people = try layer.look(
                ListParticipants(of: identifier, after: after, limit: Limits.consoleRowsMax, includesRemoved: true))
            let owner = try owner(of: identifier, among: details.participants)
            let card = CollaborationCard(details: details, people: people.participants, owner: owner)
            let attribution = try attribution(of: details, people.participants)
            let more = people.hasMore ? people.participants.last : nil
            return frame.page(
                details.highlight.title.flatMap { $0.isUnseen ? nil : $0 } ?? identifier.description,
                at: "/collaborations",
                card.markup(facts: facts, attribution: attribution, more: more, identifier) + Self.looking)
        } catch {
            guard error.code == .unknownCollaboration else { throw error }
            return frame.page(
                identifier.description, at: "/collaborations",
                """
                <h1>\(Markup.name(identifier.description))</h1>\(facts)
                <p>It has a set of root hashes only: it was not started with share options, a link and participants.</p>
                \(Self.looking)
                """)
        }
    }

    /// The owner, who is searched in some pages of participants at most; `nil` when he is in none of them.
    private func owner(
        of identifier: CollaborationIdentifier, among first: [Participant]
    ) throws(ServiceError) -> Participant? {
        if let owner = first.first(where: { $0.role == .owner }) { return owner }
        var last = first.last?.identity
        for _ in 0..<Limits.consolePagesRead {
            let page = try layer.look(
                ListParticipants(of: identifier, after: last, limit: Limits.participantsPerPageMax))
            if let owner = page.participants.first(where: { $0.role == .owner }) { return owner }
            guard page.hasMore else { return nil }
            last = page.participants.last?.identity
        }
        return nil
    }

    /// Who has shared the collaboration's link with those of the people whose accounts are known.
    private func attribution(
        of details: CollaborationDetails, _ people: [Participant]
    ) throws(ServiceError) -> LinkAttribution {
        var attribution = LinkAttribution()
        guard let url = details.highlight.url else {
            attribution.hasLink = false
            return attribution
        }
        var accounts: [Account] = []
        for account in people.filter({ $0.state != .removed }).compactMap(\.account) where !accounts.contains(account) {
            accounts.append(account)
        }
        attribution.known = accounts.count
        for account in accounts.prefix(Limits.consoleAttributionsMax) {
            attribution.looked += 1
            if let details = try shown(url, to: account) { attribution.found.append((account, details)) }
        }
        return attribution
    }

    /// The attribution of a link on an account's shelf; `nil` when the link is not there.
    private func shown(_ url: URL, to account: Account) throws(ServiceError) -> AttributionDetails? {
        do throws(ServiceError) {
            return try layer.look(ReadAttribution(url, of: account, for: .everyApp))
        } catch {
            guard error.code == .unknownHighlight else { throw error }
            return nil
        }
    }

    // MARK: A shelf

    private func shelf(_ query: FormFields) throws(ServiceError) -> HTTPResponse {
        let (name, app) = (query["account"] ?? "", query["app"] ?? "")
        let form = Self.form(ofShelf: name, app)
        guard !name.isEmpty else { return frame.page("Shelf", at: "/shelf", form + Self.looking) }
        guard let account = Account(name) else {
            throw ServiceError(.malformedRequest, "no account can have this name")
        }
        guard let offset = Int(query["offset"] ?? "0") else {
            throw ServiceError(.malformedRequest, "the offset is no number")
        }
        let shelf = try layer.look(
            ReadShelf(
                of: account, for: app.isEmpty ? .everyApp : .app(app), limit: Limits.highlightsPerPageMax,
                offset: offset))
        var cards: [Markup] = []
        for item in shelf.highlights {
            // Since the shelf was read it may have been removed.
            guard let attribution = try shown(item.url, to: account) else { continue }
            cards.append(ShelfCard(item: item, attribution: attribution, account: account).markup)
        }
        let next = offset + shelf.highlights.count
        let hasMore = next < shelf.count && !shelf.highlights.isEmpty
        let fields = [("account", name), ("app", app), ("offset", "\(next)")].filter { !$0.1.isEmpty }
        let more: Markup = hasMore ? "<p>\(Markup.link("Show more", to: "/shelf", fields))</p>" : ""
        let list: Markup = cards.isEmpty ? Self.nothing(behind: offset) : "<ul class=\"shelf\">\(cards)</ul>"
        return frame.page(
            "Shelf", at: "/shelf",
            form + "<h2>\(Markup.name(name)): \(shelf.count) \(shelf.count == 1 ? "item" : "items")</h2>\(list)\(more)"
                + (app.isEmpty ? "" : Self.ofEveryApp) + Self.looking)
    }

    private static func form(ofShelf account: String, _ app: String) -> Markup {
        """
        <h1>Shared with You</h1>
        <form method="get" action="/shelf" class="row"><label for="account">The shelf of the account</label>
        <input id="account" name="account" value="\(Markup(verbatim: account))" required autocomplete="off" \
        autocapitalize="off" spellcheck="false"><label for="app">in the app</label>
        <input id="app" name="app" value="\(Markup(verbatim: app))" placeholder="every app" autocomplete="off" \
        autocapitalize="off" spellcheck="false"><button type="submit">Show</button></form>
        """
    }

    /// An app learns no names, so the system's side draws its attribution.
    private static let ofEveryApp: Markup = """
        <p class="note">The items are those of the app. Attribution tells everybody who has shared the link, with \
        whichever app.</p>
        """

    private static func nothing(behind offset: Int) -> Markup {
        guard offset == 0 else { return "<p class=\"empty\">Nothing is behind item \(offset).</p>" }
        return """
            <p class="empty">Nothing is on it. An item is there when it is pinned, or when the account has allowed \
            automatic sharing for it. It is not there when the account has removed it, or when it was shared only in \
            groups in which the account knows nobody.</p>
            """
    }

    /// A stored picture. Browsers show it as what its first bytes say, and as nothing else.
    private func thumbnail(_ query: FormFields) throws(ServiceError) -> HTTPResponse {
        guard let account = Account(query["account"] ?? ""), let url = URL(string: query["url"] ?? ""),
            let hash = Digest(hexadecimal: query["hash"] ?? "")
        else { throw ServiceError(.malformedRequest, "it takes an account, a url and a hash") }
        let image = try layer.look(ReadThumbnail(hash, of: url, on: account, for: .everyApp))
        return HTTPResponse(.ok, image.bytes, contentType: image.type.rawValue, fields: ConsoleFrame.fields)
    }

    // MARK: Principals

    private func principals(_ query: FormFields) throws(ServiceError) -> HTTPResponse {
        let after = query["after"].flatMap { PrincipalName($0) }
        let page = try layer.look(ListPrincipals(after: after, limit: Limits.consoleRowsMax))
        let rows = page.principals.map { principal -> [Markup] in
            let uses = [principal.lastUsedAt].compactMap { $0 } + principal.keys.compactMap(\.lastUsedAt)
            return [
                .name(principal.name.text), .lines(principal.roles.map(\.text)),
                .lines(principal.waysIn), .lines(principal.limits.texts),
                uses.max().map { Markup.time($0) } ?? "never",
                principal.expiresAt.map { Markup.time($0) } ?? "never",
            ]
        }
        let more = page.hasMore ? page.principals.last : nil
        let link = more.map { last -> Markup in
            "<p>\(Markup.link("Show more", to: "/principals", [("after", last.name.text)]))</p>"
        }
        return frame.page(
            "Principals", at: "/principals",
            """
            <h1>Principals</h1>
            \(Markup.table(
                "Principals by name", ["name", "roles", "known by", "limits", "last used", "expires"], rows,
                empty: "There is none: every connection from this machine may do everything."))
            \(link ?? "")
            <p class="note">The last use may be up to an hour too early. Keys are never shown. This page is for \
            looking: it changes nothing.</p>
            """)
    }
}

extension Markup {
    /// Texts below each other; a dash when there is none.
    static func lines(_ texts: [String]) -> Markup {
        guard !texts.isEmpty else { return "–" }
        return "\(texts.map { "<div>\($0)</div>" as Markup })"
    }
}

extension ProofPolicy {
    /// What the proofs of a collaboration sign, in words.
    fileprivate var text: String {
        switch self {
        case .challenge: "challenges"
        case .deviceNonce(let seconds): "device nonces (\(seconds) s)"
        }
    }
}

extension LimitedRole {
    fileprivate var text: String {
        let reach = prefixes == [.every] ? "" : " for " + prefixes.map(\.description).joined(separator: ", ")
        return role.rawValue + reach + (app.map { ", app \($0)" } ?? "")
    }
}

extension ListedPrincipal {
    /// How a connection shows that it is this principal, without what the keys are.
    fileprivate var waysIn: [String] {
        let keys = keys.isEmpty ? [] : ["\(self.keys.count) \(self.keys.count == 1 ? "key" : "keys")"]
        return keys + certificates.map { "certificate \($0)" } + (localUser.map { ["local user \($0)"] } ?? [])
    }
}

extension PrincipalLimits {
    fileprivate var texts: [String] {
        Kind.allCases.compactMap { kind in
            self[kind].map { "\(ServiceView.grouped(UInt64(max(0, $0)))) \(kind.unit)" }
        }
    }
}
