import Core
import Foundation
import RootgateClient

/// Writes one collaboration line by line. Everything but notices and shares is read twice, and must be the same both
/// times: so it is what held at one moment. In memory it has a page of each list at a time.
struct CollabExport {
    let client: RootgateClient
    let collaboration: CollaborationIdentifier
    /// The account that owns it; `nil`: the one that the owner is linked to.
    let owner: Account?
    let wantsNotices: Bool
    let wantsShares: Bool

    /// What was seen of the people.
    private struct Seen {
        var tally = TransferTally()
        /// The account of the participant who is the owner.
        var owner: Account?
        /// What somebody may do who has no permission of his own.
        var inherited: Permission?
        var accounts: Set<Account> = []
    }

    /// Writes the collaboration. Throws when it is changed meanwhile, or when there is none. `between`: called between
    /// the two readings.
    func run(_ write: (String) -> Void, between: () -> Void = {}) async throws {
        let isLayered = try await isLayered()
        var before = Seen()
        try await visitPeople(isLayered) { try note($0, in: &before) }
        let settings = isLayered ? try await settings(before) : nil
        let set = isLayered ? nil : try await rootSet()
        var (seen, tally) = (Seen(), TransferTally())
        func put(_ line: TransferLine) throws {
            tally.count(line)
            let text = try line.text()
            tally.hash(text.utf8)
            write(text)
        }
        between()
        let settingsAgain = isLayered ? try await self.settings(before) : nil
        let setAgain = isLayered ? nil : try await rootSet()
        try put(TransferLine(format: TransferLine.format, version: TransferLine.version))
        try put(TransferLine(collaboration: settingsAgain, rootSet: setAgain))
        try await visitPeople(isLayered) { line in
            try note(line, in: &seen)
            try put(line)
        }
        guard settings == settingsAgain, set == setAgain, before.tally.summary == seen.tally.summary else {
            throw UsageError(
                "the collaboration was changed while it was exported, and the file has no end: export it again")
        }
        if isLayered, wantsNotices { try await visitNotices(put) }
        if wantsShares, let settings {
            let accounts = (seen.accounts.union([settings.owner])).sorted {
                $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
            }
            for account in accounts { try await visitShares(of: account, settings.url, put) }
        }
        write(try TransferLine(end: tally.summary).text())
    }

    /// Whether the collaboration was started with `prepare`.
    private func isLayered() async throws -> Bool {
        do throws(ServiceError) {
            _ = try await client.send(ListParticipants(of: collaboration, limit: 1))
            return true
        } catch {
            guard error.code == .unknownCollaboration else { throw error }
            return false
        }
    }

    private func rootSet() async throws -> TransferredSet {
        TransferredSet(
            collaboration: collaboration, nonceWindowSeconds: try await client.state(of: collaboration).policy.window)
    }

    private func note(_ line: TransferLine, in seen: inout Seen) throws {
        seen.tally.count(line)
        seen.tally.hash(try line.text().utf8)
        guard let participant = line.participant else { return }
        if participant.role == .owner { seen.owner = participant.account }
        if let account = participant.account { seen.accounts.insert(account) }
    }

    // MARK: What the collaboration is

    private func settings(_ seen: Seen) async throws -> TransferredCollaboration {
        guard let owner = owner ?? seen.owner else {
            throw UsageError("the service does not tell whose the collaboration is: name the account with --owner")
        }
        let window = try await client.state(of: collaboration).policy.window
        let details = try await client.send(ReadDetails(of: collaboration, language: "en"))
        // The standard title is another one in another language.
        let other = try await client.send(ReadDetails(of: collaboration, language: "de")).manageButtonTitle
        guard let url = details.highlight.url else {
            throw ServiceError(.noLinkBase, "the service has no base for links: start it with --link-base")
        }
        return TransferredCollaboration(
            collaboration: collaboration, url: url, owner: owner, localIdentifier: try await localIdentifier(of: owner),
            title: details.highlight.title, creationDate: details.highlight.creationDate,
            initiatorHandle: details.highlight.initiatorHandle, initiatorName: details.highlight.initiatorName,
            shareOptions: details.shareOptions,
            defaultPermission: try await defaultPermission(details), nonceWindowSeconds: window,
            customItems: details.customItems,
            manageButtonTitle: details.manageButtonTitle == other ? other : nil)
    }

    /// What the account calls the content. Throws `UsageError` when the collaboration is not the account's.
    private func localIdentifier(of owner: Account) async throws -> LocalCollaborationIdentifier {
        var next: String?
        repeat {
            let page = try await client.send(
                ListShares(of: owner, scope: .private, after: next, limit: Limits.sharesPerPageMax))
            if let share = page.shares.first(where: { $0.collaborationIdentifier == collaboration }),
                let local = share.localIdentifier
            {
                return local
            }
            next = page.next
        } while next != nil
        throw UsageError("\(owner.name.escapingControls) is not the account that owns the collaboration")
    }

