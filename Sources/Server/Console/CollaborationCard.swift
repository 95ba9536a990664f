import Collaboration
import Core
import Foundation

/// A collaboration as the collaboration button's popover shows it, and what else is known of it. Apple's guidelines
/// name three sections: the people, the app's own items, and the button that manages the share.
struct CollaborationCard {
    let details: CollaborationDetails
    /// A page of the participants, those who were removed included.
    let people: [Participant]

    /// `facts`: about the set of root hashes. `attribution`: of the link, on the shelves of people. `more`: the last
    /// participant of the page, when there are others behind.
    func markup(
        facts: Markup, attribution: [(account: Account, details: AttributionDetails)], more: Participant?,
        _ identifier: CollaborationIdentifier
    ) -> Markup {
        let highlight = details.highlight
        let link = more.map { last -> Markup in
            let fields = [("id", identifier.description), ("after", last.identity.rootHash.description)]
            return "<p>\(Markup.link("Show more", to: "/collaboration", fields))</p>"
        }
        return """
            <h1>\(Markup.name(highlight.title ?? identifier.description))</h1>
            <div class="columns wide"><section aria-labelledby="popover"><h2 id="popover">As people see it</h2>
            \(popover)</section>
            <section aria-labelledby="facts"><h2 id="facts">Facts</h2>\(facts)\(share)</section></div>
            <section aria-labelledby="people"><h2 id="people">Participants</h2>\(participants)\(link ?? "")</section>
            <section aria-labelledby="options"><h2 id="options">Share options</h2>\(options)</section>
            <section aria-labelledby="attribution"><h2 id="attribution">Attribution</h2>\
            \(attributions(attribution))</section>
            """
    }

    // MARK: The popover

    private var popover: Markup {
        let faces = details.participants.prefix(5).map { Pill.face($0.displayName ?? "?") }
        let count = details.participantCount
        let activity = details.recentActivity.prefix(3).map { notice in
            "<li>\(notice.sentence) <small>\(Markup.time(notice.date))</small></li>" as Markup
        }
        let items = details.customItems.map { item in
            "<li><b>\(Markup.name(item.title))</b> \(item.subtitle.map { Markup.name($0) } ?? "")</li>" as Markup
        }
        let app = activity + items
        return """
            <div class="popover"><section aria-label="People"><p class="faces">\(faces)</p>
            <p><b>\(Markup.name(details.highlight.title ?? "Untitled"))</b><br>\
            \(count) \(count == 1 ? "person" : "people") · \(details.highlight.summary)</p></section>
            <section aria-label="The app's items"><ul>\(app.isEmpty ? ["<li class=\"empty\">Nothing new.</li>"] : app)\
            </ul></section>
            <section aria-label="Managing"><span class="manage">\(details.manageButtonTitle)</span></section></div>
            """
    }

    private var share: Markup {
        let highlight = details.highlight
        let entries: [(name: String, value: Markup?)] = [
            ("link", highlight.url.map { "<code>\($0.absoluteString)</code>" }),
            ("shared since", .time(highlight.creationDate)),
            ("shared by", highlight.initiatorName.map { .name($0) }),
            ("handle", highlight.initiatorHandle.map { .name($0) }),
            ("who may do what", "\(highlight.summary)"),
            ("manage button", "\(details.manageButtonTitle)"),
        ]
        return .list(entries.compactMap { entry in entry.value.map { (entry.name, $0) } })
    }

    // MARK: People and options

    private var participants: Markup {
        let rows = people.map { person -> [Markup] in
            let own: Markup = person.followsShareOptions ? " (share options)" : " (own)"
            let permission: Markup = person.permission == .readOnly ? "may read" : "may change"
            return [
                "\(Pill.face(person.displayName ?? "?")) \(Markup.name(person.displayName ?? "no name"))",
                "\(person.role.rawValue)", permission + own, "\(person.state.rawValue)",
                (person.joinedAt ?? person.removedAt).map { Markup.time($0) } ?? "–",
                person.account.map { Markup.link(.name($0.name), to: "/shelf", [("account", $0.name)]) } ?? "–",
                "<code>\(String(person.identity.rootHash.description.prefix(16)))…</code>",
            ]
        }
        return .table(
            "Participants, by root hash",
            ["name", "role", "permission", "state", "joined", "account", "root hash"], rows,
            empty: "There is no participant.")
    }

    private var options: Markup {
        let groups = details.shareOptions.groups.map { group -> Markup in
            let content = group.content
            let options = content.options.map { option -> Markup in
                let mark: Markup = option.isSelected ? "<b class=\"good\">selected</b>" : "<span>not selected</span>"
                let effects = option.effects.map(\.rawValue).joined(separator: ", ")
                let told: Markup = effects.isEmpty ? "" : " <small>· effects: \(effects)</small>"
                return """
                    <li>\(mark) \(Markup.name(option.title)) <small>\(Markup.name(option.subtitle))</small>\(told)</li>
                    """
            }
            let kind: Markup =
                switch group {
                case .switches: "any number of"
                case .picker: "one of"
                }
            let footer: Markup = content.footer.isEmpty ? "" : "<p class=\"note\">\(content.footer)</p>"
            return """
                <div class="group"><h3>\(Markup.name(content.title.isEmpty ? content.identifier : content.title)) \
                <small>\(kind)</small></h3><ul>\(options)</ul>\(footer)</div>
                """
        }
        return groups.isEmpty ? "<p class=\"empty\">There is no option.</p>" : "\(groups)"
    }

    private func attributions(_ found: [(account: Account, details: AttributionDetails)]) -> Markup {
        guard !found.isEmpty else {
            return """
                <p class="empty">The link is on no shelf of these participants, or none of them has an account that is \
                known.</p>
                """
        }
        let items = found.map { entry -> Markup in
            let whose = Markup.link(.name(entry.account.name), to: "/shelf", [("account", entry.account.name)])
            return "<li>On the shelf of \(whose): \(Pill.pills(of: entry.details))</li>"
        }
        return "<ul class=\"attributions\">\(items)</ul>"
    }
}
