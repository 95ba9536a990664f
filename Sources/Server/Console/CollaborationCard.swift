import Collaboration
import Core
import Foundation

/// A collaboration as the collaboration button's popover shows it, and what else is known of it. Apple's guidelines
/// name three sections: the people, the app's own items, and the button that manages the share.
struct CollaborationCard {
    let details: CollaborationDetails
    /// A page of the participants, those who were removed included.
    let people: [Participant]
    /// `nil`: not among the participants that were looked at.
    let owner: Participant?

    /// `facts`: about the set of root hashes. `attribution`: of the link, on the shelves of people. `more`: the last
    /// participant of the page, when there are others behind.
    func markup(
        facts: Markup, attribution: LinkAttribution, more: Participant?, _ identifier: CollaborationIdentifier
    ) -> Markup {
        let link = more.map { last -> Markup in
            let fields = [("id", identifier.description), ("after", last.identity.rootHash.description)]
            return "<p>\(Markup.link("Show more", to: "/collaboration", fields))</p>"
        }
        return """
            <h1>\(title(or: .name(identifier.description)))</h1>
            <div class="columns wide"><section aria-labelledby="popover"><h2 id="popover">As people see it</h2>
            \(popover)</section>
            <section aria-labelledby="facts"><h2 id="facts">Facts</h2>\(facts)\(share)</section></div>
            <section aria-labelledby="attribution"><h2 id="attribution">Attribution</h2>\(attribution.markup)</section>
            <section aria-labelledby="people"><h2 id="people">Participants</h2>\(participants)\(link ?? "")</section>
            <section aria-labelledby="options"><h2 id="options">Share options</h2>\(options)</section>
            """
    }

    private func title(or other: Markup) -> Markup { .name(details.highlight.title, or: other) }

    // MARK: The popover

    private var popover: Markup {
        let highlight = details.highlight
        let count = details.participantCount
        let sharer = Markup.name(highlight.initiatorName, or: "")
        let shared: Markup = sharer.html.isEmpty ? "" : "<p>Shared by \(sharer)</p>"
        let app = activity + items
        return """
            <div class="popover"><section aria-label="People"><p><b>\(title(or: "Untitled"))</b><br>\
            \(count) \(count == 1 ? "person" : "people") · \(Markup.name(highlight.summary))</p>\(shared)
            <ul>\(collaborators)</ul></section>
            <section aria-label="The app's items"><ul>\(app.isEmpty ? ["<li class=\"empty\">Nothing new.</li>"] : app)\
            </ul></section>
            <section aria-label="Managing"><button type="button" disabled>\(Markup.name(details.manageButtonTitle))\
            </button></section></div>
            """
    }

    /// The owner, then others, with their names.
    private var collaborators: [Markup] {
        let people = [owner].compactMap { $0 } + details.participants.filter { $0.role != .owner }
        let named = people.prefix(Limits.consolePopoverNamesMax).map { person -> Markup in
            let words = [person.role == .owner ? "owner" : nil, person.state == .invited ? "invited" : nil]
            let notes = words.compactMap { $0 }.joined(separator: ", ")
            return """
                <li>\(Pill.face(person.displayName)) \(Markup.name(person.displayName, or: "no name")) \
                <small>\(notes)</small></li>
                """
        }
        return named + rest(details.participantCount - named.count)
    }

    private var activity: [Markup] {
        let shown = details.recentActivity.prefix(Limits.consolePopoverNoticesMax).map { notice in
            "<li>\(Markup.name(notice.sentence)) <small>\(Markup.time(notice.date))</small></li>" as Markup
        }
        // Beyond that number nobody knows how many there are.
        let isFull = details.recentActivity.count >= Limits.detailNoticesMax
        return shown
            + (isFull ? ["<li class=\"empty\">and more</li>"] : rest(details.recentActivity.count - shown.count))
    }

    private var items: [Markup] {
        details.customItems.map { item in
            "<li><b>\(Markup.name(item.title, or: "Untitled"))</b> \(Markup.name(item.subtitle, or: ""))</li>"
        }
    }

    /// A line about those that are not shown.
    private func rest(_ count: Int) -> [Markup] { count > 0 ? ["<li class=\"empty\">and \(count) more</li>"] : [] }

    private var share: Markup {
        let highlight = details.highlight
        let entries: [(name: String, value: Markup?)] = [
            ("link", highlight.url.map { "<code>\($0.absoluteString)</code>" }),
            ("shared since", .time(highlight.creationDate)),
            ("shared by", highlight.initiatorName.map { .name($0, or: "a blank name") }),
            ("handle", highlight.initiatorHandle.map { .name($0, or: "a blank handle") }),
            ("summary, in the app's words", .name(highlight.summary)),
        ]
        return .list(entries.compactMap { entry in entry.value.map { (entry.name, $0) } })
    }

    // MARK: People and options

    private var participants: Markup {
        let rows = people.map { person -> [Markup] in
            [
                "\(Pill.face(person.displayName)) \(Markup.name(person.displayName, or: "no name"))",
                "\(person.role.rawValue)", CollaborationCard.permission(of: person), "\(person.state.rawValue)",
                person.joinedAt.map { Markup.time($0) } ?? "–", person.removedAt.map { Markup.time($0) } ?? "–",
                person.account.map { Markup.link(.name($0.name), to: "/shelf", [("account", $0.name)]) } ?? "–",
                "<code>\(String(person.identity.rootHash.description.prefix(16)))…</code>",
            ]
        }
        return .table(
            "Participants, by root hash",
            ["name", "role", "permission", "state", "joined", "removed", "account", "root hash"], rows,
            empty: "There is no participant.")
    }

    private static func permission(of person: Participant) -> Markup {
        guard person.state != .removed else { return "none" }
        let own: Markup = person.followsShareOptions ? " (share options)" : " (own)"
        return (person.permission == .readOnly ? "may read" : "may change") + own
    }

    private var options: Markup {
        let groups = details.shareOptions.groups.map { group -> Markup in
            let content = group.content
            let options = content.options.map { option -> Markup in
                let mark: Markup = option.isSelected ? "<b class=\"good\">selected</b>" : "<span>not selected</span>"
                let effects = option.effects.map(\.rawValue).joined(separator: ", ")
                let needs = option.requiredOptionsIdentifiers.joined(separator: ", ")
                let needed: Markup = needs.isEmpty ? "" : "; needs \(Markup.name(needs))"
                let effect: Markup = effects.isEmpty ? "no effect on what anybody may do" : "effects: \(effects)"
                return """
                    <li>\(mark) \(Markup.name(option.title, or: "Untitled")) \
                    <small>\(Markup.name(option.subtitle, or: "")) · \(effect)\(needed)</small></li>
                    """
            }
            let kind: Markup =
                switch group {
                case .switches: "any number of"
                case .picker: "one of"
                }
            let footer = Markup.name(content.footer, or: "")
            return """
                <div class="group"><h3>\(Markup.name(content.title, or: "")) <small>\(kind)</small></h3>\
                <ul>\(options)</ul>\(footer.html.isEmpty ? "" : "<p class=\"note\">\(footer)</p>" as Markup)</div>
                """
        }
        return groups.isEmpty ? "<p class=\"empty\">There is no option.</p>" : "\(groups)"
    }
}