    /// The permission that holds when the options say none. No request tells it; it shows in the summary, or in a
    /// participant who inherits it. `nil` when it shows nowhere.
    private func defaultPermission(_ details: CollaborationDetails) async throws -> Permission? {
        let options = details.shareOptions
        guard options.permission == nil else { return nil }
        let summaries = Permission.allCases.filter { options.summary(for: $0) == details.highlight.summary }
        if summaries.count == 1 { return summaries.first }
        var participants = participants()
        while let participant = try await participants.next() {
            if participant.followsShareOptions { return participant.permission }
        }
        return nil
    }

    // MARK: Who takes part

    private func participants() -> PageWalk<Participant> {
        PageWalk { last in
            let page = try await client.send(
                ListParticipants(of: collaboration, after: last?.identity, limit: Limits.participantsPerPageMax))
            return (page.participants, page.hasMore)
        }
    }

    /// Participants and root hashes without one, in ascending order of all their root hashes, then open invitations.
    private func visitPeople(_ isLayered: Bool, _ visit: (TransferLine) throws -> Void) async throws {
        var participants = isLayered ? participants() : PageWalk { _ in ([], false) }
        var roots = PageWalk<Digest> { last in
            let page = try await client.roots(of: collaboration, after: last, limit: Limits.rootsPerPageMax)
            return (page.items, page.hasMore)
        }
        while true {
            let (participant, root) = (try await participants.first(), try await roots.first())
            if let participant, root.map({ participant.identity.rootHash <= $0 }) ?? true {
                let isInSet = participant.identity.rootHash == root
                if isInSet { roots.removeFirst() }
                participants.removeFirst()
                try visit(TransferLine(participant: TransferredParticipant(participant, isInSet: isInSet)))
            } else if let root {
                roots.removeFirst()
                try visit(TransferLine(root: root))
            } else {
                break
            }
        }
        guard isLayered else { return }
        var invitations = PageWalk<Invitation> { last in
            let page = try await client.send(
                ListInvitations(
                    of: collaboration, includesSettled: true, after: last?.identifier,
                    limit: Limits.invitationsPerPageMax))
            return (page.invitations, page.hasMore)
        }
        while let invitation = try await invitations.next() {
            guard [.pending, .accepted].contains(invitation.state) else { continue }
            try visit(TransferLine(invitation: invitation))
        }
    }

    // MARK: What people see

    private func visitNotices(_ visit: (TransferLine) throws -> Void) async throws {
        var page: NoticePage
        var next: UInt64 = 0
        repeat {
            page = try await client.send(
                ReadNotices(.collaboration(collaboration), after: next, limit: Limits.noticesPerPageMax))
            for notice in page.notices { try visit(TransferLine(notice: notice)) }
            next = page.next
        } while page.hasMore
    }

    /// The shares of the collaboration's link, and of links below it, that are on an account's shelf.
    private func visitShares(of account: Account, _ link: URL, _ visit: (TransferLine) throws -> Void) async throws {
        var items: [Highlight] = []
        var offset = 0
        var shelf: Shelf
        repeat {
            shelf = try await client.send(
                ReadShelf(of: account, for: .everyApp, limit: Limits.highlightsPerPageMax, offset: offset))
            items += shelf.highlights.filter { $0.url.leads(to: link) }
            offset += shelf.highlights.count
        } while !shelf.highlights.isEmpty && offset < shelf.count
        items.sort { $0.url.absoluteString.utf8.lexicographicallyPrecedes($1.url.absoluteString.utf8) }
        for item in items {
            let thumbnail = try await thumbnail(of: item, on: account)
            let shares = item.attributions.compactMap { attribution -> TransferredShare? in
                guard let sharer = attribution.sharer, let conversation = attribution.conversation else { return nil }
                return TransferredShare(
                    account: account, url: item.url, title: item.title, subtitle: item.subtitle, thumbnail: thumbnail,
                    app: item.app, sharer: sharer, conversation: conversation, date: attribution.date,
                    isPinned: attribution.isPinned)
            }
            let sorted = shares.sorted {
                $0.conversation.identifier.utf8.lexicographicallyPrecedes($1.conversation.identifier.utf8)
            }
            for share in sorted { try visit(TransferLine(share: share)) }
        }
    }

    private func thumbnail(of item: Highlight, on account: Account) async throws -> Thumbnail? {
        switch item.thumbnail {
        case nil: return nil
        case .link(let url): return .link(url)
        case .stored(let hash, _, _):
            let image = try await client.send(ReadThumbnail(hash, of: item.url, on: account, for: .everyApp))
            return .image(image.bytes, image.type)
        }
    }
}

extension ProofPolicy {
    /// For how long nonces are remembered; `nil`: devices sign challenges.
    fileprivate var window: UInt32? {
        if case .deviceNonce(let seconds) = self { seconds } else { nil }
    }
}

extension URL {
    /// Whether the link is that one, as it is written, or one to a place below it.
    func leads(to link: URL) -> Bool {
        let (text, beginning) = (absoluteString, link.absoluteString)
        guard text.hasPrefix(beginning) else { return false }
        return text.dropFirst(beginning.count).first.map { "/?#".contains($0) } ?? true
    }
}
